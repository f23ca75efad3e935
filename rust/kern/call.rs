// SPDX-License-Identifier: GPL-2.0

//! Calling a function on another CPU.
//!
//! C header: [`include/linux/smp.h`](srctree/include/linux/smp.h)

use crate::bindings;
use kernel::{
    cpu::CpuId,
    error::to_result,
    ffi::c_void,
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    prelude::*, //
};

/// Calls `f` on `cpu` with interrupts off, and waits until it has returned. On another CPU, `f`
/// runs in an interrupt.
///
/// Fails with `ENXIO`, without calling `f`, if the CPU is offline. Process context with interrupts
/// on. `f` must not sleep.
pub fn call_on<F: FnOnce(&LocalInterruptDisabled) + Send>(cpu: CpuId, f: F) -> Result {
    let mut f = Some(f);
    let info: *mut c_void = (&raw mut f).cast();
    // CAST: a CPU's number is an `int`. SAFETY: With `wait` set, `smp_call_function_single()`
    // returns only when the callback has run, or will never run, and calls it at most once
    // (kernel/smp.c). So `f` outlives the callback, and only the callback uses it meanwhile.
    to_result(unsafe {
        bindings::smp_call_function_single(cpu.as_u32() as i32, Some(callback::<F>), info, true)
    })
}

/// Calls `f` on `cpu` as [`call_on`] does. If `cpu` is [`None`], calls it on this CPU, with
/// interrupts off.
// `f` returns no value: a type parameter for it would make the callback's symbol name longer.
pub fn call_on_or_here<F: FnOnce(&LocalInterruptDisabled) + Send>(
    cpu: Option<CpuId>,
    f: F,
) -> Result {
    match cpu {
        Some(cpu) => call_on(cpu, f),
        None => {
            f(&local_interrupt_disable());
            Ok(())
        }
    }
}

/// # Safety
///
/// `info` must point to an `Option<F>` to which the callback has exclusive access. Interrupts must
/// be off.
unsafe extern "C" fn callback<F: FnOnce(&LocalInterruptDisabled) + Send>(info: *mut c_void) {
    // SAFETY: By this function's requirements.
    let f = unsafe { &mut *info.cast::<Option<F>>() };
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if let Some(f) = f.take() {
        f(irqs);
    }
}
