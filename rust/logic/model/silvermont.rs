// SPDX-License-Identifier: GPL-2.0

//! Silvermont and Airmont: CPUID family 6, models 0x37, 0x4A, 0x4C, 0x4D, 0x5A, 0x75.
//!
//! Mainline: `arch/x86/events/intel/core.c:209-214`, `2114-2120` and `8154-8175`.

use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::period::PeriodRule;
use super::{HardwareEvents, Model, Need};

/// Two general-purpose counters.
const COUNTERS: CounterMask = CounterMask::first_gp(2).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x76_8005_ffff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x02b7, 0x36_8005_ffff), // OFFCORE_RESPONSE_1
]);

/// Silvermont and Airmont.
pub const SILVERMONT: Model = Model {
    pmu_name: "silvermont",
    name: "Silvermont",
    needs: &[Need::EarlyAcknowledge, Need::OtherTopdownEvents],
    quirks: &[],
    cpuid_models: &[0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x75],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    recovery_cycles_umask: 0,
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};
