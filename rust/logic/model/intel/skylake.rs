// SPDX-License-Identifier: GPL-2.0

//! Skylake and related cores, client and server: CPUID family 6, models 0x4E, 0x55, 0x5E (Skylake,
//! Cascade Lake, Cooper Lake), 0x8E, 0x9E (Kaby Lake, Coffee Lake), 0xA5, 0xA6 (Comet Lake).
//!
//! Mainline: `intel_skl_event_constraints`, `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

use super::haswell;
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
                Load,
                LoadLatency,
                StoreAddress, //
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

/// Four general-purpose counters a thread, eight if a core has one thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_cmask(0x0a80_01c0, 0xd), // INST_RETIRED.TOTAL_CYCLES_PS
    EventConstraint::event_and_umask(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    // Only counters 0 to 3, also where a core with one thread has eight.
    EventConstraint::event_and_umask(0x14a3, 0xf), // CYCLE_ACTIVITY.STALLS_MEM_ANY
    EventConstraint::event_and_umask(0x01b7, 0xf), // OFFCORE_RESPONSE_0
    EventConstraint::event_and_umask(0x01bb, 0xf), // OFFCORE_RESPONSE_1
    EventConstraint::event_and_umask(0x04c4, 0xf), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x04c5, 0xf), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event(0xd0, 0xf), // MEM_INST_RETIRED.*
    EventConstraint::event(0xd1, 0xf), // MEM_LOAD_RETIRED.*
    EventConstraint::event(0xd2, 0xf), // MEM_LOAD_L3_HIT_RETIRED.*
    EventConstraint::event(0xd3, 0xf), // MEM_LOAD_L3_MISS_RETIRED.*
    EventConstraint::event(0xd4, 0xf), // MEM_LOAD_MISC_RETIRED.*
    EventConstraint::event(0xcd, 0xf), // MEM_TRANS_RETIRED.*
    EventConstraint::event(0xc6, 0xf), // FRONTEND_RETIRED.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    PebsEvent::exact(0x1080_01c0, 0x2), // INST_RETIRED.PREC_DIST, inv=1, cmask=16 (cycles:ppp)
    PebsEvent::exact(0x0a80_01c0, 0xd), // INST_RETIRED.TOTAL_CYCLES_PS
    PebsEvent::exact(0x1080_00c0, 0xf), // INST_RETIRED.TOTAL_CYCLES_PS (inv=1, cmask=16) (cycles:p)
    PebsEvent::exact(0x01cd, 0xf).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x11d0, 0xf).with(Load), // MEM_INST_RETIRED.STLB_MISS_LOADS
    PebsEvent::exact(0x12d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.STLB_MISS_STORES
    PebsEvent::exact(0x21d0, 0xf).with(Load), // MEM_INST_RETIRED.LOCK_LOADS
    PebsEvent::exact(0x22d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.LOCK_STORES
    PebsEvent::exact(0x41d0, 0xf).with(Load), // MEM_INST_RETIRED.SPLIT_LOADS
    PebsEvent::exact(0x42d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.SPLIT_STORES
    PebsEvent::exact(0x81d0, 0xf).with(Load), // MEM_INST_RETIRED.ALL_LOADS
    PebsEvent::exact(0x82d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.ALL_STORES
    PebsEvent::event(0xd1, 0xf).with(Load), // MEM_LOAD_RETIRED.*
    PebsEvent::event(0xd2, 0xf).with(Load), // MEM_LOAD_L3_HIT_RETIRED.*
    PebsEvent::event(0xd3, 0xf).with(Load), // MEM_LOAD_L3_MISS_RETIRED.*
    PebsEvent::any(0xf),
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::frontend(0x01c6, 0x7f_ff17), // FRONTEND_RETIRED.*
]);

/// The generic cache events.
#[rustfmt::skip]
pub(in crate::logic::model) const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x81d0), // MEM_INST_RETIRED.ALL_LOADS
    CacheEvent::new(L1d, Read, Miss, 0x0151), // L1D.REPLACEMENT
    CacheEvent::new(L1d, Write, Access, 0x82d0), // MEM_INST_RETIRED.ALL_STORES
    CacheEvent::new(L1i, Read, Miss, 0x0283), // ICACHE_64B.MISS
    // OFFCORE_RESPONSE: DEMAND_READ | LLC_ACCESS | ANY_SNOOP
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x3f_c001_0001),
    // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS | ANY_SNOOP | SUPPLIER_NONE
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_fc02_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | LLC_ACCESS | ANY_SNOOP
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x3f_c001_0002),
    // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS | ANY_SNOOP | SUPPLIER_NONE
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_fc02_0002),
    CacheEvent::new(Dtlb, Read, Access, 0x81d0), // MEM_INST_RETIRED.ALL_LOADS
    CacheEvent::new(Dtlb, Read, Miss, 0x0e08), // DTLB_LOAD_MISSES.WALK_COMPLETED
    CacheEvent::new(Dtlb, Write, Access, 0x82d0), // MEM_INST_RETIRED.ALL_STORES
    CacheEvent::new(Dtlb, Write, Miss, 0x0e49), // DTLB_STORE_MISSES.WALK_COMPLETED
    CacheEvent::new(Itlb, Read, Access, 0x2085), // ITLB_MISSES.STLB_HIT
    CacheEvent::new(Itlb, Read, Miss, 0x0e85), // ITLB_MISSES.WALK_COMPLETED
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ALL_BRANCHES
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_MISP_RETIRED.ALL_BRANCHES
    // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS_LOCAL_DRAM | SNOOP_DRAM
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x1f_c400_0001),
    // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS_REMOTE | SNOOP_DRAM
    CacheEvent::new(Node, Read, Miss, 0x01b7).offcore(0x1f_f800_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS_LOCAL_DRAM | SNOOP_DRAM
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x1f_c400_0002),
    // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS_REMOTE | SNOOP_DRAM
    CacheEvent::new(Node, Write, Miss, 0x01b7).offcore(0x1f_f800_0002),
]);

/// The topdown method's events, for four slots per cycle.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-slots-issued", "event=0xe,umask=0x1\n"), // UOPS_ISSUED.ANY
    TopdownFile::new("topdown-slots-retired", "event=0xc2,umask=0x2\n"), // UOPS_RETIRED.RETIRE_SLOTS
    TopdownFile::new("topdown-fetch-bubbles", "event=0x9c,umask=0x1\n"), // IDQ_UOPS_NOT_DELIVERED.CORE
    TopdownFile::by_threads("topdown-total-slots", "event=0x3c,umask=0x0", "event=0x3c,umask=0x0,any=1"), // CPU_CLK_UNHALTED.THREAD
    TopdownFile::by_threads("topdown-total-slots.scale", "4", "2"),
    TopdownFile::by_threads("topdown-recovery-bubbles", "event=0xd,umask=0x1,cmask=1", "event=0xd,umask=0x1,cmask=1,any=1"), // INT_MISC.RECOVERY_CYCLES
    TopdownFile::by_threads("topdown-recovery-bubbles.scale", "4", "2"),
];

/// Skylake to Comet Lake, client.
pub const SKYLAKE: Model = Model {
    pmu_name: "skylake",
    name: "Skylake",
    quirks: &[],
    cpus: &Cpus::intel([0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::InstructionsOrPrecDist,
    data_sources: DataSources::SKYLAKE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    lbr_filter: Some(LbrFilter::Haswell),
    topdown_files: TOPDOWN_FILES,
    tsx_files: haswell::TSX_FILES,
    memory_files: memory_files::HASWELL,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::NONE,
};

/// Skylake, Cascade Lake and Cooper Lake, server.
pub const SKYLAKE_SERVER: Model = Model {
    cpus: &Cpus::intel([0x55]),
    data_sources: DataSources::SKYLAKE_SERVER,
    ..SKYLAKE
};
