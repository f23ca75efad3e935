// SPDX-License-Identifier: GPL-2.0

//! Which CPUs there are.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use crate::bindings;
use kernel::{
    cpu::{nr_cpu_ids, CpuId},
    cpumask::Cpumask,
    ffi::c_void,
    interrupt::LocalInterruptDisabled,
};

/// The CPUs that run at present. They come and go.
pub fn online_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(online_mask())
}

/// The CPUs that can ever be there. This does not change.
pub fn possible_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(possible_mask())
}

/// Whether `cpu` can ever be there.
#[inline]
pub fn possible(cpu: CpuId) -> bool {
    possible_mask().test(cpu)
}

/// Calls `f` on each CPU that runs, and waits until all have. None comes or goes meanwhile.
///
/// Process context.
pub fn on_each_cpu<F: Fn(&LocalInterruptDisabled) + Sync>(f: &F) {
    let info = (&raw const *f).cast_mut().cast();
    // SAFETY: The lock is let go of below, by the same task. `callback::<F>` gets what it wants,
    // which stays there until it has returned on all CPUs.
    unsafe {
        bindings::cpus_read_lock();
        bindings::rpmu_helper_on_each_cpu(Some(callback::<F>), info);
        bindings::cpus_read_unlock();
    }
}

/// # Safety
///
/// For [`on_each_cpu`], with an `F`, to be called by the kernel with interrupts off.
unsafe extern "C" fn callback<F: Fn(&LocalInterruptDisabled) + Sync>(f: *mut c_void) {
    // SAFETY: By this function's requirements. `F` is `Sync`, so that all CPUs may use it at once.
    let f = unsafe { &*f.cast_const().cast::<F>() };
    // SAFETY: By this function's requirements.
    f(unsafe { LocalInterruptDisabled::assume_disabled() });
}

/// The CPUs in `mask`, ascending.
pub(crate) fn in_mask(mask: &Cpumask) -> impl Iterator<Item = CpuId> + '_ {
    (0..nr_cpu_ids())
        .filter_map(CpuId::from_u32)
        .filter(|cpu| mask.test(*cpu))
}

fn online_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global and is always valid. Its bits change under the reader, which is
    // fine: they are tested one at a time with an access that the compiler may not split or repeat.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_online_mask).cast()) }
}

fn possible_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global, always valid, and not written to after boot.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_possible_mask).cast()) }
}
