// SPDX-License-Identifier: GPL-2.0

//! Family 15h, Bulldozer to Excavator: CPUID family 0x15.
//!
//! Six counters. Most events of a unit can use three of them, or all; some events can use only one
//! or two. The counters of event 0x02e overlap with those of other events: mainline's scheduler
//! refuses some sets with this event although they fit.
//!
//! Mainline: `amd_get_event_constraints_f15h()`, `arch/x86/events/amd/core.c`.
//! BKDG for family 15h, section 3.24.

use super::{
    k8::{
        CACHE_EVENTS,
        HARDWARE_EVENTS, //
    },
    COMMON, //
};
use crate::logic::{
    model::{
        checked,
        Cpus,
        EventConstraint,
        Model,
        UnitMask::{
            AtMostOneBit,
            BothHalves,
            SeveralBits, //
        },
        Vendor, //
    },
    regs::counter::CounterMask, //
};

const COUNTERS: CounterMask = CounterMask::first_gp(6);

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    // FP: floating point
    // FP, pipe assignment of both kinds
    EventConstraint::amd_event(0x000, 0x08).with_umask(BothHalves),
    EventConstraint::amd_event(0x003, 0x08), // FP, retired operations
    EventConstraint::amd_event(0x004, 0x08).with_umask(SeveralBits), // FP
    EventConstraint::amd_event(0x00b, 0x08), // FP
    EventConstraint::amd_event(0x00d, 0x08), // FP
    EventConstraint::amd_units(0x00, 0x10, 0x38),
    // LS, DC, EX: load and store, data cache, execution
    EventConstraint::amd_event(0x023, 0x07), // DE
    EventConstraint::amd_event(0x02d, 0x08), // LS
    EventConstraint::amd_event(0x02e, 0x09).overlapping(), // LS
    // LS, one unit mask bit at a time
    EventConstraint::amd_event(0x031, 0x07).with_umask(AtMostOneBit),
    EventConstraint::amd_event(0x031, 0).uncountable(), // LS
    EventConstraint::amd_event(0x043, 0x07), // CU
    EventConstraint::amd_events(0x045, 0x046, 0x07), // CU, unified TLB
    EventConstraint::amd_events(0x054, 0x055, 0x07), // CU
    EventConstraint::amd_event(0x1c0, 0x38), // EX, retired x87 operations
    EventConstraint::amd_units(0x20, 0x50, 0x3f),
    EventConstraint::amd_units(0xc0, 0xc0, 0x3f),
    // CU, IC, DE: second level cache, instruction cache, decoder
    EventConstraint::amd_event(0x08f, 0x01), // IC
    EventConstraint::amd_events(0x187, 0x188, 0x01), // DE
    EventConstraint::amd_events(0x0db, 0x0df, 0x3f), // EX, LS
    EventConstraint::amd_event(0x1d6, 0x3f), // EX
    EventConstraint::amd_event(0x1d8, 0x3f), // EX
    EventConstraint::amd_units(0x60, 0x90, 0x07),
    EventConstraint::amd_units(0xd0, 0xd0, 0x07),
    // Other events belong to the northbridge, whose counters are another PMU.
    EventConstraint::every_event(0).uncountable(),
]);

/// Bulldozer, Piledriver, Steamroller, Excavator.
pub const AMD_15H: Model = Model {
    name: "family 15h",
    cpus: &[Cpus::family(Vendor::Amd, 0x15)],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    ..COMMON
};
