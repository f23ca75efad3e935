// SPDX-License-Identifier: GPL-2.0

//! Counter 3 and transactions, where the processor wants it for both (`TSX_FORCE_ABORT`).
//!
//! A CPU's transactions are made to abort while an event of its PMU is on counter 3, and no longer.
//! Who would rather have transactions than a fourth counter switches that off, in sysfs:
//! `allow_tsx_force_abort`. Mainline: `intel_tfa_commit_scheduling()`,
//! `intel_tfa_pmu_enable_all()` and `set_sysctl_tfa()`, `arch/x86/events/intel/core.c:2941-2972`,
//! `7165-7210`; there, switching it on lets events wait until they take turns.

use crate::{
    driver::{cpu::Own, hw::Hardware, CorePmu, Driver},
    kern::cpu::online_cpus,
    logic::regs::counter::{CounterId, CounterMask},
    perf::Setting,
    x86::intel::tsx,
};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kernel::{interrupt::LocalInterruptDisabled, prelude::*};

/// The counter that transactions use.
const COUNTER: Option<CounterId> = CounterId::gp(3);

/// Whether counter 3 is to be had.
pub(in crate::driver) struct Transactions {
    /// Whether transactions use the counter at all.
    use_counter: bool,
    /// Whether they may be made to abort.
    allow_abort: AtomicBool,
}

impl Transactions {
    pub(in crate::driver) fn new(use_counter: bool) -> Self {
        Self {
            use_counter,
            allow_abort: AtomicBool::new(true),
        }
    }

    /// The counters that events may not have because transactions do.
    pub(in crate::driver) fn counters(&self) -> CounterMask {
        let theirs = self.use_counter && !self.allow_abort.load(Relaxed);
        COUNTER
            .filter(|_| theirs)
            .map_or(CounterMask::EMPTY, CounterId::mask)
    }

    /// Before the plan is programmed: takes the counter from transactions if it is planned for.
    pub(in crate::driver) fn abort_if_needed(&self, own: &mut Own, irqs: &LocalInterruptDisabled) {
        if let Some(counter) = self.planned(own).filter(|_| !own.transactions_abort) {
            own.transactions_abort = true;
            tsx::set_force_abort(true, irqs);
            // A transaction may have used it since we did.
            own.shadow.forget(counter);
        }
    }

    /// After that: gives the counter back, switched off, if it is not planned for any more.
    #[inline]
    pub(in crate::driver) fn allow_if_possible(
        &self,
        own: &mut Own,
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) {
        if own.transactions_abort && self.planned(own).is_none() {
            own.transactions_abort = false;
            if let Some(counter) = COUNTER {
                own.shadow
                    .give_away(counter, |write| hardware.write(write, irqs));
            }
            tsx::set_force_abort(false, irqs);
        }
    }

    /// Gives the counter back, whoever has it: no event is on the CPU.
    pub(in crate::driver) fn allow(&self, own: &mut Own, irqs: &LocalInterruptDisabled) {
        if self.use_counter {
            own.transactions_abort = false;
            tsx::set_force_abort(false, irqs);
        }
    }

    /// The counter, if transactions use it and events are to.
    fn planned(&self, own: &Own) -> Option<CounterId> {
        COUNTER.filter(|counter| self.use_counter && own.schedule.taken().contains(*counter))
    }
}

/// `allow_tsx_force_abort` in sysfs.
pub(in crate::driver) struct AllowForceAbort;

impl Setting<Driver> for AllowForceAbort {
    type Value = bool;
    const MODE: u16 = 0o644;

    fn get(pmu: &CorePmu) -> bool {
        pmu.ops().transactions.allow_abort.load(Relaxed)
    }

    fn set(pmu: &CorePmu, on: bool) -> Result {
        let driver = pmu.ops();
        if !driver.can_resched {
            return Err(EOPNOTSUPP);
        }
        if driver.transactions.allow_abort.swap(on, Relaxed) == on {
            return Ok(());
        }
        // Off: who is on the counter leaves it. On: who has waited for it gets it.
        for cpu in online_cpus() {
            pmu.resched(cpu);
        }
        pmu.finish_resched();
        Ok(())
    }
}
