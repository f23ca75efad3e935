// SPDX-License-Identifier: GPL-2.0

//! Counter 3 and transactions, where the processor wants it for both (`TSX_FORCE_ABORT`).
//!
//! A CPU's transactions are made to abort while an event of its PMU is on counter 3, and no longer.
//! Who would rather have transactions than a fourth counter switches that off, in sysfs:
//! `allow_tsx_force_abort`. Mainline: `intel_tfa_commit_scheduling()`,
//! `intel_tfa_pmu_enable_all()` and `set_sysctl_tfa()`, `arch/x86/events/intel/core.c:2941-2972`,
//! `7165-7210`; there, switching it on lets events wait until they take turns.

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

/// The counter that transactions use.
const COUNTER: Option<CounterId> = CounterId::gp(3);

/// What the transactions of a CPU do at present.
#[derive(Default)]
pub(in crate::driver) struct CpuState {
    /// Whether they are made to abort.
    abort: bool,
}

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

    /// Returns whether transactions may be made to abort.
    pub(in crate::driver) fn abort_is_allowed(&self) -> bool {
        self.allow_abort.load(Relaxed)
    }

    /// Says whether transactions may be made to abort. Returns whether that was different before.
    pub(in crate::driver) fn allow_abort(&self, allow: bool) -> bool {
        self.allow_abort.swap(allow, Relaxed) != allow
    }

    /// Takes counter 3 from the transactions of this CPU if it is among the counters that are
    /// `planned`, before these are programmed.
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
            // A transaction may have used it since we did.
            shadow.forget(counter);
        }
    }

    /// Gives counter 3 back to the transactions of this CPU, switched off, if it is not among the
    /// counters that are `planned`, after these have been programmed.
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

    /// Gives counter 3 back to the transactions of this CPU, on which no event is.
    pub(in crate::driver) fn allow(&self, cpu: &mut CpuState, irqs: &LocalInterruptDisabled) {
        if self.use_counter {
            cpu.abort = false;
            tsx::set_force_abort(false, irqs);
        }
    }

    /// Returns counter 3, if transactions use it and it is `planned` for an event.
    fn wanted(&self, planned: CounterMask) -> Option<CounterId> {
        COUNTER.filter(|counter| self.use_counter && planned.contains(*counter))
    }
}
