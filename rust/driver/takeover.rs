// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's PMU: away and back.
//!
//! Only the PMU is taken from the perf core's list. The built-in driver itself stays: its NMI
//! handler returns at once as long as it has no events (those of Intel PT and BTS count as its
//! own, see the README), its CPU hotplug states do nothing that matters to us, and it arms LVTPC of
//! CPUs that come up.

use crate::perf::{event_type, BuiltinPmu, UnregisteredPmu, Users};
use core::fmt;
use kernel::{
    prelude::*,
    time::{delay::fsleep, Delta},
};

/// INST_RETIRED.ANY_P: an event that every PMU of type RAW on x86 accepts.
const SOME_EVENT: u64 = 0xc0;

/// How often to look, and how long to wait in between: an event that was just closed may take a
/// moment to go.
const TRIES: u32 = 10;
const PAUSE: Delta = Delta::from_millis(10);

/// Finds the built-in driver's PMU. [`None`] if there is none (see `initcall_blacklist` in the
/// README).
///
/// `ENODEV` or `EBUSY`, with a line in the log, if it cannot be taken over. Process context.
pub(crate) fn find_predecessor() -> Result<Option<BuiltinPmu>> {
    let pmu = match BuiltinPmu::find(event_type::RAW, SOME_EVENT) {
        Ok(Some(pmu)) => pmu,
        Ok(None) => return Ok(None),
        Err(e) if e == EEXIST => {
            pr_err!("another module drives the PMU; unload it first\n");
            return Err(EBUSY);
        }
        Err(e) if e == EBUSY => {
            pr_err!("another driver uses the counters; unload it first\n");
            return Err(e);
        }
        Err(e) => {
            pr_err!("cannot find out who drives the PMU: {e:?}\n");
            return Err(e);
        }
    };
    if pmu.name() != c"cpu" {
        pr_err!(
            "the PMU in charge is {:?}, not the core PMU of a CPU with one kind of cores; keep it\n",
            pmu.name()
        );
        return Err(ENODEV);
    }
    Ok(Some(pmu))
}

/// Unregisters the built-in driver's PMU, until the result is dropped.
///
/// `EBUSY`, with a line in the log that says by whom, if it is in use. Nothing has changed then.
/// Process context.
pub(crate) fn take_over(mut pmu: BuiltinPmu) -> Result<UnregisteredPmu> {
    for _ in 0..TRIES {
        // An attempt that fails would keep others from opening events while it lasts.
        if pmu.users().are_none() {
            pmu = match pmu.unregister() {
                Ok(unregistered) => return Ok(unregistered),
                Err((pmu, _)) => pmu,
            };
        }
        fsleep(PAUSE);
    }
    let in_use = InUse(pmu.users());
    pr_err!("{}\n", format_args!("{in_use}"));
    Err(EBUSY)
}

/// Says who uses the built-in driver's PMU and how to make them stop.
struct InUse(Users);

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the built-in driver's PMU is in use:")?;
        let users = [
            (
                self.0.watchdog,
                "the NMI watchdog",
                "sysctl kernel.nmi_watchdog=0",
            ),
            (self.0.user, "user space", "end running perf commands"),
            (
                self.0.kernel,
                "the kernel",
                "stop guests with a PMU, BPF programs",
            ),
        ];
        for (events, who, cure) in users {
            if events > 0 {
                write!(f, " events of {who}: {events} ({cure});")?;
            }
        }
        f.write_str(" nothing has changed")
    }
}
