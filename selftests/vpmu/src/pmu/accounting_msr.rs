// SPDX-License-Identifier: GPL-2.0

//! The accounting MSRs, which `README.md` describes.

use std::sync::atomic::Ordering::Relaxed;

use super::state::Pmu;
use crate::inject::Injected;
use crate::Fault;

/// The first accounting MSR, in a range that no CPU will ever use (SDM vol. 4, 2.1).
pub(super) const ACCOUNTING: u32 = 0x4000_ff00;
/// Offset of the number of calls of [`Pmu::retire`]. Reading it does not start the accounting of
/// instructions.
const ACCOUNTING_TOLD: u32 = 5;
/// Offset of the mark.
pub(super) const ACCOUNTING_MARK: u32 = 9;
/// Offset of the injected errors. Accessing them does not start the accounting of instructions
/// either.
const INJECTED: u32 = 10;

impl Pmu {
    /// Reads the accounting MSR at this offset.
    pub(super) fn read_accounting(&self, offset: u32) -> Result<u64, Fault> {
        const RDPMC: u64 = 1 << 62;
        let accounting = &self.accounting;
        let selected = match self.accounting_select {
            select if select & RDPMC != 0 => accounting.rdpmc(select as u32),
            select => accounting.msr(select as u32),
        };
        Ok(match offset {
            0 => self.accounting_select,
            1 => selected.reads.load(Relaxed),
            2 => selected.writes.load(Relaxed),
            3 => selected.faults.load(Relaxed),
            4 => accounting.pmis.load(Relaxed),
            ACCOUNTING_TOLD => self.told,
            6 => accounting.instructions[0].load(Relaxed),
            7 => accounting.instructions[1].load(Relaxed),
            8 => accounting.lost.load(Relaxed),
            INJECTED => self.injected.bits(),
            _ => return Err(Fault),
        })
    }

    /// Writes the accounting MSR at this offset.
    pub(super) fn write_accounting(&mut self, offset: u32, value: u64) -> Result<(), Fault> {
        match offset {
            0 => {
                if value >> 63 != 0 {
                    self.accounting.clear();
                }
                self.accounting_select = value & !(1 << 63);
            }
            ACCOUNTING_MARK => self.accounting.mark(value),
            INJECTED => self.inject(Injected::from_bits(value).ok_or(Fault)?),
            _ => return Err(Fault),
        }
        Ok(())
    }

    /// Starts the accounting of instructions, if the MSR at this offset does so.
    pub(super) fn watch_accounting(&self, offset: u32) {
        if offset != ACCOUNTING_TOLD && offset != INJECTED {
            self.accounting.watch();
        }
    }
}
