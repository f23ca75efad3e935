// SPDX-License-Identifier: GPL-2.0

//! The register map: the register of each MSR number, on AMD's CPUs.
//!
//! APM vol. 2, 13.2 and appendix A.

use crate::model::Amd;
use crate::pmu::accounting_msr::ACCOUNTING;
use crate::pmu::lbr;
use crate::pmu::msr::Msr;
use crate::pmu::state::Pmu;

/// Number of counters that have the old numbers as well.
const LEGACY: usize = 4;

/// Returns the register with this number, or `None` if the PMU leaves it to QEMU.
pub(in crate::pmu) fn decode(pmu: &Pmu, amd: &Amd, msr: u32) -> Option<Msr> {
    let if_present = |present: bool, msr: Msr| Some(if present { msr } else { Msr::Absent });
    let (counters, _) = pmu.existing();
    match msr {
        // PERF_LEGACY_CTL0-3, PERF_LEGACY_CTR0-3
        0xc001_0000..=0xc001_0007 => {
            let index = (msr & 3) as usize;
            let register = if msr & 4 == 0 {
                Msr::AmdSelect(index)
            } else {
                Msr::AmdCounter(index)
            };
            if_present(index < counters.min(LEGACY), register)
        }
        // PERF_CTL0-5 and PERF_CTR0-5, alternately
        0xc001_0200..=0xc001_020b => {
            let index = ((msr & 0xf) >> 1) as usize;
            let register = if msr & 1 == 0 {
                Msr::AmdSelect(index)
            } else {
                Msr::AmdCounter(index)
            };
            if_present(amd.extended && index < counters, register)
        }
        // PerfCntrGlobalStatus, -Ctl, -StatusClr, -StatusSet
        0xc000_0300 => if_present(amd.global, Msr::Status),
        0xc000_0301 => if_present(amd.global, Msr::AmdCtrl),
        0xc000_0302 => if_present(amd.global, Msr::AmdStatusClear),
        0xc000_0303 => if_present(amd.global, Msr::AmdStatusSet),
        ACCOUNTING..=0x4000_ff0f => Some(Msr::Accounting(msr - ACCOUNTING)),
        // LBR
        0x1d9 => pmu.model.lbr.map(|_| Msr::DebugCtl),
        0xc000_010e | 0xc000_010f | 0xc001_0300..=0xc001_031f => {
            let register = pmu.model.lbr.and_then(|lbr| lbr::decode(&lbr, msr));
            Some(register.map_or(Msr::Absent, Msr::Lbr))
        }
        // Counters of the L2 or the L3 and of the northbridge; IBS; IRPerfCount
        0xc001_0230..=0xc001_0247 | 0xc001_1030..=0xc001_103d | 0xc000_00e9 => Some(Msr::Absent),
        // Registers of Intel's CPUs alone: LBR, counters, global registers,
        // IA32_PERF_CAPABILITIES, PEBS
        0x040..=0x047 | 0x060..=0x067 | 0x1c8 | 0x1c9 | 0x1da => Some(Msr::Absent),
        0x680..=0x69f | 0x6c0..=0x6df | 0xdc0..=0xddf => Some(Msr::Absent),
        0x0c1..=0x0c8 | 0x186..=0x18d | 0x309..=0x318 | 0x345 | 0x38d..=0x392 => Some(Msr::Absent),
        0x3f1 | 0x3f6 | 0x3f7 | 0x4c1..=0x4c8 => Some(Msr::Absent),
        _ => None,
    }
}
