// SPDX-License-Identifier: GPL-2.0

//! A taken branch, as QEMU reports it.

/// A taken branch, an interrupt or an exception. Mirrors `struct vpmu_branch`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Branch {
    /// A kind of branch in [`crate::retired`], or [`crate::retired::INTERRUPTS`].
    pub kind: u32,
    /// Set if the CPL was not 0 before.
    pub from_user: bool,
    /// Set if the CPL is not 0 afterwards.
    pub to_user: bool,
    /// Set for a direct near call of the next instruction.
    pub next: bool,
    /// EIP of the branch instruction; for interrupts and exceptions, the saved EIP.
    pub from: u64,
    /// EIP of the target.
    pub to: u64,
    /// Instructions retired since the last branch, including this one; for the first branch, since
    /// [`crate::pmu::Pmu::records_branches`] became true.
    pub instructions: u64,
}
