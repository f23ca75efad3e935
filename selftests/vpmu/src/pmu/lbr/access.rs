// SPDX-License-Identifier: GPL-2.0

//! The MSRs of last branch records.

use std::sync::atomic::Ordering::Relaxed;

use super::stack::Stack;
use super::LBRV2EN;
use crate::model::{
    Lbr,
    LbrFormat, //
};
use crate::pmu::access::{
    canonical,
    checked, //
};
use crate::pmu::state::Pmu;
use crate::Fault;

/// A register of last branch records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pmu) enum Register {
    /// MSR_LBR_SELECT, AMD's LBR_SELECT.
    Select,
    /// MSR_LASTBRANCH_TOS.
    Top,
    /// MSR_LASTBRANCH_x_FROM_IP, IA32_LBR_x_FROM_IP, AMD's SamplesFrom.
    From(usize),
    /// MSR_LASTBRANCH_x_TO_IP, IA32_LBR_x_TO_IP, AMD's SamplesTo.
    To(usize),
    /// MSR_LBR_INFO_x, IA32_LBR_x_INFO.
    Info(usize),
    /// IA32_LBR_CTL, AMD's DBG_EXTN_CFG.
    Ctl,
    /// IA32_LBR_DEPTH.
    Depth,
}

/// Returns the register with this number, or `None` if this model has none. `msr` is one of its
/// vendor's.
pub(in crate::pmu) fn decode(model: &Lbr, msr: u32) -> Option<Register> {
    let architectural = model.format == LbrFormat::Architectural;
    let index = (msr & 0x1f) as usize;
    let register = match msr {
        0x14ce if architectural => Register::Ctl,
        0x14cf if architectural => Register::Depth,
        0x1200..=0x121f if architectural => Register::Info(index),
        0x1500..=0x151f if architectural => Register::From(index),
        0x1600..=0x161f if architectural => Register::To(index),
        _ if architectural => return None,
        0xc000_010e => Register::Select,
        0xc000_010f => Register::Ctl,
        0xc001_0300..=0xc001_031f if msr & 1 == 0 => Register::From(index >> 1),
        0xc001_0300..=0xc001_031f => Register::To(index >> 1),
        0x1c8 => Register::Select,
        0x1c9 => Register::Top,
        0x680..=0x69f if !model.low && index < model.depth => Register::From(index),
        0x6c0..=0x6df if !model.low && index < model.depth => Register::To(index),
        0x040..=0x047 if model.low => Register::From(index),
        0x060..=0x067 if model.low => Register::To(index),
        0xdc0..=0xddf if matches!(model.format, LbrFormat::Info | LbrFormat::InfoWithoutTsx) => {
            Register::Info(index)
        }
        _ => return None,
    };
    Some(register)
}

impl Pmu {
    /// Reads a register.
    pub(in crate::pmu) fn read_lbr(&self, register: Register) -> Result<u64, Fault> {
        let model = &self.model.lbr.ok_or(Fault)?;
        let Stack { records, top } = &self.regs.lbr.stack;
        Ok(match register {
            Register::Select => self.thread.lbr_select(model.per_core).load(Relaxed),
            Register::Top => *top as u64,
            Register::From(index) => records[self.lbr_number(model, index)?].from,
            Register::To(index) => records[self.lbr_number(model, index)?].to,
            Register::Info(index) => records[self.lbr_number(model, index)?].info,
            Register::Ctl => self.regs.lbr.ctl,
            Register::Depth => self.regs.lbr.depth as u64,
        })
    }

    /// Writes a register.
    pub(in crate::pmu) fn write_lbr(
        &mut self,
        register: Register,
        value: u64,
    ) -> Result<(), Fault> {
        let model = &self.model.lbr.ok_or(Fault)?;
        let amd = model.format == LbrFormat::Amd;
        match register {
            // AMD's registers ignore reserved bits, and addresses are not checked.
            Register::Select if amd => {
                let value = value & model.select;
                self.thread.lbr_select(model.per_core).store(value, Relaxed);
            }
            Register::Ctl if amd => self.regs.lbr.ctl = value & LBRV2EN,
            Register::From(index) if amd => {
                let number = self.lbr_number(model, index)?;
                self.regs.lbr.stack.records[number].from = value;
            }
            Register::To(index) if amd => {
                let number = self.lbr_number(model, index)?;
                self.regs.lbr.stack.records[number].to = value;
            }
            Register::Select => {
                let value = checked(value, model.select)?;
                self.thread.lbr_select(model.per_core).store(value, Relaxed);
            }
            Register::Top => {
                self.regs.lbr.stack.top = checked(value, model.depth as u64 - 1)? as usize;
            }
            Register::From(index) => {
                let number = self.lbr_number(model, index)?;
                // Bit 63 may be a flag. The flags of TSX belong to the address if the CPU has no
                // TSX, as the kernel found ("perf/x86/intel: Fix MSR_LAST_BRANCH_FROM_x bug when no
                // TSX").
                let flags = matches!(
                    model.format,
                    LbrFormat::Flags | LbrFormat::TsxFlags | LbrFormat::CyclesInTo
                );
                let address = if flags {
                    sign_extend_flag(value)
                } else {
                    value
                };
                canonical(address, self.model.linear_address_bits())?;
                self.regs.lbr.stack.records[number].from = value;
            }
            Register::To(index) => {
                let number = self.lbr_number(model, index)?;
                // Bits 63:48 may be cycles, any number of which can be written.
                if model.format != LbrFormat::CyclesInTo {
                    canonical(value, self.model.linear_address_bits())?;
                }
                self.regs.lbr.stack.records[number].to = value;
            }
            Register::Info(index) => {
                let number = self.lbr_number(model, index)?;
                // Flags and cycles. Architectural LBR adds the kind, and ignores bits 55:16;
                // otherwise bits 60:16 are reserved, and without TSX bits 62:61 as well.
                let info = match model.format {
                    LbrFormat::Architectural => value & 0xff00_0000_0000_ffff,
                    LbrFormat::InfoWithoutTsx => checked(value, 0x8000_0000_0000_ffff)?,
                    _ => checked(value, 0xe000_0000_0000_ffff)?,
                };
                self.regs.lbr.stack.records[number].info = info;
            }
            Register::Ctl => self.regs.lbr.ctl = checked(value, model.select)?,
            // A write clears all records.
            Register::Depth => {
                if !matches!(value, 8 | 16 | 32) {
                    return Err(Fault);
                }
                self.regs.lbr.depth = value as usize;
                self.regs.lbr.stack = Stack::default();
            }
        }
        Ok(())
    }

    /// Returns the number of a record in the stack, given its register's number, which may be its
    /// age. Registers beyond IA32_LBR_DEPTH fault.
    fn lbr_number(&self, model: &Lbr, index: usize) -> Result<usize, Fault> {
        if !model.format.is_by_age() {
            Ok(index)
        } else if index < self.lbr_depth() {
            Ok(self.regs.lbr.stack.by_age(self.lbr_depth(), index))
        } else {
            Err(Fault)
        }
    }
}

/// Replaces bit 63, a flag, by bit 62.
fn sign_extend_flag(value: u64) -> u64 {
    (((value << 1) as i64) >> 1) as u64
}
