// SPDX-License-Identifier: GPL-2.0

//! Last branch records: SDM vol. 3, 17.4 to 17.12, and chapter 19 (architectural LBR); APM vol. 2,
//! 13.1.1.9.
//!
//! ```text
//!   access          MSRs: the register map, reserved bits
//!   record ── class     the record of a branch, and the recorded branches
//!        └─── stack     the records
//! ```

mod access;
mod class;
mod record;
mod stack;

pub(super) use access::{
    decode,
    Register, //
};
use stack::Stack;

use super::registers::{
    DEBUGCTL_LBR,
    LBR_FRZ, //
};
use super::state::Pmu;
use crate::model::LbrFormat;

/// IA32_LBR_CTL.LBREn.
const LBR_EN: u64 = 1 << 0;

/// DBG_EXTN_CFG.LBRV2EN, on AMD's CPUs.
const LBRV2EN: u64 = 1 << 6;

/// The registers of last branch records that RESET clears, and the time since the last record.
#[derive(Debug, Default)]
pub(super) struct Lbr {
    stack: Stack,
    /// IA32_LBR_CTL or DBG_EXTN_CFG.
    ctl: u64,
    /// IA32_LBR_DEPTH.
    depth: usize,
    /// Instructions since the last record, or since recording started.
    since: u64,
}

impl Pmu {
    /// Returns whether taken branches are recorded, so that QEMU has to call [`Pmu::branch`].
    pub fn records_branches(&self) -> bool {
        let Some(model) = self.model.lbr else {
            return false;
        };
        let enabled = match model.format {
            LbrFormat::Architectural => {
                self.regs.lbr.ctl & LBR_EN != 0 && self.regs.before_smm.is_none()
            }
            LbrFormat::Amd => self.regs.lbr.ctl & LBRV2EN != 0,
            _ => self.regs.debugctl & DEBUGCTL_LBR != 0,
        };
        enabled && self.regs.global_status & LBR_FRZ == 0
    }

    /// Restarts the cycles of the next record unless branches are recorded, so that they begin with
    /// the recording.
    pub(super) fn restart_lbr_cycles(&mut self) {
        if !self.records_branches() {
            self.regs.lbr.since = 0;
        }
    }

    /// Loses the records and the number of the newest one, as in a deep C-state. Architectural
    /// records survive it: CPUID.1CH:EAX\[31\] is clear.
    pub(super) fn lose_lbr(&mut self) {
        let format = self.model.lbr.map(|lbr| lbr.format);
        if format != Some(LbrFormat::Architectural) {
            self.regs.lbr.stack = Stack::default();
        }
    }

    /// Returns FROM, TO and INFO of a record, given its age; zeros if there are fewer records.
    pub(super) fn lbr_by_age(&self, age: usize) -> [u64; 3] {
        let depth = self.lbr_depth();
        if age >= depth {
            return [0; 3];
        }
        let stack = &self.regs.lbr.stack;
        let record = stack.records[stack.by_age(depth, age)];
        [record.from, record.to, record.info]
    }

    /// Returns the number of records: IA32_LBR_DEPTH or the model's number.
    fn lbr_depth(&self) -> usize {
        match self.model.lbr {
            Some(model) if model.format != LbrFormat::Architectural => model.depth,
            _ => self.regs.lbr.depth,
        }
    }
}
