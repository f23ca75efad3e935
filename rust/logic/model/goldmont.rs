// SPDX-License-Identifier: GPL-2.0

//! Goldmont: CPUID family 6, models 0x5C, 0x5F; Goldmont Plus: 0x7A.
//!
//! Mainline: `arch/x86/events/intel/core.c:209-214`, `2268-2273` and `8177-8231`.

use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::period::PeriodRule;
use super::{HardwareEvents, Model, Need};

/// Four general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x76_0005_ffbf), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0x36_0005_ffbf), // OFFCORE_RESPONSE_1
]);

/// Goldmont.
pub const GOLDMONT: Model = Model {
    pmu_name: "goldmont",
    name: "Goldmont",
    needs: &[Need::EarlyAcknowledge, Need::OtherTopdownEvents],
    quirks: &[],
    cpuid_models: &[0x5c, 0x5f],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    recovery_cycles_umask: 0,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};

/// Goldmont Plus.
pub const GOLDMONT_PLUS: Model = Model {
    pmu_name: "goldmont_plus",
    name: "Goldmont Plus",
    cpuid_models: &[0x7a],
    ..GOLDMONT
};
