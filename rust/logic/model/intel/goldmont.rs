// SPDX-License-Identifier: GPL-2.0

//! Goldmont: CPUID family 6, models 0x5C, 0x5F; Goldmont Plus: 0x7A.
//!
//! Mainline: `intel_slm_event_constraints`, `intel_glm_extra_regs`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use crate::logic::{
    model::{
        cache_event::{
            Cache::{
                Branch,
                Dtlb,
                Itlb,
                L1d,
                L1i,
                LastLevel, //
            },
            CacheEvent, CacheEvents,
            Operation::{
                Prefetch,
                Read,
                Write, //
            },
            Outcome::{
                Access,
                Miss, //
            },
        },
        checked,
        data_source::DataSources,
        extra_registers::{
            ExtraRegisterEvent,
            ExtraRegisters, //
        },
        pebs_events::{
            PebsEvent,
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        Cpus,
        CyclesAlias,
        EventConstraint,
        HardwareEvents,
        LbrFilter,
        Model,
        Scope,
        TopdownFile, //
    },
    regs::{
        counter::CounterMask,
        period::PeriodRule, //
    },
};

/// Four general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
pub(super) const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::any(0x1),
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x76_0005_ffbf), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0x36_0005_ffbf), // OFFCORE_RESPONSE_1
]);

/// The generic cache events.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x81d0), // MEM_UOPS_RETIRED.ALL_LOADS
    CacheEvent::new(L1d, Write, Access, 0x82d0), // MEM_UOPS_RETIRED.ALL_STORES
    CacheEvent::new(L1i, Read, Access, 0x0380), // ICACHE.ACCESSES
    CacheEvent::new(L1i, Read, Miss, 0x0280), // ICACHE.MISSES
    // OFFCORE_RESPONSE: DEMAND_READ | LLC_ACCESS
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x1_0001),
    // OFFCORE_RESPONSE: DEMAND_READ | LLC_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x36_0000_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | LLC_ACCESS
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x1_0002),
    // OFFCORE_RESPONSE: DEMAND_WRITE | LLC_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x36_0000_0002),
    // OFFCORE_RESPONSE: DEMAND_PREFETCH | LLC_ACCESS
    CacheEvent::new(LastLevel, Prefetch, Access, 0x01b7).offcore(0x1_0030),
    // OFFCORE_RESPONSE: DEMAND_PREFETCH | LLC_MISS
    CacheEvent::new(LastLevel, Prefetch, Miss, 0x01b7).offcore(0x36_0000_0030),
    CacheEvent::new(Dtlb, Read, Access, 0x81d0), // MEM_UOPS_RETIRED.ALL_LOADS
    CacheEvent::new(Dtlb, Write, Access, 0x82d0), // MEM_UOPS_RETIRED.ALL_STORES
    CacheEvent::new(Itlb, Read, Access, 0x00c0), // INST_RETIRED.ANY_P
    CacheEvent::new(Itlb, Read, Miss, 0x0481), // ITLB.MISS
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ALL_BRANCHES
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_MISP_RETIRED.ALL_BRANCHES
]);

/// The generic cache events of Goldmont Plus.
#[rustfmt::skip]
pub(super) const PLUS_CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x81d0), // MEM_UOPS_RETIRED.ALL_LOADS
    CacheEvent::new(L1d, Write, Access, 0x82d0), // MEM_UOPS_RETIRED.ALL_STORES
    CacheEvent::new(L1i, Read, Access, 0x0380), // ICACHE.ACCESSES
    CacheEvent::new(L1i, Read, Miss, 0x0280), // ICACHE.MISSES
    // OFFCORE_RESPONSE: DEMAND_READ | LLC_ACCESS
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x1_0001),
    // OFFCORE_RESPONSE: DEMAND_READ | LLC_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x36_0000_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | LLC_ACCESS
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x1_0002),
    // OFFCORE_RESPONSE: DEMAND_WRITE | LLC_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x36_0000_0002),
    CacheEvent::new(Dtlb, Read, Access, 0x81d0), // MEM_UOPS_RETIRED.ALL_LOADS
    CacheEvent::new(Dtlb, Read, Miss, 0x0e08), // DTLB_LOAD_MISSES.WALK_COMPLETED
    CacheEvent::new(Dtlb, Write, Access, 0x82d0), // MEM_UOPS_RETIRED.ALL_STORES
    CacheEvent::new(Dtlb, Write, Miss, 0x0e49), // DTLB_STORE_MISSES.WALK_COMPLETED
    CacheEvent::new(Itlb, Read, Access, 0x00c0), // INST_RETIRED.ANY_P
    CacheEvent::new(Itlb, Read, Miss, 0x0481), // ITLB.MISS
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ALL_BRANCHES
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_MISP_RETIRED.ALL_BRANCHES
]);

/// The topdown method's events, for three slots per cycle.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-total-slots", "event=0x3c\n"), // CPU_CLK_UNHALTED.CORE_P
    TopdownFile::new("topdown-total-slots.scale", "3\n"),
    TopdownFile::new("topdown-fetch-bubbles", "event=0x9c\n"), // UOPS_NOT_DELIVERED.ANY
    TopdownFile::new("topdown-recovery-bubbles", "event=0xca,umask=0x02\n"), // ISSUE_SLOTS_NOT_CONSUMED.RECOVERY
    TopdownFile::new("topdown-slots-issued", "event=0x0e\n"), // UOPS_ISSUED.ANY
    TopdownFile::new("topdown-slots-retired", "event=0xc2\n"), // UOPS_RETIRED.ANY
];

/// The topdown method's events of Goldmont Plus, for four slots per cycle.
#[rustfmt::skip]
const PLUS_TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-total-slots", "event=0x3c\n"), // CPU_CLK_UNHALTED.CORE_P
    TopdownFile::new("topdown-total-slots.scale", "4\n"),
    TopdownFile::new("topdown-fetch-bubbles", "event=0x9c\n"), // UOPS_NOT_DELIVERED.ANY
    TopdownFile::new("topdown-recovery-bubbles", "event=0xca,umask=0x02\n"), // ISSUE_SLOTS_NOT_CONSUMED.RECOVERY
    TopdownFile::new("topdown-slots-issued", "event=0x0e\n"), // UOPS_ISSUED.ANY
    TopdownFile::new("topdown-slots-retired", "event=0xc2\n"), // UOPS_RETIRED.ANY
];

/// Goldmont.
pub const GOLDMONT: Model = Model {
    pmu_name: "goldmont",
    name: "Goldmont",
    quirks: &[],
    cpus: &Cpus::intel([0x5c, 0x5f]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::OnEveryCounter,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::Haswell),
    topdown_files: TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: &[],
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};

/// Goldmont Plus.
pub const GOLDMONT_PLUS: Model = Model {
    pmu_name: "goldmont_plus",
    name: "Goldmont Plus",
    cpus: &Cpus::intel([0x7a]),
    pebs_events: PebsEvents::ALL,
    precise_distribution: PreciseDistribution::Counter0,
    cache_events: PLUS_CACHE_EVENTS,
    topdown_files: PLUS_TOPDOWN_FILES,
    ..GOLDMONT
};
