// SPDX-License-Identifier: GPL-2.0

//! rpmu: a driver for x86 core PMUs.
//!
//! It replaces the built-in driver while it is loaded.
//!
//! ```text
//!         driver           ties everything together, no unsafe
//!    ┌──────┼──────┐
//!  logic perf_core x86     decisions │ private parts of the perf core │ the processor
//!           │      │
//!         perf     │       struct pmu and its events
//!           └──┬───┘
//!             kern         what any driver could use: per-CPU data, locks, hotplug
//!               │
//!           bindings       bindgen's output
//! ```
//!
//! Imports run downwards only.

use kernel::{
    prelude::*,
    sync::Arc, //
};

mod bindings;
mod driver;

// Libraries, whose items are `pub` as in the kernel crate. The modules are private, so that the
// compiler reports unused items.
#[allow(unreachable_pub)]
mod kern;
#[allow(unreachable_pub)]
mod perf;
#[allow(unreachable_pub)]
mod perf_core;
#[allow(unreachable_pub)]
mod x86;
// rpmu-plan and the host tests use this module, too.
pub mod logic;

module! {
    type: Rpmu,
    name: "rpmu",
    authors: ["The rpmu developers"],
    description: "x86 core PMU driver",
    license: "GPL",
}

/// The loaded module.
enum Rpmu {
    /// Until it is unloaded.
    Loaded { _loaded: Loaded },
    /// Until the trial is over.
    OnTrial {
        _trial: kern::delayed::Delayed<driver::Trial<Loaded>>,
    },
}

/// The registrations of the loaded module.
// A separate type keeps the names of functions short.
struct Loaded {
    _registrations: KBox<Registrations>,
}

/// The registrations.
///
/// Fields are dropped in the order of their declaration, which reverses the order of loading.
struct Registrations {
    _files: Option<driver::Files>,
    /// Offers the PMUs to users. Dropping waits until there are no events.
    _offered: KBox<driver::Offered>,
    /// Keeps events across suspend, and restores the registers on shutdown.
    _syscore: kern::syscore::Registration<driver::Machine>,
    /// Sets up CPUs that come up. Dropping restores the registers of all CPUs.
    _hotplug: kern::hotplug::Registration<driver::Machine>,
    /// Handles NMIs. Dropping gives the NMI handler back to the built-in driver.
    _nmi: x86::nmi::Registration<driver::Machine>,
    /// Gives the PMUs up if one of them does not work.
    _breaker: driver::Armed,
    _reservation: x86::reserve::Reservation,
    /// The built-in driver's PMUs, unregistered. Dropping registers them again.
    _predecessors: KBox<driver::Predecessors>,
    /// Refuses guests with a mediated vPMU while the built-in driver is not in charge.
    _no_mediated: Option<perf_core::NoMediatedGuests>,
}

impl kernel::Module for Rpmu {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let trial = kern::parameter::trial();
        let machine = find_machine(trial != 0)?;
        if kern::parameter::dry_run() {
            return Err(driver::dry_run(&machine));
        }
        let loaded = Loaded::new(&machine)?;
        if trial == 0 {
            return Ok(Self::Loaded { _loaded: loaded });
        }
        // This may fail: in a trial, unregistering does not wait for users.
        let trial = driver::Trial::start(trial, machine, loaded)?;
        Ok(Self::OnTrial { _trial: trial })
    }
}

/// Finds the PMUs of this machine. Changes nothing. If `revocable` is set, events of the PMUs can
/// be revoked.
// Not inlined, so that its stack is free when the perf core is called.
#[inline(never)]
fn find_machine(revocable: bool) -> Result<Arc<driver::Machine>> {
    let found = driver::probe(kern::parameter::policy(), kern::parameter::max_period())?;
    let builtin = driver::check_layouts(kern::parameter::trust_layouts())?;
    let ht_workaround = kern::parameter::ht_workaround();
    driver::Machine::new(found, ht_workaround, revocable, builtin)
}

impl Loaded {
    /// Takes the PMUs of `machine` over. An error undoes the previous steps by dropping their
    /// results.
    #[inline(never)]
    fn new(machine: &Arc<driver::Machine>) -> Result<Self> {
        let place = KBox::new_uninit(GFP_KERNEL)?;
        let no_mediated = driver::refuse_mediated_guests()?;
        let predecessors = machine.take_over()?;
        let replaces = !predecessors.are_none();
        let reservation = machine.reserve(replaces)?;
        machine.check_counters()?;
        // From here on, this driver serves events of Intel PT and BTS, which may already be open.
        let nmi = machine.handle_nmis(replaces)?;
        let hotplug = kern::hotplug::Registration::new(c"rpmu:dying", machine.clone())
            .inspect_err(|&error| {
                if error == EBUSY {
                    pr_err!(
                        "CPU hotplug state {} is taken: /sys/devices/system/cpu/hotplug/states shows its \
                         name\n",
                        kern::hotplug::state()
                    );
                }
            })?;
        machine.check_breaker()?;
        let breaker = driver::Armed::new(machine);
        let syscore = kern::syscore::Registration::new(machine.clone())?;
        // The last step that may fail: from here on, users can open events, and unregistering waits
        // until they close these. Files in debugfs come later, because a load that fails frees the
        // module even if a file is open.
        let offered = machine.offer(&predecessors)?;
        let files = driver::Files::new(machine);

        machine.announce(replaces);
        let registrations = place.write(Registrations {
            _files: files,
            _offered: offered,
            _syscore: syscore,
            _hotplug: hotplug,
            _nmi: nmi,
            _breaker: breaker,
            _reservation: reservation,
            _predecessors: predecessors,
            _no_mediated: no_mediated,
        });
        Ok(Self {
            _registrations: registrations,
        })
    }
}
