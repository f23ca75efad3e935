// SPDX-License-Identifier: GPL-2.0

//! The registers: which there are, what they hold, which of their bits are reserved.
//!
//! SDM vol. 4: table 2-2 (architectural MSRs) and the tables of the microarchitectures; [`crate::model`]
//! holds where these differ.

use std::sync::atomic::Ordering::Relaxed;

use crate::accounting::{bump, Accesses};
use crate::counter::MASK;
use crate::defect::is_corrupting;
use crate::model::{CAP_FW_WRITE, CAP_SMM_FREEZE};
use crate::order::Ordered;
use crate::pmu::{
    Pmu, ANY_THREAD, BTF, CTR_FRZ, FIXED_ANY_THREAD, FIXED_PMI, FIXED_SHIFT, FREEZE_PERFMON_ON_PMI,
    FREEZE_WHILE_SMM, INT,
};
use crate::select::Select;
use crate::share::Source;
use crate::Fault;

/// IA32_MISC_ENABLE: fast strings; and, read-only: performance monitoring available, BTS and PEBS
/// unavailable.
pub(crate) const MISC_ENABLE_RESET: u64 = 1 | MISC_ENABLE_READ_ONLY;
const MISC_ENABLE_READ_ONLY: u64 = (1 << 7) | (1 << 11) | (1 << 12);
/// Fast strings, TM1, EIST, MWAIT, CPUID limit, xTPR, XD, turbo.
const MISC_ENABLE_WRITABLE: u64 =
    1 | (1 << 3) | (1 << 16) | (1 << 18) | (1 << 22) | (1 << 23) | (1 << 34) | (1 << 38);

/// Event, umask, USR, OS, E, PC, INT, AnyThread, EN, INV, CMASK.
const SELECT_WRITABLE: u64 = 0xffff_ffff;
/// For CPUs with transactions; IN_TXCP is counter 2's alone.
const SELECT_IN_TX: u64 = 1 << 32;
const SELECT_IN_TXCP: u64 = 1 << 33;
const IN_TXCP_COUNTER: usize = 2;
const SELECT_PC: u64 = 1 << 19;
/// One counter's field of IA32_FIXED_CTR_CTRL.
const FIXED_WRITABLE: u64 = 0xf;

/// BTF, FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI. What would need LBR or BTS is missing.
const DEBUGCTL_WRITABLE: u64 = BTF | (1 << 11) | FREEZE_PERFMON_ON_PMI;

/// TSX_FORCE_ABORT. Its other bits came later, with CPUID's RTM_ALWAYS_ABORT.
pub(crate) const RTM_FORCE_ABORT: u64 = 1 << 0;

const LD_LAT_WRITABLE: u64 = 0xffff;

/// IA32_PERF_GLOBAL_STATUS beyond the counters, bits that the hardware never sets here: Ovf_Uncore,
/// since Nehalem (SDM vol. 4, table 2-15), and OvfDSBuffer …
const STATUS_OVERFLOWS: u64 = (1 << 61) | (1 << 62);
/// … and CondChgd, which software cannot set either.
const STATUS_COND_CHGD: u64 = 1 << 63;
/// Version 4 adds LBR_FRZ, CTR_FRZ and ASCI.
const STATUS_VERSION_4: u64 = (1 << 58) | CTR_FRZ | (1 << 60);

/// The accounting registers, in a range that no CPU will ever use (SDM vol. 4, 2.1). `README.md`
/// describes them.
const ACCOUNTING: u32 = 0x4000_ff00;
/// The offset from there of the one that can be looked at without being noticed; as can that of what is
/// wrong by order.
const ACCOUNTING_TOLD: u32 = 5;
/// The marker's.
const ACCOUNTING_MARK: u32 = 9;
/// That of what is wrong by order.
const ORDERED: u32 = 10;

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
    TsxForceAbort,
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
    let (generals, fixed) = pmu.there();
    let general =
        |msr: u32, first: u32| Some((msr - first) as usize).filter(|&index| index < generals);
    let version_4 = pmu.model.version >= 4;
    match msr {
        0x0c1..=0x0c8 => Some(general(msr, 0x0c1).map_or(Msr::Absent, Msr::Pmc)),
        0x10f => if_there(pmu.defects.tfa, Msr::TsxForceAbort),
        0x186..=0x18d => Some(general(msr, 0x186).map_or(Msr::Absent, Msr::Select)),
        0x4c1..=0x4c8 => {
            let full_width = pmu.model.capabilities & CAP_FW_WRITE != 0;
            let index = general(msr, 0x4c1).filter(|_| full_width);
            Some(index.map_or(Msr::Absent, Msr::FullPmc))
        }
        0x309..=0x318 => {
            let index = (msr - 0x309) as usize;
            if_there(index < fixed, Msr::Fixed(index))
        }
        0x1a0 => Some(Msr::MiscEnable),
        0x1a6 | 0x1a7 => {
            let index = (msr - 0x1a6) as usize;
            if_there(index < pmu.model.offcore.registers, Msr::OffcoreRsp(index))
        }
        0x1d9 => Some(Msr::DebugCtl),
        0x345 => Some(Msr::Capabilities),
        0x38d => Some(Msr::FixedCtrl),
        0x38e => Some(Msr::Status),
        0x38f => Some(Msr::Ctrl),
        0x390 => Some(Msr::StatusReset),
        0x391 => if_there(version_4, Msr::StatusSet),
        0x392 => if_there(version_4, Msr::InUse),
        0x3f6 => Some(Msr::LdLat),
        0x3f7 => if_there(pmu.model.frontend != 0, Msr::Frontend),
        ACCOUNTING..=0x4000_ff0f => Some(Msr::Accounting(msr - ACCOUNTING)),
        // What MSR_PERF_METRICS, PEBS and BTS would have
        0x329 | 0x3f1 | 0x3f2 | 0x600 => Some(Msr::Absent),
        // LBR and last exception records, old and architectural
        0x1c8 | 0x1c9 | 0x1db..=0x1de | 0x680..=0x69f | 0x6c0..=0x6df | 0xdc0..=0xddf => {
            Some(Msr::Absent)
        }
        0x14ce | 0x14cf | 0x1200..=0x121f | 0x1500..=0x151f | 0x1600..=0x161f => Some(Msr::Absent),
        // Intel PT
        0x560 | 0x561 | 0x570..=0x58f => Some(Msr::Absent),
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
        self.publish();
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
        if let Msr::Accounting(offset) = register {
            if offset != ACCOUNTING_TOLD && offset != ORDERED {
                self.accounting.watch();
            }
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
            Msr::TsxForceAbort => regs.tsx_force_abort,
            Msr::OffcoreRsp(index) => self.offcore_rsp(index).load(Relaxed),
            Msr::LdLat => regs.ld_lat,
            Msr::Frontend => regs.frontend,
            Msr::Accounting(offset) => self.read_accounting(offset)?,
            Msr::Absent => return Err(Fault),
        })
    }

    fn write(&mut self, register: Msr, value: u64) -> Result<(), Fault> {
        match register {
            // Bit 31 is extended, what is above it is ignored.
            Msr::Pmc(index) | Msr::FullPmc(index) if self.is_deaf_general(index) => {}
            Msr::Pmc(index) => self.regs.general[index].counter.set(value as i32 as u64),
            Msr::FullPmc(index) => self.regs.general[index].counter.set(checked(value, MASK)?),
            Msr::Select(index) => {
                self.write_select(index, checked(value, self.select_bits(index))?)
            }
            Msr::Fixed(index) if self.is_deaf_fixed(index) => {}
            Msr::Fixed(index) => self.regs.fixed[index].set(checked(value, MASK)?),
            Msr::FixedCtrl => self.regs.fixed_ctrl = checked(value, self.fixed_ctrl_bits())?,
            // Whoever has found counters that have gone by order does not know.
            Msr::Ctrl => {
                self.regs.global_ctrl =
                    checked(value, self.all_counter_bits())? & self.counter_bits()
            }
            Msr::StatusReset => {
                let cleared = checked(value, self.status_bits() | STATUS_COND_CHGD)?;
                if !self.ordered().has(Ordered::KEEPS_STATUS) {
                    self.regs.global_status &= !cleared;
                }
            }
            Msr::StatusSet => self.regs.global_status |= checked(value, self.status_bits())?,
            Msr::MiscEnable => {
                let value = checked(value, MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY)?;
                self.regs.misc_enable = value & MISC_ENABLE_WRITABLE | MISC_ENABLE_READ_ONLY;
            }
            Msr::DebugCtl => {
                let smm = if self.model.capabilities & CAP_SMM_FREEZE != 0 {
                    FREEZE_WHILE_SMM
                } else {
                    0
                };
                self.regs.debugctl = checked(value, DEBUGCTL_WRITABLE | smm)?;
            }
            Msr::TsxForceAbort => self.regs.tsx_force_abort = checked(value, RTM_FORCE_ABORT)?,
            Msr::OffcoreRsp(index) => {
                let value = checked(value, self.model.offcore.writable)?;
                self.offcore_rsp(index).store(value, Relaxed);
            }
            Msr::LdLat => self.regs.ld_lat = checked(value, LD_LAT_WRITABLE)?,
            Msr::Frontend => self.regs.frontend = checked(value, self.model.frontend)?,
            Msr::Accounting(0) => {
                if value >> 63 != 0 {
                    self.accounting.clear();
                }
                self.accounting_select = value & !(1 << 63);
            }
            Msr::Accounting(ACCOUNTING_MARK) => self.accounting.mark(value),
            Msr::Accounting(ORDERED) => self.order(Ordered::from_bits(value).ok_or(Fault)?),
            Msr::Status | Msr::InUse | Msr::Capabilities | Msr::Accounting(_) | Msr::Absent => {
                return Err(Fault)
            }
        }
        Ok(())
    }

    pub(crate) fn write_select(&mut self, index: usize, value: u64) {
        let select = Select::from_register(value);
        let leaky = self.leaky() && is_corrupting(select.event);
        let general = &mut self.regs.general[index];
        general.select = value;
        general.counter.change_source();
        (general.source, general.register) = if value & SELECT_IN_TX != 0 {
            // There are no transactions.
            (Source::Nothing, None)
        } else {
            select.source(self.model, index)
        };
        general.leak = leaky.then_some(0);
    }

    /// The bits of IA32_PERFEVTSELx, x being `index`, that there are.
    fn select_bits(&self, index: usize) -> u64 {
        let mut bits = SELECT_WRITABLE;
        if self.defects.tfa {
            bits |= SELECT_IN_TX;
            if index == IN_TXCP_COUNTER {
                bits |= SELECT_IN_TXCP;
            }
        }
        // Haswell and Broadwell were seen to answer #GP (Xen's commit "x86/vpmu_intel: fix hypervisor
        // crash by masking PC bit in MSR_P6_EVNTSEL"), as the manual's "reserved" has it.
        if !self.model.pin_control {
            bits &= !SELECT_PC;
        }
        if !self.model.any_thread {
            bits &= !ANY_THREAD;
        }
        bits
    }

    /// The bits of IA32_FIXED_CTR_CTRL that there are.
    pub(crate) fn fixed_ctrl_bits(&self) -> u64 {
        let field = if self.model.any_thread {
            FIXED_WRITABLE
        } else {
            FIXED_WRITABLE & !FIXED_ANY_THREAD
        };
        (0..self.there().1).fold(0, |bits, index| bits | (field << (4 * index)))
    }

    /// The bits of IA32_PERF_GLOBAL_STATUS that there are, but for CondChgd. Those of Intel PT are
    /// not.
    fn status_bits(&self) -> u64 {
        let version_4 = if self.model.version >= 4 {
            STATUS_VERSION_4
        } else {
            0
        };
        self.counter_bits() | STATUS_OVERFLOWS | version_4
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
            ACCOUNTING_TOLD => self.told,
            6 => accounting.instructions[0].load(Relaxed),
            7 => accounting.instructions[1].load(Relaxed),
            8 => accounting.lost.load(Relaxed),
            ORDERED => self.ordered().bits(),
            _ => return Err(Fault),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    const HASWELL: u32 = 60;
    const SKYLAKE: u32 = 94;

    fn pmu(model: u32, threads: u32) -> Pmu {
        Pmu::new(model::find(6, model).unwrap(), threads)
    }

    /// An MSR's value after a write of `written`; `None` is #GP.
    struct Write(u32, u64, Option<u64>);

    fn check(pmu: &mut Pmu, cases: &[Write]) {
        for &Write(msr, written, expected) in cases {
            let result = pmu.wrmsr(msr, written).expect("an MSR of the PMU");
            assert_eq!(
                result.is_ok(),
                expected.is_some(),
                "{msr:#x} = {written:#x}"
            );
            if let Some(expected) = expected {
                assert_eq!(
                    pmu.rdmsr(msr),
                    Some(Ok(expected)),
                    "{msr:#x} = {written:#x}"
                );
            }
        }
    }

    #[test]
    fn reset_values() {
        for (model, threads, generals) in [(HASWELL, 2, 4), (HASWELL, 1, 8), (SKYLAKE, 2, 4)] {
            let mut pmu = pmu(model, threads);
            for reset in [false, true] {
                if reset {
                    for msr in [0x186, 0xc1, 0x309, 0x38d, 0x1a6, 0x3f6, 0x1d9] {
                        pmu.wrmsr(msr, 2).unwrap().unwrap();
                    }
                    pmu.wrmsr(0x38f, 0).unwrap().unwrap();
                    pmu.reset();
                }
                for msr in [0x186, 0xc1, 0x4c1, 0x309, 0x38d, 0x38e, 0x1a6, 0x3f6, 0x1d9] {
                    assert_eq!(pmu.rdmsr(msr), Some(Ok(0)), "{msr:#x}");
                }
                assert_eq!(pmu.rdmsr(0x38f), Some(Ok((1 << generals) - 1)));
                assert_eq!(pmu.rdmsr(0x1a0), Some(Ok(0x1881)));
                assert_eq!(pmu.rdmsr(0x345), Some(Ok(0x3000)));
            }
        }
    }

    #[test]
    fn a_thread_has_half_of_the_counters() {
        for (threads, generals) in [(1, 8), (2, 4)] {
            let mut pmu = pmu(HASWELL, threads);
            assert_eq!(
                pmu.cpuid(0xa, 0, [0; 4]),
                [0x0730_0003 | (generals << 8), 0, 0, 0x603]
            );
            for first in [0xc1, 0x186, 0x4c1] {
                for index in 0..8 {
                    let there = index < generals;
                    assert_eq!(pmu.rdmsr(first + index).unwrap().is_ok(), there);
                    assert_eq!(pmu.wrmsr(first + index, 0).unwrap().is_ok(), there);
                }
            }
            assert!(pmu.wrmsr(0x38f, 1 << (generals - 1)).unwrap().is_ok());
            assert!(pmu.wrmsr(0x38f, 1 << generals).unwrap().is_err());
        }
    }

    #[test]
    fn reserved_bits_fault() {
        check(
            &mut pmu(HASWELL, 2),
            &[
                Write(0x186, 0xfff7_ffff, Some(0xfff7_ffff)),
                Write(0x186, 1 << 19, None), // PC
                Write(0x186, 1 << 32, None), // IN_TX, without TSX
                Write(0x186, 1 << 63, None),
                Write(0x38d, 0xfff, Some(0xfff)),
                Write(0x38d, 0x1000, None),
                Write(0x38f, 0x7_0000_000f, Some(0x7_0000_000f)),
                Write(0x38f, 1 << 35, None),
                Write(0x38f, 1 << 48, None),
                Write(0x4c1, 0xffff_ffff_ffff, Some(0xffff_ffff_ffff)),
                Write(0x4c1, 1 << 48, None),
                Write(0x309, 1 << 48, None),
                Write(0x1d9, 1, None), // LBR
                Write(0x1d9, (1 << 14) | (1 << 12), Some((1 << 14) | (1 << 12))),
                Write(0x1a6, 0x3f_ffff_8fff, Some(0x3f_ffff_8fff)),
                Write(0x1a6, 1 << 12, None),
                Write(0x1a7, 1 << 38, None),
                Write(0x3f6, 0x1_0000, None),
                Write(0x1a0, 1 << 22, Some((1 << 22) | 0x1880)), // read-only bits stay
                Write(0x1a0, 1 << 1, None),
            ],
        );
    }

    #[test]
    fn legacy_counter_writes_extend_bit_31() {
        let mut pmu = pmu(HASWELL, 2);
        check(
            &mut pmu,
            &[
                Write(0xc1, 0x7fff_ffff, Some(0x7fff_ffff)),
                Write(0xc1, 0x8000_0000, Some(0xffff_8000_0000)),
                Write(0xc1, 0x1234_5678_0000_0001, Some(1)),
            ],
        );
        // Both addresses are one counter.
        assert_eq!(pmu.rdmsr(0x4c1), Some(Ok(1)));
    }

    #[test]
    fn read_only_and_absent_registers_fault() {
        let mut pmu = pmu(HASWELL, 2);
        for msr in [0x38e, 0x345] {
            assert!(pmu.rdmsr(msr).unwrap().is_ok());
            assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{msr:#x}");
        }
        // Fixed counter 3, PERF_METRICS, PEBS_ENABLE, DS_AREA, LBR, the next version's counters
        for msr in [
            0x30c, 0x329, 0x3f1, 0x600, 0x1c8, 0x1c9, 0x680, 0x6c0, 0x1900,
        ] {
            assert_eq!(pmu.rdmsr(msr), Some(Err(Fault)), "{msr:#x}");
            assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{msr:#x}");
        }
        // Not performance monitoring: TSC, EFER
        for msr in [0x10, 0xc000_0080] {
            assert_eq!(pmu.rdmsr(msr), None);
            assert_eq!(pmu.wrmsr(msr, 0), None);
        }
    }

    #[test]
    fn version_4_registers() {
        for msr in [0x391, 0x392, 0x3f7] {
            assert_eq!(pmu(HASWELL, 2).rdmsr(msr), Some(Err(Fault)), "{msr:#x}");
            assert!(pmu(SKYLAKE, 2).rdmsr(msr).unwrap().is_ok(), "{msr:#x}");
        }
        let mut pmu = pmu(SKYLAKE, 2);
        let frozen = (1 << 59) | (1 << 58);
        pmu.wrmsr(0x391, frozen | (1 << 34) | 1).unwrap().unwrap();
        assert_eq!(pmu.rdmsr(0x38e), Some(Ok(frozen | (1 << 34) | 1)));
        pmu.wrmsr(0x390, frozen | 1).unwrap().unwrap();
        assert_eq!(pmu.rdmsr(0x38e), Some(Ok(1 << 34)));
        assert_eq!(pmu.wrmsr(0x391, 1 << 4), Some(Err(Fault)));
        assert_eq!(pmu.wrmsr(0x392, 0), Some(Err(Fault)));

        assert_eq!(pmu.rdmsr(0x392), Some(Ok(0)));
        pmu.wrmsr(0x187, 0xc0).unwrap().unwrap();
        pmu.wrmsr(0x38d, 0x0b0).unwrap().unwrap();
        assert_eq!(pmu.rdmsr(0x392), Some(Ok((1 << 63) | (1 << 33) | (1 << 1))));
        // An enclave's part in the counts, and the uncore.
        for bit in [60, 61, 62] {
            pmu.wrmsr(0x391, 1 << bit).unwrap().unwrap();
            assert_eq!(pmu.rdmsr(0x38e), Some(Ok((1 << 34) | (1 << bit))));
            pmu.wrmsr(0x390, 1 << bit).unwrap().unwrap();
            assert_eq!(pmu.rdmsr(0x38e), Some(Ok(1 << 34)));
        }
        // Version 3 has no frozen bits to clear.
        assert_eq!(self::pmu(HASWELL, 2).wrmsr(0x390, frozen), Some(Err(Fault)));
    }

    #[test]
    fn uncore_overflow_can_be_cleared() {
        const NEHALEM: u32 = 26;
        for model in [NEHALEM, HASWELL, SKYLAKE] {
            let mut pmu = pmu(model, 2);
            assert_eq!(pmu.wrmsr(0x390, 1 << 61), Some(Ok(())), "{model}");
            assert_eq!(pmu.rdmsr(0x38e), Some(Ok(0)));
        }
        assert_eq!(pmu(HASWELL, 2).wrmsr(0x390, 1 << 60), Some(Err(Fault)));
    }

    #[test]
    fn accounting_registers() {
        let mut pmu = pmu(HASWELL, 2);
        pmu.wrmsr(0x38f, 0).unwrap().unwrap();
        pmu.wrmsr(0x38f, 1 << 20).unwrap().unwrap_err();
        pmu.rdmsr(0x38f).unwrap().unwrap();
        pmu.rdpmc(2).unwrap();
        let read = |pmu: &Pmu, offset| pmu.rdmsr(ACCOUNTING + offset).unwrap();
        pmu.wrmsr(ACCOUNTING, 0x38f).unwrap().unwrap();
        assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(1), Ok(2), Ok(1)]);
        pmu.wrmsr(ACCOUNTING, (1 << 62) | 2).unwrap().unwrap();
        assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(1), Ok(0), Ok(0)]);
        pmu.wrmsr(ACCOUNTING, (1 << 63) | 0x38f).unwrap().unwrap();
        assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(0); 3]);
        assert_eq!(pmu.wrmsr(ACCOUNTING + 1, 0), Some(Err(Fault)));
        assert_eq!(read(&pmu, 8), Ok(0));
        assert_eq!(read(&pmu, ACCOUNTING_MARK), Err(Fault));
        assert_eq!(pmu.wrmsr(ACCOUNTING + ACCOUNTING_MARK, 5), Some(Ok(())));
        assert!(pmu
            .accounting
            .to_string()
            .contains("mark 0x5 reads 0 writes 0"));
    }
}
