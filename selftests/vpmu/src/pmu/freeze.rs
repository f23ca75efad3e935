// SPDX-License-Identifier: GPL-2.0

//! Freezing of all counters and of last branch records, on a PMI and in SMM.

use super::registers::{
    BTF,
    CTR_FRZ,
    DEBUGCTL_LBR,
    FREEZE_LBRS_ON_PMI,
    FREEZE_PERFMON_ON_PMI,
    FREEZE_WHILE_SMM,
    LBR_FRZ, //
};
use super::state::Pmu;

impl Pmu {
    /// Returns whether CTR_FRZ stops all counters.
    pub(super) fn is_frozen(&self) -> bool {
        self.regs.global_status & CTR_FRZ != 0
    }

    /// Freezes the counters if FREEZE_PERFMON_ON_PMI is set: by clearing GLOBAL_CTRL, from version
    /// 4 on by setting CTR_FRZ. Freezes last branch records likewise if FREEZE_LBRS_ON_PMI is set:
    /// by clearing IA32_DEBUGCTL.LBR or by setting LBR_FRZ. The request for a PMI freezes, even if
    /// the APIC does not deliver the PMI (SDM vol. 3, 18.4.7). AMD's PMUs have the same bits.
    pub(super) fn freeze(&mut self) {
        let status = self.model.version >= 4 || self.model.amd().is_some();
        if self.regs.debugctl & FREEZE_LBRS_ON_PMI != 0 {
            if status {
                self.regs.global_status |= LBR_FRZ;
            } else {
                self.regs.debugctl &= !DEBUGCTL_LBR;
            }
            self.restart_lbr_cycles();
        }
        if self.regs.debugctl & FREEZE_PERFMON_ON_PMI != 0 {
            if status {
                self.regs.global_status |= CTR_FRZ;
            } else {
                self.regs.global_ctrl = 0;
            }
            self.publish();
        }
    }

    /// Handles an SMI (`inside`) or RSM. With FREEZE_WHILE_SMM, an SMI clears
    /// IA32_PERF_GLOBAL_CTRL, and BTF and LBR of IA32_DEBUGCTL, and RSM restores both registers
    /// (SDM vol. 3, 20.8.1; its "will be set to 1" is taken for those enable bits that were set).
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
            regs.debugctl &= !(BTF | DEBUGCTL_LBR);
        }
        self.disable_missing();
        self.publish();
    }
}
