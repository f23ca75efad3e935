// SPDX-License-Identifier: GPL-2.0

//! Sandy Bridge: CPUID family 6, models 0x2A (client), 0x2D (server).
//!
//! Mainline: `intel_snb_event_constraints`, `intel_snb_extra_regs`, `intel_snbep_extra_regs`,
//! `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

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
            PebsData::{
                LoadLatency,
                Store, //
            },
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
        Scope,
        TopdownFile, //
    },
    regs::{
        counter::CounterMask,
        event_select::EventSelect,
        period::PeriodRule, //
    },
};

/// Four general-purpose counters a thread, eight if a core has one thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_umask(0x04a3, 0xf), // CYCLE_ACTIVITY.CYCLES_NO_DISPATCH
    EventConstraint::event_and_umask(0x05a3, 0xf), // CYCLE_ACTIVITY.STALLS_L2_PENDING
    EventConstraint::event_and_umask(0x02a3, 0x4), // CYCLE_ACTIVITY.CYCLES_L1D_PENDING
    EventConstraint::event_and_umask(0x06a3, 0x4), // CYCLE_ACTIVITY.STALLS_L1D_PENDING
    EventConstraint::event_and_umask(0x0248, 0xff), // L1D_PEND_MISS.FB_FULL
    EventConstraint::event(0x48, 0x4), // L1D_PEND_MISS.*
    EventConstraint::event_and_umask(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    EventConstraint::event(0xcd, 0x8), // MEM_TRANS_RETIRED.*
    // Only counters 0 to 3, also where a core with one thread has eight.
    EventConstraint::event_and_cmask(0x0180_010e, 0xf), // UOPS_ISSUED.STALL_CYCLES
    EventConstraint::event_and_umask(0x023c, 0xf), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    EventConstraint::event_and_umask(0x0279, 0xf), // IDQ.EMPTY
    EventConstraint::event(0x9c, 0xf), // IDQ_UOPS_NOT_DELIVERED.*
    EventConstraint::event_and_umask(0x01b7, 0xf), // OFFCORE_RESPONSE_0
    EventConstraint::event_and_umask(0x01bb, 0xf), // OFFCORE_RESPONSE_1
    EventConstraint::event_and_cmask(0x0180_01c2, 0xf), // UOPS_RETIRED.STALL_CYCLES
    EventConstraint::event_and_cmask(0x0a80_01c2, 0xf), // UOPS_RETIRED.TOTAL_CYCLES
    EventConstraint::event_and_umask(0x04c4, 0xf), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x04c5, 0xf), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x1eca, 0xf), // FP_ASSIST.ANY
    EventConstraint::event(0xd4, 0xf), // MEM_LOAD_UOPS_MISC_RETIRED.*
    // The same counters, and erratum BJ122 on cores with two threads.
    EventConstraint::corrupting_event(0xd0, 0xf), // MEM_UOPS_RETIRED.*
    EventConstraint::corrupting_event(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    EventConstraint::corrupting_event(0xd2, 0xf), // MEM_LOAD_UOPS_LLC_HIT_RETIRED.*
    EventConstraint::corrupting_event(0xd3, 0xf), // MEM_LOAD_UOPS_LLC_MISS_RETIRED.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    PebsEvent::exact(0x01cd, 0x8).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x02cd, 0x8).with(Store), // MEM_TRANS_RETIRED.PRECISE_STORE
    PebsEvent::exact(0x1080_01c2, 0xf), // UOPS_RETIRED.ALL, inv=1, cmask=16 (cycles:p)
    PebsEvent::event_with_any_flags(0xd0, 0xf), // MEM_UOP_RETIRED.*
    PebsEvent::event_with_any_flags(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    PebsEvent::event_with_any_flags(0xd2, 0xf), // MEM_LOAD_UOPS_LLC_HIT_RETIRED.*
    PebsEvent::event_with_any_flags(0xd3, 0xf), // MEM_LOAD_UOPS_LLC_MISS_RETIRED.*
    PebsEvent::exact(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    PebsEvent::any(0xf),
]);

/// The architectural events; and as stalled cycles, the cycles in which no micro-operation is
/// issued (front end) or dispatched (back end).
const HARDWARE_EVENTS: HardwareEvents = HardwareEvents::ARCHITECTURAL
    // UOPS_ISSUED.ANY
    .with(
        HardwareId::StalledCyclesFrontend,
        EventSelect::event(0x0e, 0x01).cycles_below(1),
    )
    // UOPS_DISPATCHED.THREAD
    .with(
        HardwareId::StalledCyclesBackend,
        EventSelect::event(0xb1, 0x01).cycles_below(1),
    );

/// The extra registers that events need, on client cores.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_807f_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_807f_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The extra registers that events need on servers, where the offcore response registers also have
/// the bits of remote memory.
#[rustfmt::skip]
const SERVER_EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The generic cache events.
#[rustfmt::skip]
pub(in crate::logic::model) const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0xf1d0), // MEM_UOP_RETIRED.LOADS
    CacheEvent::new(L1d, Read, Miss, 0x0151), // L1D.REPLACEMENT
    CacheEvent::new(L1d, Write, Access, 0xf2d0), // MEM_UOP_RETIRED.STORES
    CacheEvent::new(L1d, Write, Miss, 0x0851), // L1D.ALL_M_REPLACEMENT
    CacheEvent::new(L1d, Prefetch, Miss, 0x024e), // HW_PRE_REQ.DL1_MISS
    CacheEvent::new(L1i, Read, Miss, 0x0280), // ICACHE.MISSES
    // OFFCORE_RESPONSE: DMND_READ | L3_ACCESS
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x1_0081),
    // OFFCORE_RESPONSE: DMND_READ | L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_ffc0_0081),
    // OFFCORE_RESPONSE: DMND_WRITE | L3_ACCESS
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x1_0102),
    // OFFCORE_RESPONSE: DMND_WRITE | L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_ffc0_0102),
    // OFFCORE_RESPONSE: DMND_PREFETCH | L3_ACCESS
    CacheEvent::new(LastLevel, Prefetch, Access, 0x01b7).offcore(0x1_0030),
    // OFFCORE_RESPONSE: DMND_PREFETCH | L3_MISS
    CacheEvent::new(LastLevel, Prefetch, Miss, 0x01b7).offcore(0x3f_ffc0_0030),
    CacheEvent::new(Dtlb, Read, Access, 0x81d0), // MEM_UOP_RETIRED.ALL_LOADS
    CacheEvent::new(Dtlb, Read, Miss, 0x0108), // DTLB_LOAD_MISSES.CAUSES_A_WALK
    CacheEvent::new(Dtlb, Write, Access, 0x82d0), // MEM_UOP_RETIRED.ALL_STORES
    CacheEvent::new(Dtlb, Write, Miss, 0x0149), // DTLB_STORE_MISSES.MISS_CAUSES_A_WALK
    CacheEvent::new(Itlb, Read, Access, 0x1085), // ITLB_MISSES.STLB_HIT
    CacheEvent::new(Itlb, Read, Miss, 0x0185), // ITLB_MISSES.CAUSES_A_WALK
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ALL_BRANCHES
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_MISP_RETIRED.ALL_BRANCHES
    // OFFCORE_RESPONSE: DMND_READ | DRAM_ANY
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x1f_ffc0_0081),
    // OFFCORE_RESPONSE: DMND_READ | DRAM_REMOTE
    CacheEvent::new(Node, Read, Miss, 0x01b7).offcore(0x1f_ff80_0081),
    // OFFCORE_RESPONSE: DMND_WRITE | DRAM_ANY
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x1f_ffc0_0102),
    // OFFCORE_RESPONSE: DMND_WRITE | DRAM_REMOTE
    CacheEvent::new(Node, Write, Miss, 0x01b7).offcore(0x1f_ff80_0102),
    // OFFCORE_RESPONSE: DMND_PREFETCH | DRAM_ANY
    CacheEvent::new(Node, Prefetch, Access, 0x01b7).offcore(0x1f_ffc0_0030),
    // OFFCORE_RESPONSE: DMND_PREFETCH | DRAM_REMOTE
    CacheEvent::new(Node, Prefetch, Miss, 0x01b7).offcore(0x1f_ff80_0030),
]);

/// The topdown method's events, for four slots per cycle.
#[rustfmt::skip]
pub(in crate::logic::model) const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-slots-issued", "event=0xe,umask=0x1\n"), // UOPS_ISSUED.ANY
    TopdownFile::new("topdown-slots-retired", "event=0xc2,umask=0x2\n"), // UOPS_RETIRED.RETIRE_SLOTS
    TopdownFile::new("topdown-fetch-bubbles", "event=0x9c,umask=0x1\n"), // IDQ_UOPS_NOT_DELIVERED.CORE
    TopdownFile::by_threads("topdown-total-slots", "event=0x3c,umask=0x0", "event=0x3c,umask=0x0,any=1"), // CPU_CLK_UNHALTED.THREAD
    TopdownFile::by_threads("topdown-total-slots.scale", "4", "2"),
    TopdownFile::by_threads("topdown-recovery-bubbles", "event=0xd,umask=0x3,cmask=1", "event=0xd,umask=0x3,cmask=1,any=1"), // INT_MISC.RECOVERY_CYCLES
    TopdownFile::by_threads("topdown-recovery-bubbles.scale", "4", "2"),
];

/// Sandy Bridge, client.
pub const SANDY_BRIDGE: Model = Model {
    pmu_name: "sandybridge",
    name: "Sandy Bridge",
    quirks: &[Quirk::StatusSticks],
    cpus: &Cpus::intel([0x2a]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::Uops,
    data_sources: DataSources::SANDY_BRIDGE,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: Some("BJ122"),
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::SandyBridge),
    topdown_files: TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: memory_files::SANDY_BRIDGE,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};

/// Sandy Bridge, server.
pub const SANDY_BRIDGE_SERVER: Model = Model {
    cpus: &Cpus::intel([0x2d]),
    extra_register_events: SERVER_EXTRA_REGISTER_EVENTS,
    ..SANDY_BRIDGE
};
