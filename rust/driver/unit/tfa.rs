// SPDX-License-Identifier: GPL-2.0

//! TFA (TSX force abort): counter 3 of processors whose TSX transactions use it as well.
//!
//! The CPU's TSX transactions are made to abort as long as an event is on counter 3. A user who prefers
//! transactions to a fourth counter writes 0 to `allow_tsx_force_abort` in sysfs. Mainline:
//! `intel_tfa_commit_scheduling()`, `intel_tfa_pmu_enable_all()` and `set_sysctl_tfa()`,
//! `arch/x86/events/intel/core.c:2941-2972`, `7165-7210`; there, events get the counter at the next
//! rotation after a 1 is written, here at once.

use crate::{
    driver::hw::Hardware,
    logic::regs::{
        counter::{CounterId, CounterMask},
        shadow::Shadow,
    },
    x86::intel::tsx,
};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kernel::interrupt::LocalInterruptDisabled;

/// The counter that TSX transactions use.
const COUNTER: Option<CounterId> = CounterId::gp(3);

/// TFA's state of a CPU.
#[derive(Default)]
pub(in crate::driver) struct CpuState {
    /// Set if transactions are made to abort.
    abort: bool,
}

/// TFA's state of a PMU.
pub(in crate::driver) struct Tfa {
    /// Set if transactions use counter 3.
    tsx_uses_counter: bool,
    /// Set if transactions may be made to abort.
    allow_abort: AtomicBool,
}

impl Tfa {
    /// Makes the state of a PMU whose counter 3 TSX transactions use, or not.
    pub(in crate::driver) fn new(tsx_uses_counter: bool) -> Self {
        Self {
            tsx_uses_counter,
            allow_abort: AtomicBool::new(true),
        }
    }

    /// Returns the counters that are closed to events: counter 3, if transactions use it and must not be
    /// made to abort.
    pub(in crate::driver) fn closed(&self) -> CounterMask {
        let closed = self.tsx_uses_counter && !self.allow_abort.load(Relaxed);
        COUNTER
            .filter(|_| closed)
            .map_or(CounterMask::EMPTY, CounterId::mask)
    }

    /// Returns whether transactions may be made to abort.
    pub(in crate::driver) fn abort_is_allowed(&self) -> bool {
        self.allow_abort.load(Relaxed)
    }

    /// Sets whether transactions may be made to abort. Returns whether this changes it.
    pub(in crate::driver) fn allow_abort(&self, allow: bool) -> bool {
        self.allow_abort.swap(allow, Relaxed) != allow
    }

    /// Makes transactions abort on this CPU if counter 3 is among the `planned` counters. Called before
    /// these are programmed.
    pub(in crate::driver) fn abort_if_needed(
        &self,
        cpu: &mut CpuState,
        planned: CounterMask,
        shadow: &mut Shadow,
        irqs: &LocalInterruptDisabled,
    ) {
        if let Some(counter) = self.wanted(planned).filter(|_| !cpu.abort) {
            cpu.abort = true;
            tsx::set_force_abort(true, irqs);
            // A transaction may have used the counter since an event was on it.
            shadow.forget(counter);
        }
    }

    /// Lets transactions run on this CPU if counter 3, which is switched off then, is not among the
    /// `planned` counters. Called after these have been programmed.
    #[inline]
    pub(in crate::driver) fn allow_if_possible(
        &self,
        cpu: &mut CpuState,
        planned: CounterMask,
        shadow: &mut Shadow,
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) {
        if cpu.abort && self.wanted(planned).is_none() {
            cpu.abort = false;
            if let Some(counter) = COUNTER {
                shadow.give_away(counter, |write| hardware.write(write, irqs));
            }
            tsx::set_force_abort(false, irqs);
        }
    }

    /// Lets transactions run on this CPU, which has no event on a counter.
    pub(in crate::driver) fn allow(&self, cpu: &mut CpuState, irqs: &LocalInterruptDisabled) {
        if self.tsx_uses_counter {
            cpu.abort = false;
            tsx::set_force_abort(false, irqs);
        }
    }

    /// Returns counter 3, if transactions use it and it is `planned` for an event.
    fn wanted(&self, planned: CounterMask) -> Option<CounterId> {
        COUNTER.filter(|counter| self.tsx_uses_counter && planned.contains(*counter))
    }
}
