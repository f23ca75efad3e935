// SPDX-License-Identifier: GPL-2.0

//! The dry run (`dry_run=1`): the checks of a load that change nothing, and their results in the
//! log.
//!
//! The processor, the layouts of the kernel's structures, and its functions have been checked by
//! then, as in every load. The counters are not checked: that needs the PMU.

use super::{
    announce,
    facilities,
    probe,
    takeover,
    CorePmu,
    Machine, //
};
use crate::logic::{
    cores::PerType,
    tried::Feature, //
};
use kernel::prelude::*;

/// Logs what loading would do on this `machine`, which has not been taken over, and whether it
/// would succeed.
///
/// Returns `ECANCELED` if it would, otherwise the error of loading. Opens and closes an event of
/// the built-in driver, and for a moment refuses guests with a mediated vPMU; changes nothing else.
/// Process context.
#[inline(never)]
pub(crate) fn dry_run(machine: &Machine) -> Error {
    for pmu in machine.pmus() {
        announce_pmu(machine, pmu);
    }
    announce_machine(machine);
    match find_obstacles(machine) {
        Ok(()) => {
            pr_info!("dry run: rpmu would load; nothing has changed\n");
            ECANCELED
        }
        Err(error) => {
            pr_err!("dry run: rpmu would not load ({error:?}); nothing has changed\n");
            error
        }
    }
}

/// Logs what events of `pmu` could do.
#[inline(never)]
fn announce_pmu(machine: &Machine, pmu: &CorePmu) {
    let driver = pmu.ops();
    let info = &driver.hardware.pmu;
    pr_info!("dry run: {}\n", announce::Counters(info));
    announce::log_features(pmu);
    let prefix = info.prefix();
    if driver.units.pebs.is_none() {
        pr_info!(
            "{}{}\n",
            format_args!("{prefix}"),
            match (&machine.common().ibs, info.capabilities.pebs_format) {
                (Some(_), _) => "precise events are opened on the PMU ibs_op",
                (None, None) => "no precise events: the CPU has none",
                (None, Some(_)) => "no precise events: see the lines above",
            }
        );
    }
    if driver.units.lbr.is_none() {
        pr_info!(
            "{}no branch stacks: the CPU has no branch records, or they cannot be used\n",
            format_args!("{prefix}")
        );
    }
    if info.capabilities.metrics.is_empty() {
        pr_info!(
            "{}no topdown metrics: the CPU has no PERF_METRICS\n",
            format_args!("{prefix}")
        );
    } else {
        pr_info!(
            "{}topdown metrics: {}\n",
            format_args!("{prefix}"),
            info.capabilities.metrics.iter().count()
        );
    }
}

/// Logs what does not depend on the type of a core. What does not work has a line already.
#[inline(never)]
fn announce_machine(machine: &Machine) {
    let common = machine.common();
    if common.samples {
        pr_info!("events can sample\n");
    }
    if common.user_read.builtin().is_some() {
        pr_info!("user space can read counters with rdpmc\n");
    }
    if common.tracing.handler().is_some() {
        pr_info!("events of intel_pt and intel_bts keep working, if the CPU has these PMUs\n");
    }
    // Logs a notice if not, as when the PMUs are offered.
    if machine.pmus().any(|pmu| pmu.ops().can_resched()) {
        facilities::was_tried(Feature::PinnedRetries);
    }
    pr_info!("KVM: guests with an emulated PMU count as before; a mediated PMU is refused\n");
}

/// Looks for what keeps the built-in driver's PMUs from being taken over. Logs what it finds.
fn find_obstacles(machine: &Machine) -> Result {
    drop(takeover::refuse_mediated_guests()?);
    let mut found = PerType::new();
    takeover::find_predecessors(machine, &mut found)?;
    if found.is_empty() {
        pr_info!("no built-in driver is in charge\n");
    }
    takeover::check_unused(&found)?;
    // The built-in driver has released its registers: an event leaves the PMU's list after
    // `event->destroy` (`__free_event()`, `kernel/events/core.c`).
    let widest = takeover::widest(&machine.by_type()).ok_or(ENODEV)?;
    match widest.ops().hardware.first_reserved() {
        None => Ok(()),
        taken => {
            probe::log_reserved(taken);
            Err(EBUSY)
        }
    }
}
