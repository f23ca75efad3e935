// SPDX-License-Identifier: GPL-2.0

//! The PMU of one logical CPU.

mod access;
mod accounting_msr;
mod count;
mod cpuid;
mod enable;
mod freeze;
mod inject;
mod msr;
mod overflow;
mod pending;
mod registers;
mod reserved;
mod sibling;
mod state;
#[cfg(test)]
mod tests;
mod totals;
mod tsx;

pub use enable::Counting;
pub use state::Pmu;
