// SPDX-License-Identifier: GPL-2.0

//! TFA (TSX force abort): counter 3 of processors on which TSX transactions use this counter, too.
//!
//! TSX transactions on a CPU are made to abort as long as an event is on counter 3. A user who
//! prefers transactions to a fourth counter writes 0 to `allow_tsx_force_abort` in sysfs.
//!
//! Mainline: `intel_tfa_commit_scheduling()`, `intel_tfa_pmu_enable_all()` and `set_sysctl_tfa()`,
//! `update_tfa_sched()`, `show_sysctl_tfa()`, `arch/x86/events/intel/core.c`. There, events get the
//! counter at the next rotation after a 1 is written; here, at once.

use super::hooks::{
    PlanAndShadow,
    Platform,
    Site,
    Unit, //
};
use crate::{
    driver::hw::Hardware,
    logic::regs::counter::{
        CounterId,
        CounterMask, //
    },
    x86::{
        builtin::Builtin,
        intel::tsx, //
    },
};
use core::sync::atomic::{
    AtomicBool,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    prelude::*, //
};

/// The counter that TSX transactions use.
const COUNTER: Option<CounterId> = CounterId::gp(3);

/// TFA's state of a CPU.
#[derive(Default)]
pub(in crate::driver) struct CpuState {
    /// Set if transactions are made to abort.
    abort: bool,
}

/// TFA's state of a PMU on which TSX transactions use counter 3.
pub(in crate::driver) struct Tfa {
    /// Set if transactions may be made to abort.
    allow_abort: AtomicBool,
}

impl Tfa {
    /// Returns the counters that are closed to events: counter 3, if transactions must not be made
    /// to abort.
    pub(in crate::driver) fn closed(&self) -> CounterMask {
        COUNTER
            .filter(|_| !self.allow_abort.load(Relaxed))
            .map_or(CounterMask::EMPTY, CounterId::mask)
    }

    /// Returns whether transactions may be made to abort.
    pub(in crate::driver) fn abort_is_allowed(&self) -> bool {
        self.allow_abort.load(Relaxed)
    }

    /// Sets whether transactions may be made to abort. Returns whether the setting has changed.
    pub(in crate::driver) fn allow_abort(&self, allow: bool) -> bool {
        self.allow_abort.swap(allow, Relaxed) != allow
    }
}

/// Returns counter 3, if it is planned for an event.
#[inline]
fn wanted(counters: &PlanAndShadow<'_>) -> Option<CounterId> {
    COUNTER.filter(|counter| counters.schedule.taken().contains(*counter))
}

impl Unit for Tfa {
    type Own = CpuState;
    type PmiState = ();
    type TaskData = ();

    fn find(platform: &mut Platform<'_>) -> Result<Option<Self>> {
        let uses_counter = platform.hardware.pmu.capabilities.tsx_uses_counter_3;
        Ok(uses_counter.then_some(Self {
            allow_abort: AtomicBool::new(true),
        }))
    }

    fn pmi_state(_cpu: CpuId, _hardware: &Hardware, _builtin: Option<&Builtin>) -> Result {
        Ok(())
    }

    fn announce(&self, _hardware: &Hardware) {
        pr_info!("transactions abort while counter 3 is used (allow_tsx_force_abort in sysfs)\n");
    }

    /// Lets transactions run, unless an event of the plan is on counter 3.
    fn reset(
        &self,
        own: &mut CpuState,
        _pmi_state: &(),
        site: Site<'_>,
        counters: PlanAndShadow<'_>,
    ) -> bool {
        let wanted = wanted(&counters);
        own.abort = wanted.is_some();
        tsx::set_force_abort(own.abort, site.irqs);
        if let Some(counter) = wanted {
            counters.shadow.forget(counter);
        }
        false
    }

    /// Lets transactions run.
    fn restore(&self, own: &mut CpuState, _pmi_state: &(), site: Site<'_>) {
        own.abort = false;
        tsx::set_force_abort(false, site.irqs);
    }

    /// Makes transactions abort if counter 3 is planned.
    #[inline]
    fn take(&self, own: &mut CpuState, site: Site<'_>, counters: PlanAndShadow<'_>) {
        if let Some(counter) = wanted(&counters).filter(|_| !own.abort) {
            own.abort = true;
            tsx::set_force_abort(true, site.irqs);
            // A transaction may have used the counter since an event was on it.
            counters.shadow.forget(counter);
        }
    }

    /// Lets transactions run if counter 3 is not planned. The counter has been switched off.
    #[inline]
    fn release(&self, own: &mut CpuState, site: Site<'_>, counters: PlanAndShadow<'_>) {
        if own.abort && wanted(&counters).is_none() {
            own.abort = false;
            if let Some(counter) = COUNTER {
                counters
                    .shadow
                    .give_away(counter, |write| site.hardware.write(write, site.irqs));
            }
            tsx::set_force_abort(false, site.irqs);
        }
    }
}
