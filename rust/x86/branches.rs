// SPDX-License-Identifier: GPL-2.0

//! The parts that all branch records share: excluding Intel PT and BTS, and classifying branches.

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::{
    error::to_result,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The raw registers of a branch record.
#[derive(Clone, Copy, Default, Zeroable)]
pub struct Record {
    /// The address of the branch, with flags on some processors. Except on AMD's, 0 means that
    /// nothing is recorded.
    pub from: u64,
    /// The address of the target.
    pub to: u64,
    /// Further data, where the register exists.
    pub info: u64,
}

/// The kernel's functions for branch records.
///
/// # Invariants
///
/// The functions are bound.
pub struct Functions(());

impl Functions {
    /// Binds the functions. Fails if they cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let symbols = Symbols::new()?;
        let add = symbols.find(c"x86_add_exclusive")?;
        let del = symbols.find(c"x86_del_exclusive")?;
        let branch_type = symbols.find(c"branch_type")?;
        let fused = symbols.find(c"branch_type_fused")?;
        // SAFETY: The addresses belong to functions of the types that the static calls have.
        unsafe {
            bindings::rpmu_helper_bind_lbr(
                add.as_ptr(),
                del.as_ptr(),
                branch_type.as_ptr(),
                fused.as_ptr(),
            )
        };
        // INVARIANT: The functions have just been bound.
        Ok(Self(()))
    }

    /// Excludes Intel PT and BTS until the result is dropped: they cannot be used together with
    /// branch records, except for PT on some processors. Fails with `EBUSY` if one of them is in
    /// use. Process context.
    ///
    /// Mainline: `x86_add_exclusive()`, `arch/x86/events/core.c`.
    pub fn exclude_tracers(&self) -> Result<NoTracers> {
        // SAFETY: By the type invariant the function is bound. It may sleep, and this is process
        // context.
        to_result(unsafe { bindings::rpmu_helper_x86_add_exclusive(LBR) })?;
        // INVARIANT: The call has succeeded, and `bind()` has bound both functions.
        Ok(NoTracers(()))
    }

    /// Returns the kind of the branch between two addresses, as a set of the kernel's bits
    /// `X86_BR_*`; 0 if it is unknown. `abort` is set for the abort of a TSX transaction.
    ///
    /// Reads the instruction at `from`, if it belongs to the kernel or the current task. Any
    /// context, NMIs included.
    pub fn kind(&self, from: u64, to: u64, abort: bool, _irqs: &LocalInterruptDisabled) -> u32 {
        // SAFETY: By the type invariant the function is bound. It reads kernel memory only if this
        // is code, and user memory with faults handled. The built-in driver calls it in NMIs.
        // CAST: addresses.
        let kind =
            unsafe { bindings::rpmu_helper_branch_type(from as usize, to as usize, abort.into()) };
        // CAST: the bits are the same.
        kind as u32
    }

    /// As [`kind`](Self::kind), for processors that record a fused pair of instructions, such as a
    /// comparison and a conditional branch, by the address of the first. Also returns the offset of
    /// the branch from `from`.
    pub fn fused_kind(&self, from: u64, to: u64, _irqs: &LocalInterruptDisabled) -> (u32, u64) {
        let mut offset = 0;
        // SAFETY: As in `kind`, and `offset` is valid for the write of an `int`.
        // CAST: addresses.
        let kind = unsafe {
            bindings::rpmu_helper_branch_type_fused(from as usize, to as usize, 0, &mut offset)
        };
        // CAST: the bits are the same, and the offset is within a buffer of a few instructions.
        (kind as u32, offset as u64)
    }
}

/// `x86_lbr_exclusive_lbr`, `arch/x86/events/perf_event.h`.
const LBR: u32 = 0;

/// Excludes Intel PT and BTS as long as the value exists.
///
/// # Invariants
///
/// `x86_add_exclusive()` has succeeded once for this value, and `x86_del_exclusive()` is bound.
pub struct NoTracers(());

impl Drop for NoTracers {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::rpmu_helper_x86_del_exclusive(LBR) };
    }
}
