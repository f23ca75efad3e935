// SPDX-License-Identifier: GPL-2.0

//! Overflow of counters, and the PMI.

use super::registers::{
    FIXED_PMI,
    FIXED_SHIFT,
    INT, //
};
use super::state::Pmu;
use crate::accounting::{
    bump,
    LVTPC, //
};
use crate::inject::Injected;

impl Pmu {
    /// If `overflow`, handles the overflow of the counter with this bit of
    /// IA32_PERF_GLOBAL_STATUS.
    pub(super) fn overflowed(&mut self, overflow: bool, bit: usize, interrupt: bool) {
        if overflow {
            self.regs.global_status |= 1 << bit;
            self.arm(bit);
            if interrupt {
                self.pending.request(self.injected.has(Injected::LATE_PMI));
            }
        }
    }

    /// Returns how many instructions may retire at this privilege level before QEMU has to call
    /// [`Pmu::retire`]; negative if a PMI or a record of PEBS is due now.
    pub fn budget(&self, user: bool) -> i64 {
        /// Far away, with room for QEMU's additions and subtractions.
        const NEVER: u64 = 1 << 62;
        /// Limits the delay of the sibling's counts.
        const SHARED: u64 = 1 << 12;
        if self.pending.is_due() || self.sample_due() {
            return -1;
        }
        let active = self.active(user);
        let general = (0..self.generals)
            .filter(|&i| active & (1 << i) != 0 && self.regs.general[i].select & INT != 0);
        let general = general.map(|i| {
            self.regs.general[i]
                .counter
                .instructions_to_overflow(self.general_source(i), &self.before(i))
        });
        let fixed = (0..self.model.fixed).filter(|&i| {
            active & (1 << (FIXED_SHIFT + i)) != 0 && self.fixed_field(i) & FIXED_PMI != 0
        });
        let fixed = fixed.map(|i| {
            self.regs.fixed[i]
                .instructions_to_overflow(self.fixed_source(i), &self.before(FIXED_SHIFT + i))
        });
        let leaking = (0..self.generals)
            .any(|i| active & (1 << i) != 0 && self.regs.general[i].leak.is_some());
        let shared = leaking && self.leaky()
            || self.thread.is_counted_by_sibling()
            || self.any_thread() != 0;
        let most = if shared { SHARED } else { NEVER };
        let least = general
            .chain(fixed)
            .chain([self.pending.after(), self.instructions_to_record(active)])
            .flatten()
            .min()
            .unwrap_or(NEVER)
            .min(most);
        let least = match self.instructions_to_metrics_overflow(active) {
            Some(metrics) => least.min(metrics),
            None => least,
        };
        // QEMU calls once the budget is below zero, which must be after `least` instructions.
        least as i64 - 1
    }

    /// Takes the PMI that is due, if one is, freezes counters and branch records as IA32_DEBUGCTL
    /// demands, and returns whether to deliver it. If LVTPC is masked, the PMI freezes as well, but
    /// is lost: the mask inhibits its reception (SDM vol. 3, 11.5.1), and it is not requested
    /// again.
    pub fn pmi(&mut self, masked: bool) -> bool {
        let again = |what| !masked && self.injected.has(what);
        let (once, endless) = (again(Injected::REPEATED_PMI), again(Injected::ENDLESS_PMI));
        if !self.pending.take(once, endless) {
            return false;
        }
        self.freeze();
        bump(if masked {
            &self.accounting.lost
        } else {
            &self.accounting.pmis
        });
        !masked
    }

    /// Accounts a write of LVTPC, which also requests the repetition of a PMI
    /// ([`Injected::REPEATED_PMI`], [`Injected::ENDLESS_PMI`]).
    pub fn lvtpc_write(&mut self) {
        bump(&self.accounting.msr(LVTPC).writes);
        self.pending.lvtpc_write();
    }
}
