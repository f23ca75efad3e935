// SPDX-License-Identifier: GPL-2.0

//! Optional facilities of the kernel and the machine. The driver looks for them when it is loaded,
//! and logs what does not work without them.

use crate::{
    kern::parameter,
    logic::tried::{
        self,
        Version, //
    },
    perf,
    perf_core::{
        self,
        Ibs, //
    },
    x86::cpuid::Feature, //
};
use kernel::prelude::*;

/// Returns whether a feature was tried on this kernel version. If not, logs what does not work
/// without it.
///
/// Process context.
pub(super) fn was_tried(feature: tried::Feature) -> bool {
    let release = parameter::release();
    let was_tried = feature.was_tried_on(Version::of_release(release.to_bytes()));
    if !was_tried {
        pr_notice!("not tried on Linux {release:?}: {}\n", feature.without());
    }
    was_tried
}

/// Binds the functions that deliver samples. Returns whether they are bound, so that overflows
/// become samples.
///
/// Process context.
pub(super) fn bind_sampling() -> bool {
    if !Feature::APIC.present() {
        pr_notice!(
            "no local APIC, so counters raise no interrupts: events count and do not sample\n"
        );
        return false;
    }
    let bound = perf::bind_sampling();
    if let Err(error) = bound {
        pr_notice!(
            "perf_event_overflow() cannot be found ({error:?}): events count and do not sample\n"
        );
    }
    bound.is_ok()
}

/// Binds the function that makes a CPU schedule its events again. Returns whether it is bound.
///
/// Process context.
pub(super) fn bind_resched() -> bool {
    perf_core::bind_perf_pmu_resched()
        .inspect_err(|error| {
            pr_notice!(
                "perf_pmu_resched() cannot be found ({error:?}): events get a counter that another CPU \
                 frees when they rotate, not at once, exclusive groups and groups led by software \
                 events wait longer, allow_tsx_force_abort cannot be changed, and if the PMU fails, events \
                 without rotation do not go to the error state\n"
            );
        })
        .is_ok()
}

/// Finds AMD's PMU for precise events. Returns [`None`] if the machine does not have it, or if the
/// kernel's function for it cannot be found, which is logged.
///
/// Process context.
pub(super) fn find_ibs() -> Option<Ibs> {
    Ibs::find().unwrap_or_else(|error| {
        pr_notice!(
            "forward_event_to_ibs() cannot be found ({error:?}): open precise events on the PMU ibs_op\n"
        );
        None
    })
}
