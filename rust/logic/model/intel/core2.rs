// SPDX-License-Identifier: GPL-2.0

//! Core 2: CPUID family 6, models 0x0F, 0x16 (Merom), 0x17 (Penryn), 0x1D (Dunnington).
//!
//! Mainline: `intel_core2_event_constraints`, `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

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
        extra_registers::ExtraRegisters,
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
        Model,
        Need,
        Scope, //
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
    EventConstraint::event(0x10, 0x1), // FP_COMP_OPS_EXE
    EventConstraint::event(0x11, 0x2), // FP_ASSIST
    EventConstraint::event(0x12, 0x2), // MUL
    EventConstraint::event(0x13, 0x2), // DIV
    EventConstraint::event(0x14, 0x1), // CYCLES_DIV_BUSY
    EventConstraint::event(0x18, 0x1), // IDLE_DURING_DIV
    EventConstraint::event(0x19, 0x2), // DELAYED_BYPASS
    EventConstraint::event(0xa1, 0x1), // RS_UOPS_DISPATCHED
    EventConstraint::event(0xc9, 0x1), // ITLB_MISS_RETIRED
    EventConstraint::event(0xcb, 0x1), // MEM_LOAD_RETIRED.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x00c0, 0x1), // INST_RETIRED.ANY
    PebsEvent::exact(0xfec1, 0x1), // X87_OPS_RETIRED.ANY
    PebsEvent::exact(0x00c5, 0x1), // BR_INST_RETIRED.MISPRED
    PebsEvent::exact(0x1fc7, 0x1), // SIMD_INST_RETIRED.ANY
    PebsEvent::event(0xcb, 0x1), // MEM_LOAD_RETIRED.*
    PebsEvent::exact(0x1080_00c0, 0x1), // INST_RETIRED.ANY_P, inv=1, cmask=16 (cycles:p)
]);

/// The generic cache events.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x0f40), // L1D_CACHE_LD.MESI
    CacheEvent::new(L1d, Read, Miss, 0x0140), // L1D_CACHE_LD.I_STATE
    CacheEvent::new(L1d, Write, Access, 0x0f41), // L1D_CACHE_ST.MESI
    CacheEvent::new(L1d, Write, Miss, 0x0141), // L1D_CACHE_ST.I_STATE
    CacheEvent::new(L1d, Prefetch, Access, 0x104e), // L1D_PREFETCH.REQUESTS
    CacheEvent::new(L1i, Read, Access, 0x0080), // L1I.READS
    CacheEvent::new(L1i, Read, Miss, 0x0081), // L1I.MISSES
    CacheEvent::new(LastLevel, Read, Access, 0x4f29), // L2_LD.MESI
    CacheEvent::new(LastLevel, Read, Miss, 0x4129), // L2_LD.ISTATE
    CacheEvent::new(LastLevel, Write, Access, 0x4f2a), // L2_ST.MESI
    CacheEvent::new(LastLevel, Write, Miss, 0x412a), // L2_ST.ISTATE
    CacheEvent::new(Dtlb, Read, Access, 0x0f40), // L1D_CACHE_LD.MESI
    CacheEvent::new(Dtlb, Read, Miss, 0x0208), // DTLB_MISSES.MISS_LD
    CacheEvent::new(Dtlb, Write, Access, 0x0f41), // L1D_CACHE_ST.MESI
    CacheEvent::new(Dtlb, Write, Miss, 0x0808), // DTLB_MISSES.MISS_ST
    CacheEvent::new(Itlb, Read, Access, 0x00c0), // INST_RETIRED.ANY_P
    CacheEvent::new(Itlb, Read, Miss, 0x1282), // ITLBMISSES
    CacheEvent::new(Branch, Read, Access, 0x00c4), // BR_INST_RETIRED.ANY
    CacheEvent::new(Branch, Read, Miss, 0x00c5), // BR_INST_RETIRED.MISPRED
]);

/// Core 2.
pub const CORE2: Model = Model {
    pmu_name: "core2",
    name: "Core 2",
    needs: &[Need::Trial],
    quirks: &[],
    cpus: &Cpus::intel([0x0f, 0x16, 0x17, 0x1d]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::Instructions,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: ExtraRegisters::NONE,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: None,
    topdown_files: &[],
    tsx_files: &[],
    memory_files: &[],
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
