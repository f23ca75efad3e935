// SPDX-License-Identifier: GPL-2.0

//! What differs between the CPU models.

use crate::event::{self, Listed};

/// One CPU model's PMU.
#[derive(Debug)]
pub struct Model {
    /// CPUID family, extended family added.
    pub family: u32,
    /// CPUID model, extended model included.
    pub model: u32,
    /// Version of architectural performance monitoring (CPUID.0AH:EAX[7:0]).
    pub version: u32,
    /// IA32_PERF_CAPABILITIES.
    pub capabilities: u64,
    /// Has MSR_PEBS_FRONTEND.
    pub frontend: bool,
    /// Intel's list of events.
    pub events: &'static [Listed],
}

/// IA32_PERF_CAPABILITIES.SMM_FREEZE: IA32_DEBUGCTL.FREEZE_WHILE_SMM exists.
pub const CAP_SMM_FREEZE: u64 = 1 << 12;
/// IA32_PERF_CAPABILITIES.FW_WRITE: IA32_A_PMCx exist.
pub const CAP_FW_WRITE: u64 = 1 << 13;

/// Fixed counters.
pub const FIXED: usize = 3;
/// General counters of a core; the two threads of a core halve them (SDM vol. 3, 20.3.4).
pub const GENERAL_PER_CORE: usize = 8;

// No PEBS, no LBR: the fields that describe them are zero.
const CAPABILITIES: u64 = CAP_SMM_FREEZE | CAP_FW_WRITE;

const MODELS: [Model; 2] = [
    Model {
        family: 6,
        model: 60, // Haswell (client)
        version: 3,
        capabilities: CAPABILITIES,
        frontend: false,
        events: &event::HASWELL,
    },
    Model {
        family: 6,
        model: 94, // Skylake (client)
        version: 4,
        capabilities: CAPABILITIES,
        frontend: true,
        events: &event::SKYLAKE,
    },
];

/// The PMU of a CPU, if there is a model of it.
pub fn find(family: u32, model: u32) -> Option<&'static Model> {
    static TABLE: [Model; 2] = MODELS;
    TABLE
        .iter()
        .find(|entry| (entry.family, entry.model) == (family, model))
}
