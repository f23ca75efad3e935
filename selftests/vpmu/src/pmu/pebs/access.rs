// SPDX-License-Identifier: GPL-2.0

//! The MSRs of PEBS.

use super::FIRST_FOUR;
use crate::model::{
    Pebs,
    PebsFormat,
    Sampled, //
};
use crate::pmu::access::{
    canonical,
    checked, //
};
use crate::pmu::registers::FIXED_SHIFT;
use crate::pmu::state::Pmu;
use crate::Fault;

/// IA32_PEBS_ENABLE.PS_EN.
pub(super) const PRECISE_STORE: u64 = 1 << 63;
/// The bit of counter 0 in IA32_PEBS_ENABLE.LL_EN, without Extended PEBS.
pub(super) const LOAD_LATENCY_SHIFT: usize = 32;

/// MSR_PEBS_DATA_CFG: memory info, general registers, XMM registers, LBR entries, and their number
/// less 1.
pub(super) const MEMORY: u64 = 1 << 0;
pub(super) const GPR: u64 = 1 << 1;
pub(super) const XMM: u64 = 1 << 2;
pub(super) const LBR: u64 = 1 << 3;
pub(super) const LBR_ENTRIES_SHIFT: u32 = 24;
const DATA_CFG_WRITABLE: u64 = MEMORY | GPR | XMM | LBR | (0xff << LBR_ENTRIES_SHIFT);

/// A register of PEBS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pmu) enum Register {
    /// IA32_PEBS_ENABLE.
    Enable,
    /// MSR_PEBS_DATA_CFG.
    DataCfg,
    /// IA32_DS_AREA.
    DsArea,
}

/// Returns the register with this number, or `None` if this model has none.
pub(in crate::pmu) fn decode(model: &Pebs, msr: u32) -> Option<Register> {
    match msr {
        0x3f1 => Some(Register::Enable),
        0x3f2 if model.format == PebsFormat::Adaptive => Some(Register::DataCfg),
        0x600 => Some(Register::DsArea),
        _ => None,
    }
}

impl Pmu {
    /// Reads a register.
    pub(in crate::pmu) fn read_pebs(&self, register: Register) -> u64 {
        match register {
            Register::Enable => self.regs.pebs.enable,
            Register::DataCfg => self.regs.pebs.data_cfg,
            Register::DsArea => self.regs.pebs.ds_area,
        }
    }

    /// Writes a register. Clearing a counter's bit in IA32_PEBS_ENABLE does not disarm it.
    pub(in crate::pmu) fn write_pebs(
        &mut self,
        register: Register,
        value: u64,
    ) -> Result<(), Fault> {
        match register {
            Register::Enable => {
                self.regs.pebs.enable = checked(value, self.pebs_enable_bits())?;
            }
            Register::DataCfg => self.regs.pebs.data_cfg = checked(value, DATA_CFG_WRITABLE)?,
            Register::DsArea => {
                self.regs.pebs.ds_area = canonical(value, self.model.linear_address_bits())?
            }
        }
        Ok(())
    }

    /// Returns the writable bits of IA32_PEBS_ENABLE: with Extended PEBS all counters, otherwise
    /// the first alone, or four and their load latency, and precise store.
    fn pebs_enable_bits(&self) -> u64 {
        if self.is_extended() {
            let (generals, fixed) = self.existing();
            return ((1 << generals) - 1) | (((1 << fixed) - 1) << FIXED_SHIFT);
        }
        let sampled = self.pebs.map(|pebs| pebs.sampled);
        if matches!(sampled, Some(Sampled::First | Sampled::ListedFirst)) {
            return 1;
        }
        let store = match self.pebs {
            Some(pebs) if pebs.precise_store => PRECISE_STORE,
            _ => 0,
        };
        let four = (1 << FIRST_FOUR) - 1;
        four | (four << LOAD_LATENCY_SHIFT) | store
    }
}
