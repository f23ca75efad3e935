// SPDX-License-Identifier: GPL-2.0

//! The counters that a PMI handles, and those that count after it.
//!
//! ```text
//!            activate()            set_halted(.., true), in an NMI
//!  inactive ────────────► active ─────────────────────────────────► halted
//!           ◄────────────        ◄─────────────────────────────────
//!            deactivate()          set_halted(.., false), in an NMI
//! ```
//!
//! A callback that brings the register shadow up to date deactivates halted counters, and then
//! records that they are no longer halted. The rules that this module keeps for the shadow are in
//! [`shadow`](crate::logic::regs::shadow).

use super::Word;
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use core::sync::atomic::AtomicU64;

/// The counters of a CPU that a PMI handles, and those that count after it.
///
/// Only callbacks change the active counters. Callbacks and PMIs change the halted counters by
/// `compare_exchange`. A PMI that takes the enabled counters restores them before it ends.
pub struct Running<W = AtomicU64> {
    /// The counters whose registers are complete. The PMI handles their events unless they are
    /// halted.
    active: W,
    /// The counters that an NMI has stopped while the shadow still has them as running. Includes
    /// inactive ones after overflows that could not be acknowledged.
    halted: W,
    /// The counters that count while the PMU is enabled, except halted ones. A PMI takes them, and
    /// sets them again at its end. 0 while the PMU is disabled, and in a PMI that stops the
    /// counters.
    enabled: W,
}

impl<W: Word> Default for Running<W> {
    fn default() -> Self {
        Self {
            active: W::new(0),
            halted: W::new(0),
            enabled: W::new(0),
        }
    }
}

impl<W: Word> Running<W> {
    /// Lets the PMI handle `counter`, whose registers and event are complete. Returns whether the
    /// counter was halted.
    #[inline]
    pub fn activate(&self, counter: CounterId) -> bool {
        let was_halted = self.has_halted() && self.set_halted(counter.mask(), false);
        self.active
            .store(self.active.load() | counter.mask().bits());
        was_halted
    }

    /// Keeps the PMI from handling `counter`.
    #[inline]
    pub fn deactivate(&self, counter: CounterId) {
        self.active
            .store(self.active.load() & !counter.mask().bits());
    }

    /// Returns the active counters, including halted ones.
    #[inline]
    pub fn active(&self) -> CounterMask {
        CounterMask::from_bits(self.active.load())
    }

    /// Returns the counters whose events the PMI may handle.
    #[inline]
    pub fn handled(&self) -> CounterMask {
        CounterMask::from_bits(self.active.load() & !self.halted.load())
    }

    /// Returns whether `counter` is active and halted.
    pub fn is_halted(&self, counter: CounterId) -> bool {
        let halted = self.halted.load() & self.active.load();
        CounterMask::from_bits(halted).contains(counter)
    }

    /// Returns the halted counters, including inactive ones.
    #[inline]
    pub fn halted(&self) -> CounterMask {
        CounterMask::from_bits(self.halted.load())
    }

    /// Returns whether there are any [halted](Self::halted) counters.
    #[inline]
    pub fn has_halted(&self) -> bool {
        self.halted.load() != 0
    }

    /// Halts `counters`, or records that they are no longer halted. Returns whether this has
    /// changed anything.
    ///
    /// An NMI cannot use the register shadow to stop a counter: the interrupted code may be using
    /// the shadow. So the NMI only removes the counter from GLOBAL_CTRL, which *halts* the counter.
    /// The shadow has the counter as running until a callback updates the shadow.
    #[inline]
    pub fn set_halted(&self, counters: CounterMask, halt: bool) -> bool {
        let mut halted = self.halted.load();
        loop {
            let wanted = if halt {
                halted | counters.bits()
            } else {
                halted & !counters.bits()
            };
            if wanted == halted {
                return false;
            }
            match self.halted.compare_exchange(halted, wanted) {
                Ok(()) => return true,
                Err(changed) => halted = changed,
            }
        }
    }

    /// Sets the counters that count while the PMU is enabled. Unless there are none, the caller
    /// calls [`run`](Self::run) next.
    #[inline]
    pub fn set_enabled(&self, counters: CounterMask) {
        self.enabled.store(counters.bits());
    }

    /// Returns the counters that count while the PMU is enabled, and records that there are none
    /// until they are [set](Self::set_enabled) again. The caller stops the counters next.
    #[inline]
    pub fn take_enabled(&self) -> CounterMask {
        CounterMask::from_bits(self.enabled.swap(0))
    }

    /// Lets the enabled counters count, except halted ones, by calling `write`, which sets
    /// GLOBAL_CTRL. Does nothing if no counter is enabled.
    #[inline]
    pub fn run(&self, write: impl FnMut(CounterMask)) {
        let enabled = self.enabled.load();
        if enabled != 0 {
            self.without_halted(CounterMask::from_bits(enabled), write);
        }
    }

    /// Calls `write` with the `counters` that are not halted, and again if an NMI has halted one
    /// meanwhile.
    #[inline]
    pub fn without_halted(&self, counters: CounterMask, mut write: impl FnMut(CounterMask)) {
        loop {
            let halted = self.halted();
            write(counters.without(halted));
            // If an NMI has halted a counter meanwhile, `write` may have overwritten the NMI's
            // value of GLOBAL_CTRL with an old one: write again.
            if self.halted() == halted {
                return;
            }
        }
    }
}
