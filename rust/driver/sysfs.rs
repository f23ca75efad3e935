// SPDX-License-Identifier: GPL-2.0

//! The PMU's files in sysfs: the built-in driver's files, and this driver's own in `rpmu/`. Fields
//! that only this driver has are shown in `format/` while `rpmu/format` is 1.

mod settings;

use super::Driver;
use crate::{
    logic::{
        model::{
            memory_files,
            HardwareId, //
        },
        pmu::PmuInfo,
        regs::event_select::EventSelect, //
    },
    perf::{
        Group,
        Groups, //
    },
    x86::topology::threads_per_core, //
};
use core::fmt;
use kernel::prelude::*;
use settings::{
    AllowForceAbort,
    FreezeOnSmi,
    MaxPrecise,
    Rdpmc,
    SwitchMaxPercent, //
};

/// Makes the directories of `pmu`. If the CPUs are not `alike`, adds a file with the CPUs that have
/// the PMU.
#[inline(never)]
pub(super) fn groups(pmu: &PmuInfo, alike: bool) -> Result<Groups> {
    let mut groups = KVec::new();
    let mut top = settings(pmu)?;
    if !alike {
        top.cpus::<Driver>()?;
    }
    groups.push(top, GFP_KERNEL)?;
    groups.push(format(pmu)?, GFP_KERNEL)?;
    groups.push(events(pmu, alike)?, GFP_KERNEL)?;
    groups.push(caps(pmu)?, GFP_KERNEL)?;
    groups.push(own_settings()?, GFP_KERNEL)?;
    Groups::new(groups)?.with_request(own_format()?)
}

/// Makes `rpmu/`: the settings that only this driver has.
#[inline(never)]
fn own_settings() -> Result<Group> {
    let mut group = Group::new(c"rpmu");
    group.request::<Driver>(fmt!("format"))?;
    group.setting::<Driver, SwitchMaxPercent>(fmt!("switch_max_percent"))?;
    Ok(group)
}

/// Makes the fields that only this driver has:
/// [`logic::open::extensions`](crate::logic::open::extensions).
///
/// By the ABI document (`sysfs-bus-event_source-devices-format`), fields are parts of `config`,
/// `config1` and `config2`. Perf before 5.17 rejects a PMU with fields in other words, and later
/// versions warn if they do not know the word. So these fields are only shown on request.
#[inline(never)]
fn own_format() -> Result<Group> {
    let mut group = Group::new(c"format");
    for (name, bits) in [
        ("rand_mask", "config3:0-31"),
        ("rand_seed", "config3:32-63"),
        ("switch", "config4:0"),
    ] {
        group.file(fmt!("{name}"), fmt!("{bits}\n"))?;
    }
    Ok(group)
}

/// Makes the files of settings.
#[inline(never)]
fn settings(pmu: &PmuInfo) -> Result<Group> {
    let mut top = Group::top();
    top.setting::<Driver, Rdpmc>(fmt!("rdpmc"))?;
    if !pmu.capabilities.interface.is_amd() {
        top.setting::<Driver, FreezeOnSmi>(fmt!("freeze_on_smi"))?;
    }
    if pmu.capabilities.tsx_uses_counter_3 {
        top.setting::<Driver, AllowForceAbort>(fmt!("allow_tsx_force_abort"))?;
    }
    Ok(top)
}

/// Makes `format/`: the attribute bits of each field.
#[inline(never)]
fn format(pmu: &PmuInfo) -> Result<Group> {
    let mut group = Group::new(c"format");
    for (name, bits) in pmu.fields() {
        group.file(fmt!("{name}"), fmt!("{bits}\n"))?;
    }
    Ok(group)
}

/// Makes `events/`: the generic hardware events, and events for topdown, TSX, loads and stores. The
/// texts of the latter have no newline if the CPUs are not `alike`: see
/// `events_hybrid_sysfs_show()`, `arch/x86/events/core.c`.
#[inline(never)]
fn events(pmu: &PmuInfo, alike: bool) -> Result<Group> {
    let mut group = Group::new(c"events");
    let end = if alike { "\n" } else { "" };
    for id in HardwareId::ALL {
        if let Some(select) = pmu.hardware_event(id) {
            let fields = Fields {
                select,
                amd: pmu.capabilities.interface.is_amd(),
            };
            group.file(fmt!("{}", id.sysfs_name()), format_args!("{fields}\n"))?;
        }
    }
    // Mainline: `td_is_visible()`, `arch/x86/events/intel/core.c`.
    let hidden = !pmu.model.metrics().is_empty() && !pmu.capabilities.perf_metrics;
    for file in pmu.model.topdown_files.iter().filter(|_| !hidden) {
        let text = file.text(threads_per_core());
        group.file(fmt!("{}", file.name), fmt!("{text}"))?;
    }
    if pmu.capabilities.rtm {
        for (name, text) in pmu.model.tsx_files {
            group.file(fmt!("{name}"), fmt!("{text}{end}"))?;
        }
    }
    // Mainline: `mem_is_visible()`, and on hybrids `hybrid_events_is_visible()`,
    // `arch/x86/events/intel/core.c`.
    let shows_all = !alike || pmu.capabilities.pebs_format.is_some();
    for (name, text) in pmu.model.memory_files {
        if shows_all || *name == memory_files::AUXILIARY {
            group.file(fmt!("{name}"), fmt!("{text}{end}"))?;
        }
    }
    Ok(group)
}

/// Makes `caps/`: the PMU's capabilities.
#[inline(never)]
fn caps(pmu: &PmuInfo) -> Result<Group> {
    let mut group = Group::new(c"caps");
    group.setting::<Driver, MaxPrecise>(fmt!("max_precise"))?;
    if !pmu.capabilities.interface.is_amd() {
        group.file(fmt!("pmu_name"), fmt!("{}\n", pmu.model.pmu_name))?;
    }
    if let Some(lbr) = &pmu.lbr {
        group.file(fmt!("branches"), fmt!("{}\n", lbr.depth))?;
    }
    Ok(group)
}

/// An event select, written with the fields of `format/`.
///
/// Mainline: `x86_event_sysfs_show()`, `arch/x86/events/core.c`.
struct Fields {
    select: EventSelect,
    /// Set if event codes have twelve bits.
    amd: bool,
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { select, amd } = self;
        let [event, umask, _, cmask, ..] = select.bits().to_le_bytes();
        let mut event = u16::from(event);
        if *amd {
            event = select.amd_code();
        }
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
