// SPDX-License-Identifier: GPL-2.0

//! The log messages about a PMU that the driver has taken over.

use super::CorePmu;
use crate::{
    logic::pmu::PmuInfo,
    x86::topology::threads_per_core, //
};
use kernel::{
    fmt,
    prelude::*, //
};

/// The PMU's name on a hybrid, its model and its counters, as text.
pub(super) struct Counters<'a>(pub(super) &'a PmuInfo);

impl fmt::Display for Counters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capabilities = &self.0.capabilities;
        write!(
            f,
            "{}{} PMU, {} general-purpose and {} fixed counters of {} bits",
            self.0.prefix(),
            self.0.model.name,
            capabilities.gp(),
            capabilities.fixed(),
            capabilities.width.bits()
        )
    }
}

/// Logs the PMU, its counters, unused parts and work-arounds.
///
/// `predecessor` is set if the built-in driver was in charge of it. Process context.
pub(super) fn announce(pmu: &CorePmu, predecessor: bool) {
    pr_info!(
        "{}; {}\n",
        Counters(&pmu.ops().hardware.pmu),
        if predecessor {
            "the built-in driver gets it back on unload; /sys/kernel/debug/rpmu/users names what prevents that"
        } else {
            "no built-in driver was in charge"
        }
    );
    log_features(pmu);
}

/// Logs the features of a PMU, its unused parts and work-arounds. Process context.
pub(super) fn log_features(pmu: &CorePmu) {
    let driver = pmu.ops();
    let pmu = &driver.hardware.pmu;
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
