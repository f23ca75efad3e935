// SPDX-License-Identifier: GPL-2.0

//! What a CPU model is made of.

use crate::defect::Defects;
use crate::event::List;

/// One CPU model's PMU.
#[derive(Debug)]
pub struct Model {
    /// The microarchitecture.
    pub name: &'static str,
    /// CPUID models of family 6, extended model included.
    pub models: &'static [u32],
    /// Version of architectural performance monitoring (CPUID.0AH:EAX\[7:0\]).
    pub version: u32,
    /// General counters of a thread.
    pub general: General,
    /// Fixed counters. The fourth counts TOPDOWN.SLOTS.
    pub fixed: usize,
    /// Architectural events that CPUID speaks of (CPUID.0AH:EAX\[31:24\]) …
    pub architectural: u32,
    /// … and those of them that are missing (CPUID.0AH:EBX).
    pub missing: u32,
    /// AnyThread in the event selects and in IA32_FIXED_CTR_CTRL; else the bits are reserved and
    /// CPUID.0AH:EDX\[15\] says so.
    pub any_thread: bool,
    /// IA32_PERFEVTSELx.PC can be set. From Sandy Bridge on it is "reserved (not writeable)" (SDM
    /// vol. 3, 20.2.1.1).
    pub pin_control: bool,
    /// IA32_PERF_CAPABILITIES.
    pub capabilities: u64,
    /// OFFCORE_RESPONSE.
    pub offcore: Offcore,
    /// The bits of MSR_PEBS_FRONTEND; 0: there is none.
    pub frontend: u64,
    /// Pipeline slots of a cycle; 0 where there is no event for them.
    pub slots: u32,
    /// What its hardware gets wrong.
    pub defects: Defects,
    /// Intel's list of events.
    pub list: &'static List,
}

/// How many general counters a thread has.
#[derive(Debug, Clone, Copy)]
pub enum General {
    /// So many, always.
    Thread(usize),
    /// So many in a core; its two threads halve them (SDM vol. 3, 20.3.4).
    Core(usize),
}

/// MSR_OFFCORE_RSP_x.
#[derive(Debug, Clone, Copy)]
pub struct Offcore {
    /// Number of registers.
    pub registers: usize,
    /// The two threads of a core share them; else each has its own.
    pub per_core: bool,
    /// The bits that are not reserved.
    pub writable: u64,
    /// Below this bit are requests, from here on responses.
    pub first_response: u32,
    /// Its first response is "any".
    pub any: bool,
}

/// IA32_PERF_CAPABILITIES.SMM_FREEZE: IA32_DEBUGCTL.FREEZE_WHILE_SMM exists.
pub const CAP_SMM_FREEZE: u64 = 1 << 12;
/// IA32_PERF_CAPABILITIES.FW_WRITE: IA32_A_PMCx exist.
pub const CAP_FW_WRITE: u64 = 1 << 13;

// No model has PEBS, LBR or PERF_METRICS here: the fields that describe them are zero.

/// The most general counters of a thread, and the most fixed ones.
pub const MAX_GENERAL: usize = 8;
/// See [`MAX_GENERAL`].
pub const MAX_FIXED: usize = 4;

impl Model {
    /// General counters of a thread.
    pub fn general_counters(&self, threads_per_core: u32) -> usize {
        match self.general {
            General::Thread(counters) => counters,
            General::Core(counters) if threads_per_core > 1 => counters / 2,
            General::Core(counters) => counters,
        }
    }

    /// Is this architectural event there? `bit` is its bit in CPUID.0AH:EBX.
    pub fn has_architectural(&self, bit: u32) -> bool {
        bit < self.architectural && self.missing & (1 << bit) == 0
    }
}
