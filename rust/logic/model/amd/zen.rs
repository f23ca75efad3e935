// SPDX-License-Identifier: GPL-2.0

//! Zen to Zen 6, and Hygon's: CPUID families 0x17 to 0x1A.
//!
//! Every counter counts every event. An event that can count more than 15 occurrences a cycle takes
//! a counter with an even number and the next one, which is programmed with event 0xFFF (Merge).
//!
//! Mainline: `arch/x86/events/amd/core.c`; the generations as in `bsp_init_amd()`,
//! `arch/x86/kernel/cpu/amd.c`.

use super::COMMON;
use crate::logic::{
    model::{
        cache_event::{
            Cache::{
                Branch,
                Dtlb,
                Itlb,
                L1d,
                L1i,
                Node, //
            },
            CacheEvent, CacheEvents,
            Operation::{
                Prefetch,
                Read,
                Write, //
            },
            Outcome::{
                Access,
                Miss, //
            },
        },
        checked,
        Cpus,
        EventConstraint,
        HardwareEvents,
        HardwareId,
        Model,
        Vendor, //
    },
    regs::{
        counter::CounterMask,
        event_select::EventSelect, //
    },
};

/// The counters that the table may name: at least all that CPUID can report, 15. Up to Zen 4 there
/// are six.
const COUNTERS: CounterMask = CounterMask::first_gp(16);

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(COUNTERS, &[
    EventConstraint::amd_event(0x003, 0x5555).pair(), // Retired SSE/AVX FLOPs
]);

/// The event of the second counter of a pair (`AMD_MERGE_EVENT`).
pub const MERGE: EventSelect = EventSelect::amd_event(0xfff, 0);

/// The start value of the second counter, which holds bits 48 and above of the pair's value: all
/// set, because the pair starts below 0.
pub const MERGE_VALUE: u64 = 0xffff;

/// The generic hardware events of Zen.
const HARDWARE_EVENTS: HardwareEvents = HardwareEvents([
    Some(EventSelect::event(0x76, 0x00)), // LsNotHaltedCyc
    Some(EventSelect::event(0xc0, 0x00)), // ExRetInstr
    Some(EventSelect::event(0x60, 0xff)), // L2RequestG1
    Some(EventSelect::event(0x64, 0x09)), // L2CacheReqStat: misses
    Some(EventSelect::event(0xc2, 0x00)), // ExRetBrn
    Some(EventSelect::event(0xc3, 0x00)), // ExRetBrnMisp
    None,                                 // bus cycles
    Some(EventSelect::event(0x87, 0x02)), // IcFetchStall
    Some(EventSelect::event(0x87, 0x01)), // IcFetchStall: back pressure
    None,                                 // reference cycles
]);

/// The generic hardware events of Zen 2 and Zen 3.
const ZEN_2_HARDWARE_EVENTS: HardwareEvents = HARDWARE_EVENTS
    // DeDisUopQueueEmpty
    .with(
        HardwareId::StalledCyclesFrontend,
        EventSelect::event(0xa9, 0x00),
    )
    .without(HardwareId::StalledCyclesBackend);

/// The generic hardware events of Zen 4 and later.
const ZEN_4_HARDWARE_EVENTS: HardwareEvents = ZEN_2_HARDWARE_EVENTS
    // LsNotHaltedP0Cyc
    .with(
        HardwareId::RefCpuCycles,
        EventSelect::amd_event(0x120, 0x01),
    );

/// The generic cache events.
#[rustfmt::skip]
const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x0040), // LsDcAccesses
    CacheEvent::new(L1d, Read, Miss, 0xc860), // L2RequestG1: from data cache misses
    CacheEvent::new(L1d, Prefetch, Access, 0xff5a), // LsHwPfDcFills
    CacheEvent::new(L1i, Read, Access, 0x0080), // IcFw32
    CacheEvent::new(L1i, Read, Miss, 0x0081), // IcFw32Miss
    CacheEvent::new(Dtlb, Read, Access, 0xff45), // LsL1DTlbMiss: all
    CacheEvent::new(Dtlb, Read, Miss, 0xf045), // LsL1DTlbMiss: page walks
    CacheEvent::new(Itlb, Read, Access, 0x0084), // BpL1TlbMissL2Hit
    CacheEvent::new(Itlb, Read, Miss, 0xff85), // BpL1TlbMissL2Miss
    CacheEvent::new(Branch, Read, Access, 0x00c2), // ExRetBrn
    CacheEvent::new(Branch, Read, Miss, 0x00c3), // ExRetBrnMisp
    CacheEvent::impossible(Node, Write, Access),
    CacheEvent::impossible(Node, Write, Miss),
    CacheEvent::impossible(Node, Prefetch, Access),
    CacheEvent::impossible(Node, Prefetch, Miss),
]);

/// Zen and Zen+, and Hygon's.
pub const AMD_ZEN: Model = Model {
    name: "Zen",
    cpus: &[
        Cpus::amd(0x17, 0x00, 0x2f),
        Cpus::amd(0x17, 0x50, 0x5f),
        Cpus::family(Vendor::Hygon, 0x18),
    ],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    ..COMMON
};

/// Zen 2 and Zen 3.
pub const AMD_ZEN_2: Model = Model {
    name: "Zen 2 and Zen 3",
    cpus: &[
        Cpus::amd(0x17, 0x30, 0x4f),
        Cpus::amd(0x17, 0x60, 0x7f),
        Cpus::amd(0x17, 0x90, 0x91),
        Cpus::amd(0x17, 0xa0, 0xaf),
        Cpus::amd(0x19, 0x00, 0x0f),
        Cpus::amd(0x19, 0x20, 0x5f),
    ],
    hardware_events: ZEN_2_HARDWARE_EVENTS,
    ..AMD_ZEN
};

/// Zen 4 to Zen 6.
pub const AMD_ZEN_4: Model = Model {
    name: "Zen 4 to Zen 6",
    cpus: &[
        Cpus::amd(0x19, 0x10, 0x1f),
        Cpus::amd(0x19, 0x60, 0xaf),
        Cpus::family(Vendor::Amd, 0x1a),
    ],
    hardware_events: ZEN_4_HARDWARE_EVENTS,
    ..AMD_ZEN
};
