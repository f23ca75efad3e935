// SPDX-License-Identifier: GPL-2.0

//! Crestmont without big cores: CPUID family 6, models 0xAF (Sierra Forest), 0xB6 (Grand Ridge).
//!
//! With PEBS, periods of `precise_ip` 3 have to be 128 or more (`glc_limit_period()`).
//!
//! Mainline: `intel_grt_event_constraints`, `intel_cmt_extra_regs`, `intel_pmu_init_grt()`,
//! `intel_pmu_init_cmt()`, `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

use super::{
    goldmont::PLUS_CACHE_EVENTS,
    gracemont::EVENT_CONSTRAINTS, //
};
use crate::logic::{
    model::{
        cache_event::{
            Cache::{
                Itlb,
                LastLevel, //
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
        data_source::DataSources,
        extra_registers::{
            ExtraRegisterEvent,
            ExtraRegisters, //
        },
        memory_files,
        pebs_events::{
            PebsData::{
                LoadLatency,
                StoreLatency, //
            },
            PebsEvent,
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        Cpus,
        CyclesAlias,
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

/// Eight general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01b7, 0x1), // OCR.*
    PebsEvent::exact(0x02b7, 0x1), // OCR.*
    PebsEvent::exact(0x05d0, 0x3).with(LoadLatency), // MEM_UOPS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x06d0, 0xff).with(StoreLatency), // MEM_UOPS_RETIRED.STORE_LATENCY
]).and_others();

/// The extra registers that events need. Only the first register can count outstanding requests
/// (bit 63).
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x800f_f3ff_ffff_ffff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0xf_f3ff_ffff_ffff), // OCR.*
    ExtraRegisterEvent::load_latency(0x05d0), // MEM_UOPS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::snoop_response_0(0x0127), // in no list
    ExtraRegisterEvent::snoop_response_1(0x0227), // in no list
]);

/// The generic cache events: Goldmont Plus's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = PLUS_CACHE_EVENTS.with(&[
    // OCR.DEMAND_DATA_RD.L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_bfc0_0001),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_bfc0_0002),
    CacheEvent::impossible(Itlb, Read, Access),
]);

/// The topdown method's events.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-fe-bound", "event=0x71,umask=0x0\n"), // TOPDOWN_FE_BOUND.ALL
    TopdownFile::new("topdown-retiring", "event=0x72,umask=0x0\n"), // TOPDOWN_RETIRING.ALL
    TopdownFile::new("topdown-bad-spec", "event=0x73,umask=0x0\n"), // TOPDOWN_BAD_SPECULATION.ALL
    TopdownFile::new("topdown-be-bound", "event=0x74,umask=0x0\n"), // TOPDOWN_BE_BOUND.ALL
];

/// Sierra Forest, Grand Ridge.
pub const CRESTMONT: Model = Model {
    pmu_name: "crestmont",
    name: "Crestmont",
    quirks: &[Quirk::ReferenceCyclesAnywhere, Quirk::LatencyInTwoParts],
    cpus: &Cpus::intel([0xaf, 0xb6]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::Fixed0OrCounters0And1,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::CRESTMONT,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    lbr_filter: None,
    topdown_files: TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: memory_files::GRACEMONT,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::GOLDEN_COVE,
};
