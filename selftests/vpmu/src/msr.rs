// SPDX-License-Identifier: GPL-2.0

//! The registers: which there are, what they hold, which of their bits are reserved.
//!
//! SDM vol. 4, tables 2-2 (architectural), 2-29 (Haswell) and 2-39 (Skylake).

use std::sync::atomic::Ordering::Relaxed;

use crate::accounting::{bump, Accesses};
use crate::counter::MASK;
use crate::event::Select;
use crate::model::{CAP_FW_WRITE, CAP_SMM_FREEZE, FIXED};
use crate::pmu::{Pmu, CTR_FRZ, FIXED_PMI, FIXED_SHIFT, FREEZE_PERFMON_ON_PMI, INT};
use crate::Fault;

/// IA32_MISC_ENABLE: fast strings; and, read-only: performance monitoring available, BTS and PEBS
/// unavailable.
pub(crate) const MISC_ENABLE_RESET: u64 = 1 | MISC_ENABLE_READ_ONLY;
const MISC_ENABLE_READ_ONLY: u64 = 1 << 7 | 1 << 11 | 1 << 12;
/// Fast strings, TM1, EIST, MWAIT, CPUID limit, xTPR, XD, turbo.
const MISC_ENABLE_WRITABLE: u64 =
    1 | 1 << 3 | 1 << 16 | 1 << 18 | 1 << 22 | 1 << 23 | 1 << 34 | 1 << 38;

/// Event, umask, USR, OS, E, INT, AnyThread, EN, INV, CMASK. PC is not writable since Sandy Bridge,
/// and IN_TX and IN_TXCP are for CPUs with transactions.
const SELECT_WRITABLE: u64 = 0xffff_ffff & !(1 << 19);

/// BTF, FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI. What would need LBR or BTS is missing.
const DEBUGCTL_WRITABLE: u64 = 1 << 1 | 1 << 11 | FREEZE_PERFMON_ON_PMI;
const DEBUGCTL_FREEZE_WHILE_SMM: u64 = 1 << 14;

/// Requests, suppliers and snoops.
const OFFCORE_RSP_WRITABLE: u64 = (1 << 38) - 1;
const LD_LAT_WRITABLE: u64 = 0xffff;
const FRONTEND_WRITABLE: u64 = (1 << 24) - 1;

/// IA32_PERF_GLOBAL_STATUS beyond the counters: OvfDSBuffer and CondChgd can be cleared though they
/// never get set.
const STATUS_CLEARABLE: u64 = 1 << 62 | 1 << 63;
/// Version 4 adds LBR_FRZ and CTR_FRZ.
const STATUS_FROZEN: u64 = 1 << 58 | CTR_FRZ;

/// The accounting registers, in a range that no CPU will ever use (SDM vol. 4, 2.1). `README.md`
/// describes them.
const ACCOUNTING: u32 = 0x4000_ff00;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Msr {
    Pmc(usize),
    FullPmc(usize),
    Select(usize),
    Fixed(usize),
    FixedCtrl,
    Status,
    Ctrl,
    /// GLOBAL_OVF_CTRL, called GLOBAL_STATUS_RESET from version 4 on.
    StatusReset,
    StatusSet,
    InUse,
    Capabilities,
    MiscEnable,
    DebugCtl,
    OffcoreRsp(usize),
    LdLat,
    Frontend,
    Accounting(u32),
    /// Belongs to a feature of PMUs that this one does not have.
    Absent,
}

/// What a number stands for; `None`: nothing that concerns performance monitoring.
fn decode(pmu: &Pmu, msr: u32) -> Option<Msr> {
    let if_there = |there: bool, msr: Msr| Some(if there { msr } else { Msr::Absent });
    let general =
        |msr: u32, first: u32| Some((msr - first) as usize).filter(|&index| index < pmu.generals);
    let version_4 = pmu.model.version >= 4;
    match msr {
        0x0c1..=0x0c8 => Some(general(msr, 0x0c1).map_or(Msr::Absent, Msr::Pmc)),
        0x186..=0x18d => Some(general(msr, 0x186).map_or(Msr::Absent, Msr::Select)),
        0x4c1..=0x4c8 if pmu.model.capabilities & CAP_FW_WRITE != 0 => {
            Some(general(msr, 0x4c1).map_or(Msr::Absent, Msr::FullPmc))
        }
        0x309..=0x318 => {
            let index = (msr - 0x309) as usize;
            if_there(index < FIXED, Msr::Fixed(index))
        }
        0x1a0 => Some(Msr::MiscEnable),
        0x1a6 | 0x1a7 => Some(Msr::OffcoreRsp((msr - 0x1a6) as usize)),
        0x1d9 => Some(Msr::DebugCtl),
        0x345 => Some(Msr::Capabilities),
        0x38d => Some(Msr::FixedCtrl),
        0x38e => Some(Msr::Status),
        0x38f => Some(Msr::Ctrl),
        0x390 => Some(Msr::StatusReset),
        0x391 => if_there(version_4, Msr::StatusSet),
        0x392 => if_there(version_4, Msr::InUse),
        0x3f6 => Some(Msr::LdLat),
        0x3f7 => if_there(pmu.model.frontend, Msr::Frontend),
        ACCOUNTING..=0x4000_ff0f => Some(Msr::Accounting(msr - ACCOUNTING)),
        // PERF_METRICS, PEBS, DS
        0x329 | 0x3f1 | 0x3f2 | 0x600 => Some(Msr::Absent),
        // LBR, old and architectural
        0x1c8 | 0x1c9 | 0x680..=0x69f | 0x6c0..=0x6df | 0xdc0..=0xddf => Some(Msr::Absent),
        0x14ce | 0x14cf | 0x1200..=0x121f | 0x1500..=0x151f | 0x1600..=0x161f => Some(Msr::Absent),
        // The counters from version 6 on
        0x4c9..=0x4d0 | 0x1900..=0x19ff => Some(Msr::Absent),
        _ => None,
    }
}

/// `value`, unless it has bits outside `writable` set.
fn checked(value: u64, writable: u64) -> Result<u64, Fault> {
    if value & !writable == 0 {
        Ok(value)
    } else {
        Err(Fault)
    }
}

impl Pmu {
    /// RDMSR; `None`: not a register of the PMU.
    pub fn rdmsr(&self, msr: u32) -> Option<Result<u64, Fault>> {
        let register = decode(self, msr)?;
        let result = self.read(register);
        self.account(msr, register, |accesses| &accesses.reads, result.is_err());
        Some(result)
    }

    /// WRMSR; `None`: not a register of the PMU.
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), Fault>> {
        let register = decode(self, msr)?;
        let result = self.write(register, value);
        self.account(msr, register, |accesses| &accesses.writes, result.is_err());
        Some(result)
    }

    fn account(
        &self,
        msr: u32,
        register: Msr,
        count: fn(&Accesses) -> &std::sync::atomic::AtomicU64,
        fault: bool,
    ) {
        // Looking at the accounting must not change it.
        if !matches!(register, Msr::Accounting(_)) {
            let accesses = self.accounting.msr(msr);
            bump(count(accesses));
            if fault {
                bump(&accesses.faults);
            }
        }
    }

    fn read(&self, register: Msr) -> Result<u64, Fault> {
        let regs = &self.regs;
        Ok(match register {
            Msr::Pmc(index) | Msr::FullPmc(index) => regs.general[index].counter.value(),
            Msr::Select(index) => regs.general[index].select,
            Msr::Fixed(index) => regs.fixed[index].value(),
            Msr::FixedCtrl => regs.fixed_ctrl,
            Msr::Status => regs.global_status,
            Msr::Ctrl => regs.global_ctrl,
            Msr::StatusReset | Msr::StatusSet => 0,
            Msr::InUse => self.in_use(),
            Msr::Capabilities => self.model.capabilities,
            Msr::MiscEnable => regs.misc_enable,
            Msr::DebugCtl => regs.debugctl,
            Msr::OffcoreRsp(index) => regs.offcore_rsp[index],
            Msr::LdLat => regs.ld_lat,
            Msr::Frontend => regs.frontend,
            Msr::Accounting(offset) => self.read_accounting(offset)?,
            Msr::Absent => return Err(Fault),
        })
    }

    fn write(&mut self, register: Msr, value: u64) -> Result<(), Fault> {
        match register {
            // Bit 31 is extended, what is above it is ignored.
            Msr::Pmc(index) => self.regs.general[index].counter.set(value as i32 as u64),
            Msr::FullPmc(index) => self.regs.general[index].counter.set(checked(value, MASK)?),
            Msr::Select(index) => self.write_select(index, checked(value, SELECT_WRITABLE)?),
            Msr::Fixed(index) => self.regs.fixed[index].set(checked(value, MASK)?),
            Msr::FixedCtrl => self.regs.fixed_ctrl = checked(value, (1 << (4 * FIXED)) - 1)?,
            Msr::Ctrl => self.regs.global_ctrl = checked(value, self.counter_bits())?,
            Msr::StatusReset => {
                self.regs.global_status &= !checked(value, self.status_bits() | STATUS_CLEARABLE)?;
                self.status_cleared();
            }
            Msr::StatusSet => {
                self.regs.global_status |= checked(value, self.status_bits() | 1 << 62)?
            }
            Msr::MiscEnable => {
                let value = checked(value, MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY)?;
                self.regs.misc_enable = value & MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY;
            }
            Msr::DebugCtl => {
                let smm = if self.model.capabilities & CAP_SMM_FREEZE != 0 {
                    DEBUGCTL_FREEZE_WHILE_SMM
                } else {
                    0
                };
                self.regs.debugctl = checked(value, DEBUGCTL_WRITABLE | smm)?;
            }
            Msr::OffcoreRsp(index) => {
                self.regs.offcore_rsp[index] = checked(value, OFFCORE_RSP_WRITABLE)?
            }
            Msr::LdLat => self.regs.ld_lat = checked(value, LD_LAT_WRITABLE)?,
            Msr::Frontend => self.regs.frontend = checked(value, FRONTEND_WRITABLE)?,
            Msr::Accounting(0) => {
                if value >> 63 != 0 {
                    self.accounting.clear();
                }
                self.accounting_select = value & !(1 << 63);
            }
            Msr::Status | Msr::InUse | Msr::Capabilities | Msr::Accounting(_) | Msr::Absent => {
                return Err(Fault)
            }
        }
        Ok(())
    }

    fn write_select(&mut self, index: usize, value: u64) {
        let general = &mut self.regs.general[index];
        general.select = value;
        general.source = Select::from_register(value).source(self.model.events, index);
    }

    /// The bits of IA32_PERF_GLOBAL_STATUS that there are.
    fn status_bits(&self) -> u64 {
        self.counter_bits()
            | if self.model.version >= 4 {
                STATUS_FROZEN
            } else {
                0
            }
    }

    /// IA32_PERF_GLOBAL_INUSE: counters with an event selected or a level enabled, and whether any
    /// may raise a PMI.
    fn in_use(&self) -> u64 {
        const PMI: u64 = 1 << 63;
        let mut bits = 0;
        for (i, general) in self.regs.general[..self.generals].iter().enumerate() {
            bits |= u64::from(general.select & 0xff != 0) << i;
            bits |= if general.select & INT != 0 { PMI } else { 0 };
        }
        for i in 0..FIXED {
            bits |= u64::from(self.fixed_field(i) & 3 != 0) << (FIXED_SHIFT + i);
            bits |= if self.fixed_field(i) & FIXED_PMI != 0 {
                PMI
            } else {
                0
            };
        }
        bits
    }

    fn read_accounting(&self, offset: u32) -> Result<u64, Fault> {
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
            5 => accounting.held.load(Relaxed),
            6 => accounting.instructions[0].load(Relaxed),
            7 => accounting.instructions[1].load(Relaxed),
            _ => return Err(Fault),
        })
    }
}
