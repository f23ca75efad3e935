// SPDX-License-Identifier: GPL-2.0

//! Which CPUs there are, and calls to functions on other CPUs.
//!
//! C headers: [`include/linux/smp.h`](srctree/include/linux/smp.h),
//! [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use crate::bindings;
use kernel::{
    cpu::{nr_cpu_ids, CpuId},
    cpumask::Cpumask,
    error::to_result,
    ffi::c_void,
    interrupt::LocalInterruptDisabled,
    prelude::*,
};

/// The CPUs that run at present. They come and go unless
/// [`hotplug::read_lock`](super::hotplug::read_lock) is held.
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

/// The CPUs in `mask`, ascending.
pub(super) fn in_mask(mask: &Cpumask) -> impl Iterator<Item = CpuId> + '_ {
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

/// What [`call_on`] passes to the other CPU and gets back.
struct Call<F, R> {
    function: Option<F>,
    result: Option<R>,
}

/// Calls `function` on `cpu`, with interrupts off, and waits for its result.
///
/// `ENXIO` if the CPU is offline. Process context with interrupts on: two CPUs that wait for each
/// other with interrupts off wait forever. `function` must not sleep.
pub fn call_on<F, R>(cpu: CpuId, function: F) -> Result<R>
where
    F: FnOnce(&LocalInterruptDisabled) -> R + Send,
    R: Send,
{
    let mut call = Call {
        function: Some(function),
        result: None,
    };
    // SAFETY: `call_on_callback` is called with `call` at most once, and not after this returns,
    // because it is told to wait.
    to_result(unsafe {
        bindings::smp_call_function_single(
            cpu.into(),
            Some(call_on_callback::<F, R>),
            (&raw mut call).cast(),
            true,
        )
    })?;
    call.result.ok_or(ENXIO)
}

/// # Safety
///
/// `info` must point to a `Call<F, R>` that nobody else uses meanwhile, and interrupts must be off.
unsafe extern "C" fn call_on_callback<F, R>(info: *mut c_void)
where
    F: FnOnce(&LocalInterruptDisabled) -> R,
{
    // SAFETY: This function's own requirement.
    let call = unsafe { &mut *info.cast::<Call<F, R>>() };
    // SAFETY: This function's own requirement; they are not turned on before it returns.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if let Some(function) = call.function.take() {
        call.result = Some(function(irqs));
    }
}

/// Calls `function` on each online CPU, on all of them at the same time, with interrupts off, and
/// waits until all are done.
///
/// A CPU that comes online meanwhile may be missed: take
/// [`hotplug::read_lock`](super::hotplug::read_lock) if that matters. Process context with
/// interrupts on. `function` must not sleep.
pub fn call_on_each<F>(function: F)
where
    F: Fn(CpuId, &LocalInterruptDisabled) + Sync,
{
    // SAFETY: `call_on_each_callback` is called with `function`, which may be shared between
    // threads, and not after this returns, because it is told to wait. The mask is a valid global.
    unsafe {
        bindings::on_each_cpu_cond_mask(
            None,
            Some(call_on_each_callback::<F>),
            (&raw const function).cast_mut().cast(),
            true,
            online_mask().as_raw().cast(),
        )
    };
}

/// # Safety
///
/// `info` must point to an `F` that is not written to meanwhile, and interrupts must be off.
unsafe extern "C" fn call_on_each_callback<F>(info: *mut c_void)
where
    F: Fn(CpuId, &LocalInterruptDisabled),
{
    // SAFETY: This function's own requirement.
    let function = unsafe { &*info.cast::<F>() };
    // SAFETY: This function's own requirement; they are not turned on before it returns.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    function(CpuId::current(), irqs);
}
