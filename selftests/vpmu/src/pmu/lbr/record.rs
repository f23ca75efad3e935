// SPDX-License-Identifier: GPL-2.0

//! Records a branch.

use std::sync::atomic::Ordering::Relaxed;

use super::class::{
    level,
    Class, //
};
use super::stack::Record;
use crate::branch::Branch;
use crate::model::{
    Lbr,
    LbrFormat, //
};
use crate::pmu::state::Pmu;

/// The flag of mispredicted branches, in MSR_LASTBRANCH_x_FROM_IP or MSR_LBR_INFO_x.
const MISPRED: u64 = 1 << 63;
/// AMD's TO: the branch is of the path that was taken.
const VALID: u64 = 1 << 63;
/// AMD's TO: the branch was executed speculatively.
const SPEC: u64 = 1 << 62;
/// IA32_LBR_x_INFO.CYC_CNT_VALID.
const CYC_CNT_VALID: u64 = 1 << 60;
const BR_TYPE_SHIFT: u32 = 56;
/// Maximum number of cycles.
const MOST_CYCLES: u64 = 0xffff;
/// MSR_LBR_SELECT.EN_CALLSTACK.
const EN_CALLSTACK: u64 = 1 << 9;
/// IA32_LBR_CTL.CALL_STACK.
const CALL_STACK: u64 = 1 << 3;
/// Architectural FROM_IP of a branch from a level that is not recorded.
const NO_IP: u64 = 0xffff_ffff;

impl Pmu {
    /// Records a branch that the CPU took, if it is selected. With a call stack, a return removes
    /// the newest record instead.
    pub fn branch(&mut self, branch: &Branch) {
        let Some(model) = self.model.lbr.filter(|_| self.records_branches()) else {
            return;
        };
        self.regs.lbr.since += branch.instructions;
        let (class, depth) = (Class::of(branch.kind), self.lbr_depth());
        let (select, call_stack) = if model.format == LbrFormat::Architectural {
            (self.regs.lbr.ctl, CALL_STACK)
        } else {
            (
                self.thread.lbr_select(model.per_core).load(Relaxed),
                EN_CALLSTACK,
            )
        };
        if depth == 0 || !class.is_selected(model.format, select, branch.to_user) {
            return;
        }
        match class {
            Class::Return if select & call_stack != 0 => self.regs.lbr.stack.pop(depth),
            Class::RelativeCall if select & call_stack != 0 && branch.next => {}
            _ => {
                let record = self.lbr_record(&model, class, branch);
                self.regs.lbr.stack.push(depth, record);
                self.regs.lbr.since = 0;
            }
        }
    }

    fn lbr_record(&self, model: &Lbr, class: Class, branch: &Branch) -> Record {
        let lbr = &self.regs.lbr;
        let mut to = branch.to;
        let mispredicted = if is_mispredicted(class, branch) {
            MISPRED
        } else {
            0
        };
        // 3/2 for each instruction, like the cycle events.
        let cycles = (lbr.since * 3 / 2).min(MOST_CYCLES);
        let (from, info) = match model.format {
            LbrFormat::Amd => {
                let speculative = if class.is_predicted() { SPEC } else { 0 };
                to = to & (u64::MAX >> 3) | VALID | speculative;
                (branch.from & !MISPRED | mispredicted, 0)
            }
            LbrFormat::Addresses => (branch.from, 0),
            LbrFormat::Flags => (branch.from & !MISPRED | mispredicted, 0),
            LbrFormat::CyclesInTo => {
                to = to & (u64::MAX >> 16) | (cycles << 48);
                (branch.from & !MISPRED | mispredicted, 0)
            }
            // The flags of TSX are clear.
            LbrFormat::TsxFlags => (branch.from & (u64::MAX >> 3) | mispredicted, 0),
            LbrFormat::Info | LbrFormat::InfoWithoutTsx => (branch.from, cycles | mispredicted),
            LbrFormat::Architectural => {
                let from = if level(branch.from_user, lbr.ctl) {
                    branch.from
                } else {
                    NO_IP
                };
                let kind = class.branch_type() << BR_TYPE_SHIFT;
                (from, cycles | CYC_CNT_VALID | kind | mispredicted)
            }
        };
        Record { from, to, info }
    }
}

/// Returns whether a branch counts as mispredicted. There is no predictor: by declaration, a branch
/// of a predicted class is mispredicted if bits 8:4 of the sum of its addresses are all ones.
fn is_mispredicted(class: Class, branch: &Branch) -> bool {
    class.is_predicted() && branch.from.wrapping_add(branch.to) & 0x1f0 == 0x1f0
}
