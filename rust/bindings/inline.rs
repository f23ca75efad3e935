// SPDX-License-Identifier: GPL-2.0

//! What C code does inline, and the kernel's Rust code by calling a C function for it. In callbacks
//! that a context switch makes by the dozen, the calls are a good part of all instructions.

use core::{
    arch::asm,
    mem::size_of,
    ptr::NonNull, //
};
use kernel::interrupt::LocalInterruptDisabled;

/// `raw_smp_processor_id()`.
#[inline(always)]
pub(crate) fn cpu_number() -> u32 {
    let cpu;
    // SAFETY: The instruction reads a word that every CPU has.
    unsafe {
        asm!(
            "mov {:e}, dword ptr gs:[rip + {}]",
            out(reg) cpu,
            sym super::cpu_number,
            options(nostack, preserves_flags, readonly)
        );
    }
    cpu
}

/// What `raw_cpu_ptr()` adds to a pointer to data of all CPUs.
#[inline(always)]
pub(crate) fn this_cpu_offset() -> usize {
    let offset;
    // SAFETY: In the kernel, GS is the base of the CPU's own variables. Each CPU has a
    // `this_cpu_off`, a word of 64 bits, which the instruction only reads.
    unsafe {
        asm!(
            "mov {}, qword ptr gs:[rip + {}]",
            out(reg) offset,
            sym super::this_cpu_off,
            options(nostack, preserves_flags, readonly)
        );
    }
    offset
}

/// [`LocalInterruptDisabled::assume_disabled()`], which calls a function that is empty in kernels
/// without lockdep.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(crate) unsafe fn assume_irqs_disabled<'a>() -> &'a LocalInterruptDisabled {
    const { assert!(size_of::<LocalInterruptDisabled>() == 0) };
    if cfg!(CONFIG_PROVE_LOCKING) {
        // SAFETY: By this function's requirements.
        return unsafe { LocalInterruptDisabled::assume_disabled() };
    }
    // SAFETY: The type has no size, so there is nothing to be valid but the pointer, which is
    // aligned and not null. What a value of it stands for is so by this function's requirements.
    unsafe { NonNull::dangling().as_ref() }
}
