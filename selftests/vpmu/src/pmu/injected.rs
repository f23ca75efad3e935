// SPDX-License-Identifier: GPL-2.0

//! Errors injected by the guest.

use super::state::Pmu;
use crate::inject::Injected;
use crate::model::{
    CAP_PERF_METRICS,
    CAP_SMM_FREEZE, //
};

impl Pmu {
    /// Injects these errors and no others. Counters that no longer exist stop, and their bits of
    /// the status are cleared.
    pub(super) fn inject(&mut self, injected: Injected) {
        self.injected = injected;
        self.disable_missing();
        self.regs.global_status &= self.counter_bits() | !self.all_counter_bits();
        self.regs.fixed_ctrl &= self.fixed_ctrl_bits();
        self.regs.debugctl &= self.debugctl_bits();
        self.regs.global_ctrl |= self.stuck_ctrl();
        if injected.has(Injected::LOST_RECORDS) {
            self.lose_lbr();
        }
    }

    /// Returns the counter whose bit in IA32_PERF_GLOBAL_CTRL cannot be cleared, as this bit.
    pub(super) fn stuck_ctrl(&self) -> u64 {
        let (generals, _) = self.existing();
        u64::from(self.injected.has(Injected::STUCK_CTRL)) << (generals - 1)
    }

    /// Returns IA32_PERF_CAPABILITIES. It lacks PERF_METRICS_AVAILABLE if CPUID reports fewer
    /// counters, and SMM_FREEZE if IA32_DEBUGCTL has no FREEZE_WHILE_SMM.
    pub(super) fn capabilities(&self) -> u64 {
        let lbr = self.model.lbr.map_or(0, |lbr| lbr.format as u64);
        let capabilities = self.model.capabilities | lbr | self.pebs_capabilities();
        let absent = [
            (Injected::FEWER, CAP_PERF_METRICS),
            (Injected::NO_SMM_FREEZE, CAP_SMM_FREEZE),
        ]
        .iter()
        .filter(|(what, _)| self.injected.has(*what))
        .fold(0, |absent, (_, bit)| absent | bit);
        capabilities & !absent
    }

    /// Returns the reserved bits that are set in the status.
    pub(super) fn reserved_status(&self) -> u64 {
        const RESERVED: u64 = 1 << 31;
        let is_amd = self.model.amd().is_some();
        u64::from(is_amd && self.injected.has(Injected::RESERVED_STATUS)) * RESERVED
    }

    /// Returns whether reads of this event select fault.
    pub(super) fn select_faults(&self, index: usize) -> bool {
        self.injected.has(Injected::FAULTING) && index + 1 == self.generals
    }

    /// Returns whether this general counter ignores writes.
    pub(super) fn general_is_stuck(&self, index: usize) -> bool {
        self.injected.has(Injected::STUCK_GENERAL) && index + 1 == self.generals
    }

    /// Returns whether this fixed counter ignores writes.
    pub(super) fn fixed_is_stuck(&self, index: usize) -> bool {
        self.injected.has(Injected::STUCK_FIXED) && index + 1 == self.model.fixed
    }
}
