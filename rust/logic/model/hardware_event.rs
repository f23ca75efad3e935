// SPDX-License-Identifier: GPL-2.0

//! The generic hardware events, and a model's event selects for them.

use crate::logic::{
    nospec::masked,
    regs::event_select::EventSelect, //
};

/// Number of generic hardware events (`PERF_COUNT_HW_MAX`).
const HARDWARE_EVENTS: usize = 10;

/// A generic hardware event: `perf_hw_id` of `include/uapi/linux/perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HardwareId {
    /// `PERF_COUNT_HW_CPU_CYCLES`.
    CpuCycles = 0,
    /// `PERF_COUNT_HW_INSTRUCTIONS`.
    Instructions = 1,
    /// `PERF_COUNT_HW_CACHE_REFERENCES`.
    CacheReferences = 2,
    /// `PERF_COUNT_HW_CACHE_MISSES`.
    CacheMisses = 3,
    /// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`.
    BranchInstructions = 4,
    /// `PERF_COUNT_HW_BRANCH_MISSES`.
    BranchMisses = 5,
    /// `PERF_COUNT_HW_BUS_CYCLES`.
    BusCycles = 6,
    /// `PERF_COUNT_HW_STALLED_CYCLES_FRONTEND`.
    StalledCyclesFrontend = 7,
    /// `PERF_COUNT_HW_STALLED_CYCLES_BACKEND`.
    StalledCyclesBackend = 8,
    /// `PERF_COUNT_HW_REF_CPU_CYCLES`.
    RefCpuCycles = 9,
}

impl HardwareId {
    /// All events, by ascending id.
    pub const ALL: [Self; HARDWARE_EVENTS] = [
        Self::CpuCycles,
        Self::Instructions,
        Self::CacheReferences,
        Self::CacheMisses,
        Self::BranchInstructions,
        Self::BranchMisses,
        Self::BusCycles,
        Self::StalledCyclesFrontend,
        Self::StalledCyclesBackend,
        Self::RefCpuCycles,
    ];

    /// Returns the event with the given `attr.config`; `None` if there is no such id.
    pub fn from_config(config: u64) -> Option<Self> {
        let index = usize::try_from(config).ok()?;
        if index >= Self::ALL.len() {
            return None;
        }
        Self::ALL.get(masked(index, Self::ALL.len())).copied()
    }

    /// Returns the event's name in sysfs' `events/` directory.
    pub const fn sysfs_name(self) -> &'static str {
        match self {
            Self::CpuCycles => "cpu-cycles",
            Self::Instructions => "instructions",
            Self::CacheReferences => "cache-references",
            Self::CacheMisses => "cache-misses",
            Self::BranchInstructions => "branch-instructions",
            Self::BranchMisses => "branch-misses",
            Self::BusCycles => "bus-cycles",
            Self::StalledCyclesFrontend => "stalled-cycles-frontend",
            Self::StalledCyclesBackend => "stalled-cycles-backend",
            Self::RefCpuCycles => "ref-cycles",
        }
    }
}

/// A model's event selects for the generic hardware events; `None` if it has no such event.
#[derive(Clone, Copy, Debug)]
pub struct HardwareEvents(pub(super) [Option<EventSelect>; HARDWARE_EVENTS]);

impl HardwareEvents {
    /// The architectural events and the reference cycles of fixed counter 2.
    ///
    /// Mainline: `intel_perfmon_event_map`, `arch/x86/events/intel/core.c`.
    pub const ARCHITECTURAL: Self = Self([
        Some(EventSelect::event(0x3c, 0x00)), // CPU_CLK_UNHALTED.THREAD_P
        Some(EventSelect::event(0xc0, 0x00)), // INST_RETIRED.ANY_P
        Some(EventSelect::event(0x2e, 0x4f)), // LONGEST_LAT_CACHE.REFERENCE
        Some(EventSelect::event(0x2e, 0x41)), // LONGEST_LAT_CACHE.MISS
        Some(EventSelect::event(0xc4, 0x00)), // BR_INST_RETIRED.ALL_BRANCHES
        Some(EventSelect::event(0xc5, 0x00)), // BR_MISP_RETIRED.ALL_BRANCHES
        Some(EventSelect::event(0x3c, 0x01)), // CPU_CLK_UNHALTED.REF_XCLK
        None,                                 // stalled cycles, front end
        None,                                 // stalled cycles, back end
        Some(EventSelect::event(0x00, 0x03)), // pseudo code: CPU_CLK_UNHALTED.REF_TSC
    ]);

    /// No events.
    pub(super) const NONE: Self = Self([None; HARDWARE_EVENTS]);

    /// Returns the events, with `select` for `id`.
    #[must_use]
    pub const fn with(mut self, id: HardwareId, select: EventSelect) -> Self {
        self.0[id as usize] = Some(select);
        self
    }

    /// Returns the events without one for `id`.
    #[must_use]
    pub const fn without(mut self, id: HardwareId) -> Self {
        self.0[id as usize] = None;
        self
    }

    /// Returns the event select of `id`, without privilege levels.
    pub fn get(&self, id: HardwareId) -> Option<EventSelect> {
        self.0.get(id as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_configs_agree() {
        for (config, id) in HardwareId::ALL.into_iter().enumerate() {
            assert_eq!(id as usize, config);
            assert_eq!(HardwareId::from_config(config as u64), Some(id));
        }
        assert_eq!(HardwareId::from_config(10), None);
        assert_eq!(HardwareId::from_config(1 << 32), None);
        assert_eq!(HardwareId::from_config(u64::MAX), None);
    }
}
