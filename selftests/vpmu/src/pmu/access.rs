// SPDX-License-Identifier: GPL-2.0

//! RDMSR, WRMSR and RDPMC.

use std::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

use super::amd::SELECT_WRITABLE;
use super::msr::{
    decode,
    Msr, //
};
use super::registers::{
    FIXED_PMI,
    FIXED_SHIFT,
    INT,
    MISC_ENABLE_READ_ONLY,
    PEBS_UNAVAILABLE, //
};
use super::reserved::{
    LD_LAT_WRITABLE,
    MISC_ENABLE_WRITABLE,
    SELECT_IN_TX,
    STATUS_COND_CHGD, //
};
use super::state::Pmu;
use super::tsx::RTM_FORCE_ABORT;
use crate::accounting::{
    bump,
    Accesses,
    RDPMC_METRICS, //
};
use crate::counter::Counter;
use crate::defect::is_corrupting;
use crate::inject::Injected;
use crate::select::{
    self,
    Select, //
};
use crate::share::Source;
use crate::Fault;

impl Pmu {
    /// Reads an MSR. Returns `None` if it is not a register of the PMU.
    pub fn rdmsr(&self, msr: u32) -> Option<Result<u64, Fault>> {
        let register = self.register(msr)?;
        let result = self.read(register);
        self.account(msr, register, |accesses| &accesses.reads, result.is_err());
        Some(result)
    }

    /// Writes an MSR. Returns `None` if it is not a register of the PMU.
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), Fault>> {
        let register = self.register(msr)?;
        let result = self.write(register, value);
        if result.is_ok() {
            self.disarm(register);
        }
        self.publish();
        self.restart_lbr_cycles();
        self.account(msr, register, |accesses| &accesses.writes, result.is_err());
        Some(result)
    }

    /// Returns the register with this number; `None` if it is not the PMU's, or if a hypervisor
    /// ignores accesses to it, as QEMU does for all registers that it does not know.
    fn register(&self, msr: u32) -> Option<Msr> {
        let ignored = self.profile.is_some_and(|it| it.absent_ignored);
        decode(self, msr).filter(|register| !(ignored && *register == Msr::Absent))
    }

    /// Reads a counter by RDPMC: `ecx` is the number of a general counter or, with bit 30, of a
    /// fixed one, or [`RDPMC_METRICS`].
    pub fn rdpmc(&self, ecx: u32) -> Result<u64, Fault> {
        let accesses = self.accounting.rdpmc(ecx);
        bump(&accesses.reads);
        let (generals, fixed) = self.existing();
        let value = match (ecx >> 30, (ecx & !(1 << 30)) as usize) {
            (0, index) if index < generals => Some(self.regs.general[index].counter.value()),
            (0, _) if ecx == RDPMC_METRICS && self.metrics() != 0 => Some(self.read_metrics()),
            (1, index) => self.regs.fixed[..fixed].get(index).map(Counter::value),
            _ => None,
        };
        value.ok_or_else(|| {
            bump(&accesses.faults);
            Fault
        })
    }

    /// Accounts an access.
    fn account(&self, msr: u32, register: Msr, count: fn(&Accesses) -> &AtomicU64, fault: bool) {
        // Reading the accounting must not change it.
        if let Msr::Accounting(offset) = register {
            self.watch_accounting(offset);
        } else {
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
            Msr::Pmc(index) | Msr::FullPmc(index) | Msr::AmdCounter(index) => {
                regs.general[index].counter.value()
            }
            Msr::Select(index) | Msr::AmdSelect(index) if self.select_faults(index) => {
                return Err(Fault)
            }
            Msr::Select(index) | Msr::AmdSelect(index) => regs.general[index].select,
            Msr::Fixed(index) => regs.fixed[index].value(),
            Msr::FixedCtrl => regs.fixed_ctrl,
            Msr::Metrics => self.read_metrics(),
            Msr::Status => regs.global_status | self.reserved_status(),
            Msr::Ctrl | Msr::AmdCtrl => regs.global_ctrl,
            Msr::StatusReset | Msr::StatusSet | Msr::AmdStatusClear | Msr::AmdStatusSet => 0,
            Msr::InUse => self.in_use(),
            Msr::Capabilities => self.capabilities(),
            Msr::MiscEnable if self.pebs.is_some() => regs.misc_enable & !PEBS_UNAVAILABLE,
            Msr::MiscEnable => regs.misc_enable,
            Msr::DebugCtl => regs.debugctl,
            Msr::Lbr(register) => self.read_lbr(register)?,
            Msr::Pebs(register) => self.read_pebs(register),
            Msr::TsxForceAbort => self.tsx.force_abort,
            Msr::OffcoreRsp(index) => self.offcore_rsp(index).load(Relaxed),
            Msr::LdLat => regs.ld_lat,
            Msr::Frontend => regs.frontend,
            Msr::SnoopRsp(index) => regs.snoop[index],
            Msr::Accounting(offset) => self.read_accounting(offset)?,
            Msr::Absent => return Err(Fault),
        })
    }

    fn write(&mut self, register: Msr, value: u64) -> Result<(), Fault> {
        match register {
            Msr::Pmc(index) | Msr::FullPmc(index) if self.general_is_stuck(index) => {}
            // Bit 31 is sign-extended, the bits above it are ignored.
            Msr::Pmc(index) => self.regs.general[index].counter.set(value as i32 as u64),
            Msr::FullPmc(index) => {
                let value = checked(value, self.model.counter_mask())?;
                self.regs.general[index].counter.set(value);
            }
            Msr::Select(index) => {
                self.write_select(index, checked(value, self.select_bits(index))?)
            }
            Msr::Fixed(index) if self.fixed_is_stuck(index) => {}
            Msr::Fixed(index) => {
                let bits = match self.profile {
                    Some(profile) if profile.lenient => !0,
                    _ => self.model.counter_mask(),
                };
                self.regs.fixed[index].set(checked(value, bits)?);
            }
            Msr::FixedCtrl => self.regs.fixed_ctrl = checked(value, self.fixed_ctrl_bits())?,
            Msr::Metrics => self.write_metrics(checked(value, self.metrics_bits())?),
            // The bits of counters that an injected error has removed do not fault, but stay clear.
            Msr::Ctrl => {
                let enabled = checked(value, self.all_counter_bits())? & self.counter_bits();
                self.regs.global_ctrl = enabled | self.stuck_ctrl();
            }
            Msr::StatusReset => {
                let cleared = checked(value, self.status_bits() | STATUS_COND_CHGD)?;
                if !self.injected.has(Injected::STUCK_STATUS) {
                    self.regs.global_status &= !cleared;
                }
            }
            Msr::StatusSet => self.regs.global_status |= checked(value, self.status_bits())?,
            Msr::MiscEnable => {
                let value = checked(value, MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY)?;
                self.regs.misc_enable = value & MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY;
            }
            Msr::DebugCtl => {
                self.regs.debugctl =
                    checked(value, self.debugctl_bits())? & !self.debugctl_ignored()
            }
            Msr::Lbr(register) => self.write_lbr(register, value)?,
            Msr::Pebs(register) => self.write_pebs(register, value)?,
            Msr::TsxForceAbort => self.tsx.force_abort = checked(value, RTM_FORCE_ABORT)?,
            Msr::OffcoreRsp(index) => {
                let value = checked(value, self.model.offcore.bits(index))?;
                self.offcore_rsp(index).store(value, Relaxed);
            }
            Msr::LdLat => self.regs.ld_lat = checked(value, LD_LAT_WRITABLE)?,
            Msr::Frontend => self.regs.frontend = checked(value, self.model.frontend)?,
            // Which bits are reserved is not documented: none are here.
            Msr::SnoopRsp(index) => self.regs.snoop[index] = value,
            // AMD's registers ignore reserved bits.
            Msr::AmdSelect(index) => self.write_amd_select(index, value & SELECT_WRITABLE),
            Msr::AmdCounter(index) if self.general_is_stuck(index) => {}
            Msr::AmdCounter(index) => self.regs.general[index].counter.set(value),
            Msr::AmdCtrl => self.regs.global_ctrl = value & self.counter_bits() | self.stuck_ctrl(),
            Msr::AmdStatusClear => {
                if !self.injected.has(Injected::STUCK_STATUS) {
                    self.regs.global_status &= !value;
                }
            }
            Msr::AmdStatusSet => self.regs.global_status |= value & self.amd_status_bits(),
            Msr::Accounting(offset) => self.write_accounting(offset, value)?,
            Msr::Status | Msr::InUse | Msr::Capabilities | Msr::Absent => return Err(Fault),
        }
        Ok(())
    }

    /// Returns IA32_PERF_GLOBAL_INUSE: the counters with an event selected or a level enabled, and
    /// whether any may raise a PMI.
    fn in_use(&self) -> u64 {
        const PMI: u64 = 1 << 63;
        let mut bits = 0;
        for (i, general) in self.regs.general[..self.generals].iter().enumerate() {
            bits |= u64::from(general.select & 0xff != 0) << i;
            bits |= if general.select & INT != 0 { PMI } else { 0 };
        }
        for i in 0..self.model.fixed {
            bits |= u64::from(self.fixed_field(i) & 3 != 0) << (FIXED_SHIFT + i);
            bits |= if self.fixed_field(i) & FIXED_PMI != 0 {
                PMI
            } else {
                0
            };
        }
        bits
    }

    /// Programs an event select.
    pub(super) fn write_select(&mut self, index: usize, value: u64) {
        let select = Select::from_register(value);
        let leaky = self.leaky() && is_corrupting(select.event);
        let listed = self.listed_counter(select, index);
        let precise = self.samples_precisely(select, listed);
        let model = self.model;
        let general = &mut self.regs.general[index];
        general.select = value;
        general.precise = precise;
        general.counter.change_source();
        (general.source, general.register) = if value & SELECT_IN_TX != 0 {
            // No instruction is in a transaction.
            (Source::Nothing, None)
        } else {
            select.source(model, listed)
        };
        general.leak = leaky.then_some(0);
    }

    /// Programs AMD's PERF_CTL.
    pub(super) fn write_amd_select(&mut self, index: usize, value: u64) {
        let list = self.model.amd().map_or(&[][..], |amd| amd.list);
        let merges = self.model.amd().is_some_and(|amd| amd.merge);
        let general = &mut self.regs.general[index];
        general.select = value;
        general.counter.change_source();
        general.source = select::amd::source(list, value, index);
        general.large = merges && select::amd::is_large(value);
        self.select_northbridge(index);
    }
}

/// Returns `value`, or an error if it has bits outside `writable` set.
pub(super) fn checked(value: u64, writable: u64) -> Result<u64, Fault> {
    if value & !writable == 0 {
        Ok(value)
    } else {
        Err(Fault)
    }
}

/// Returns the address, or an error if it is not canonical: if the bits from `width` on differ from
/// the bit below them.
pub(super) fn canonical(address: u64, width: u32) -> Result<u64, Fault> {
    let beyond = 64 - width;
    let extended = ((address as i64) << beyond) >> beyond;
    if extended as u64 == address {
        Ok(address)
    } else {
        Err(Fault)
    }
}
