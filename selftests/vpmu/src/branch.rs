// SPDX-License-Identifier: GPL-2.0

//! A taken branch, as QEMU tells of it.

/// A taken branch, an interrupt or an exception. Mirrors `struct vpmu_branch`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Branch {
    /// A kind of branch in [`crate::retired`], or [`crate::retired::INTERRUPTS`].
    pub kind: u32,
    /// The CPL was not 0 before.
    pub from_user: bool,
    /// Nor is it afterwards.
    pub to_user: bool,
    /// A direct near call of the next instruction.
    pub next: bool,
    /// EIP of the branch instruction; of interrupts and exceptions, EIP as it is saved.
    pub from: u64,
    /// EIP of the target.
    pub to: u64,
    /// Instructions retired since the last branch, this one included; for the first one, since
    /// [`crate::pmu::Pmu::records_branches`] became true.
    pub instructions: u64,
}
