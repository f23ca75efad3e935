// SPDX-License-Identifier: GPL-2.0

//! `format/`, `events/` and `caps/` of the PMU, as the built-in driver has them.
//!
//! Left out are `rdpmc` (user space cannot read counters, and `cap_user_rdpmc` says so) and
//! `freeze_on_smi`, which nothing implements.

use super::{transactions::AllowForceAbort, Driver};
use crate::{
    logic::{event_select::EventSelect, model::HardwareId, pmu::Pmu},
    perf::{Group, Groups},
    x86::topology::threads_per_core,
};
use core::fmt;
use kernel::prelude::*;

/// The directories for `pmu`.
pub(super) fn groups(pmu: &Pmu) -> Result<Groups> {
    let mut groups = KVec::new();
    groups.push(format(pmu)?, GFP_KERNEL)?;
    groups.push(events(pmu)?, GFP_KERNEL)?;
    groups.push(caps(pmu)?, GFP_KERNEL)?;
    if pmu.capabilities.transactions_use_counter_3 {
        let mut top = Group::top();
        top.switch::<Driver, AllowForceAbort>(fmt!("allow_tsx_force_abort"))?;
        groups.push(top, GFP_KERNEL)?;
    }
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
        ("event",       "config:0-7",    true),
        ("umask",       "config:8-15",   true),
        ("edge",        "config:18",     true),
        ("pc",          "config:19",     true),
        ("any",         "config:21",     capabilities.any_thread),
        ("inv",         "config:23",     true),
        ("cmask",       "config:24-31",  true),
        ("in_tx",       "config:32",     capabilities.rtm),
        ("in_tx_cp",    "config:33",     capabilities.rtm),
        ("offcore_rsp", "config1:0-63",  true),
        ("ldlat",       "config1:0-15",  true),
        ("frontend",    "config1:0-23",  frontend),
    ];
    let mut group = Group::new(c"format");
    for (name, bits, visible) in fields {
        if visible {
            group.file(fmt!("{name}"), fmt!("{bits}\n"))?;
        }
    }
    Ok(group)
}

/// The generic hardware events.
fn events(pmu: &Pmu) -> Result<Group> {
    let mut group = Group::new(c"events");
    for id in HardwareId::ALL {
        if let Some(select) = pmu.hardware_event(id) {
            let fields = Fields(select);
            group.file(fmt!("{}", id.sysfs_name()), format_args!("{fields}\n"))?;
        }
    }
    topdown_events(pmu, &mut group)?;
    Ok(group)
}

/// The topdown method's events on Sandy Bridge to Skylake. With two threads a core, what is a
/// core's is counted for any thread, and so twice.
///
/// Mainline: `snb_events_attrs`, `arch/x86/events/intel/core.c:564-600`, `8521`. There, what depends
/// on the threads has no newline at its end, hence neither here.
fn topdown_events(pmu: &Pmu, group: &mut Group) -> Result {
    let umask = pmu.model.recovery_cycles_umask;
    let (any, scale) = match threads_per_core() {
        0 | 1 => ("", 4),
        _ => (",any=1", 2),
    };
    let mut file = |name: &str, text: fmt::Arguments<'_>| group.file(fmt!("topdown-{name}"), text);
    file("slots-issued", fmt!("event=0xe,umask=0x1\n"))?;
    file("slots-retired", fmt!("event=0xc2,umask=0x2\n"))?;
    file("fetch-bubbles", fmt!("event=0x9c,umask=0x1\n"))?;
    file("total-slots", fmt!("event=0x3c,umask=0x0{any}"))?;
    file("total-slots.scale", fmt!("{scale}"))?;
    file(
        "recovery-bubbles",
        format_args!("event=0xd,umask={umask:#x},cmask=1{any}"),
    )?;
    file("recovery-bubbles.scale", fmt!("{scale}"))
}

/// What the PMU can do.
fn caps(pmu: &Pmu) -> Result<Group> {
    let mut group = Group::new(c"caps");
    // No PEBS, so no precision.
    group.file(fmt!("max_precise"), fmt!("0\n"))?;
    group.file(fmt!("pmu_name"), fmt!("{}\n", pmu.model.pmu_name))?;
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
