// SPDX-License-Identifier: GPL-2.0

//! The common parts of all branch records: their exclusion of Intel PT and BTS, and the kinds of
//! branches.

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::{
    error::to_result,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The registers of a branch, as they are.
#[derive(Clone, Copy, Default, Zeroable)]
pub struct Record {
    /// The address of the branch, with flags on some processors. 0: nothing is recorded, but for
    /// AMD's.
    pub from: u64,
    /// The address of the target.
    pub to: u64,
    /// Further data, where the register exists.
    pub info: u64,
}

/// The functions of the kernel that branch records take.
///
/// # Invariants
///
/// They are bound.
pub struct Functions(());

impl Functions {
    /// Binds the functions. Fails if they cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let symbols = Symbols::new()?;
        let add = symbols.find(c"x86_add_exclusive")?;
        let del = symbols.find(c"x86_del_exclusive")?;
        let branch_type = symbols.find(c"branch_type")?;
        let fused = symbols.find(c"branch_type_fused")?;
        // SAFETY: The addresses are those of functions of the types that the static calls have.
        unsafe {
            bindings::rpmu_helper_bind_lbr(
                add.as_ptr(),
                del.as_ptr(),
                branch_type.as_ptr(),
                fused.as_ptr(),
            )
        };
        // INVARIANT: Just bound.
        Ok(Self(()))
    }

    /// Excludes Intel PT and BTS, which cannot be used together with branch records, until the
    /// result is dropped. (On some processors, PT can.) Fails with `EBUSY` if one of them is in
    /// use. Process context.
    ///
    /// Mainline: `x86_add_exclusive()`, `arch/x86/events/core.c`.
    pub fn exclude_tracers(&self) -> Result<NoTracers> {
        // SAFETY: By the type invariant it is bound. It may sleep.
        to_result(unsafe { bindings::rpmu_helper_x86_add_exclusive(LBR) })?;
        // INVARIANT: Just counted.
        Ok(NoTracers(()))
    }

    /// Returns the kind of the branch from one address to another, as a set of the kernel's bits
    /// `X86_BR_*`; 0 if it is unknown. `abort` says that it is an abort of a TSX transaction.
    ///
    /// Reads the instruction at `from`, if it is of the kernel or the current task. Any context,
    /// NMIs included.
    pub fn kind(&self, from: u64, to: u64, abort: bool, _irqs: &LocalInterruptDisabled) -> u32 {
        // SAFETY: By the type invariant it is bound. It reads memory of the kernel only if that
        // holds code, and memory of the user with faults handled. The built-in driver calls it in
        // NMIs. CAST: addresses.
        let kind =
            unsafe { bindings::rpmu_helper_branch_type(from as usize, to as usize, abort.into()) };
        // CAST: only bits matter.
        kind as u32
    }

    /// The same on processors that record a fused pair of instructions, such as a comparison and a
    /// conditional branch, by the address of the first. Returns also what to add to `from` for the
    /// address of the branch.
    pub fn fused_kind(&self, from: u64, to: u64, _irqs: &LocalInterruptDisabled) -> (u32, u64) {
        let mut offset = 0;
        // SAFETY: As in `kind`, and `offset` is valid for the write of an `int`.
        // CAST: addresses.
        let kind = unsafe {
            bindings::rpmu_helper_branch_type_fused(from as usize, to as usize, 0, &mut offset)
        };
        // CAST: only bits matter, and the offset is within the buffer of a few instructions.
        (kind as u32, offset as u64)
    }
}

/// `x86_lbr_exclusive_lbr`, `arch/x86/events/perf_event.h`.
const LBR: u32 = 0;

/// Intel PT and BTS are excluded as long as this exists.
///
/// # Invariants
///
/// `x86_add_exclusive()` has succeeded once for this, and `x86_del_exclusive()` is bound.
pub struct NoTracers(());

impl Drop for NoTracers {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::rpmu_helper_x86_del_exclusive(LBR) };
    }
}
