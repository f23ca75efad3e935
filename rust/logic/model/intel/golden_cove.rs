// SPDX-License-Identifier: GPL-2.0

//! Golden Cove on servers: CPUID family 6, models 0x8F (Sapphire Rapids), 0xCF (Emerald Rapids).
//!
//! With PEBS, periods of `precise_ip` 3 have to be 128 or more (`glc_limit_period()`).
//!
//! Mainline: `intel_glc_extra_regs`, `intel_glc_event_constraints`, `intel_pmu_init_glc()`,
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
                StoreAddress,
                StoreLatency, //
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
        Model,
        Quirk,
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
    .union(CounterMask::first_metrics(8));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x0100, 0), // pseudo code: INST_RETIRED.PREC_DIST
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0200, 1), // pseudo code: CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // pseudo code: CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::fixed(0x013c, 2), // CPU_CLK_UNHALTED.REF_TSC_P
    EventConstraint::fixed(0x0400, 3), // pseudo code: TOPDOWN.SLOTS
    EventConstraint::metric(0x8000, 0), // pseudo code: retiring
    EventConstraint::metric(0x8100, 1), // pseudo code: bad speculation
    EventConstraint::metric(0x8200, 2), // pseudo code: front end bound
    EventConstraint::metric(0x8300, 3), // pseudo code: back end bound
    EventConstraint::metric(0x8400, 4), // pseudo code: heavy operations
    EventConstraint::metric(0x8500, 5), // pseudo code: branch mispredictions
    EventConstraint::metric(0x8600, 6), // pseudo code: fetch latency
    EventConstraint::metric(0x8700, 7), // pseudo code: memory bound
    // Event codes below 0x90 use counters 0 to 3, except these two.
    EventConstraint::event(0x2e, 0xff), // LONGEST_LAT_CACHE.*
    EventConstraint::event(0x3c, 0xff), // CPU_CLK_UNHALTED.*
    EventConstraint::events(0x01, 0x8f, 0xf),
    EventConstraint::event_and_umask(0x01a3, 0xf), // CYCLE_ACTIVITY.CYCLES_L2_MISS
    EventConstraint::event_and_umask(0x02a3, 0xf), // CYCLE_ACTIVITY.CYCLES_L3_MISS
    EventConstraint::event_and_umask(0x05a3, 0xf), // CYCLE_ACTIVITY.STALLS_L2_MISS
    EventConstraint::event_and_umask(0x06a3, 0xf), // CYCLE_ACTIVITY.STALLS_L3_MISS
    EventConstraint::event_and_umask(0x08a3, 0xf), // CYCLE_ACTIVITY.CYCLES_L1D_MISS
    EventConstraint::event_and_umask(0x0ca3, 0xf), // CYCLE_ACTIVITY.STALLS_L1D_MISS
    EventConstraint::event_and_umask(0x04a4, 0x1), // TOPDOWN.BAD_SPEC_SLOTS
    EventConstraint::event_and_umask(0x08a4, 0x1), // TOPDOWN.BR_MISPREDICT_SLOTS
    EventConstraint::event_and_umask(0x01cd, 0xfe), // MEM_TRANS_RETIRED.LOAD_LATENCY
    EventConstraint::event_and_umask(0x02cd, 0x1), // MEM_TRANS_RETIRED.STORE_SAMPLE
    EventConstraint::event(0xce, 0x1), // AMX_OPS_RETIRED.*
    EventConstraint::events(0xd0, 0xdf, 0xf), // MEM_INST_RETIRED.* and other memory events
    // The other event codes from 0x90 on use every counter.
    EventConstraint::events(0x90, 0xfe, 0xff),
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x012a, 0x1), // OCR.*
    PebsEvent::exact(0x012b, 0x1), // OCR.*
    PebsEvent::event(0xc0, 0xfe), // INST_RETIRED.*
    PebsEvent::exact(0x01cd, 0xfe).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x02cd, 0x1).with(StoreLatency), // MEM_TRANS_RETIRED.STORE_SAMPLE
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
    ExtraRegisterEvent::offcore_response_0(0x012a, 0x3f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x012b, 0x3f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::frontend(0x01c6, 0x7f_ff1f), // FRONTEND_RETIRED.*
    ExtraRegisterEvent::frontend(0x40ad, 0x7), // INT_MISC.UNKNOWN_BRANCH_CYCLES
    ExtraRegisterEvent::frontend(0x04c2, 0x8), // UOPS_RETIRED.MS
]);

/// The generic cache events that servers and clients have in common.
#[rustfmt::skip]
pub(super) const COMMON_CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x81d0), // MEM_INST_RETIRED.ALL_LOADS
    CacheEvent::new(L1d, Read, Miss, 0xe124), // L2_RQSTS.ALL_DEMAND_DATA_RD
    CacheEvent::new(L1d, Write, Access, 0x82d0), // MEM_INST_RETIRED.ALL_STORES
    CacheEvent::new(L1i, Read, Miss, 0xe424), // L2_RQSTS.ALL_CODE_RD
    // OCR.DEMAND_DATA_RD.ANY_RESPONSE
    CacheEvent::new(LastLevel, Read, Access, 0x012a).offcore(0x1_0001),
    // OCR.DEMAND_DATA_RD.L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x012a).offcore(0x3f_bfc0_0001),
    CacheEvent::new(Dtlb, Read, Access, 0x81d0), // MEM_INST_RETIRED.ALL_LOADS
    CacheEvent::new(Dtlb, Read, Miss, 0x0e12), // DTLB_LOAD_MISSES.WALK_COMPLETED
    CacheEvent::new(Dtlb, Write, Access, 0x82d0), // MEM_INST_RETIRED.ALL_STORES
    CacheEvent::new(Dtlb, Write, Miss, 0x0e13), // DTLB_STORE_MISSES.WALK_COMPLETED
    CacheEvent::impossible(Itlb, Read, Access),
    CacheEvent::new(Itlb, Read, Miss, 0x0e11), // ITLB_MISSES.WALK_COMPLETED
    CacheEvent::new(Branch, Read, Access, 0x04c4), // BR_INST_RETIRED, a unit mask in no list
    CacheEvent::new(Branch, Read, Miss, 0x04c5), // BR_MISP_RETIRED, a unit mask in no list
]);

/// The generic cache events of servers.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = COMMON_CACHE_EVENTS.with(&[
    // OCR.DEMAND_RFO.ANY_RESPONSE
    CacheEvent::new(LastLevel, Write, Access, 0x012a).offcore(0x3f_3ffc_0002),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x012a).offcore(0x3f_3fc0_0002),
    // OCR.DEMAND_DATA_RD.LOCAL_DRAM
    CacheEvent::new(Node, Read, Access, 0x012a).offcore(0x1_0400_0001),
    // OCR.DEMAND_DATA_RD.REMOTE_DRAM
    CacheEvent::new(Node, Read, Miss, 0x012a).offcore(0x7_3000_0001),
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
    TopdownFile::new("topdown-heavy-ops", "event=0x00,umask=0x84\n"),
    TopdownFile::new("topdown-br-mispredict", "event=0x00,umask=0x85\n"),
    TopdownFile::new("topdown-fetch-lat", "event=0x00,umask=0x86\n"),
    TopdownFile::new("topdown-mem-bound", "event=0x00,umask=0x87\n"),
];

/// Sapphire Rapids and Emerald Rapids.
pub const GOLDEN_COVE: Model = Model {
    pmu_name: "sapphire_rapids",
    name: "Sapphire Rapids",
    quirks: &[
        Quirk::ReferenceCyclesAnywhere,
        Quirk::LatencyInTwoParts,
        Quirk::LoadLatencyNeedsAuxiliary,
    ],
    cpus: &Cpus::intel([0x8f, 0xcf]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::Fixed0AndCounter0,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::GOLDEN_COVE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    lbr_filter: None,
    topdown_files: TOPDOWN_FILES,
    tsx_files: TSX_FILES,
    memory_files: memory_files::GOLDEN_COVE,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::GOLDEN_COVE,
};
