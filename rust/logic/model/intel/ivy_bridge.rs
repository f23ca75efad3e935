// SPDX-License-Identifier: GPL-2.0

//! Ivy Bridge: CPUID family 6, models 0x3A (client), 0x3E (server).
//!
//! Mainline: `intel_ivb_event_constraints`, `intel_snb_extra_regs`, `intel_snbep_extra_regs`,
//! `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

use super::sandy_bridge;
use crate::logic::{
    model::{
        cache_event::{
            Cache::Dtlb,
            CacheEvent,
            CacheEvents,
            Operation::Read,
            Outcome::Miss, //
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
                Store, //
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

/// Four general-purpose counters a thread, eight if a core has one thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_umask(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    EventConstraint::event_and_umask(0x0279, 0xf), // IDQ.EMPTY
    EventConstraint::event_and_umask(0x019c, 0xf), // IDQ_UOPS_NOT_DELIVERED.CORE
    EventConstraint::event_and_umask(0x02a3, 0xf), // CYCLE_ACTIVITY.CYCLES_LDM_PENDING
    EventConstraint::event_and_umask(0x04a3, 0xf), // CYCLE_ACTIVITY.CYCLES_NO_EXECUTE
    EventConstraint::event_and_umask(0x05a3, 0xf), // CYCLE_ACTIVITY.STALLS_L2_PENDING
    EventConstraint::event_and_umask(0x06a3, 0xf), // CYCLE_ACTIVITY.STALLS_LDM_PENDING
    EventConstraint::event_and_umask(0x08a3, 0x4), // CYCLE_ACTIVITY.CYCLES_L1D_PENDING
    EventConstraint::event_and_umask(0x0ca3, 0x4), // CYCLE_ACTIVITY.STALLS_L1D_PENDING
    EventConstraint::event_and_umask(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    EventConstraint::event(0xcd, 0x8), // MEM_TRANS_RETIRED.*
    // Only counters 0 to 3, also where a core with one thread has eight.
    EventConstraint::event_and_cmask(0x0180_010e, 0xf), // UOPS_ISSUED.STALL_CYCLES
    EventConstraint::event_and_umask(0x023c, 0xf), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    EventConstraint::event_and_cmask(0x0180_01b1, 0xf), // UOPS_EXECUTED.STALL_CYCLES
    EventConstraint::event_and_umask(0x01b7, 0xf), // OFFCORE_RESPONSE_0
    EventConstraint::event_and_umask(0x01bb, 0xf), // OFFCORE_RESPONSE_1
    EventConstraint::event_and_cmask(0x0180_01c2, 0xf), // UOPS_RETIRED.STALL_CYCLES
    EventConstraint::event_and_cmask(0x0a80_01c2, 0xf), // UOPS_RETIRED.TOTAL_CYCLES
    EventConstraint::event_and_umask(0x04c4, 0xf), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x04c5, 0xf), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    EventConstraint::event_and_umask(0x1eca, 0xf), // FP_ASSIST.ANY
    // The same counters, and erratum BV98 on cores with two threads.
    EventConstraint::corrupting_event(0xd0, 0xf), // MEM_UOPS_RETIRED.*
    EventConstraint::corrupting_event(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    EventConstraint::corrupting_event(0xd2, 0xf), // MEM_LOAD_UOPS_LLC_HIT_RETIRED.*
    EventConstraint::corrupting_event(0xd3, 0xf), // MEM_LOAD_UOPS_LLC_MISS_RETIRED.*
]);

/// The events that can be precise.
#[rustfmt::skip]
const PEBS_EVENTS: PebsEvents = PebsEvents::checked(COUNTERS, &[
    PebsEvent::exact(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    PebsEvent::exact(0x01cd, 0x8).with(LoadLatency), // MEM_TRANS_RETIRED.LOAD_LATENCY
    PebsEvent::exact(0x02cd, 0x8).with(Store), // MEM_TRANS_RETIRED.PRECISE_STORE
    PebsEvent::exact(0x1080_01c2, 0xf), // UOPS_RETIRED.ALL, inv=1, cmask=16 (cycles:p)
    PebsEvent::exact(0x1080_01c0, 0x2), // INST_RETIRED.PREC_DIST, inv=1, cmask=16 (cycles:ppp)
    PebsEvent::event_with_any_flags(0xd0, 0xf), // MEM_UOP_RETIRED.*
    PebsEvent::event_with_any_flags(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    PebsEvent::event_with_any_flags(0xd2, 0xf), // MEM_LOAD_UOPS_LLC_HIT_RETIRED.*
    PebsEvent::event_with_any_flags(0xd3, 0xf), // MEM_LOAD_UOPS_LLC_MISS_RETIRED.*
    PebsEvent::exact(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    PebsEvent::any(0xf),
]);

/// The architectural events; and as stalled cycles of the front end, the cycles in which no
/// micro-operation is issued.
const HARDWARE_EVENTS: HardwareEvents = HardwareEvents::ARCHITECTURAL
    // UOPS_ISSUED.ANY
    .with(
        HardwareId::StalledCyclesFrontend,
        EventSelect::event(0x0e, 0x01).cycles_below(1),
    );

/// The extra registers that events need, on client cores.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_807f_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_807f_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The extra registers that events need on servers, where the offcore response registers also have
/// the bits of remote memory.
#[rustfmt::skip]
const SERVER_EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The generic cache events: Sandy Bridge's, except these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = sandy_bridge::CACHE_EVENTS.with(&[
    CacheEvent::new(Dtlb, Read, Miss, 0x8108), // DTLB_LOAD_MISSES.MISS_CAUSES_A_WALK
]);

/// Ivy Bridge, client.
pub const IVY_BRIDGE: Model = Model {
    pmu_name: "ivybridge",
    name: "Ivy Bridge",
    quirks: &[Quirk::StatusSticks],
    cpus: &Cpus::intel([0x3a]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::UopsOrPrecDist,
    data_sources: DataSources::SANDY_BRIDGE,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: Some("BV98"),
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: Some(LbrFilter::SandyBridge),
    topdown_files: sandy_bridge::TOPDOWN_FILES,
    tsx_files: &[],
    memory_files: memory_files::SANDY_BRIDGE,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};

/// Ivy Bridge, server.
pub const IVY_BRIDGE_SERVER: Model = Model {
    cpus: &Cpus::intel([0x3e]),
    extra_register_events: SERVER_EXTRA_REGISTER_EVENTS,
    ..IVY_BRIDGE
};
