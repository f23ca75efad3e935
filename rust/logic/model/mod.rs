// SPDX-License-Identifier: GPL-2.0

//! What is known about each microarchitecture: one constant each.
//!
//! A model says nothing about the machine at hand; how many counters there are comes from CPUID,
//! and [`Pmu`](super::pmu::Pmu) puts the two together.

mod haswell;
mod skylake;

use super::constraint::EventConstraint;
use super::counter::CounterMask;
use super::event_select::EventSelect;
use super::period::PeriodRule;

pub use haswell::HASWELL;
pub use skylake::SKYLAKE;

/// Every model that is supported.
pub const MODELS: &[&Model] = &[&HASWELL, &SKYLAKE];

/// A microarchitecture.
#[derive(Debug)]
pub struct Model {
    /// The name in `caps/pmu_name`, by which user space tells models apart.
    pub pmu_name: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// The CPUID models of family 6 that this is.
    pub cpuid_models: &'static [u8],
    /// The events that may not use every counter; the first match counts.
    pub event_constraints: &'static [EventConstraint],
    /// The generic hardware events, by `perf_hw_id`.
    pub hardware_events: HardwareEvents,
    /// The events (event code and unit mask) that need an extra register programmed: offcore
    /// response, load latency threshold, front-end filter.
    pub extra_register_events: &'static [u64],
    /// The unit mask of INT_MISC.RECOVERY_CYCLES (0x0d), which is an event of the topdown method.
    pub recovery_cycles_umask: u8,
    /// The counters that can take back what an aborted transaction counted; empty where the
    /// in_tx filters do not exist.
    pub checkpointed: CounterMask,
    /// What the sampling periods have to keep to.
    pub period_rule: PeriodRule,
}

/// Number of generic hardware events (`PERF_COUNT_HW_MAX`).
pub const HARDWARE_EVENTS: usize = 10;

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
    /// All of them, by ascending id.
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

    /// The event with the given `attr.config`; `None` where there is no such id.
    pub fn from_config(config: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(config).ok()?).copied()
    }

    /// The event's name in sysfs' `events/` directory.
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

/// What each generic hardware event is on a model; `None` where it has no such event.
#[derive(Clone, Copy, Debug)]
pub struct HardwareEvents([Option<EventSelect>; HARDWARE_EVENTS]);

impl HardwareEvents {
    /// The architectural events and the reference cycles of fixed counter 2.
    ///
    /// Mainline: `intel_perfmon_event_map`, `arch/x86/events/intel/core.c:35-45`.
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

    /// The event select of `id`, without privilege levels.
    pub fn get(&self, id: HardwareId) -> Option<EventSelect> {
        self.0.get(id as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::super::constraint::first_match;
    use super::*;

    #[test]
    fn no_cpuid_model_is_claimed_twice() {
        let mut seen = Vec::new();
        for model in MODELS {
            for cpuid in model.cpuid_models {
                assert!(!seen.contains(cpuid), "{cpuid:#x}");
                seen.push(*cpuid);
            }
        }
    }

    /// The compile-time check compares entries in pairs. This one sees several earlier entries
    /// that shadow a later one together.
    #[test]
    fn every_entry_is_the_first_match_of_some_event() {
        for model in MODELS {
            for (i, entry) in model.event_constraints.iter().enumerate() {
                let reached = (0..=0xffff).any(|code| {
                    first_match(model.event_constraints, EventSelect::from_bits(code))
                        .is_some_and(|found| core::ptr::eq(found, entry))
                });
                assert!(reached, "{} entry {i}", model.name);
            }
        }
    }

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
