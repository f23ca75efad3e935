// SPDX-License-Identifier: GPL-2.0

//! Nehalem: CPUID family 6, models 0x1A, 0x1E, 0x2E.
//!
//! Mainline: `arch/x86/events/intel/core.c:75-97` and `8103-8135`.

use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::event_select::EventSelect;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::period::PeriodRule;
use super::{HardwareEvents, HardwareId, Model, Need, Quirk};

/// Four general-purpose counters a thread.
const COUNTERS: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event(0x40, 0x3), // L1D_CACHE_LD.*
    EventConstraint::event(0x41, 0x3), // L1D_CACHE_ST.*
    EventConstraint::event(0x42, 0x3), // L1D_CACHE_LOCK.*
    EventConstraint::event(0x43, 0x3), // L1D_ALL_REF.*
    EventConstraint::event(0x48, 0x3), // L1D_PEND_MISS.*
    EventConstraint::event(0x4e, 0x3), // L1D_PREFETCH.*
    EventConstraint::event(0x51, 0x3), // L1D.*
    EventConstraint::event(0x63, 0x3), // CACHE_LOCK_CYCLES.*
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
    ExtraRegisterEvent::load_latency(0x100b), // MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD
]);

/// Nehalem.
pub const NEHALEM: Model = Model {
    pmu_name: "nehalem",
    name: "Nehalem",
    needs: &[
        Need::EarlyAcknowledge,
        Need::EnableWorkaround,
        Need::SharedOffcoreResponse,
        Need::OtherTopdownEvents,
    ],
    quirks: &[Quirk::BranchMissesExecuted],
    cpuid_models: &[0x1a, 0x1e, 0x2e],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HARDWARE_EVENTS,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    recovery_cycles_umask: 0,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NEHALEM,
};
