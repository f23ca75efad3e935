// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU that the PMI shares with callbacks.

use crate::{
    driver::hw::Hardware,
    logic::regs::counter::{CounterId, CounterMask, MAX_COUNTERS},
    perf::EventId,
};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use kernel::interrupt::LocalInterruptDisabled;

/// [`MAX_COUNTERS`] rounded up, so that masking an index bounds it.
const SLOTS: usize = MAX_COUNTERS.next_power_of_two();

/// What callbacks on a CPU share with the PMI that may interrupt them.
///
/// Only the CPU itself writes it, except `unknown`. So each store takes effect at once for whoever
/// comes next on the CPU, and no ordering is needed. `active` is written by callbacks only; what an
/// NMI may change too is changed by `compare_exchange`.
pub(in crate::driver) struct Shared {
    /// The counters whose events the PMI may handle: their registers are complete.
    active: AtomicU64,
    /// Those of them whose events an NMI has stopped, which is not in the schedule's books yet.
    halted: AtomicU64,
    /// What GLOBAL_CTRL is to be after the PMI, but for what is halted. 0 while the PMU is disabled,
    /// and in a PMI.
    enabled: AtomicU64,
    /// Index of the event on each active counter.
    events: [AtomicU32; SLOTS],
    /// Whether it is unknown what the registers hold. They are not to be used then.
    unknown: AtomicBool,
    /// Whether overflows could not be acknowledged.
    stuck: AtomicBool,
}

impl Shared {
    pub(in crate::driver) fn new() -> Self {
        Self {
            active: AtomicU64::new(0),
            halted: AtomicU64::new(0),
            enabled: AtomicU64::new(0),
            events: [const { AtomicU32::new(0) }; SLOTS],
            unknown: AtomicBool::new(true),
            stuck: AtomicBool::new(false),
        }
    }

    fn event_on(&self, counter: CounterId) -> &AtomicU32 {
        // The mask changes nothing, and leaves no panic path for the NMI.
        &self.events[counter.index() & (SLOTS - 1)]
    }

    /// Lets the PMI handle `event` on `counter`.
    pub(in crate::driver) fn activate(&self, counter: CounterId, event: EventId) {
        // CAST: an index is below 64.
        self.event_on(counter).store(event.index() as u32, Relaxed);
        self.set_halted(counter.mask(), false);
        let active = self.active.load(Relaxed);
        self.active.store(active | counter.mask().bits(), Relaxed);
    }

    /// Keeps the PMI from `counter`.
    pub(in crate::driver) fn deactivate(&self, counter: CounterId) {
        let active = self.active.load(Relaxed);
        self.active.store(active & !counter.mask().bits(), Relaxed);
    }

    /// The event that the PMI may handle on `counter`.
    pub(in crate::driver) fn active_event(&self, counter: CounterId) -> Option<EventId> {
        let handled = self.active.load(Relaxed) & !self.halted.load(Relaxed);
        if !CounterMask::from_bits(handled).contains(counter) {
            return None;
        }
        self.last_event(counter)
    }

    /// The event that was last activated on `counter`, if it has not been removed since.
    pub(in crate::driver) fn last_event(&self, counter: CounterId) -> Option<EventId> {
        // CAST: what `activate()` has stored.
        EventId::from_index(self.event_on(counter).load(Relaxed) as usize)
    }

    /// Stops `counter` in an NMI.
    ///
    /// The register shadow may be in use by who was interrupted. So the counter is only left out of
    /// GLOBAL_CTRL, which the shadow takes for on, until a callback settles it
    /// ([`halted`](Self::halted)).
    pub(in crate::driver) fn halt(&self, counter: CounterId) {
        self.set_halted(counter.mask(), true);
    }

    /// Whether that has been done, and not been settled yet.
    pub(in crate::driver) fn is_halted(&self, counter: CounterId) -> bool {
        let halted = self.halted.load(Relaxed) & self.active.load(Relaxed);
        CounterMask::from_bits(halted).contains(counter)
    }

    /// What has been halted and not been settled.
    pub(in crate::driver) fn halted(&self) -> CounterMask {
        CounterMask::from_bits(self.halted.load(Relaxed))
    }

    /// Says that it has been settled, or that it has not.
    pub(in crate::driver) fn set_halted(&self, counters: CounterMask, halt: bool) {
        let mut halted = self.halted.load(Relaxed);
        loop {
            let wanted = if halt {
                halted | counters.bits()
            } else {
                halted & !counters.bits()
            };
            if wanted == halted {
                return;
            }
            match self
                .halted
                .compare_exchange(halted, wanted, Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(changed) => halted = changed,
            }
        }
    }

    /// Says what GLOBAL_CTRL is to be after the PMI.
    pub(in crate::driver) fn set_enabled(&self, counters: CounterMask) {
        self.enabled.store(counters.bits(), Relaxed);
    }

    /// Returns what GLOBAL_CTRL is to be after the PMI, and keeps it at 0 until that is
    /// [set](Self::set_enabled) again.
    pub(in crate::driver) fn take_enabled(&self) -> CounterMask {
        CounterMask::from_bits(self.enabled.swap(0, Relaxed))
    }

    /// Lets the enabled counters count, unless they are halted. Nothing, if none is enabled.
    pub(in crate::driver) fn run(&self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        let enabled = self.enabled.load(Relaxed);
        if enabled == 0 {
            return;
        }
        loop {
            let halted = self.halted.load(Relaxed);
            hardware.run(CounterMask::from_bits(enabled & !halted), irqs);
            // An NMI in between may have halted one more, and this has let it go again.
            if self.halted.load(Relaxed) == halted {
                return;
            }
        }
    }

    /// Says that it is unknown what the registers hold. No event may be on the CPU. By any CPU.
    pub(in crate::driver) fn forget(&self) {
        self.unknown.store(true, Relaxed);
    }

    /// Whether it is unknown what the registers hold.
    pub(in crate::driver) fn is_unknown(&self) -> bool {
        self.unknown.load(Relaxed)
    }

    /// Whether it was unknown what the registers hold. It is known from now on.
    pub(in crate::driver) fn was_unknown(&self) -> bool {
        Self::take(&self.unknown)
    }

    /// Says that overflows could not be acknowledged, and halts all `counters`.
    pub(in crate::driver) fn set_stuck(&self, counters: CounterMask) {
        self.stuck.store(true, Relaxed);
        self.set_halted(counters, true);
    }

    /// Whether overflows could not be acknowledged, and all counters were halted. Once.
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
