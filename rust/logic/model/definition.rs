// SPDX-License-Identifier: GPL-2.0

//! The description of a microarchitecture, a [`Model`].

use super::{
    cache_event::CacheEvents,
    data_source::DataSources,
    extra_registers::ExtraRegisters,
    pebs_events::{
        PebsEvents,
        PreciseDistribution, //
    },
    Cpus,
    CyclesAlias,
    EventConstraint,
    HardwareEvents,
    TopdownFile,
    Vendor, //
};
use crate::logic::{
    cores::CoreType,
    regs::{
        counter::CounterMask,
        period::PeriodRule, //
    },
};

/// A microarchitecture.
#[derive(Debug)]
pub struct Model {
    /// The name in `caps/pmu_name`, by which user space distinguishes models.
    pub pmu_name: &'static str,
    /// The name in messages.
    pub name: &'static str,
    /// The model's peculiarities that its tables do not show.
    pub quirks: &'static [Quirk],
    /// The model's processors.
    pub cpus: &'static [Cpus],
    /// The events that a fixed counter counts, that not every general-purpose counter counts, or
    /// that a later entry must not match. The first match decides; without one, an event can use
    /// every general-purpose counter.
    pub event_constraints: &'static [EventConstraint],
    /// The events that can be sampled precisely.
    pub pebs_events: PebsEvents,
    /// The meaning of `precise_ip` 3.
    pub precise_distribution: PreciseDistribution,
    /// The event that replaces cycles in precise events.
    pub cycles_alias: CyclesAlias,
    /// The meaning of the data source in records of precise events.
    pub data_sources: DataSources,
    /// The generic hardware events, by `perf_hw_id`.
    pub hardware_events: HardwareEvents,
    /// The generic cache events.
    pub cache_events: CacheEvents,
    /// The events that need an extra register programmed: offcore response, load latency
    /// threshold, front-end filter.
    pub extra_register_events: ExtraRegisters,
    /// The sharing of the extra registers, LBR_SELECT included, between the threads of a core.
    pub offcore_scope: Scope,
    /// The erratum by which [corrupting](super::constraint::Constraint::corrupting) events corrupt
    /// the sibling thread's counter, if the model has it. Mainline: `intel_ht_bug()`,
    /// `arch/x86/events/intel/core.c`.
    pub ht_erratum: Option<&'static str>,
    /// The counters that read 0 if an event counts only user mode.
    pub need_kernel_mode: CounterMask,
    /// The event selects, one per general-purpose counter, that have to run briefly before an event
    /// select is programmed; otherwise the event may count wrongly. Empty on most models. Errata
    /// AAK100, AAP53, BD53. Mainline: `intel_pmu_nhm_workaround()`, `arch/x86/events/intel/core.c`.
    pub clearing_events: &'static [u64],
    /// The time at which the PMI handler of Intel's PMUs unmasks the next PMI.
    pub acknowledge: Acknowledge,
    /// The filters of LBR_SELECT; [`None`] if the model has no such register or the driver does not
    /// use it. (CPUID describes the filters of architectural LBRs.)
    pub lbr_filter: Option<LbrFilter>,
    /// The topdown method's events in sysfs. On models with [metrics](Self::metrics), they are
    /// shown if PERF_METRICS exists.
    pub topdown_files: &'static [TopdownFile],
    /// The events of TSX transactions, shown in sysfs if RTM exists: the name of each file, and its
    /// text. Mainline: `hsw_tsx_events_attrs`, `icl_tsx_events_attrs`, `glc_tsx_events_attrs`,
    /// `arch/x86/events/intel/core.c`, `tsx_is_visible()`.
    pub tsx_files: &'static [(&'static str, &'static str)],
    /// The events of loads and stores, shown in sysfs if PEBS exists, and their auxiliary event,
    /// which is always shown: the name of each file, and its text.
    pub memory_files: &'static [(&'static str, &'static str)],
    /// The counters that can discard the counts of aborted TSX transactions; empty if the in_tx
    /// filters do not exist.
    pub checkpointed: CounterMask,
    /// The limits of sample periods.
    pub period_rule: PeriodRule,
}

impl Model {
    /// Returns the topdown metrics of the model, whether or not the CPU has PERF_METRICS.
    pub fn metrics(&self) -> CounterMask {
        let metrics = self.event_constraints.iter().filter(|it| it.is_metric());
        metrics.fold(CounterMask::EMPTY, |all, it| {
            all | it.resolve(CounterMask::ALL).counters
        })
    }

    /// Returns whether this is the model of the processor with this vendor, display family and
    /// model, if its core has the type `core`.
    pub fn is_for(&self, vendor: Vendor, family: u16, model: u8, core: CoreType) -> bool {
        let mut cpus = self.cpus.iter();
        cpus.any(|cpus| cpus.contains(vendor, family, model, core))
    }

    /// Returns the type of this model's cores.
    pub fn core(&self) -> CoreType {
        self.cpus.first().map_or(CoreType::Only, |cpus| cpus.core)
    }

    /// Returns whether the model has the quirk.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

/// The sharing of a register between hardware threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of a core share it.
    Core,
    /// Each thread has its own. Mainline: `PMU_FL_NO_HT_SHARING`.
    Thread,
}

/// The filters of LBR_SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbrFilter {
    /// Kinds of branches, with an erratum: calls and returns are recorded only if jumps are.
    /// Mainline: `nhm_lbr_sel_map`, `arch/x86/events/intel/lbr.c`.
    Nehalem,
    /// As Nehalem's. There are eight records, in the registers of Core 2. Mainline:
    /// `intel_pmu_lbr_init_slm()`, `arch/x86/events/intel/lbr.c`.
    Silvermont,
    /// Kinds of branches.
    SandyBridge,
    /// Kinds of branches, and the records can be a call stack.
    Haswell,
}

/// The time at which the PMI handler unmasks LVTPC, which the APIC masks when it delivers a PMI.
///
/// Mainline: `intel_pmu_handle_irq()`, `arch/x86/events/intel/core.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// Before the overflows are handled. A counter that overflows during the handler then raises
    /// another NMI; on Nehalem, counters have overflowed even after all of them were stopped. If
    /// the first NMI has already handled this overflow, the second one finds none, but finds LVTPC
    /// masked, and unmasks it. Mainline unmasks LVTPC on entry, in every NMI, up to Ivy Bridge, on
    /// small cores up to Goldmont Plus, and on unknown cores.
    Early,
    /// After the overflows are handled and before the counters run again. If LVTPC were unmasked on
    /// entry, Haswell and later might raise the NMI twice for one overflow. (Mainline unmasks it
    /// after the counters run again, except on Gracemont and Crestmont; an overflow in between
    /// would raise no NMI.)
    Late,
}

/// A peculiarity of a model that its tables do not show. Some depend on CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// Erratum AAJ80: if CPUID marks retired mispredicted branches as absent, the event for
    /// executed ones (BR_MISP_EXEC.ANY) replaces them. Mainline: `intel_nehalem_quirk()`,
    /// `arch/x86/events/intel/core.c`.
    BranchMissesExecuted,
    /// Reference cycles are CPU_CLK_UNHALTED.REF_TSC_P (0x013c), which every counter counts, unless
    /// CPUID marks that event as absent. Mainline: `intel_pmu_ref_cycles_ext()`,
    /// `arch/x86/events/intel/core.c`.
    ReferenceCyclesAnywhere,
    /// The abort of a TSX transaction can be recorded twice as a branch, the second time without
    /// the abort flag. Mainline: `lbr_double_abort`, `arch/x86/events/intel/core.c`.
    AbortRecordedTwice,
    /// The latency word of a PEBS record has two values: the instruction's latency, and from bit 32
    /// on the latency of its cache access. Mainline: `PMU_FL_INSTR_LATENCY`,
    /// `arch/x86/events/intel/ds.c`.
    LatencyInTwoParts,
    /// Load latencies are wrong unless event 0x8203 counts in the same group. Mainline:
    /// `PMU_FL_MEM_LOADS_AUX`, `arch/x86/events/intel/core.c`.
    LoadLatencyNeedsAuxiliary,
    /// Errata AAJ143, BJ58, BV38 and BV85: the status bit of a counter that was disabled when it
    /// overflowed may stay set for good, though the PMU works. Westmere's documents do not name the
    /// erratum, but the models before and after have it.
    StatusSticks,
}
