// SPDX-License-Identifier: GPL-2.0

//! The PMU of one logical CPU.
//!
//! ```text
//!   access ── msr, reserved          RDMSR, WRMSR, RDPMC: the register map, reserved bits
//!        ├─── accounting_msr, injected
//!        └─── amd                    the registers of AMD's PMUs
//!   cpuid                            the CPUID leaves that describe the PMU
//!   count ─── enable, sibling        counts what retires: the counters, the other thread's share
//!        ├─── metrics                MSR_PERF_METRICS: the shares of the slots
//!        └─── overflow, freeze       the effects of an overflow: status, PMI, freezing
//!   lbr                              last branch records: the MSRs, the recorded branches
//!   pebs                             precise sampling: the MSRs, when a record is due, its layout
//!   state ─── registers, totals, pending, tsx     the state that all of these use
//! ```
//!
//! A feature's state besides its registers is a struct in a separate file (`pending`, `tsx`,
//! `metrics`, `lbr`, `pebs`). For a vendor with other MSR numbers, `amd` maps them to the names of
//! [`msr::Msr`]; without global registers, `global_ctrl` always enables all existing counters.

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
