// SPDX-License-Identifier: GPL-2.0

//! Inline versions of functions that are inline in C, and that the kernel crate calls out of line,
//! through its C helpers. A context switch runs dozens of callbacks, and such calls would be a
//! large part of their instructions.

#![warn(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]

use core::{
    arch::asm,
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled, //
};

/// Returns the number of the current CPU, as `raw_smp_processor_id()` does.
#[inline(always)]
pub(crate) fn cpu_number() -> u32 {
    let cpu;
    // SAFETY: The instruction only reads a per-CPU variable, which every CPU has.
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

/// Returns the offset that `raw_cpu_ptr()` adds to a per-CPU pointer.
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

/// Returns the offset of the per-CPU data of `cpu`, as `per_cpu_offset()` does.
#[inline(always)]
pub(crate) fn per_cpu_offset(cpu: CpuId) -> usize {
    // CAST: `usize` has more bits.
    let cpu = cpu.as_u32() as usize;
    let offsets = (&raw const super::__per_cpu_offset).cast::<usize>();
    // SAFETY: `cpu` is below `nr_cpu_ids`, so it indexes the array, which is read-only after boot.
    unsafe { offsets.add(cpu).read() }
}

/// Returns a proof that interrupts are off, as [`LocalInterruptDisabled::assume_disabled()`] does.
/// Without `CONFIG_PROVE_LOCKING`, omits the call of `lockdep_assert_irqs_disabled()`, which is
/// empty then.
///
/// # Safety
///
/// As for [`LocalInterruptDisabled::assume_disabled()`].
#[inline(always)]
pub(crate) unsafe fn assume_irqs_disabled<'a>() -> &'a LocalInterruptDisabled {
    const { assert!(size_of::<LocalInterruptDisabled>() == 0) };
    if cfg!(CONFIG_PROVE_LOCKING) {
        // SAFETY: By this function's requirements.
        return unsafe { LocalInterruptDisabled::assume_disabled() };
    }
    // SAFETY: The type has no size, so only the pointer has to be valid: it is aligned and not
    // null. A value stands for interrupts that are off, which this function requires.
    unsafe { NonNull::dangling().as_ref() }
}
