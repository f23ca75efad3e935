// SPDX-License-Identifier: GPL-2.0

//! The registers that RESET clears, and their fields.

use super::lbr::Lbr;
use super::metrics::Metrics;
use super::pebs::Pebs;
use crate::counter::Counter;
use crate::event::Register;
use crate::model::{
    MAX_FIXED,
    MAX_GENERAL,
    MAX_SNOOP, //
};
use crate::share::Source;

/// IA32_MISC_ENABLE after RESET: fast strings and the read-only bits.
const MISC_ENABLE_RESET: u64 = 1 | MISC_ENABLE_READ_ONLY;
/// Performance monitoring available, BTS and PEBS unavailable.
pub(super) const MISC_ENABLE_READ_ONLY: u64 = (1 << 7) | (1 << 11) | PEBS_UNAVAILABLE;
/// IA32_MISC_ENABLE: PEBS unavailable.
pub(super) const PEBS_UNAVAILABLE: u64 = 1 << 12;

/// IA32_PERFEVTSELx.USR.
pub(super) const USR: u64 = 1 << 16;
/// IA32_PERFEVTSELx.OS.
pub(super) const OS: u64 = 1 << 17;
/// IA32_PERFEVTSELx.INT.
pub(super) const INT: u64 = 1 << 20;
/// IA32_PERFEVTSELx.AnyThread.
pub(super) const ANY_THREAD: u64 = 1 << 21;
/// IA32_PERFEVTSELx.EN.
pub(super) const EN: u64 = 1 << 22;

/// A counter's field of IA32_FIXED_CTR_CTRL: count at CPL 0.
pub(super) const FIXED_OS: u64 = 1 << 0;
/// Count at CPL 1 to 3.
pub(super) const FIXED_USR: u64 = 1 << 1;
/// AnyThread.
pub(super) const FIXED_ANY_THREAD: u64 = 1 << 2;
/// Raise a PMI on overflow.
pub(super) const FIXED_PMI: u64 = 1 << 3;

/// IA32_DEBUGCTL.LBR.
pub(super) const DEBUGCTL_LBR: u64 = 1 << 0;
/// IA32_DEBUGCTL.BTF.
pub(super) const BTF: u64 = 1 << 1;
/// IA32_DEBUGCTL.FREEZE_WHILE_SMM.
pub(super) const FREEZE_WHILE_SMM: u64 = 1 << 14;
/// IA32_DEBUGCTL.FREEZE_LBRS_ON_PMI.
pub(super) const FREEZE_LBRS_ON_PMI: u64 = 1 << 11;
/// IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI.
pub(super) const FREEZE_PERFMON_ON_PMI: u64 = 1 << 12;
/// IA32_PERF_GLOBAL_STATUS.LBR_FRZ (version 4).
pub(super) const LBR_FRZ: u64 = 1 << 58;
/// IA32_PERF_GLOBAL_STATUS.CTR_FRZ (version 4).
pub(super) const CTR_FRZ: u64 = 1 << 59;

/// Bit of fixed counter 0 in IA32_PERF_GLOBAL_*.
pub(super) const FIXED_SHIFT: usize = 32;

/// A general counter and its event select.
#[derive(Debug, Clone, Copy)]
pub(super) struct General {
    pub(super) counter: Counter,
    pub(super) select: u64,
    /// The source of the counts of `select` on this counter.
    pub(super) source: Source,
    /// The register that further selects what is counted.
    pub(super) register: Option<Register>,
    /// `select` is an event that this counter samples precisely.
    pub(super) precise: bool,
    /// `select` is an event that needs a merged pair of counters.
    pub(super) large: bool,
    /// Events since the last one that leaked to the sibling; `None` if this event does not leak.
    pub(super) leak: Option<u64>,
}

/// The registers that RESET clears.
#[derive(Debug)]
pub(super) struct Registers {
    pub(super) general: [General; MAX_GENERAL],
    pub(super) fixed: [Counter; MAX_FIXED],
    pub(super) fixed_ctrl: u64,
    pub(super) metrics: Metrics,
    pub(super) global_ctrl: u64,
    pub(super) global_status: u64,
    pub(super) debugctl: u64,
    pub(super) lbr: Lbr,
    pub(super) pebs: Pebs,
    /// IA32_PERF_GLOBAL_CTRL and IA32_DEBUGCTL before the SMI, while FREEZE_WHILE_SMM freezes.
    pub(super) before_smm: Option<(u64, u64)>,
    pub(super) misc_enable: u64,
    pub(super) ld_lat: u64,
    pub(super) frontend: u64,
    pub(super) snoop: [u64; MAX_SNOOP],
}

impl Registers {
    /// Returns the values after RESET: zero, except the general counters' bits in GLOBAL_CTRL (SDM
    /// vol. 3, table 10-1) and IA32_MISC_ENABLE.
    ///
    /// `mask` is the mask of a counter's bits.
    pub(super) fn new(generals: usize, mask: u64) -> Self {
        let general = General {
            counter: Counter::new(mask),
            select: 0,
            source: Source::Nothing,
            register: None,
            precise: false,
            large: false,
            leak: None,
        };
        Registers {
            general: [general; MAX_GENERAL],
            fixed: [Counter::new(mask); MAX_FIXED],
            fixed_ctrl: 0,
            metrics: Metrics::default(),
            global_ctrl: (1 << generals) - 1,
            global_status: 0,
            debugctl: 0,
            lbr: Lbr::default(),
            pebs: Pebs::default(),
            before_smm: None,
            misc_enable: MISC_ENABLE_RESET,
            ld_lat: 0,
            frontend: 0,
            snoop: [0; MAX_SNOOP],
        }
    }
}
