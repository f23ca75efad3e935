// SPDX-License-Identifier: GPL-2.0

//! Broadwell, client and server: CPUID family 6, models 0x3D, 0x47, 0x4F, 0x56.
//!
//! Mainline: `arch/x86/events/intel/core.c:299-305`, `633-647` and `8443-8483`.

use super::super::cache_event::Cache::{LastLevel, Node};
use super::super::cache_event::Operation::{Read, Write};
use super::super::cache_event::Outcome::{Access, Miss};
use super::super::cache_event::{CacheEvent, CacheEvents};
use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::exception::Exception;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::pebs::PebsData::{Address, Load, LoadLatency, StoreAddress};
use super::super::pebs::{PebsEvent, PebsEvents, PreciseDistribution};
use super::super::period::PeriodRule;
use super::{haswell, sandy_bridge, Acknowledge, HardwareEvents, Model, Scope};

/// Four general-purpose counters a thread, eight where a core has one thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_umask(0x0148, 0x4), // L1D_PEND_MISS.PENDING
    EventConstraint::event_and_umask_bit(0x08a3, 0x4), // CYCLE_ACTIVITY.*_L1D_MISS
    // Counters 0 to 3 only where a core has one thread.
    EventConstraint::event(0xd0, 0xf), // MEM_UOPS_RETIRED.*
    EventConstraint::event(0xd1, 0xf), // MEM_LOAD_UOPS_RETIRED.*
    EventConstraint::event(0xd2, 0xf), // MEM_LOAD_UOPS_L3_HIT_RETIRED.*
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
    PebsEvent::any(0xf),
]);

/// Where the tables differ from what they are compared with.
#[rustfmt::skip]
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception::from_mainline(0x01cd, 0xffff, "MEM_TRANS_RETIRED.LOAD_LATENCY: counter 3 in Intel's lists, any of four in the built-in driver's table").precise(),
];

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
]);

/// The generic cache events: those of Haswell, but for these.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = haswell::CACHE_EVENTS.with(&[
    CacheEvent::new(LastLevel, Read, Miss, 0x01b7).offcore(0x1f_bc00_0001), // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS | SNOOP_DRAM
    CacheEvent::new(LastLevel, Write, Miss, 0x01b7).offcore(0x1f_bc00_0002), // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS | SNOOP_DRAM
    CacheEvent::new(Node, Read, Access, 0x01b7).offcore(0x1f_8400_0001), // OFFCORE_RESPONSE: DEMAND_READ | L3_MISS_LOCAL | SNOOP_DRAM
    CacheEvent::new(Node, Write, Access, 0x01b7).offcore(0x1f_8400_0002), // OFFCORE_RESPONSE: DEMAND_WRITE | L3_MISS_LOCAL | SNOOP_DRAM
]);

/// Broadwell, client and server.
pub const BROADWELL: Model = Model {
    pmu_name: "broadwell",
    name: "Broadwell",
    needs: &[],
    quirks: &[],
    cpuid_models: &[0x3d, 0x47, 0x4f, 0x56],
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PEBS_EVENTS,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    clearing_events: &[],
    acknowledge: Acknowledge::Late,
    topdown_files: sandy_bridge::TOPDOWN_FILES,
    transaction_files: haswell::TRANSACTION_FILES,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::BROADWELL,
};
