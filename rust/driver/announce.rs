// SPDX-License-Identifier: GPL-2.0

//! The log messages about a PMU that the driver has taken over.

use super::CorePmu;
use crate::x86::topology::threads_per_core;
use kernel::prelude::*;

/// Logs the PMU, its counters, unused parts and work-arounds.
///
/// `predecessor` is set if the built-in driver was in charge of it. Process context.
pub(super) fn announce(pmu: &CorePmu, predecessor: bool) {
    let driver = pmu.ops();
    let pmu = &driver.hardware.pmu;
    pr_info!(
        "{} PMU, {} general-purpose and {} fixed counters of {} bits; {}\n",
        pmu.model.name,
        pmu.capabilities.gp(),
        pmu.capabilities.fixed(),
        pmu.capabilities.width.bits(),
        if predecessor {
            "the built-in driver gets it back on unload; /sys/kernel/debug/rpmu/users names what prevents that"
        } else {
            "no built-in driver was in charge"
        }
    );

    if pmu.capabilities.unused_gp > 0 {
        pr_notice!(
            "{} more general-purpose counters are not used: their registers have no architectural \
             address\n",
            pmu.capabilities.unused_gp
        );
    }
    driver.units.announce(&driver.hardware);
    if let Some(erratum) = pmu.model.ht_erratum {
        if driver.shares_a_core {
            pr_info!("events 0xd0 to 0xd3 keep the core's other thread off their counters (erratum {erratum})\n");
        } else if threads_per_core() > 1 {
            pr_notice!(
                "events 0xd0 to 0xd3 can corrupt the counts of the core's other thread (erratum \
                 {erratum}): ht_workaround=0\n"
            );
        }
    }
}
