// SPDX-License-Identifier: GPL-2.0

//! Rotation's state of an event: whether it waits, and its group's share of the time.
//!
//! Callbacks on the CPU of the event's context use it, with interrupts off. Its fields are atomics,
//! since an event's data is shared.

use crate::logic::{
    regs::counter::CounterMask,
    smt::right_of_way::Share, //
};
use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering::Relaxed, //
};

/// Rotation's state of an event.
pub(in crate::driver) struct Turn {
    /// Set if the event waits in the rotation: its group has counted and was moved behind others,
    /// it got no counter at the end of an interval, or it has to count together with others of its
    /// kind.
    waits: AtomicBool,
    /// The group's share of the time ([`Share::parts`]), if the threads of a core contend for
    /// counters. Kept with the group's first event.
    share: [AtomicU64; 3],
    /// The nanoseconds that the group had spent on counters when rotation last charged it. Kept
    /// with the group's first event, too.
    charged: AtomicU64,
    /// The counters that no waiting group could use when the event last failed, and the generation
    /// of its context at that time.
    left: AtomicU64,
    left_at: AtomicU64,
    /// The generation of the event's context, plus 1, at the last long search for waiting groups
    /// that can ride on counters of others; 0 before the first one.
    searched: AtomicU64,
}

impl Turn {
    pub(in crate::driver) fn new() -> Self {
        Self {
            waits: AtomicBool::new(false),
            share: Share::NONE.parts().map(AtomicU64::new),
            charged: AtomicU64::new(0),
            left: AtomicU64::new(0),
            left_at: AtomicU64::new(0),
            searched: AtomicU64::new(0),
        }
    }

    /// Returns whether the event waits in the rotation.
    pub(in crate::driver) fn waits(&self) -> bool {
        self.waits.load(Relaxed)
    }

    /// Records that the event waits in the rotation.
    pub(in crate::driver) fn wait(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Records that the event gets a counter.
    #[inline]
    pub(in crate::driver) fn arrive(&self) {
        self.waits.store(false, Relaxed);
    }

    /// Records that no waiting group could use the counters `left` when the event failed at this
    /// `generation` of its context.
    pub(in crate::driver) fn set_left(&self, left: CounterMask, generation: u64) {
        self.left.store(left.bits(), Relaxed);
        self.left_at.store(generation, Relaxed);
    }

    /// Returns the counters that [`set_left`](Self::set_left) has recorded for this `generation` of
    /// the context; none if it has recorded another generation.
    pub(in crate::driver) fn left_at(&self, generation: u64) -> CounterMask {
        match self.left_at.load(Relaxed) == generation {
            true => CounterMask::from_bits(self.left.load(Relaxed)),
            false => CounterMask::EMPTY,
        }
    }

    /// Records a long search, behind this event, for groups that can ride on counters of others, at
    /// this `generation` of its context.
    pub(in crate::driver) fn set_searched(&self, generation: u64) {
        self.searched.store(generation.wrapping_add(1), Relaxed);
    }

    /// Returns whether no [search](Self::set_searched) is recorded for this `generation`.
    pub(in crate::driver) fn may_search_again(&self, generation: u64) -> bool {
        self.searched.load(Relaxed) != generation.wrapping_add(1)
    }

    /// Updates and returns the share of the time of the group whose first event this is. `running`
    /// is the event's total time on counters; both times are in nanoseconds.
    pub(in crate::driver) fn share(&self, now: u64, running: u64) -> u64 {
        let mut share = Share::from_parts(self.share.each_ref().map(|part| part.load(Relaxed)));
        let value = share.account(now, running);
        for (part, new) in self.share.iter().zip(share.parts()) {
            part.store(new, Relaxed);
        }
        value
    }

    /// Charges the group whose first event this is. `running` is the event's total time on
    /// counters. Returns the time on counters since the last charge; both are in nanoseconds.
    pub(in crate::driver) fn charge(&self, running: u64) -> u64 {
        let ran = self.uncharged(running);
        self.charged.store(running, Relaxed);
        ran
    }

    /// Returns the result of [`charge`](Self::charge), without charging.
    pub(in crate::driver) fn uncharged(&self, running: u64) -> u64 {
        running.saturating_sub(self.charged.load(Relaxed))
    }
}
