// SPDX-License-Identifier: GPL-2.0

//! The CPUs of the machine.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use crate::bindings;
use kernel::{
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    cpumask::Cpumask,
    ffi::c_void,
    interrupt::LocalInterruptDisabled, //
};

/// Returns the CPUs that are online at present.
pub fn online_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(online_mask())
}

/// Returns the CPUs that can ever come online. The set does not change after boot.
pub fn possible_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(possible_mask())
}

/// Returns the CPUs that exist, online or not.
pub fn present_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(present_mask())
}

/// Returns whether `cpu` can ever come online.
#[inline]
pub fn possible(cpu: CpuId) -> bool {
    const BITS: usize = usize::BITS as usize;
    // CAST: `usize` has more bits.
    let cpu = cpu.as_u32() as usize;
    let words = (&raw const bindings::__cpu_possible_mask).cast::<usize>();
    // SAFETY: `cpu` is below `nr_cpu_ids`, so the mask has a bit for it. It is not written after
    // boot.
    let word = unsafe { words.add(cpu / BITS).read() };
    word >> (cpu % BITS) & 1 != 0
}

/// Calls `f` on each online CPU, and waits until all calls have returned. No CPU comes online or
/// goes offline meanwhile.
///
/// Process context.
pub fn on_each_cpu<F: Fn(&LocalInterruptDisabled) + Sync>(f: &F) {
    let info = (&raw const *f).cast_mut().cast();
    // SAFETY: The lock is released below, by the same task. `on_each_cpu()` waits until the
    // callback has returned on all CPUs, so that `f` outlives all calls.
    unsafe {
        bindings::cpus_read_lock();
        bindings::rpmu_helper_on_each_cpu(Some(callback::<F>), info);
        bindings::cpus_read_unlock();
    }
}

/// # Safety
///
/// `f` must point to a valid `F`. Interrupts must be off.
unsafe extern "C" fn callback<F: Fn(&LocalInterruptDisabled) + Sync>(f: *mut c_void) {
    // SAFETY: By this function's requirements. `F` is `Sync`, so all CPUs may use it at the same
    // time.
    let f = unsafe { &*f.cast_const().cast::<F>() };
    // SAFETY: By this function's requirements.
    f(unsafe { LocalInterruptDisabled::assume_disabled() });
}

/// Returns the CPUs in `mask`, ascending.
pub(crate) fn in_mask(mask: &Cpumask) -> impl Iterator<Item = CpuId> + '_ {
    (0..nr_cpu_ids())
        .filter_map(CpuId::from_u32)
        .filter(|cpu| mask.test(*cpu))
}

fn online_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global and always valid. Its bits change under the reader; `test()`
    // reads each with one access that the compiler may neither split nor repeat.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_online_mask).cast()) }
}

fn present_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global and always valid. Its bits change under the reader; `test()`
    // reads each with one access that the compiler may neither split nor repeat.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_present_mask).cast()) }
}

fn possible_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global, always valid, and not written after boot.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_possible_mask).cast()) }
}
