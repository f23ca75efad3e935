// SPDX-License-Identifier: GPL-2.0

//! rpmu: a driver of the x86 core PMU.
//!
//! It takes the place of the built-in driver while it is loaded. What is where:
//!
//! ```text
//!         driver           ties everything together, no unsafe
//!    ┌──────┼──────┐
//!  logic   perf   x86      decisions │ struct pmu and its events │ the processor
//!            └──┬──┘
//!             kern         what any driver could use: per-CPU data, locks, hotplug
//!               │
//!           bindings       bindgen's
//! ```
//!
//! Imports run downwards only.

use kernel::prelude::*;

mod bindings;
mod driver;

// Libraries: public, so that what only a later driver needs may be in them.
pub mod kern;
pub mod logic;
pub mod perf;
pub mod x86;

module! {
    type: Rpmu,
    name: "rpmu",
    authors: ["The rpmu developers"],
    description: "x86 core PMU driver",
    license: "GPL",
    params: {
        ht_workaround: bool {
            default: true,
            description: "Work around errata BJ122, BV98, HSD29 where cores have two threads (default: 1)",
        },
        max_period: u64 {
            default: 0,
            description: "For tests: counters overflow after so many events (>= 1000; 0: as late as they can)",
        },
    },
}

/// What exists while the module is loaded.
///
/// Fields are dropped in the order in which they are declared, which is the one in which things
/// have to be undone.
struct Rpmu {
    _files: Pin<KBox<driver::Files>>,
    /// The perf core offers our PMU to users. When this has gone, there are no events.
    _registration: perf::Registration<driver::Driver>,
    /// It is noticed when events are disabled.
    _disable_watch: Option<perf::DisableWatch<driver::Driver>>,
    /// The events of the last CPU outlive its sleep.
    _syscore: kern::syscore::Registration<driver::Machine>,
    /// The counters are ours. When this has gone, they are off on all CPUs.
    _hotplug: kern::hotplug::Registration<driver::Machine>,
    _nmi: x86::nmi::Registration<driver::Machine>,
    _reservation: x86::reserve::Reservation,
    /// The built-in driver's PMU, set aside. When this has gone, it is back.
    _predecessor: Option<perf::UnregisteredPmu>,
}

impl kernel::Module for Rpmu {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // Nothing has changed if any of these fails.
        let hardware = driver::probe(
            kern::parameter::policy(),
            module_parameters::max_period.value(),
        )?;
        let machine = driver::Machine::new(hardware, module_parameters::ht_workaround.value())?;
        let predecessor = driver::find_predecessor()?;

        // From here on, what has been done is undone by drop.
        let predecessor = predecessor.map(driver::take_over).transpose()?;
        let reservation = machine.reserve()?;
        machine.check_counters()?;
        let nmi = x86::nmi::Registration::new(machine.clone())?;
        let hotplug = kern::hotplug::Registration::new(c"rpmu:dying", machine.clone())
            .inspect_err(|_| pr_err!("the CPU hotplug state that is needed is taken\n"))?;
        let syscore = kern::syscore::Registration::new(machine.clone())?;
        let disable_watch = machine.watch_disabling();
        let files = driver::Files::new(&machine)?;
        // Nothing may fail from here on: users can open events, and undoing the registration would wait
        // until they close them.
        let registration = machine.register()?;

        machine.announce(predecessor.is_some());
        Ok(Self {
            _files: files,
            _registration: registration,
            _disable_watch: disable_watch,
            _syscore: syscore,
            _hotplug: hotplug,
            _nmi: nmi,
            _reservation: reservation,
            _predecessor: predecessor,
        })
    }
}
