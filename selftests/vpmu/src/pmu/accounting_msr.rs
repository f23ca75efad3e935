// SPDX-License-Identifier: GPL-2.0

//! The accounting MSRs.

use std::sync::atomic::Ordering::Relaxed;

use super::state::Pmu;
use crate::order::Ordered;
use crate::Fault;

/// The accounting registers, in a range that no CPU will ever use (SDM vol. 4, 2.1). `README.md`
/// describes them.
pub(super) const ACCOUNTING: u32 = 0x4000_ff00;
/// The offset from there of the one that can be looked at without being noticed; as can that of what is
/// wrong by order.
pub(super) const ACCOUNTING_TOLD: u32 = 5;
/// The marker's.
pub(super) const ACCOUNTING_MARK: u32 = 9;
/// That of what is wrong by order.
pub(super) const ORDERED: u32 = 10;

impl Pmu {
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
            ORDERED => self.ordered().bits(),
            _ => return Err(Fault),
        })
    }

    /// Writes the accounting register at this offset.
    pub(super) fn write_accounting(&mut self, offset: u32, value: u64) -> Result<(), Fault> {
        match offset {
            0 => {
                if value >> 63 != 0 {
                    self.accounting.clear();
                }
                self.accounting_select = value & !(1 << 63);
            }
            ACCOUNTING_MARK => self.accounting.mark(value),
            ORDERED => self.order(Ordered::from_bits(value).ok_or(Fault)?),
            _ => return Err(Fault),
        }
        Ok(())
    }

    /// The accounting register at this offset was accessed.
    pub(super) fn watch_accounting(&self, offset: u32) {
        if offset != ACCOUNTING_TOLD && offset != ORDERED {
            self.accounting.watch();
        }
    }
}
