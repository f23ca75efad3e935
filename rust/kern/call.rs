// SPDX-License-Identifier: GPL-2.0

//! Calling a function on another CPU.
//!
//! C header: [`include/linux/smp.h`](srctree/include/linux/smp.h)

use crate::bindings;
use kernel::{
    cpu::CpuId, error::to_result, ffi::c_void, interrupt::LocalInterruptDisabled, prelude::*,
};

/// Calls `f` on `cpu`, in an interrupt, and waits for it.
///
/// `ENXIO` if the CPU is off; then `f` has not been called. Process context, interrupts on. `f` must
/// not sleep.
pub fn call_on<F: FnOnce(&LocalInterruptDisabled) + Send>(cpu: CpuId, f: F) -> Result {
    let mut f = Some(f);
    let info: *mut c_void = (&raw mut f).cast();
    // CAST: a CPU's number is an `int`.
    // SAFETY: It calls the function once at most, with what that wants, and not any more when it has
    // returned. So `f` is used by nobody else meanwhile, and is still there.
    to_result(unsafe {
        bindings::smp_call_function_single(cpu.as_u32() as i32, Some(callback::<F>), info, true)
    })
}

/// # Safety
///
/// For the kernel to call, with interrupts off, with an `Option<F>` that nobody else uses.
unsafe extern "C" fn callback<F: FnOnce(&LocalInterruptDisabled) + Send>(info: *mut c_void) {
    // SAFETY: By this function's requirements.
    let f = unsafe { &mut *info.cast::<Option<F>>() };
    // SAFETY: As above.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if let Some(f) = f.take() {
        f(irqs);
    }
}
