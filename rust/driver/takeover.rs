// SPDX-License-Identifier: GPL-2.0

//! Taking over the PMUs from the built-in driver: all of them or none.
//!
//! Only the PMUs are unregistered. The built-in driver itself stays: its NMI handler [calls this
//! driver](crate::x86::builtin::nmi), its CPU hotplug callbacks do not touch the counters (see
//! [`reserve`](crate::x86::reserve)), and it arms LVTPC of CPUs that come up.

use super::{
    core_pmu::Identity,
    explain::users::Named,
    probe,
    CorePmu,
    Machine, //
};
use crate::{
    logic::cores::PerType,
    perf::event_type,
    perf_core::{
        BuiltinPmu,
        NoMediatedGuests,
        NotFound,
        UnregisteredPmu,
        Users, //
    },
};
use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// INST_RETIRED.ANY_P: an event that every core PMU on x86 accepts.
const SOME_EVENT: u64 = 0xc0;

/// The number of attempts to unregister, and the time between two: an event that was just closed
/// may need a moment until it is freed.
const TRIES: u32 = 10;
const PAUSE: Delta = Delta::from_millis(10);

/// The built-in driver's PMUs, unregistered. Dropping registers them again, in their original
/// order.
pub(crate) struct Predecessors(PerType<UnregisteredPmu>);

impl Predecessors {
    /// Returns whether there are no predecessors, because the built-in driver has not initialised.
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the PMU with this `name`, if there is one.
    pub(super) fn of(&self, name: &CStr) -> Option<&UnregisteredPmu> {
        self.0.iter().find(|pmu| pmu.name() == name)
    }
}

impl Drop for Predecessors {
    fn drop(&mut self) {
        let pmus = core::mem::take(&mut self.0);
        let several = pmus.len() > 1;
        let _ = pmus.try_map(|pmu| {
            if let Some(pmu) = pmu.register_again() {
                log_given_back(several.then(|| pmu.name()));
            }
            Ok::<(), Error>(())
        });
    }
}

/// Adds the predecessors of the PMUs of `machine`, which are the built-in driver's PMUs, to
/// `found`, in the same order. There are none after the boot option
/// `initcall_blacklist=init_hw_perf_events,bts_init`, see `Documentation/usage.md`.
///
/// Fails with `ENODEV`, `EBUSY` or another error, and a line in the log, if one cannot be taken
/// over. Process context.
#[inline(never)]
pub(super) fn find_predecessors(machine: &Machine, found: &mut PerType<BuiltinPmu>) -> Result {
    let Some(raw) = find_raw(machine)? else {
        return Ok(());
    };
    // Otherwise the built-in driver would count on such a CPU once it is online, although it gets
    // no NMIs.
    let unknown = machine.common().cpus.unknown_type();
    if unknown.is_some_and(|core| raw.sibling(core.pmu_name()).is_some()) {
        return Err(log_offline());
    }
    for pmu in machine.pmus() {
        let name = pmu.ops().identity.name;
        let pmu = raw.sibling(name).ok_or_else(|| log_missing(name))?;
        // There is room for one PMU of each type.
        found.push(pmu).map_err(|_| ENODEV)?;
    }
    Ok(())
}

/// Returns the built-in driver's PMU for events of the type RAW, the only one whose type is known;
/// [`None`] if the built-in driver has not initialised.
///
/// Fails as [`find_predecessors`] does. Process context.
#[inline(never)]
fn find_raw(machine: &Machine) -> Result<Option<BuiltinPmu>> {
    let mut identities = machine.pmus().map(|pmu| &pmu.ops().identity);
    let is_raw = |it: &&Identity| it.event_type == Some(event_type::RAW);
    let raw = identities.find(is_raw).ok_or_else(log_offline)?;
    let cpu = machine.common().cpus.one_of(raw.index)?;
    match BuiltinPmu::find(event_type::RAW, SOME_EVENT, cpu) {
        Ok(Some(pmu)) if pmu.name() != raw.name => Err(log_other(pmu.name())),
        Ok(pmu) => Ok(pmu),
        Err(not_found) => Err(log_not_found(&not_found, machine)),
    }
}

/// Returns the PMU in `pmus` whose registers that have to be reserved include those of all others.
/// Only general-purpose counters have such registers, and all types of cores number these from 0.
pub(super) fn widest<'a>(pmus: &PerType<&'a CorePmu>) -> Option<&'a CorePmu> {
    pmus.iter()
        .copied()
        .max_by_key(|pmu| pmu.ops().hardware.pmu.capabilities.gp())
}

/// Logs that the built-in driver has its PMU back; with the PMU's `name` if there are several.
#[inline(never)]
fn log_given_back(name: Option<&CStr>) {
    let (name, colon) = match name {
        Some(name) => (name.to_str().unwrap_or_default(), ": "),
        None => ("", ""),
    };
    pr_info!("{name}{colon}the built-in driver has its PMU back\n");
}

/// Logs why the built-in driver's PMU was not found.
// A separate function, like the next one: messages need stack, which must be free while the perf
// core is called.
#[cold]
#[inline(never)]
fn log_not_found(not_found: &NotFound, machine: &Machine) -> Error {
    match not_found {
        NotFound::Module(name) => {
            pr_err!(
                "the module {} drives the PMU; unload it first\n",
                format_args!("{name}")
            );
            EBUSY
        }
        NotFound::Failed(e) if *e == EBUSY => {
            let widest = widest(&machine.by_type());
            probe::log_reserved(widest.and_then(|pmu| pmu.ops().hardware.first_reserved()));
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
    pr_err!("the PMU in charge is {name:?}, not this machine's core PMU; it stays in charge\n");
    ENODEV
}

/// Logs that CPUs are offline whose type of core no online CPU has, as far as is known.
#[cold]
#[inline(never)]
fn log_offline() -> Error {
    pr_err!("a type of core has no CPU online, or may have none; bring all CPUs online first\n");
    ENODEV
}

/// Logs that the built-in driver lacks the PMU with this `name`, although it has another one.
#[cold]
#[inline(never)]
fn log_missing(name: &CStr) -> Error {
    pr_err!("the built-in driver has no PMU {name:?}; it stays in charge\n");
    ENODEV
}

/// Refuses guests with a mediated vPMU until the result is dropped. Returns [`None`] if the kernel
/// does not support such guests, or, with a notice in the log, if it supports them but they cannot
/// be refused.
///
/// Fails with `EBUSY`, and a line in the log, if such a guest exists. Process context.
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

/// Unregisters the built-in driver's PMUs until the result is dropped.
///
/// Fails with `EBUSY` if a PMU is in use, and logs its users, or with `ENOMEM`; then nothing has
/// changed. Fails with `ENODEV` if a PMU could not be registered again after a failed attempt,
/// which the log says, too. Process context.
#[inline(never)]
pub(super) fn take_over(mut pmus: PerType<BuiltinPmu>) -> Result<KBox<Predecessors>> {
    let place = KBox::new_uninit(GFP_KERNEL)?;
    let count = pmus.len();
    for _ in 0..TRIES {
        // Check first: during an attempt that fails, opening events fails.
        if !pmus.iter().any(BuiltinPmu::is_used) {
            pmus = match pmus.take_all(BuiltinPmu::unregister, UnregisteredPmu::register_again) {
                Ok(taken) => return Ok(place.write(Predecessors(taken))),
                Err((pmus, _)) => pmus,
            };
            if pmus.len() < count {
                // The log has the reason.
                return Err(ENODEV);
            }
        }
        fsleep(PAUSE);
    }
    log_in_use(&pmus);
    Err(EBUSY)
}

/// Checks that no event is open on `pmus`. Waits a moment for events that were just closed.
///
/// Fails with `EBUSY`, and logs the users. Process context.
#[inline(never)]
pub(super) fn check_unused(pmus: &PerType<BuiltinPmu>) -> Result {
    for _ in 0..TRIES {
        if !pmus.iter().any(BuiltinPmu::is_used) {
            return Ok(());
        }
        fsleep(PAUSE);
    }
    log_in_use(pmus);
    Err(EBUSY)
}

/// Logs the users of all `pmus`. If there are none any more, the last attempt was too early: an
/// event had just been closed.
// A separate function: the list of users needs stack.
#[cold]
#[inline(never)]
fn log_in_use(pmus: &PerType<BuiltinPmu>) {
    let mut users = Users::default();
    for pmu in pmus.iter() {
        pmu.add_users(&mut users);
    }
    let users = Named(&users);
    pr_err!("the built-in driver's PMU is in use:{users} nothing has changed\n");
}
