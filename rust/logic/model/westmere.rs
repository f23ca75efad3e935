// SPDX-License-Identifier: GPL-2.0

//! Westmere: CPUID family 6, models 0x25, 0x2C, 0x2F.
//!
//! Mainline: `arch/x86/events/intel/core.c:99-108`, `166-173` and `8299-8328`.

use super::super::cache_event::Cache::{Dtlb, Itlb};
use super::super::cache_event::Operation::{Read, Write};
use super::super::cache_event::Outcome::{Access, Miss};
use super::super::cache_event::{CacheEvent, CacheEvents};
use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::event_select::EventSelect;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::period::PeriodRule;
use super::{nehalem, HardwareEvents, HardwareId, Model, Need, Scope};

/// Four general-purpose counters a thread.
const COUNTERS: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event(0x51, 0x3), // L1D.*
    EventConstraint::event(0x60, 0x1), // OFFCORE_REQUESTS_OUTSTANDING.*
    EventConstraint::event(0x63, 0x3), // CACHE_LOCK_CYCLES.*
    EventConstraint::event(0xb3, 0x1), // SNOOPQ_REQUESTS_OUTSTANDING.*
]);

/// The architectural events, and the cycles without a micro-operation.
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

/// The generic cache events: those of Nehalem, but for these.
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
    needs: &[
        Need::EarlyAcknowledge,
        Need::EnableWorkaround,
        Need::SharedOffcoreResponse,
        Need::OtherTopdownEvents,
    ],
    quirks: &[],
    cpuid_models: &[0x25, 0x2c, 0x2f],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    offcore_scope: Scope::Core,
    ht_erratum: None,
    recovery_cycles_umask: 0,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
