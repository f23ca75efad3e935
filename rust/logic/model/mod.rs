// SPDX-License-Identifier: GPL-2.0

//! What is known about each microarchitecture: one constant each.
//!
//! A model says nothing about the machine at hand; how many counters there are comes from CPUID,
//! and [`Pmu`](super::pmu::Pmu) puts the two together. A model that needs something that the driver
//! does not do yet says so itself, in [`Model::needs`]; such a machine is refused.

mod broadwell;
mod core2;
mod generic;
mod golden_cove;
mod goldmont;
mod haswell;
mod ice_lake;
mod ivy_bridge;
mod nehalem;
mod sandy_bridge;
mod silvermont;
mod skylake;
mod westmere;

use core::fmt;

use super::cache_event::CacheEvents;
use super::constraint::EventConstraint;
use super::counter::CounterMask;
use super::event_select::EventSelect;
use super::extra_register::ExtraRegisters;
use super::nospec::masked;
use super::period::PeriodRule;

pub use broadwell::BROADWELL;
pub use core2::CORE2;
pub use generic::{GENERIC, GENERIC_V5};
pub use golden_cove::GOLDEN_COVE;
pub use goldmont::{GOLDMONT, GOLDMONT_PLUS};
pub use haswell::HASWELL;
pub use ice_lake::{ICE_LAKE, ICE_LAKE_SERVER};
pub use ivy_bridge::{IVY_BRIDGE, IVY_BRIDGE_SERVER};
pub use nehalem::NEHALEM;
pub use sandy_bridge::{SANDY_BRIDGE, SANDY_BRIDGE_SERVER};
pub use silvermont::SILVERMONT;
pub use skylake::SKYLAKE;
pub use westmere::WESTMERE;

/// Every model with CPUID models of its own, by age.
pub const MODELS: &[&Model] = &[
    &CORE2,
    &NEHALEM,
    &WESTMERE,
    &SANDY_BRIDGE,
    &SANDY_BRIDGE_SERVER,
    &IVY_BRIDGE,
    &IVY_BRIDGE_SERVER,
    &HASWELL,
    &BROADWELL,
    &SKYLAKE,
    &ICE_LAKE,
    &ICE_LAKE_SERVER,
    &GOLDEN_COVE,
    &SILVERMONT,
    &GOLDMONT,
    &GOLDMONT_PLUS,
];

/// A microarchitecture.
#[derive(Debug)]
pub struct Model {
    /// The name in `caps/pmu_name`, by which user space tells models apart.
    pub pmu_name: &'static str,
    /// The name for people.
    pub name: &'static str,
    /// What the model needs and the driver does not do yet. If that is anything, the driver
    /// refuses the machine.
    pub needs: &'static [Need],
    /// Where single CPUs of the model differ.
    pub quirks: &'static [Quirk],
    /// The CPUID models of family 6 that this is.
    pub cpuid_models: &'static [u8],
    /// The events that may not use every counter; the first match counts.
    pub event_constraints: &'static [EventConstraint],
    /// The generic hardware events, by `perf_hw_id`.
    pub hardware_events: HardwareEvents,
    /// The generic cache events.
    pub cache_events: CacheEvents,
    /// The events that need an extra register programmed: offcore response, load latency
    /// threshold, front-end filter.
    pub extra_register_events: ExtraRegisters,
    /// Who shares the offcore response registers.
    pub offcore_scope: Scope,
    /// The erratum by which an [exclusive](super::constraint::Constraint::exclusive) event corrupts
    /// the sibling thread's counter, where the model has it. Mainline: `intel_ht_bug()`,
    /// `arch/x86/events/intel/core.c:6993`.
    pub ht_erratum: Option<&'static str>,
    /// The unit mask of INT_MISC.RECOVERY_CYCLES (0x0d), which is an event of the topdown method;
    /// 0 where the model has not the topdown events of Sandy Bridge to Skylake.
    pub recovery_cycles_umask: u8,
    /// The counters that can take back what an aborted transaction counted; empty where the
    /// in_tx filters do not exist.
    pub checkpointed: CounterMask,
    /// What the sampling periods have to keep to.
    pub period_rule: PeriodRule,
}

impl Model {
    /// Whether the driver does all that the model needs.
    pub const fn is_supported(&self) -> bool {
        self.needs.is_empty()
    }

    /// Whether the model has the quirk.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

/// Who shares a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of a core have one between them.
    Core,
    /// Each thread has its own. Mainline: `PMU_FL_NO_HT_SHARING`.
    Thread,
}

/// Something that a model needs and the driver does not do yet. The text fits behind "it needs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// LVTPC unmasked before the overflows are handled, not after. Mainline does so before Haswell
    /// and on older small cores (`arch/x86/events/intel/core.c:3978`). Whether it has to is not
    /// said there, and has not been tried here.
    EarlyAcknowledge,
    /// The counters enabled by way of three made-up events: errata AAK100, AAP53, BD53. Mainline:
    /// `intel_pmu_nhm_workaround()`, `arch/x86/events/intel/core.c:2874`.
    EnableWorkaround,
    /// Offcore response registers that the threads of a core share.
    SharedOffcoreResponse,
    /// Fixed counter 3, TOPDOWN.SLOTS, with PERF_METRICS, and their files in sysfs.
    TopdownMetrics,
    /// Other topdown events in sysfs than those of Sandy Bridge to Skylake, or none.
    OtherTopdownEvents,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EarlyAcknowledge => "the early acknowledgement of overflow interrupts",
            Self::EnableWorkaround => "the work-around for errata AAK100, AAP53 and BD53",
            Self::SharedOffcoreResponse => "offcore response registers shared by a core's threads",
            Self::TopdownMetrics => "the topdown metrics of fixed counter 3",
            Self::OtherTopdownEvents => "topdown events of its own in sysfs",
        })
    }
}

/// Where single CPUs of a model differ from what its table says; CPUID tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// Erratum AAJ80: where CPUID marks the retired mispredicted branches as absent, the executed
    /// ones (BR_MISP_EXEC.ANY) stand in. Mainline: `intel_nehalem_quirk()`,
    /// `arch/x86/events/intel/core.c:6962`.
    BranchMissesExecuted,
    /// Reference cycles are CPU_CLK_UNHALTED.REF_TSC_P (0x013c), which every counter counts, unless
    /// CPUID marks that event as absent. Mainline: `intel_pmu_ref_cycles_ext()`,
    /// `arch/x86/events/intel/core.c:7831`.
    ReferenceCyclesAnywhere,
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
        let index = usize::try_from(config).ok()?;
        if index >= Self::ALL.len() {
            return None;
        }
        Self::ALL.get(masked(index, Self::ALL.len())).copied()
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

    /// The same, with `select` for `id`.
    #[must_use]
    pub const fn with(mut self, id: HardwareId, select: EventSelect) -> Self {
        self.0[id as usize] = Some(select);
        self
    }

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
            assert!(!model.cpuid_models.is_empty(), "{}", model.name);
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
        for model in MODELS.iter().chain([&&GENERIC, &&GENERIC_V5]) {
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
    fn exclusive_events_come_with_an_erratum() {
        for model in MODELS {
            let exclusive = (0..=0xff).any(|code| {
                first_match(model.event_constraints, EventSelect::from_bits(code))
                    .is_some_and(|entry| entry.resolve(CounterMask::first_gp(8)).exclusive)
            });
            assert_eq!(model.ht_erratum.is_some(), exclusive, "{}", model.name);
        }
    }

    /// What the driver has in sysfs for every model it supports.
    #[test]
    fn models_without_the_usual_topdown_events_say_so() {
        for model in MODELS.iter().chain([&&GENERIC, &&GENERIC_V5]) {
            let others = [Need::OtherTopdownEvents, Need::TopdownMetrics];
            assert_eq!(
                model.recovery_cycles_umask == 0,
                others.iter().any(|need| model.needs.contains(need)),
                "{}",
                model.name
            );
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
