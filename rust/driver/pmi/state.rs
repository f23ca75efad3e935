// SPDX-License-Identifier: GPL-2.0

//! The part of a CPU's state that callbacks share with the PMI.

use super::hypervisors::Hypervisors;
use crate::{
    driver::{
        counter_use::Uses,
        hw::Hardware, //
    },
    logic::{
        breaker::Signs,
        pmi::running::Running,
        regs::{
            counter::{
                CounterId,
                CounterMask, //
            },
            metrics::TOPDOWN, //
        },
    },
    perf::EventId,
    x86::builtin::Mirror, //
};
use core::sync::atomic::{
    AtomicBool,
    Ordering::Relaxed, //
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The state that callbacks on a CPU share with the PMI, which may interrupt them.
///
/// Only the CPU itself writes it.
pub(in crate::driver) struct PmiState {
    /// The counters that the PMI handles, and the counters that it lets run at its end.
    running: Running,
    /// The register values that are published for hypervisors.
    pub(in crate::driver) hypervisors: Hypervisors,
    /// The signs that the PMU does not work.
    pub(in crate::driver) signs: Signs,
    /// The use of each counter.
    pub(in crate::driver) uses: Uses,
    /// Set if the registers may hold anything. Counters must not be used then.
    unknown: AtomicBool,
    /// Set if there were overflows that could not be acknowledged.
    stuck: AtomicBool,
}

impl PmiState {
    pub(in crate::driver) fn new(mirror: Option<Mirror>) -> impl Init<Self, Error> {
        try_init!(Self {
            running: Running::default(),
            hypervisors: Hypervisors::new(mirror),
            signs: Signs::default(),
            uses <- Uses::init(),
            unknown: AtomicBool::new(true),
            stuck: AtomicBool::new(false),
        }? Error)
    }

    /// Lets the PMI handle `event` on `counter`.
    pub(in crate::driver) fn activate(&self, counter: CounterId, event: EventId) {
        self.uses.on(counter).set_event(event);
        if self.running.activate(counter) {
            self.announce_in_guest();
        }
    }

    /// Keeps the PMI from handling `counter`.
    pub(in crate::driver) fn deactivate(&self, counter: CounterId) {
        self.running.deactivate(counter);
    }

    /// Returns the counters whose events the PMI may handle.
    #[inline]
    pub(in crate::driver) fn handled(&self) -> CounterMask {
        self.running.handled()
    }

    /// Returns the active counters of slots and topdown metrics, including halted ones.
    pub(in crate::driver) fn topdown(&self) -> CounterMask {
        self.running.active() & TOPDOWN
    }

    /// Returns the event that the PMI may handle on `counter`.
    pub(in crate::driver) fn active_event(&self, counter: CounterId) -> Option<EventId> {
        if !self.handled().contains(counter) {
            return None;
        }
        self.last_event(counter)
    }

    /// Returns the id of the event that was last activated on `counter`; the event may have left
    /// since.
    pub(in crate::driver) fn last_event(&self, counter: CounterId) -> Option<EventId> {
        self.uses.on(counter).last_event()
    }

    /// Records `counter` as halted ([`Running::set_halted`]). In an NMI, the caller calls
    /// [`run`](Self::run) next, which stops it.
    pub(in crate::driver) fn halt(&self, counter: CounterId) {
        self.set_halted(counter.mask(), true);
    }

    /// Returns whether `counter` is active.
    pub(in crate::driver) fn is_active(&self, counter: CounterId) -> bool {
        self.running.active().contains(counter)
    }

    /// Returns whether `counter` is active and halted.
    pub(in crate::driver) fn is_halted(&self, counter: CounterId) -> bool {
        self.running.is_halted(counter)
    }

    /// Returns the halted counters, which the shadow still has running.
    pub(in crate::driver) fn halted(&self) -> CounterMask {
        self.running.halted()
    }

    /// Returns whether any counter is [halted](Self::halted).
    #[inline]
    pub(in crate::driver) fn has_halted(&self) -> bool {
        self.running.has_halted()
    }

    /// Records that `counters` are halted, or no longer halted.
    pub(in crate::driver) fn set_halted(&self, counters: CounterMask, halt: bool) {
        if self.running.set_halted(counters, halt) {
            self.announce_in_guest();
        }
    }

    /// Sets the value that GLOBAL_CTRL has while the PMU is enabled, and that a PMI restores.
    /// Unless it is 0, the caller calls [`run`](Self::run) next.
    pub(in crate::driver) fn set_enabled(&self, counters: CounterMask) {
        self.running.set_enabled(counters);
    }

    /// Returns the value that GLOBAL_CTRL has while the PMU is enabled, and makes it 0 until it is
    /// [set](Self::set_enabled) again. The caller stops the counters next.
    pub(in crate::driver) fn take_enabled(&self) -> CounterMask {
        let enabled = self.running.take_enabled();
        self.hypervisors.announce_stop();
        enabled
    }

    /// Sets the value that GLOBAL_CTRL is to have in virtual machines, and publishes it if it has
    /// changed. The caller lets counters [run](Self::run) afterwards.
    #[inline]
    pub(in crate::driver) fn set_in_guest(&self, counters: CounterMask) {
        if self.hypervisors.set_in_guest(counters) {
            self.announce_in_guest();
        }
    }

    #[inline]
    fn announce_in_guest(&self) {
        self.hypervisors.announce_in_guest(&self.running);
    }

    /// Lets the enabled counters count, except halted ones. Does nothing if none is enabled.
    pub(in crate::driver) fn run(&self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        self.running.run(|counters| {
            self.hypervisors.announce_run(counters);
            hardware.run(counters, irqs);
        });
    }

    /// Clears the enabled counters, and withdraws the published values of GLOBAL_CTRL, as the
    /// built-in driver does when it has no event on the CPU. No event is on a counter any more.
    pub(in crate::driver) fn withdraw(&self) {
        self.set_enabled(CounterMask::EMPTY);
        self.hypervisors.withdraw();
    }

    /// Records that the registers may hold anything. No event may be on a counter.
    pub(in crate::driver) fn forget(&self) {
        self.unknown.store(true, Relaxed);
    }

    /// Returns whether the registers may hold anything.
    pub(in crate::driver) fn is_unknown(&self) -> bool {
        self.unknown.load(Relaxed)
    }

    /// Returns whether the registers may hold anything, and marks them as known.
    pub(in crate::driver) fn was_unknown(&self) -> bool {
        Self::take(&self.unknown)
    }

    /// Records that there were overflows that could not be acknowledged, and halts all `counters`.
    pub(in crate::driver) fn set_stuck(&self, counters: CounterMask) {
        self.stuck.store(true, Relaxed);
        self.set_halted(counters, true);
    }

    /// Returns whether there were overflows that could not be acknowledged.
    pub(in crate::driver) fn is_stuck(&self) -> bool {
        self.stuck.load(Relaxed)
    }

    /// Returns whether there were overflows that could not be acknowledged, and clears the record.
    pub(in crate::driver) fn was_stuck(&self) -> bool {
        Self::take(&self.stuck)
    }

    fn take(flag: &AtomicBool) -> bool {
        let set = flag.load(Relaxed);
        if set {
            flag.store(false, Relaxed);
        }
        set
    }
}
