// SPDX-License-Identifier: GPL-2.0

//! Nehalem: CPUID family 6, models 0x1A, 0x1E, 0x2E.
//!
//! Mainline: `intel_nehalem_event_constraints`, `intel_nehalem_extra_regs`, `intel_pmu_init()`,
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
                LastLevel,
                Node, //
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
        memory_files,
        pebs_events::{
            PebsData::LoadLatency,
            PebsEvent,
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        Cpus,
        CyclesAlias,
        EventConstraint,
        HardwareEvents,
        HardwareId,
        LbrFilter,
        Model,
        Quirk,
        Scope, //
    },
    regs::{
        counter::CounterMask,
        event_select::EventSelect,
        period::PeriodRule, //
    },
};

/// Four general-purpose counters a thread.
const COUNTERS: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_umask(0x100b, 0x8), // MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD
    EventConstraint::event(0x40, 0x3), // L1D_CACHE_LD.*
    EventConstraint::event(0x41, 0x3), // L1D_CACHE_ST.*
    EventConstraint::event(0x42, 0x3), // L1D_CACHE_LOCK.*
    EventConstraint::event(0x43, 0x3), // L1D_ALL_REF.*
    EventConstraint::event(0x48, 0x3), // L1D_PEND_MISS.*
    EventConstraint::event(0x4c, 0x3), // LOAD_HIT_PRE
    EventConstraint::event(0x4e, 0x3), // L1D_PREFETCH.*
    EventConstraint::event(0x51, 0x3), // L1D.*
    EventConstraint::event(0x52, 0x3), // L1D_CACHE_PREFETCH_LOCK_FB_HIT
    EventConstraint::event(0x53, 0x3), // L1D_CACHE_LOCK_FB_HIT
    EventConstraint::event(0x63, 0x3), // CACHE_LOCK_CYCLES.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x010b, 0xf), // MEM_INST_RETIRED.LOADS
    PebsEvent::exact(0x020b, 0xf), // MEM_INST_RETIRED.STORES
    PebsEvent::exact(0x100b, 0x8).with(LoadLatency), // MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD
    PebsEvent::event(0x0f, 0xf), // MEM_UNCORE_RETIRED.*
    PebsEvent::exact(0x010c, 0xf), // MEM_STORE_RETIRED.DTLB_MISS
    PebsEvent::event(0xc0, 0xf), // INST_RETIRED.*
    PebsEvent::event_with_any_flags(0xc2, 0xf), // UOPS_RETIRED.*
    PebsEvent::event(0xc4, 0xf), // BR_INST_RETIRED.*
    PebsEvent::exact(0x02c5, 0xf), // BR_MISP_RETIRED.NEAR_CALL
    PebsEvent::event(0xc7, 0xf), // SSEX_UOPS_RETIRED.*
    PebsEvent::exact(0x20c8, 0xf), // ITLB_MISS_RETIRED
    PebsEvent::event(0xcb, 0xf), // MEM_LOAD_RETIRED.*
    PebsEvent::event(0xf7, 0xf), // FP_ASSIST.*
    PebsEvent::exact(0x1080_01c0, 0xf), // INST_RETIRED.TOTAL_CYCLES
    PebsEvent::exact(0x1080_00c0, 0xf), // INST_RETIRED.ANY_P, inv=1, cmask=16 (cycles:p)
]);

/// The architectural events; and as stalled cycles, the cycles in which no micro-operation is
/// issued (front end) or executed (back end).
const HARDWARE_EVENTS: HardwareEvents = HardwareEvents::ARCHITECTURAL
    // UOPS_ISSUED.ANY
    .with(
        HardwareId::StalledCyclesFrontend,
        EventSelect::event(0x0e, 0x01).cycles_below(1),
    )
    // UOPS_EXECUTED.CORE_ACTIVE_CYCLES
    .with(
        HardwareId::StalledCyclesBackend,
        EventSelect::event(0xb1, 0x3f).cycles_below(1),
    );

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::load_latency(0x100b), // MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD
]);

/// The generic cache events.
#[rustfmt::skip]
pub(in crate::logic::model) const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x010b), // MEM_INST_RETIRED.LOADS
    CacheEvent::new(L1d, Read, Miss, 0x0151), // L1D.REPL
    CacheEvent::new(L1d, Write, Access, 0x020b), // MEM_INST_RETIRED.STORES
    CacheEvent::new(L1d, Write, Miss, 0x0251), // L1D.M_REPL
    CacheEvent::new(L1d, Prefetch, Access, 0x014e), // L1D_PREFETCH.REQUESTS
    CacheEvent::new(L1d, Prefetch, Miss, 0x024e), // L1D_PREFETCH.MISS
    CacheEvent::new(L1i, Read, Access, 0x0380), // L1I.READS
    CacheEvent::new(L1i, Read, Miss, 0x0280), // L1I.MISSES
    // OFFCORE_RESPONSE: DMND_READ | L3_ACCESS
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0xf701),
    // OFFCORE_RESPONSE: DMND_READ | L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0xf001),
    // OFFCORE_RESPONSE: DMND_WRITE | L3_ACCESS
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0xf70a),
    // OFFCORE_RESPONSE: DMND_WRITE | L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0xf00a),
    // OFFCORE_RESPONSE: DMND_PREFETCH | L3_ACCESS
    CacheEvent::new(LastLevel, Prefetch, Access, 0x01b7).offcore(0xf730),
    // OFFCORE_RESPONSE: DMND_PREFETCH | L3_MISS
    CacheEvent::new(LastLevel, Prefetch, Miss, 0x01b7).offcore(0xf030),
    CacheEvent::new(Dtlb, Read, Access, 0x0f40), // L1D_CACHE_LD.MESI
    CacheEvent::new(Dtlb, Read, Miss, 0x0108), // DTLB_LOAD_MISSES.ANY
    CacheEvent::new(Dtlb, Write, Access, 0x0f41), // L1D_CACHE_ST.MESI
    CacheEvent::new(Dtlb, Write, Miss, 0x010c), // MEM_STORE_RETIRED.DTLB_MISS
    CacheEvent::new(Itlb, Read, Access, 0x01c0), // INST_RETIRED.ANY_P
    CacheEvent::new(Itlb, Read, Miss, 0x20c8), // ITLB_MISS_RETIRED
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ALL_BRANCHES
    CacheEvent::new(Branch, Read, Miss, 0x03e8), // BPU_CLEARS.ANY
    // OFFCORE_RESPONSE: DMND_READ | LOCAL | REMOTE
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x7001),
    // OFFCORE_RESPONSE: DMND_READ | REMOTE
    CacheEvent::new(Node, Read, Miss, 0x01b7).offcore(0x2001),
    // OFFCORE_RESPONSE: DMND_WRITE | LOCAL | REMOTE
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x700a),
    // OFFCORE_RESPONSE: DMND_WRITE | REMOTE
    CacheEvent::new(Node, Write, Miss, 0x01b7).offcore(0x200a),
    // OFFCORE_RESPONSE: DMND_PREFETCH | LOCAL | REMOTE
    CacheEvent::new(Node, Prefetch, Access, 0x01b7).offcore(0x7030),
    // OFFCORE_RESPONSE: DMND_PREFETCH | REMOTE
    CacheEvent::new(Node, Prefetch, Miss, 0x01b7).offcore(0x2030),
]);

/// The events that clear the monitoring hardware. According to the errata, three events that count
/// nothing are enough. According to mainline, in practice each counter needs an event, and some of
/// these do count.
#[rustfmt::skip]
pub(in crate::logic::model) const CLEARING_EVENTS: &[u64] = &[
    0x43_00b5,
    0x43_00d2,
    0x43_00b1,
    0x43_00b1,
];

/// Nehalem.
pub const NEHALEM: Model = Model {
    pmu_name: "nehalem",
    name: "Nehalem",
    quirks: &[Quirk::BranchMissesExecuted, Quirk::StatusSticks],
    cpus: &Cpus::intel([0x1a, 0x1e, 0x2e]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::Instructions,
    data_sources: DataSources::NEHALEM,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: CLEARING_EVENTS,
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::Nehalem),
    topdown_files: &[],
    tsx_files: &[],
    memory_files: memory_files::NEHALEM,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NEHALEM,
};
