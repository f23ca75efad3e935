// SPDX-License-Identifier: GPL-2.0

//! The PMU of one logical CPU.
//!
//! ```text
//!   access ── msr, reserved          RDMSR, WRMSR, RDPMC: the register map, reserved bits
//!        ├─── accounting_msr, injected
//!        └─── amd                    what AMD's PMUs have instead
//!   cpuid                            the CPUID leaves that describe the PMU
//!   count ─── enable, sibling        counts what retires: which counters, the other thread's share
//!        ├─── metrics                MSR_PERF_METRICS: the shares of the slots
//!        └─── overflow, freeze       what comes of an overflow: status, PMI, freezing
//!   lbr                              last branch records: the MSRs, what is recorded
//!   pebs                             precise sampling: the MSRs, when a record is due, its layout
//!   state ─── registers, totals, pending, tsx     what all of these work on
//! ```
//!
//! State that a feature needs besides its registers is a struct in a file of its own (`pending`,
//! `tsx`, `metrics`, `lbr`, `pebs`). A vendor with other MSR numbers has a map to the names of
//! [`msr::Msr`] (`amd`), one without global registers leaves `global_ctrl` at all ones.

mod access;
mod accounting_msr;
mod amd;
mod count;
mod cpuid;
mod enable;
mod freeze;
mod injected;
mod lbr;
mod metrics;
mod msr;
mod overflow;
mod pebs;
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
