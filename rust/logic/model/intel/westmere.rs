// SPDX-License-Identifier: GPL-2.0

//! Westmere: CPUID family 6, models 0x25, 0x2C, 0x2F.
//!
//! Mainline: `intel_westmere_event_constraints`, `intel_westmere_extra_regs`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use super::nehalem;
use crate::logic::{
    model::{
        cache_event::{
            Cache::{
                Dtlb,
                Itlb, //
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
    EventConstraint::event(0x4c, 0x3), // LOAD_HIT_PRE
    EventConstraint::event(0x4e, 0x3), // L1D_PREFETCH.*
    EventConstraint::event(0x51, 0x3), // L1D.*
    EventConstraint::event(0x52, 0x3), // L1D_CACHE_PREFETCH_LOCK_FB_HIT
    EventConstraint::event(0x60, 0x1), // OFFCORE_REQUESTS_OUTSTANDING.*
    EventConstraint::event(0x63, 0x3), // CACHE_LOCK_CYCLES.*
    EventConstraint::event(0xb3, 0x1), // SNOOPQ_REQUESTS_OUTSTANDING.*
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
    PebsEvent::event(0xc5, 0xf), // BR_MISP_RETIRED.*
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
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x100b), // MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD
]);

/// The generic cache events: Nehalem's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = nehalem::CACHE_EVENTS.with(&[
    CacheEvent::new(Dtlb, Read, Access, 0x010b), // MEM_INST_RETIRED.LOADS
    CacheEvent::new(Dtlb, Write, Access, 0x020b), // MEM_INST_RETIRED.STORES
    CacheEvent::new(Itlb, Read, Miss, 0x0185), // ITLB_MISSES.ANY
]);

/// Westmere.
pub const WESTMERE: Model = Model {
    pmu_name: "westmere",
    name: "Westmere",
    quirks: &[Quirk::StatusSticks],
    cpus: &Cpus::intel([0x25, 0x2c, 0x2f]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::Instructions,
    data_sources: DataSources::WESTMERE,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: nehalem::CLEARING_EVENTS,
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::Nehalem),
    topdown_files: &[],
    tsx_files: &[],
    memory_files: memory_files::NEHALEM,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
