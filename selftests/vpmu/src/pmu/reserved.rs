// SPDX-License-Identifier: GPL-2.0

//! The bits of each register that are not reserved; writing others faults, except on AMD's CPUs,
//! which ignore them.
//!
//! [`crate::model`] has those that differ between models.

use super::pebs::{
    FIXED_ADAPTIVE,
    OVF_DS_BUFFER,
    SELECT_ADAPTIVE, //
};
use super::registers::{
    ANY_THREAD,
    BTF,
    CTR_FRZ,
    DEBUGCTL_LBR,
    FIXED_ANY_THREAD,
    FREEZE_LBRS_ON_PMI,
    FREEZE_PERFMON_ON_PMI,
    FREEZE_WHILE_SMM,
    LBR_FRZ, //
};
use super::state::Pmu;
use crate::model::{
    LbrFormat,
    CAP_SMM_FREEZE, //
};

/// Fast strings, TM1, EIST, MWAIT, CPUID limit, xTPR, XD, turbo.
pub(super) const MISC_ENABLE_WRITABLE: u64 =
    1 | (1 << 3) | (1 << 16) | (1 << 18) | (1 << 22) | (1 << 23) | (1 << 34) | (1 << 38);

/// Event, umask, USR, OS, E, PC, INT, AnyThread, EN, INV, CMASK.
const SELECT_WRITABLE: u64 = 0xffff_ffff;
/// IN_TX, which a CPU has with the defect TFA.
pub(super) const SELECT_IN_TX: u64 = 1 << 32;
/// IN_TXCP, which only counter 2 has, with the defect TFA.
const SELECT_IN_TXCP: u64 = 1 << 33;
/// The counter with IN_TXCP.
const IN_TXCP_COUNTER: usize = 2;
const SELECT_PC: u64 = 1 << 19;
/// A counter's field of IA32_FIXED_CTR_CTRL.
const FIXED_WRITABLE: u64 = 0xf;

/// LBR, BTF, FREEZE_LBRS_ON_PMI, FREEZE_PERFMON_ON_PMI; none of the bits that need BTS.
const DEBUGCTL_WRITABLE: u64 = DEBUGCTL_LBR | BTF | FREEZE_LBRS_ON_PMI | FREEZE_PERFMON_ON_PMI;

pub(super) const LD_LAT_WRITABLE: u64 = 0xffff;

/// Ovf_Uncore, since Nehalem (SDM vol. 4, table 2-15), and OvfDSBuffer. Software can set both. This
/// hardware never sets Ovf_Uncore, and OvfDSBuffer with PEBS only.
const STATUS_OVERFLOWS: u64 = (1 << 61) | OVF_DS_BUFFER;
/// CondChgd, which software can only clear.
pub(super) const STATUS_COND_CHGD: u64 = 1 << 63;
/// Version 4 adds LBR_FRZ, CTR_FRZ and ASCI. Trace_ToPA_PMI, which hardware without Intel PT lacks,
/// allows tests to imitate PT.
const STATUS_VERSION_4: u64 = (1 << 55) | LBR_FRZ | CTR_FRZ | (1 << 60);

impl Pmu {
    /// Returns the writable bits of IA32_PERFEVTSELx, x being `index`.
    pub(super) fn select_bits(&self, index: usize) -> u64 {
        let mut bits = SELECT_WRITABLE;
        if self.defects.tfa {
            bits |= SELECT_IN_TX;
            if index == IN_TXCP_COUNTER {
                bits |= SELECT_IN_TXCP;
            }
        }
        // PC faults on Haswell and Broadwell (Xen's commit "x86/vpmu_intel: fix hypervisor crash by
        // masking PC bit in MSR_P6_EVNTSEL"), in line with the manual's "reserved".
        if !self.model.pin_control {
            bits &= !SELECT_PC;
        }
        if !self.has_any_thread() {
            bits &= !ANY_THREAD;
        }
        if self.is_adaptive() {
            bits |= SELECT_ADAPTIVE;
        }
        bits
    }

    /// Returns whether AnyThread can be set. No hypervisor lets its guests count other threads.
    fn has_any_thread(&self) -> bool {
        self.model.any_thread && self.profile.is_none()
    }

    /// Returns the bits of IA32_DEBUGCTL that can be written without a fault.
    pub(super) fn debugctl_bits(&self) -> u64 {
        if self.model.amd().is_some() {
            return !0;
        }
        if let Some(profile) = self.profile {
            return profile.debugctl_ignored;
        }
        let smm = if self.capabilities() & CAP_SMM_FREEZE != 0 {
            FREEZE_WHILE_SMM
        } else {
            0
        };
        DEBUGCTL_WRITABLE | smm
    }

    /// Returns the bits of IA32_DEBUGCTL that ignore writes: with architectural LBR, LBR reads as
    /// zero. AMD's registers ignore reserved bits, and hypervisors others.
    pub(super) fn debugctl_ignored(&self) -> u64 {
        if let Some(profile) = self.profile {
            return profile.debugctl_ignored;
        }
        match self.model.lbr {
            Some(lbr) if lbr.format == LbrFormat::Architectural => DEBUGCTL_LBR,
            Some(lbr) if lbr.format == LbrFormat::Amd => !DEBUGCTL_WRITABLE,
            _ => 0,
        }
    }

    /// Returns the bits of AMD's PerfCntrGlobalStatus. The bits for freezing are the same as
    /// Intel's, and exist on CPUs with LBR.
    pub(super) fn amd_status_bits(&self) -> u64 {
        let frozen = match self.model.lbr {
            Some(_) => LBR_FRZ | CTR_FRZ,
            None => 0,
        };
        self.counter_bits() | frozen
    }

    /// Returns the writable bits of IA32_FIXED_CTR_CTRL.
    pub(super) fn fixed_ctrl_bits(&self) -> u64 {
        let field = if self.has_any_thread() {
            FIXED_WRITABLE
        } else {
            FIXED_WRITABLE & !FIXED_ANY_THREAD
        };
        let field = if self.is_adaptive() {
            field | FIXED_ADAPTIVE
        } else {
            field
        };
        (0..self.existing().1).fold(0, |bits, index| bits | (field << (4 * index)))
    }

    /// Returns the bits of IA32_PERF_GLOBAL_STATUS that software can set.
    pub(super) fn status_bits(&self) -> u64 {
        let version_4 = if self.model.version >= 4 {
            STATUS_VERSION_4
        } else {
            0
        };
        // KVM (`intel_pmu_refresh()`) and Xen reserve Ovf_Uncore.
        let overflows = match self.profile {
            Some(_) => OVF_DS_BUFFER,
            None => STATUS_OVERFLOWS,
        };
        self.counter_bits() | overflows | version_4
    }
}
