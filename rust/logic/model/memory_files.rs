// SPDX-License-Identifier: GPL-2.0

//! The events of loads and stores, shown in sysfs if PEBS exists, except [`AUXILIARY`], which is
//! always shown: the name of each file, and its text.
//!
//! Mainline: `nhm_mem_events_attrs`, `snb_mem_events_attrs`, `hsw_mem_events_attrs`,
//! `icl_events_attrs`, `glc_events_attrs`, `grt_mem_attrs`, `mem_is_visible()`,
//! `arch/x86/events/intel/core.c`.

/// Nehalem, Westmere.
pub const NEHALEM: &[(&str, &str)] = &[("mem-loads", "event=0x0b,umask=0x10,ldlat=3")];

/// Sandy Bridge, Ivy Bridge.
pub const SANDY_BRIDGE: &[(&str, &str)] = &[
    ("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("mem-stores", "event=0xcd,umask=0x2"),
];

/// Haswell to Ice Lake.
pub const HASWELL: &[(&str, &str)] = &[
    ("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("mem-stores", "event=0xd0,umask=0x82"),
];

/// Golden Cove.
pub const GOLDEN_COVE: &[(&str, &str)] = &[
    ("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("mem-stores", "event=0xcd,umask=0x2"),
    (AUXILIARY, "event=0x03,umask=0x82"),
];

/// Redwood Cove.
pub const REDWOOD_COVE: &[(&str, &str)] = &[
    ("mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("mem-stores", "event=0xcd,umask=0x2"),
];

/// Gracemont, Crestmont.
pub const GRACEMONT: &[(&str, &str)] = &[
    ("mem-loads", "event=0xd0,umask=0x5,ldlat=3"),
    ("mem-stores", "event=0xd0,umask=0x6"),
];

/// The event that load latency events need in their group. It needs no PEBS.
pub const AUXILIARY: &str = "mem-loads-aux";
