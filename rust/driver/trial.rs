// SPDX-License-Identifier: GPL-2.0

//! A trial (`trial=SECONDS`): when its time is over, the built-in driver gets its PMUs back, also
//! if user space hangs. Open events are revoked.
//!
//! Root can confirm the trial by writing 0 to `/sys/module/rpmu/parameters/trial`. Then the PMUs
//! stay as they are, and events still [cannot be read by `rdpmc`](Machine::new).

use super::{
    explain::users::Named,
    Machine, //
};
use crate::kern::{
    delayed::{
        Delayed,
        Run, //
    },
    parameter, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// The time after which the log names the events that cannot be revoked, in milliseconds. The
/// kernel revokes an event at once, unless a system call that holds its context's mutex blocks.
const OVERDUE_MS: u32 = 2000;

/// The registrations of a module, until the trial is over.
pub(crate) struct Trial<T> {
    machine: Arc<Machine>,
    loaded: Pin<KBox<Mutex<Option<T>>>>,
}

impl<T: Send + Unpin + 'static> Trial<T> {
    /// Starts a trial of this many `seconds`, at the end of which `loaded` is dropped. Dropping the
    /// result drops `loaded`, too.
    ///
    /// Fails with `ENOMEM`; `loaded` has been dropped then. Process context.
    #[inline(never)]
    pub(crate) fn start(seconds: u32, machine: Arc<Machine>, loaded: T) -> Result<Delayed<Self>> {
        let loaded = KBox::pin_init(new_mutex!(Some(loaded)), GFP_KERNEL)?;
        let trial = Delayed::new(Self { machine, loaded }, seconds.saturating_mul(1000))?;
        pr_info!(
            "trial: the built-in driver gets its PMU back in {seconds} s, unless 0 is written to \
             /sys/module/rpmu/parameters/trial; counters cannot be read with rdpmc\n"
        );
        Ok(trial)
    }
}

impl<T: Send + Unpin + 'static> Run for Trial<T> {
    fn run(&self) {
        if parameter::trial() == 0 {
            pr_info!("the trial was confirmed: rpmu keeps the PMU\n");
            return;
        }
        pr_info!("the trial is over: open events are revoked\n");
        let loaded = self.loaded.lock().take();
        // Without memory, the log does not name the events.
        let overdue = Delayed::new(Overdue(self.machine.clone()), OVERDUE_MS);
        drop(loaded);
        drop(overdue);
    }
}

/// The message about events that are still open some time after the trial.
struct Overdue(Arc<Machine>);

impl Run for Overdue {
    fn run(&self) {
        for pmu in self.0.pmus() {
            let users = pmu.users();
            let users = Named(&users);
            pr_err!(
                "{}the built-in driver does not get its PMU back yet:{users} a system call holds them\n",
                format_args!("{}", pmu.ops().hardware.pmu.prefix())
            );
        }
    }
}
