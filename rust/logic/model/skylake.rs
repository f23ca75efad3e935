// SPDX-License-Identifier: GPL-2.0

//! Skylake and its kin, client and server: CPUID family 6, models 0x4E, 0x55, 0x5E (Skylake,
//! Cascade Lake, Cooper Lake), 0x8E, 0x9E (Kaby Lake, Coffee Lake), 0xA5, 0xA6 (Comet Lake).
//!
//! Mainline: `arch/x86/events/intel/core.c:267-284` and `8503-8561`.

use super::super::constraint::{checked, EventConstraint};
use super::super::counter::CounterMask;
use super::super::extra_register::{ExtraRegisterEvent, ExtraRegisters};
use super::super::period::PeriodRule;
use super::{HardwareEvents, Model};

/// Four general-purpose counters a thread, eight where a core has one thread.
const COUNTERS: CounterMask = CounterMask::first_gp(8).union(CounterMask::first_fixed(3));

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.THREAD
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF_TSC
    EventConstraint::event_and_umask(0x01c0, 0x2), // INST_RETIRED.PREC_DIST
    // Counters 0 to 3 only where a core has one thread.
    EventConstraint::event(0xd0, 0xf), // MEM_INST_RETIRED.*
    EventConstraint::event(0xd1, 0xf), // MEM_LOAD_RETIRED.*
    EventConstraint::event(0xd2, 0xf), // MEM_LOAD_L3_HIT_RETIRED.*
    EventConstraint::event(0xcd, 0xf), // MEM_TRANS_RETIRED.*
    EventConstraint::event(0xc6, 0xf), // FRONTEND_RETIRED.*
]);

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x01b7, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_0
    ExtraRegisterEvent::offcore_response_1(0x01bb, 0x3f_ffff_8fff), // OFFCORE_RESPONSE_1
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::frontend(0x01c6, 0x7f_ff17), // FRONTEND_RETIRED.*
]);

/// Skylake to Comet Lake, client and server.
pub const SKYLAKE: Model = Model {
    pmu_name: "skylake",
    name: "Skylake",
    needs: &[],
    quirks: &[],
    cpuid_models: &[0x4e, 0x55, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    extra_register_events: EXTRA_REGISTER_EVENTS,
    recovery_cycles_umask: 0x1,
    checkpointed: CounterMask::from_bits(0x4),
    period_rule: PeriodRule::NONE,
};
