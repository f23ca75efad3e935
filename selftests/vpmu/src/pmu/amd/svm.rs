// SPDX-License-Identifier: GPL-2.0

//! Counting in the host or in guests only (APM vol. 2, 13.2.1, PERF_CTL.HG_ONLY).

use crate::pmu::state::Pmu;

const GUEST_ONLY: u64 = 1 << 40;
const HOST_ONLY: u64 = 1 << 41;

/// The PMU's state of virtualization.
#[derive(Debug, Default)]
pub(in crate::pmu) struct Svm {
    /// EFER.SVME.
    enabled: bool,
    /// A guest runs.
    guest: bool,
}

impl Svm {
    /// Returns whether a counter with this PERF_CTL counts now. Both bits together act like
    /// neither, but with any of them, the counter counts only while EFER.SVME is set.
    pub(in crate::pmu) fn counts(&self, select: u64) -> bool {
        match select & (HOST_ONLY | GUEST_ONLY) {
            0 => true,
            HOST_ONLY => self.enabled && !self.guest,
            GUEST_ONLY => self.enabled && self.guest,
            _ => self.enabled,
        }
    }
}

impl Pmu {
    /// Handles a write of EFER.SVME, VMRUN or #VMEXIT.
    pub fn svm(&mut self, enabled: bool, guest: bool) {
        self.svm = Svm { enabled, guest };
    }
}
