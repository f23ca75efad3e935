// SPDX-License-Identifier: GPL-2.0

//! Gracemont without big cores: CPUID family 6, model 0xBE (Alder Lake-N, Twin Lake).
//!
//! With PEBS, periods of `precise_ip` 3 have to be 128 or more (`glc_limit_period()`).
//!
//! Mainline: `intel_grt_event_constraints`, `intel_grt_extra_regs`, `intel_pmu_init_grt()`,
//! `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

use super::goldmont::PLUS_CACHE_EVENTS;
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

/// Six general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(6).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
pub(super) const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY_P
    EventConstraint::fixed(0x0100, 0), // pseudo code: INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE_P
    EventConstraint::fixed(0x0200, 1), // pseudo code: CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // pseudo code: CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::fixed(0x013c, 2), // CPU_CLK_UNHALTED.REF_TSC_P
    EventConstraint::event_and_umask(0x05d0, 0x3), // MEM_UOPS_RETIRED.LOAD_LATENCY
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01b7, 0x1), // OCR.*
    PebsEvent::exact(0x02b7, 0x1), // OCR.*
    PebsEvent::exact(0x05d0, 0x3).with(LoadLatency), // MEM_UOPS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x06d0, 0x3f).with(StoreLatency), // MEM_UOPS_RETIRED.STORE_LATENCY
]).and_others();

/// The extra registers that events need. Only the first register can count outstanding requests
/// (bit 63).
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x8003_f03f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0x3_f03f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::load_latency(0x05d0), // MEM_UOPS_RETIRED.LOAD_LATENCY
]);

/// The generic cache events: Goldmont Plus's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = PLUS_CACHE_EVENTS.with(&[
    // OCR.DEMAND_DATA_RD.L3_MISS
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x3f_8440_0001),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x3f_8440_0002),
    CacheEvent::impossible(Itlb, Read, Access),
]);

/// The topdown method's events.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-fe-bound", "event=0x71,umask=0x0\n"), // TOPDOWN_FE_BOUND.ALL
    TopdownFile::new("topdown-retiring", "event=0xc2,umask=0x0\n"), // TOPDOWN_RETIRING.ALL
    // TOPDOWN_BAD_SPECULATION, a unit mask in no list: FASTNUKE, MISPREDICT
    TopdownFile::new("topdown-bad-spec", "event=0x73,umask=0x6\n"),
    TopdownFile::new("topdown-be-bound", "event=0x74,umask=0x0\n"), // TOPDOWN_BE_BOUND.ALL
];

/// Alder Lake-N.
pub const GRACEMONT: Model = Model {
    pmu_name: "gracemont",
    name: "Gracemont",
    quirks: &[Quirk::ReferenceCyclesAnywhere, Quirk::LatencyInTwoParts],
    cpus: &Cpus::intel([0xbe]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::Fixed0OrCounter0,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::GRACEMONT,
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
