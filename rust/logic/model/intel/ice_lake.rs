// SPDX-License-Identifier: GPL-2.0

//! Ice Lake and related cores: CPUID family 6, models 0x7D, 0x7E (Ice Lake client), 0x8C, 0x8D
//! (Tiger Lake), 0xA7 (Rocket Lake), 0x6A, 0x6C (Ice Lake server).
//!
//! Mainline: `intel_icl_event_constraints`, `intel_icl_extra_regs`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use super::skylake;
use crate::logic::{
    model::{
        cache_event::{
            Cache::{
                Itlb,
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

/// Eight general-purpose counters a thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8)
    .union(CounterMask::first_fixed(4))
    .union(CounterMask::first_metrics(4));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x01c0, 0), // INST_RETIRED.PREC_DIST
    EventConstraint::fixed(0x0100, 0), // pseudo code: INST_RETIRED.PREC_DIST
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0200, 1), // pseudo code: CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // pseudo code: CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::fixed(0x0400, 3), // pseudo code: TOPDOWN.SLOTS
    EventConstraint::metric(0x8000, 0), // pseudo code: retiring
    EventConstraint::metric(0x8100, 1), // pseudo code: bad speculation
    EventConstraint::metric(0x8200, 2), // pseudo code: front end bound
    EventConstraint::metric(0x8300, 3), // pseudo code: back end bound
    EventConstraint::events(0x03, 0x0a, 0xf), // LD_BLOCKS.* to DTLB_LOAD_MISSES.*
    EventConstraint::events(0x1f, 0x28, 0xf), // L2_RQSTS.* to CORE_POWER.*
    EventConstraint::event(0x32, 0xf), // SW_PREFETCH_ACCESS.*
    EventConstraint::events(0x48, 0x56, 0xf), // L1D_PEND_MISS.* to TX_MEM.*
    EventConstraint::events(0x60, 0x8b, 0xf), // OFFCORE_REQUESTS_OUTSTANDING.* to ITLB_MISSES.*
    EventConstraint::event_and_umask(0x04a3, 0xff), // CYCLE_ACTIVITY.STALLS_TOTAL
    EventConstraint::event_and_umask(0x10a3, 0xff), // CYCLE_ACTIVITY.CYCLES_MEM_ANY
    EventConstraint::event_and_umask(0x14a3, 0xff), // CYCLE_ACTIVITY.STALLS_MEM_ANY
    EventConstraint::event(0xa3, 0xf), // CYCLE_ACTIVITY.*
    EventConstraint::events(0xa8, 0xb0, 0xf), // LSD.* to OFFCORE_REQUESTS.*
    EventConstraint::events(0xb7, 0xbd, 0xf), // OCR.* to TLB_FLUSH.*
    EventConstraint::events(0xd0, 0xe6, 0xf), // MEM_INST_RETIRED.* to BACLEARS.*
    EventConstraint::event(0xef, 0xf), // CORE_SNOOP_RESPONSE.*
    EventConstraint::events(0xf0, 0xf4, 0xf), // L2_TRANS.* to SQ_MISC.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01b7, 0x1), // OCR.*
    PebsEvent::exact(0x01bb, 0x1), // OCR.*
    PebsEvent::exact(0x40cc, 0x1), // MISC_RETIRED.PAUSE_INST
    PebsEvent::exact(0x01cd, 0xff).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x11d0, 0xf).with(Load), // MEM_INST_RETIRED.STLB_MISS_LOADS
    PebsEvent::exact(0x12d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.STLB_MISS_STORES
    PebsEvent::exact(0x21d0, 0xf).with(Load), // MEM_INST_RETIRED.LOCK_LOADS
    PebsEvent::exact(0x41d0, 0xf).with(Load), // MEM_INST_RETIRED.SPLIT_LOADS
    PebsEvent::exact(0x42d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.SPLIT_STORES
    PebsEvent::exact(0x81d0, 0xf).with(Load), // MEM_INST_RETIRED.ALL_LOADS
    PebsEvent::exact(0x82d0, 0xf).with(StoreAddress), // MEM_INST_RETIRED.ALL_STORES
    PebsEvent::events(0xd1, 0xd4, 0xf).with(Load), // MEM_LOAD_*_RETIRED.*
    PebsEvent::event(0xd0, 0xf), // MEM_INST_RETIRED.*
]).and_others();

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_bfff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_bfff), // OCR.*
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::frontend(0x01c6, 0x7f_ff17), // FRONTEND_RETIRED.*
]);

/// The generic cache events of client cores: Skylake's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = skylake::CACHE_EVENTS.with(&[
    CacheEvent::impossible(Itlb, Read, Access),
]);

/// The generic cache events of servers, whose offcore response bits differ.
#[rustfmt::skip]
const SERVER_CACHE_EVENTS: CacheEvents = skylake::CACHE_EVENTS.with(&[
    // OCR.DEMAND_DATA_RD.ANY_RESPONSE
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x1_0001),
    // OCR.DEMAND_DATA_RD.L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_bfc0_0001),
    // OCR.DEMAND_RFO.ANY_RESPONSE
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x3f_3ffc_0002),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_3fc0_0002),
    CacheEvent::impossible(Itlb, Read, Access),
    // OCR.DEMAND_DATA_RD.LOCAL_DRAM
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x1_0400_0001),
    // OCR.DEMAND_DATA_RD.REMOTE_DRAM
    CacheEvent::new(Node, Read, Miss, 0x01b7).offcore(0x7_3000_0001),
    // OCR.DEMAND_RFO.LOCAL_DRAM
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x1_0400_0002),
    CacheEvent::new(Node, Write, Miss, 0x01b7).offcore(0x7_3000_0002), // OCR.DEMAND_RFO.REMOTE_DRAM
]);

/// The events of TSX transactions.
#[rustfmt::skip]
const TSX_FILES: &[(&str, &str)] = &[
    ("tx-start",          "event=0xc9,umask=0x1"), // RTM_RETIRED.START
    ("tx-abort",          "event=0xc9,umask=0x4"), // RTM_RETIRED.ABORTED
    ("tx-commit",         "event=0xc9,umask=0x2"), // RTM_RETIRED.COMMIT
    ("tx-capacity-read",  "event=0x54,umask=0x80"), // TX_MEM.ABORT_CAPACITY_READ
    ("tx-capacity-write", "event=0x54,umask=0x2"), // TX_MEM.ABORT_CAPACITY_WRITE
    ("tx-conflict",       "event=0x54,umask=0x1"), // TX_MEM.ABORT_CONFLICT
    ("el-start",          "event=0xc8,umask=0x1"), // HLE_RETIRED.START
    ("el-abort",          "event=0xc8,umask=0x4"), // HLE_RETIRED.ABORTED
    ("el-commit",         "event=0xc8,umask=0x2"), // HLE_RETIRED.COMMIT
    ("el-capacity-read",  "event=0x54,umask=0x80"), // TX_MEM.ABORT_CAPACITY_READ
    ("el-capacity-write", "event=0x54,umask=0x2"), // TX_MEM.ABORT_CAPACITY_WRITE
    ("el-conflict",       "event=0x54,umask=0x1"), // TX_MEM.ABORT_CONFLICT
    ("cycles-t",          "event=0x3c,in_tx=1"), // CPU_CLK_UNHALTED.THREAD_P
    ("cycles-ct",         "event=0x3c,in_tx=1,in_tx_cp=1"), // CPU_CLK_UNHALTED.THREAD_P
];

/// The slots and the topdown metrics.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("slots", "event=0x00,umask=0x4\n"), // TOPDOWN.SLOTS
    TopdownFile::new("topdown-retiring", "event=0x00,umask=0x80\n"),
    TopdownFile::new("topdown-bad-spec", "event=0x00,umask=0x81\n"),
    TopdownFile::new("topdown-fe-bound", "event=0x00,umask=0x82\n"),
    TopdownFile::new("topdown-be-bound", "event=0x00,umask=0x83\n"),
];

/// Ice Lake, Tiger Lake and Rocket Lake, client.
pub const ICE_LAKE: Model = Model {
    pmu_name: "icelake",
    name: "Ice Lake",
    quirks: &[],
    cpus: &Cpus::intel([0x7d, 0x7e, 0x8c, 0x8d, 0xa7]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::InstructionsOnFixed0,
    cycles_alias: CyclesAlias::None,
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
    tsx_files: TSX_FILES,
    memory_files: memory_files::HASWELL,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::NONE,
};

/// Ice Lake, server.
pub const ICE_LAKE_SERVER: Model = Model {
    cpus: &Cpus::intel([0x6a, 0x6c]),
    cache_events: SERVER_CACHE_EVENTS,
    data_sources: DataSources::SKYLAKE_SERVER,
    ..ICE_LAKE
};
