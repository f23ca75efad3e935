// SPDX-License-Identifier: GPL-2.0

//! Tremont: CPUID family 6, models 0x86 (Snow Ridge), 0x96 (Elkhart Lake), 0x9C (Jasper Lake).
//!
//! Its PEBS records have addresses, but no data source and no latency.
//!
//! Mainline: `intel_slm_event_constraints`, `intel_tnt_extra_regs`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use super::goldmont::{
    EVENT_CONSTRAINTS,
    PLUS_CACHE_EVENTS, //
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
        pebs_events::{
            PebsEvent,
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        Cpus,
        CyclesAlias,
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

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01b7, 0x1), // OCR.*
    PebsEvent::exact(0x02b7, 0x1), // OCR.*
]).and_others();

/// The extra registers that events need. Only the first register can count outstanding requests
/// (bit 63).
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x800f_f0ff_ffff_9fff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0xf_f0ff_ffff_9fff), // OCR.*
]);

/// The generic cache events: Goldmont Plus's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = PLUS_CACHE_EVENTS.with(&[
    // OCR.DEMAND_DATA_RD.L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_0400_0001),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_0400_0002),
    CacheEvent::impossible(Itlb, Read, Access),
]);

/// The topdown method's events.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-fe-bound", "event=0x71,umask=0x0\n"), // TOPDOWN_FE_BOUND.ALL
    TopdownFile::new("topdown-retiring", "event=0xc2,umask=0x0\n"), // TOPDOWN_RETIRING.ALL
    TopdownFile::new("topdown-bad-spec", "event=0x73,umask=0x6\n"), // TOPDOWN_BAD_SPECULATION.ALL
    TopdownFile::new("topdown-be-bound", "event=0x74,umask=0x0\n"), // TOPDOWN_BE_BOUND.ALL
];

/// Tremont.
pub const TREMONT: Model = Model {
    pmu_name: "Tremont",
    name: "Tremont",
    quirks: &[],
    cpus: &Cpus::intel([0x86, 0x96, 0x9c]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::Fixed0OrCounter0,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    lbr_filter: Some(LbrFilter::Haswell),
    topdown_files: TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: &[],
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
