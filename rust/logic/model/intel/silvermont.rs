// SPDX-License-Identifier: GPL-2.0

//! Silvermont and Airmont: CPUID family 6, models 0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x75.
//!
//! Mainline: `intel_slm_event_constraints`, `intel_slm_extra_regs`, `intel_pmu_init()`,
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

/// Two general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(2).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x1080_00c0, 0x1), // INST_RETIRED.ANY_P, inv=1, cmask=16 (cycles:p)
    PebsEvent::any(0x1),
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x76_8005_ffff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0x36_8005_ffff), // OFFCORE_RESPONSE_1
]);

/// The generic cache events.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Miss, 0x0104), // LD_DCU_MISS
    CacheEvent::new(L1i, Read, Access, 0x0380), // ICACHE.ACCESSES
    CacheEvent::new(L1i, Read, Miss, 0x0280), // ICACHE.MISSES
    // OFFCORE_RESPONSE: DMND_READ | LLC_ACCESS
    CacheEvent::new(LastLevel, Read, Access, 0x01b7).offcore(0x1_0001),
    // OFFCORE_RESPONSE: DMND_WRITE | LLC_ACCESS
    CacheEvent::new(LastLevel, Write, Access, 0x01b7).offcore(0x1_0002),
    // OFFCORE_RESPONSE: DMND_WRITE | LLC_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x36_8000_0002),
    // OFFCORE_RESPONSE: DMND_PREFETCH | LLC_ACCESS
    CacheEvent::new(LastLevel, Prefetch, Access, 0x01b7).offcore(0x1_0030),
    // OFFCORE_RESPONSE: DMND_PREFETCH | LLC_MISS
    CacheEvent::new(LastLevel, Prefetch, Miss, 0x01b7).offcore(0x36_8000_0030),
    CacheEvent::new(Dtlb, Read, Miss, 0x0804), // LD_DTLB_MISS
    CacheEvent::new(Itlb, Read, Access, 0x00c0), // INST_RETIRED.ANY_P
    CacheEvent::new(Itlb, Read, Miss, 0x4_0205), // PAGE_WALKS.I_SIDE_WALKS
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ANY
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_INST_RETIRED.MISPRED
]);

/// The topdown method's events, for two slots per cycle.
#[rustfmt::skip]
const TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-total-slots", "event=0x3c\n"), // CPU_CLK_UNHALTED.CORE_P
    TopdownFile::new("topdown-total-slots.scale", "2\n"),
    TopdownFile::new("topdown-fetch-bubbles", "event=0xca,umask=0x50\n"), // NO_ALLOC_CYCLES.NOT_DELIVERED
    TopdownFile::new("topdown-fetch-bubbles.scale", "2\n"),
    TopdownFile::new("topdown-slots-issued", "event=0xc2,umask=0x10\n"), // UOPS_RETIRED.ALL
    TopdownFile::new("topdown-slots-retired", "event=0xc2,umask=0x10\n"), // UOPS_RETIRED.ALL
];

/// Silvermont and Airmont.
pub const SILVERMONT: Model = Model {
    pmu_name: "silvermont",
    name: "Silvermont",
    quirks: &[],
    cpus: &Cpus::intel([0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x75]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::Instructions,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::Silvermont),
    topdown_files: TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: &[],
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
