// SPDX-License-Identifier: GPL-2.0

//! Freezing.

use super::registers::{BTF, CTR_FRZ, FREEZE_PERFMON_ON_PMI, FREEZE_WHILE_SMM};
use super::state::Pmu;

impl Pmu {
    pub(super) fn is_frozen(&self) -> bool {
        self.regs.global_status & CTR_FRZ != 0
    }

    /// SDM vol. 3, 18.4.7: the request for a PMI stops the counters by clearing GLOBAL_CTRL, from
    /// version 4 on by CTR_FRZ. What the APIC makes of the request is not the PMU's affair.
    pub(super) fn freeze(&mut self) {
        if self.regs.debugctl & FREEZE_PERFMON_ON_PMI != 0 {
            if self.model.version >= 4 {
                self.regs.global_status |= CTR_FRZ;
            } else {
                self.regs.global_ctrl = 0;
            }
            self.publish();
        }
    }

    /// An SMI is delivered, or RSM ends its handler. With FREEZE_WHILE_SMM the one clears
    /// IA32_PERF_GLOBAL_CTRL and of IA32_DEBUGCTL what single-steps and traces, and the other sets both
    /// to what they were (SDM vol. 3, 20.8.1, which says of the former that the enable bits "will be set
    /// to 1": those that were).
    pub fn smm(&mut self, inside: bool) {
        let regs = &mut self.regs;
        if !inside {
            if let Some((ctrl, debugctl)) = regs.before_smm.take() {
                regs.global_ctrl = ctrl;
                regs.debugctl = debugctl;
            }
        } else if regs.debugctl & FREEZE_WHILE_SMM != 0 {
            regs.before_smm = Some((regs.global_ctrl, regs.debugctl));
            regs.global_ctrl = 0;
            regs.debugctl &= !BTF;
        }
        self.regs.global_ctrl &= self.counter_bits();
        self.publish();
    }
}
