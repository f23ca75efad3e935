// SPDX-License-Identifier: GPL-2.0

//! The register map: the register of each MSR number, on Intel's CPUs. [`super::amd`] has AMD's.
//!
//! SDM vol. 4: table 2-2 (architectural MSRs) and the tables of the microarchitectures.

use super::accounting_msr::ACCOUNTING;
use super::lbr;
use super::pebs;
use super::state::Pmu;
use crate::model::CAP_FW_WRITE;

/// A register of the PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Msr {
    Pmc(usize),
    FullPmc(usize),
    Select(usize),
    Fixed(usize),
    FixedCtrl,
    Metrics,
    Status,
    Ctrl,
    /// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on IA32_PERF_GLOBAL_STATUS_RESET.
    StatusReset,
    StatusSet,
    InUse,
    Capabilities,
    MiscEnable,
    DebugCtl,
    Lbr(lbr::Register),
    TsxForceAbort,
    OffcoreRsp(usize),
    LdLat,
    Frontend,
    SnoopRsp(usize),
    Pebs(pebs::Register),
    /// PERF_CTL.
    AmdSelect(usize),
    /// PERF_CTR.
    AmdCounter(usize),
    /// PerfCntrGlobalCtl.
    AmdCtrl,
    /// PerfCntrGlobalStatusClr.
    AmdStatusClear,
    /// PerfCntrGlobalStatusSet.
    AmdStatusSet,
    Accounting(u32),
    /// A register of a feature that this PMU does not have.
    Absent,
}

/// Returns the register with this number, or `None` if it has nothing to do with performance
/// monitoring.
pub(super) fn decode(pmu: &Pmu, msr: u32) -> Option<Msr> {
    if let Some(amd) = pmu.model.amd() {
        return super::amd::msr::decode(pmu, amd, msr);
    }
    let if_present = |present: bool, msr: Msr| Some(if present { msr } else { Msr::Absent });
    let (generals, fixed) = pmu.existing();
    let general =
        |msr: u32, first: u32| Some((msr - first) as usize).filter(|&index| index < generals);
    let version_4 = pmu.model.version >= 4;
    match msr {
        0x0c1..=0x0c8 => Some(general(msr, 0x0c1).map_or(Msr::Absent, Msr::Pmc)),
        0x10f => if_present(pmu.defects.tfa, Msr::TsxForceAbort),
        0x186..=0x18d => Some(general(msr, 0x186).map_or(Msr::Absent, Msr::Select)),
        0x4c1..=0x4c8 => {
            let full_width = pmu.model.capabilities & CAP_FW_WRITE != 0;
            let index = general(msr, 0x4c1).filter(|_| full_width);
            Some(index.map_or(Msr::Absent, Msr::FullPmc))
        }
        0x309..=0x318 => {
            let index = (msr - 0x309) as usize;
            if_present(index < fixed, Msr::Fixed(index))
        }
        0x1a0 => Some(Msr::MiscEnable),
        0x1a6 | 0x1a7 => {
            let index = (msr - 0x1a6) as usize;
            if_present(index < pmu.model.offcore.registers, Msr::OffcoreRsp(index))
        }
        0x1d9 => Some(Msr::DebugCtl),
        0x329 => if_present(pmu.metrics() != 0, Msr::Metrics),
        0x345 => {
            let profile = pmu.profile.is_none_or(|it| it.has_capabilities());
            if_present(profile, Msr::Capabilities)
        }
        0x38d => Some(Msr::FixedCtrl),
        0x38e => Some(Msr::Status),
        0x38f => Some(Msr::Ctrl),
        0x390 => Some(Msr::StatusReset),
        0x391 => if_present(version_4, Msr::StatusSet),
        0x392 => if_present(version_4, Msr::InUse),
        0x3f6 => {
            let latency = pmu.model.list.load_latency != 0 && pmu.profile.is_none();
            if_present(latency, Msr::LdLat)
        }
        0x3f7 => if_present(pmu.model.frontend != 0, Msr::Frontend),
        0x1328 | 0x1329 => {
            let index = (msr - 0x1328) as usize;
            if_present(index < pmu.model.snoop, Msr::SnoopRsp(index))
        }
        ACCOUNTING..=0x4000_ff0f => Some(Msr::Accounting(msr - ACCOUNTING)),
        0x3f1 | 0x3f2 | 0x600 => {
            let register = pmu.pebs.and_then(|pebs| pebs::decode(&pebs, msr));
            Some(register.map_or(Msr::Absent, Msr::Pebs))
        }
        // LBR, of Core 2 and Silvermont, legacy and architectural
        0x040..=0x047
        | 0x060..=0x067
        | 0x1c8
        | 0x1c9
        | 0x680..=0x69f
        | 0x6c0..=0x6df
        | 0xdc0..=0xddf
        | 0x14ce
        | 0x14cf
        | 0x1200..=0x121f
        | 0x1500..=0x151f
        | 0x1600..=0x161f => {
            let register = pmu.model.lbr.and_then(|lbr| lbr::decode(&lbr, msr));
            Some(register.map_or(Msr::Absent, Msr::Lbr))
        }
        // LBR of NetBurst, which later CPUs have elsewhere
        0x1da => Some(Msr::Absent),
        // Last exception records
        0x1db..=0x1de => Some(Msr::Absent),
        // Intel PT
        0x560 | 0x561 | 0x570..=0x58f => Some(Msr::Absent),
        // The counters from version 6 on
        0x4c9..=0x4d0 | 0x1900..=0x19ff => Some(Msr::Absent),
        _ => None,
    }
}
