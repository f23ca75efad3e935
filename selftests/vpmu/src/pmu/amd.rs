// SPDX-License-Identifier: GPL-2.0

//! The parts that only AMD's PMUs have.
//!
//! ```text
//!   access ── msr, cpuid       the register map, the CPUID leaves
//!   count ─── merge            two counters as one
//!        └─── northbridge      counters that the cores share
//!   enable ── svm              counting in the host or in guests only
//! ```
//!
//! Counters, overflow and the PMI are the same as in Intel's PMUs, with these differences: a PMI
//! does not mask LVTPC, interrupts count as instructions, and reserved bits are ignored.

mod cpuid;
pub(super) mod merge;
pub(super) mod msr;
mod northbridge;
pub(super) mod svm;

use super::state::Pmu;

/// PERF_CTL: EventSelect and UnitMask, OsUserMode, Edge, Int, En, Inv, CntMask,
/// EventSelect\[11:8\], GuestOnly, HostOnly.
///
/// The other bits are reserved. A write with any of them set does not fault, on any of AMD's CPUs;
/// which of them are kept differs between CPUs and is not documented ("KVM: x86/svm: Clear reserved
/// bits written to PerfEvtSeln MSRs"). Here all read as zero.
pub(super) const SELECT_WRITABLE: u64 = 0x0000_030f_ffd7_ffff;

impl Pmu {
    /// Disables the counters that injected errors have removed. Enables all others on AMD's CPUs
    /// without PerfMonV2, which have no register to do so.
    pub(super) fn disable_missing(&mut self) {
        if self.model.amd().is_some_and(|amd| !amd.global) {
            self.regs.global_ctrl = self.counter_bits();
        } else {
            self.regs.global_ctrl &= self.counter_bits();
        }
    }

    /// Returns whether interrupts and exceptions count.
    pub fn counts_interrupts(&self) -> bool {
        self.model.amd().is_some()
    }

    /// Returns whether the delivery of a PMI masks LVTPC.
    pub fn pmi_masks(&self) -> bool {
        self.model.amd().is_none() && self.profile.is_none_or(|it| it.masks)
    }
}
