// SPDX-License-Identifier: GPL-2.0

//! Facilities of the kernel and the machine that the driver can do without. It looks for them when it is
//! loaded, and logs what does not work without them.

use crate::{perf, x86::cpuid::Feature};
use kernel::prelude::*;

/// Binds the functions that deliver samples. Returns whether overflows can become samples.
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
            "perf_event_overflow() is out of reach ({error:?}): events count and do not sample\n"
        );
    }
    bound.is_ok()
}

/// Binds the function that makes another CPU schedule its events anew. Returns whether it is bound.
///
/// Process context.
pub(super) fn bind_resched() -> bool {
    perf::bind_perf_pmu_resched()
        .inspect_err(|error| {
            pr_notice!(
                "perf_pmu_resched() is out of reach ({error:?}): a counter that another CPU sets \
                 free is taken when events rotate, not at once, and allow_tsx_force_abort \
                 stays as it is\n"
            );
        })
        .is_ok()
}
