// SPDX-License-Identifier: GPL-2.0

//! K8 to family 14h, and family 16h: CPUID families 0x0F to 0x14 and 0x16.
//!
//! Four counters, each for every event. The cores of a node share their counters for the events of
//! the northbridge.
//!
//! Mainline: `amd_hw_cache_event_ids`, `amd_perfmon_event_map`, `amd_get_event_constraints()`,
//! `arch/x86/events/amd/core.c`.

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
                LastLevel,
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
        Model,
        Vendor, //
    },
    regs::{
        counter::CounterMask,
        event_select::EventSelect, //
    },
};

/// The generic hardware events.
pub(in crate::logic::model) const HARDWARE_EVENTS: HardwareEvents = HardwareEvents([
    Some(EventSelect::event(0x76, 0x00)), // CPU Clocks not Halted
    Some(EventSelect::event(0xc0, 0x00)), // Retired Instructions
    Some(EventSelect::event(0x7d, 0x07)), // Requests to L2 Cache
    Some(EventSelect::event(0x7e, 0x07)), // L2 Cache Misses
    Some(EventSelect::event(0xc2, 0x00)), // Retired Branch Instructions
    Some(EventSelect::event(0xc3, 0x00)), // Retired Mispredicted Branch Instructions
    None,                                 // bus cycles
    Some(EventSelect::event(0xd0, 0x00)), // Decoder Empty
    Some(EventSelect::event(0xd1, 0x00)), // Dispatch Stalls
    None,                                 // reference cycles
]);

/// The generic cache events.
#[rustfmt::skip]
pub(in crate::logic::model) const CACHE_EVENTS: CacheEvents = CacheEvents::checked(&[
    CacheEvent::new(L1d, Read, Access, 0x0040), // Data Cache Accesses
    CacheEvent::new(L1d, Read, Miss, 0x0141), // Data Cache Misses
    CacheEvent::new(L1d, Prefetch, Access, 0x0267), // Data Prefetcher: attempts
    CacheEvent::new(L1d, Prefetch, Miss, 0x0167), // Data Prefetcher: cancelled
    CacheEvent::new(L1i, Read, Access, 0x0080), // Instruction Cache Fetches
    CacheEvent::new(L1i, Read, Miss, 0x0081), // Instruction Cache Misses
    CacheEvent::new(L1i, Prefetch, Access, 0x014b), // Prefetch Instructions Dispatched: Load
    CacheEvent::new(LastLevel, Read, Access, 0x037d), // Requests to L2 Cache: instructions, data
    CacheEvent::new(LastLevel, Read, Miss, 0x037e), // L2 Cache Misses: instructions, data
    CacheEvent::new(LastLevel, Write, Access, 0x017f), // L2 Fill/Writeback
    CacheEvent::new(Dtlb, Read, Access, 0x0040), // Data Cache Accesses
    CacheEvent::new(Dtlb, Read, Miss, 0x0746), // L1 DTLB Miss and L2 DTLB Miss
    CacheEvent::new(Itlb, Read, Access, 0x0080), // Instruction Cache Fetches
    CacheEvent::new(Itlb, Read, Miss, 0x0385), // L1 ITLB Miss, L2 ITLB Miss
    CacheEvent::new(Branch, Read, Access, 0x00c2), // Retired Branch Instructions
    CacheEvent::new(Branch, Read, Miss, 0x00c3), // Retired Mispredicted Branch Instructions
    CacheEvent::new(Node, Read, Access, 0xb8e9), // CPU Request to Memory: local and remote
    CacheEvent::new(Node, Read, Miss, 0x98e9), // CPU Request to Memory: remote
    CacheEvent::impossible(Node, Write, Access),
    CacheEvent::impossible(Node, Write, Miss),
    CacheEvent::impossible(Node, Prefetch, Access),
    CacheEvent::impossible(Node, Prefetch, Miss),
]);

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(CounterMask::first_gp(4), &[
    EventConstraint::amd_northbridge(0xf),
]);

/// K8, K10 and the cores derived from them, and the small cores of families 14h and 16h.
pub const AMD_K8: Model = Model {
    name: "K8 to family 14h, family 16h",
    cpus: &[
        Cpus::family(Vendor::Amd, 0x0f),
        Cpus::family(Vendor::Amd, 0x10),
        Cpus::family(Vendor::Amd, 0x11),
        Cpus::family(Vendor::Amd, 0x12),
        Cpus::family(Vendor::Amd, 0x13),
        Cpus::family(Vendor::Amd, 0x14),
        Cpus::family(Vendor::Amd, 0x16),
    ],
    event_constraints: EVENT_CONSTRAINTS,
    hardware_events: HARDWARE_EVENTS,
    cache_events: CACHE_EVENTS,
    ..COMMON
};
