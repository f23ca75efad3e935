// SPDX-License-Identifier: GPL-2.0

//! Take-over of the PMU from the built-in driver.
//!
//! Only the PMU is unregistered. The built-in driver itself stays: its NMI handler [calls this
//! driver](crate::x86::builtin::nmi), its CPU hotplug callbacks do not touch the counters (see
//! [`reserve`](crate::x86::reserve)), and it arms LVTPC of CPUs that come up.

use super::{
    explain::users::InUse,
    probe,
    CorePmu, //
};
use crate::{
    perf::event_type,
    perf_core::{
        BuiltinPmu,
        NoMediatedGuests,
        NotFound,
        UnregisteredPmu, //
    },
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// INST_RETIRED.ANY_P: an event that every PMU of type RAW on x86 accepts.
const SOME_EVENT: u64 = 0xc0;

/// Attempts to unregister, and the time between two: an event that was just closed may take a
/// moment to go.
const TRIES: u32 = 10;
const PAUSE: Delta = Delta::from_millis(10);

/// Finds the built-in driver's PMU. Returns [`None`] if there is none (boot option
/// `initcall_blacklist=init_hw_perf_events,bts_init`, see `Documentation/usage.md`).
///
/// Fails with `ENODEV` or `EBUSY`, and a line in the log, if it cannot be taken over. Process
/// context.
#[inline(never)]
pub(super) fn find_predecessor(successor: &CorePmu) -> Result<Option<BuiltinPmu>> {
    let pmu = match BuiltinPmu::find(event_type::RAW, SOME_EVENT) {
        Ok(Some(pmu)) => pmu,
        Ok(None) => return Ok(None),
        Err(not_found) => return Err(log_not_found(&not_found, successor)),
    };
    if pmu.name() != c"cpu" {
        return Err(log_other(pmu.name()));
    }
    Ok(Some(pmu))
}

/// Logs why the built-in driver's PMU was not found.
// Apart, as the next one: messages take stack, which is needed while the perf core is called.
#[cold]
#[inline(never)]
fn log_not_found(not_found: &NotFound, successor: &CorePmu) -> Error {
    match not_found {
        NotFound::Module(name) => {
            pr_err!(
                "the module {} drives the PMU; unload it first\n",
                format_args!("{name}")
            );
            EBUSY
        }
        NotFound::Failed(e) if *e == EBUSY => {
            probe::log_reserved(successor.ops().hardware.first_reserved());
            EBUSY
        }
        NotFound::Failed(e) => {
            pr_err!("cannot find the driver of the PMU: {e:?}\n");
            *e
        }
    }
}

/// Logs that another PMU is in charge.
#[cold]
#[inline(never)]
fn log_other(name: &CStr) -> Error {
    pr_err!(
        "the PMU in charge is {name:?}, not the core PMU of a CPU with one kind of cores; keep it\n"
    );
    ENODEV
}

/// Refuses guests that would have the PMU to themselves until the result is dropped. [`None`] if
/// there can be none.
///
/// Fails with `EBUSY`, and a line in the log, if there is one. Process context.
#[inline(never)]
pub(crate) fn refuse_mediated_guests() -> Result<Option<NoMediatedGuests>> {
    match NoMediatedGuests::new() {
        Err(e) if e == EBUSY => {
            pr_err!(
                "KVM guests have mediated PMUs; end them, and load KVM with enable_mediated_pmu=0\n"
            );
            Err(e)
        }
        Err(e) => {
            pr_notice!(
                "guests with a mediated PMU cannot be refused ({e:?}): do not load KVM with \
                 enable_mediated_pmu=1\n"
            );
            Ok(None)
        }
        guarded => guarded,
    }
}

/// Unregisters the built-in driver's PMU until the result is dropped.
///
/// Fails with `EBUSY`, and a line in the log about its users, if it is in use; nothing has changed
/// then. Process context.
#[inline(never)]
pub(crate) fn take_over(mut pmu: BuiltinPmu) -> Result<UnregisteredPmu> {
    for _ in 0..TRIES {
        // While an attempt lasts that fails, opening events fails.
        if pmu.users().are_none() {
            pmu = match pmu.unregister() {
                Ok(unregistered) => return Ok(unregistered),
                Err((pmu, _)) => pmu,
            };
        }
        fsleep(PAUSE);
    }
    let in_use = InUse(pmu.users());
    pr_err!("{in_use}\n");
    Err(EBUSY)
}
