// SPDX-License-Identifier: GPL-2.0

//! Broadwell, client and server: CPUID family 6, models 0x3D, 0x47, 0x4F, 0x56.
//!
//! Mainline: `intel_snbep_extra_regs`, `intel_bdw_event_constraints`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use super::{
    haswell,
    sandy_bridge, //
};
use crate::logic::{
    model::{
        cache_event::{
            Cache::{
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
                Address,
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
        Scope, //
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
    EventConstraint::event_and_umask(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    EventConstraint::event_and_umask_bit(0x08a3, 0x4), // CYCLE_ACTIVITY.*_L1D_MISS
    EventConstraint::event_and_umask(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    EventConstraint::event_and_umask(0x01cd, 0x8), // MEM_TRANS_RETIRED.LOAD_LATENCY
    // Only counters 0 to 3, also where a core with one thread has eight.
    EventConstraint::event_and_cmask(0x0180_010e, 0xf), // UOPS_ISSUED.STALL_CYCLES
    EventConstraint::event_and_umask(0x023c, 0xf), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    EventConstraint::event_and_umask(0x0279, 0xf), // IDQ.EMPTY
    EventConstraint::event(0x9c, 0xf), // IDQ_UOPS_NOT_DELIVERED.*
    EventConstraint::event_and_umask(0x03a0, 0xf), // UOP_DISPATCHES_CANCELLED.SIMD_PRF
    EventConstraint::event_and_umask(0x02a3, 0xf), // CYCLE_ACTIVITY.CYCLES_MEM_ANY
    EventConstraint::event_and_umask(0x04a3, 0xf), // CYCLE_ACTIVITY.STALLS_TOTAL
    EventConstraint::event_and_umask(0x05a3, 0xf), // CYCLE_ACTIVITY.STALLS_L2_MISS
    EventConstraint::event_and_umask(0x06a3, 0xf), // CYCLE_ACTIVITY.STALLS_MEM_ANY
    EventConstraint::event_and_cmask(0x01b1, 0xff), // UOPS_EXECUTED.THREAD
    EventConstraint::event_and_umask(0x01b1, 0xf), // UOPS_EXECUTED.*
    EventConstraint::event_and_umask(0x01b7, 0xf), // OFFCORE_RESPONSE_0
    EventConstraint::event_and_umask(0x01bb, 0xf), // OFFCORE_RESPONSE_1
    EventConstraint::event(0xbc, 0xf), // PAGE_WALKER_LOADS.*
    EventConstraint::event_and_cmask(0x0180_01c2, 0xf), // UOPS_RETIRED.STALL_CYCLES
    EventConstraint::event_and_cmask(0x1080_01c2, 0xf), // UOPS_RETIRED.TOTAL_CYCLES
    EventConstraint::event_and_umask(0x04c4, 0xf), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x04c5, 0xf), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event(0xc7, 0xf), // FP_ARITH_INST_RETIRED.*
    EventConstraint::event(0xc9, 0xf), // RTM_RETIRED.*
    EventConstraint::event_and_umask(0x1eca, 0xf), // FP_ASSIST.ANY
    EventConstraint::event(0xd0, 0xf), // MEM_UOPS_RETIRED.*
    EventConstraint::event(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    EventConstraint::event(0xd2, 0xf), // MEM_LOAD_UOPS_L3_HIT_RETIRED.*
    EventConstraint::event(0xd3, 0xf), // MEM_LOAD_UOPS_L3_MISS_RETIRED.*
    EventConstraint::event(0xcd, 0xf), // MEM_TRANS_RETIRED.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    PebsEvent::exact(0x01cd, 0x8).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x1080_01c2, 0xf), // UOPS_RETIRED.ALL, inv=1, cmask=16 (cycles:p)
    PebsEvent::exact(0x1080_01c0, 0x2), // INST_RETIRED.PREC_DIST, inv=1, cmask=16 (cycles:ppp)
    PebsEvent::exact(0x01c2, 0xf).with(Address), // UOPS_RETIRED.ALL
    PebsEvent::exact(0x11d0, 0xf).with(Load), // MEM_UOPS_RETIRED.STLB_MISS_LOADS
    PebsEvent::exact(0x21d0, 0xf).with(Load), // MEM_UOPS_RETIRED.LOCK_LOADS
    PebsEvent::exact(0x41d0, 0xf).with(Load), // MEM_UOPS_RETIRED.SPLIT_LOADS
    PebsEvent::exact(0x81d0, 0xf).with(Load), // MEM_UOPS_RETIRED.ALL_LOADS
    PebsEvent::exact(0x12d0, 0xf).with(StoreAddress), // MEM_UOPS_RETIRED.STLB_MISS_STORES
    PebsEvent::exact(0x42d0, 0xf).with(StoreAddress), // MEM_UOPS_RETIRED.SPLIT_STORES
    PebsEvent::exact(0x82d0, 0xf).with(StoreAddress), // MEM_UOPS_RETIRED.ALL_STORES
    PebsEvent::event(0xd1, 0xf).with(Load), // MEM_LOAD_UOPS_RETIRED.*
    PebsEvent::event(0xd2, 0xf).with(Load), // MEM_LOAD_UOPS_L3_HIT_RETIRED.*
    PebsEvent::event(0xd3, 0xf).with(Load), // MEM_LOAD_UOPS_L3_MISS_RETIRED.*
    PebsEvent::exact(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    PebsEvent::any(0xf),
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The generic cache events: Haswell's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = haswell::CACHE_EVENTS.with(&[
    // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS | SNOOP_DRAM
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x1f_bc00_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS | SNOOP_DRAM
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x1f_bc00_0002),
    // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS_LOCAL | SNOOP_DRAM
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x1f_8400_0001),
    // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS_LOCAL | SNOOP_DRAM
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x1f_8400_0002),
]);

/// Broadwell, client and server.
pub const BROADWELL: Model = Model {
    pmu_name: "broadwell",
    name: "Broadwell",
    quirks: &[],
    cpus: &Cpus::intel([0x3d, 0x47, 0x4f, 0x56]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::UopsOrPrecDist,
    data_sources: DataSources::SANDY_BRIDGE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    // Erratum BDM126: these counters do not count an event that counts only user mode.
    need_kernel_mode: CounterMask::from_bits(0xf0),
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    lbr_filter: Some(LbrFilter::Haswell),
    topdown_files: sandy_bridge::TOPDOWN_FILES,
    tsx_files: haswell::TSX_FILES,
    memory_files: memory_files::HASWELL,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::BROADWELL,
};
