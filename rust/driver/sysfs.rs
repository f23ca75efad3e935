// SPDX-License-Identifier: GPL-2.0

//! `format/`, `events/` and `caps/` of the PMU, as the built-in driver has them.
//!
//! Left out are `rdpmc` (user space cannot read counters, and `cap_user_rdpmc` says so) and
//! `freeze_on_smi`, which nothing implements.

use crate::{
    logic::{event_select::EventSelect, model::HardwareId, pmu::Pmu},
    perf::{Group, Groups},
    x86::topology::threads_per_core,
};
use core::fmt;
use kernel::{prelude::*, str::CString};

/// The directories for `pmu`.
pub(super) fn groups(pmu: &Pmu) -> Result<Groups> {
    let mut groups = KVec::new();
    groups.push(format(pmu)?, GFP_KERNEL)?;
    groups.push(events(pmu)?, GFP_KERNEL)?;
    groups.push(caps(pmu)?, GFP_KERNEL)?;
    Ok(Groups::new(groups)?)
}

/// Which bits of the attributes a field is.
///
/// Mainline: `intel_arch_formats_attr`, `hsw_format_attr`, `skl_format_attr` and who may see them,
/// `arch/x86/events/intel/core.c:5821-5895`, `6602-6666`, `7323-7384`.
fn format(pmu: &Pmu) -> Result<Group> {
    let capabilities = &pmu.capabilities;
    // FRONTEND_RETIRED, which is what the field is for.
    let frontend = pmu.model.extra_register_events.contains(&0x01c6);

    #[rustfmt::skip]
    let fields = [
        (c"event",       c"config:0-7",    true),
        (c"umask",       c"config:8-15",   true),
        (c"edge",        c"config:18",     true),
        (c"pc",          c"config:19",     true),
        (c"any",         c"config:21",     capabilities.any_thread),
        (c"inv",         c"config:23",     true),
        (c"cmask",       c"config:24-31",  true),
        (c"in_tx",       c"config:32",     capabilities.rtm),
        (c"in_tx_cp",    c"config:33",     capabilities.rtm),
        (c"offcore_rsp", c"config1:0-63",  true),
        (c"ldlat",       c"config1:0-15",  true),
        (c"frontend",    c"config1:0-23",  frontend),
    ];
    let mut group = Group::new(c"format");
    for (name, bits, visible) in fields {
        if visible {
            group.file(CString::try_from(name)?, CString::try_from(bits)?)?;
        }
    }
    Ok(group)
}

/// The topdown method's events on Sandy Bridge to Skylake, on one thread a core.
///
/// Mainline: `snb_events_attrs`, `hsw_events_attrs`, `arch/x86/events/intel/core.c:564-600`, `7019`.
#[rustfmt::skip]
const TOPDOWN: [(&CStr, &CStr); 7] = [
    (c"topdown-slots-issued",           c"event=0xe,umask=0x1"),
    (c"topdown-slots-retired",          c"event=0xc2,umask=0x2"),
    (c"topdown-fetch-bubbles",          c"event=0x9c,umask=0x1"),
    (c"topdown-total-slots",            c"event=0x3c,umask=0x0"),
    (c"topdown-total-slots.scale",      c"4"),
    (c"topdown-recovery-bubbles",       c"event=0xd,umask=0x3,cmask=1"),
    (c"topdown-recovery-bubbles.scale", c"4"),
];

/// What is different on two threads a core: cycles of the core count once for each thread.
#[rustfmt::skip]
const TOPDOWN_SMT: [(&CStr, &CStr); 4] = [
    (c"topdown-total-slots",            c"event=0x3c,umask=0x0,any=1"),
    (c"topdown-total-slots.scale",      c"2"),
    (c"topdown-recovery-bubbles",       c"event=0xd,umask=0x3,cmask=1,any=1"),
    (c"topdown-recovery-bubbles.scale", c"2"),
];

/// The generic hardware events, and the topdown method's.
fn events(pmu: &Pmu) -> Result<Group> {
    let mut group = Group::new(c"events");
    for id in HardwareId::ALL {
        if let Some(select) = pmu.hardware_event(id) {
            let name = CString::try_from_fmt(fmt!("{}", id.sysfs_name()))?;
            let fields = Fields(select);
            let text = CString::try_from_fmt(format_args!("{fields}"))?;
            group.file(name, text)?;
        }
    }

    let smt = threads_per_core() > 1;
    for (name, text) in TOPDOWN {
        let on_smt = TOPDOWN_SMT.iter().find(|(of, _)| smt && *of == name);
        let text = on_smt.map_or(text, |(_, text)| text);
        group.file(CString::try_from(name)?, CString::try_from(text)?)?;
    }
    Ok(group)
}

/// What the PMU can do.
fn caps(pmu: &Pmu) -> Result<Group> {
    let mut group = Group::new(c"caps");
    let files = [
        // No PEBS, so no precision.
        (c"max_precise", "0"),
        (c"pmu_name", pmu.model.pmu_name),
    ];
    for (name, text) in files {
        let text = CString::try_from_fmt(fmt!("{text}"))?;
        group.file(CString::try_from(name)?, text)?;
    }
    Ok(group)
}

/// An event select in terms of the fields of `format/`.
///
/// Mainline: `x86_event_sysfs_show()`, `arch/x86/events/core.c:2043`.
struct Fields(EventSelect);

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(select) = self;
        let [event, umask, _, cmask, ..] = select.bits().to_le_bytes();
        write!(f, "event={event:#04x}")?;
        if umask != 0 {
            write!(f, ",umask={umask:#04x}")?;
        }
        for (bit, name) in [
            (EventSelect::EDGE, "edge"),
            (EventSelect::ANY, "any"),
            (EventSelect::INV, "inv"),
        ] {
            if select.has(bit) {
                write!(f, ",{name}")?;
            }
        }
        if cmask != 0 {
            write!(f, ",cmask={cmask:#04x}")?;
        }
        Ok(())
    }
}
