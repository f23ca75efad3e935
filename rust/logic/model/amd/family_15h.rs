// SPDX-License-Identifier: GPL-2.0

//! Family 15h, Bulldozer to Excavator: CPUID family 0x15.
//!
//! Six counters, and a unit's events are on three of them or on all. The counters of 0x02e overlap
//! with others': mainline's scheduler refuses sets with it that fit.
//!
//! Mainline: `arch/x86/events/amd/core.c:1086-1233`. BKDG for family 15h, section 3.24.

use super::{
    k8::{CACHE_EVENTS, HARDWARE_EVENTS},
    table::{
        checked, AmdEvent, AmdModel, Others,
        UnitMask::{AtMostOneBit, BothHalves, SeveralBits},
    },
};
use crate::logic::regs::counter::CounterMask;

const COUNTERS: CounterMask = CounterMask::first_gp(6);

#[rustfmt::skip]
const EVENTS: &[AmdEvent] = checked(COUNTERS, &[
    // FP: floating point
    AmdEvent::event(0x000, 0x08).with(BothHalves), // FP, pipe assignment of both kinds
    AmdEvent::event(0x003, 0x08), // FP, retired operations
    AmdEvent::event(0x004, 0x08).with(SeveralBits), // FP
    AmdEvent::event(0x00b, 0x08), // FP
    AmdEvent::event(0x00d, 0x08), // FP
    AmdEvent::units(0x000, 0x010, 0x38),
    // LS, DC, EX: load and store, data cache, execution
    AmdEvent::event(0x023, 0x07), // DE
    AmdEvent::event(0x02d, 0x08), // LS
    AmdEvent::event(0x02e, 0x09).overlapping(), // LS
    AmdEvent::event(0x031, 0x07).with(AtMostOneBit), // LS, one unit mask bit at a time
    AmdEvent::event(0x031, 0), // LS
    AmdEvent::event(0x043, 0x07), // CU
    AmdEvent::events(0x045, 0x046, 0x07), // CU, unified TLB
    AmdEvent::events(0x054, 0x055, 0x07), // CU
    AmdEvent::event(0x1c0, 0x38), // EX, retired x87 operations
    AmdEvent::units(0x020, 0x050, 0x3f),
    AmdEvent::units(0x0c0, 0x0c0, 0x3f),
    // CU, IC, DE: second level cache, instruction cache, decoder
    AmdEvent::event(0x08f, 0x01), // IC
    AmdEvent::events(0x187, 0x188, 0x01), // DE
    AmdEvent::events(0x0db, 0x0df, 0x3f), // EX, LS
    AmdEvent::event(0x1d6, 0x3f), // EX
    AmdEvent::event(0x1d8, 0x3f), // EX
    AmdEvent::units(0x060, 0x090, 0x07),
    AmdEvent::units(0x0d0, 0x0d0, 0x07),
]);

/// Bulldozer, Piledriver, Steamroller, Excavator.
pub const AMD_15H: AmdModel = AmdModel {
    name: "family 15h",
    families: &[0x15],
    counters: COUNTERS,
    events: EVENTS,
    // Those of the northbridge have counters of their own.
    others: Others::Nowhere,
    northbridge_events: false,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
};
