// SPDX-License-Identifier: GPL-2.0

//! The use of each counter of a CPU: its event, the way in which that event counts, and the value
//! that the counter had when it was last read or written.
//!
//! [`EventData`](super::event::EventData) has an event's demand, and its state while it is on no
//! counter. An event [arrives](CounterUse::arrive) on a counter when the plan is programmed, and
//! the [`CounterUse`] describes it until the next event arrives. Callbacks and the PMI on the CPU
//! access it by atomics; [`counting`](super::counting) has the operations.

use crate::{
    logic::{
        model::constraint::Constraint,
        open::precise::Precise,
        pmi::{
            last_value::LastValue,
            shared_count::{
                SharedCount,
                Total, //
            },
        },
        regs::counter::{
            CounterId,
            MAX_COUNTERS, //
        },
    },
    perf::EventId, //
};
use core::{
    convert::Infallible,
    sync::atomic::{
        AtomicU32,
        AtomicU64,
        AtomicU8,
        Ordering::Relaxed, //
    },
};
use kernel::prelude::*;

/// [`MAX_COUNTERS`] rounded up to a power of two, so that a mask bounds an index.
const ENTRIES: usize = MAX_COUNTERS.next_power_of_two();

/// The way in which an event counts.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Way {
    /// On a counter.
    Counter,
    /// On two counters.
    Pair,
    /// The slots, on a counter, with metrics in its group.
    Slots,
    /// A topdown metric: a share of the slots.
    Metric,
    /// On a counter whose overflows the processor records.
    Precise,
    /// On nothing: the event lends the branch records to a guest.
    GuestBranches,
    /// On a counter that [equal events share](super::riders). The way of a counter only: an event
    /// that can share a counter has the way [`Counter`](Self::Counter).
    Shared,
}

impl Way {
    /// Returns the way of a new event. Slots begin as [`Counter`](Self::Counter), until a metric
    /// joins the group.
    pub(super) fn of(constraint: Constraint, precise: Option<Precise>) -> Self {
        if precise.is_some() {
            Self::Precise
        } else if constraint.pair {
            Self::Pair
        } else if constraint.counters.has_metrics() {
            Self::Metric
        } else if constraint.counters.contains(CounterId::GUEST_BRANCHES) {
            Self::GuestBranches
        } else {
            Self::Counter
        }
    }

    /// Returns the way with this number.
    #[inline]
    pub(super) const fn from_number(number: u8) -> Self {
        const PAIR: u8 = Way::Pair as u8;
        const SLOTS: u8 = Way::Slots as u8;
        const METRIC: u8 = Way::Metric as u8;
        const PRECISE: u8 = Way::Precise as u8;
        const GUEST_BRANCHES: u8 = Way::GuestBranches as u8;
        const SHARED: u8 = Way::Shared as u8;
        // Most events; the rest becomes a chain of comparisons.
        if number == Self::Counter as u8 {
            return Self::Counter;
        }
        match number {
            PAIR => Self::Pair,
            SLOTS => Self::Slots,
            METRIC => Self::Metric,
            PRECISE => Self::Precise,
            GUEST_BRANCHES => Self::GuestBranches,
            SHARED => Self::Shared,
            _ => Self::Counter,
        }
    }
}

/// The use of each counter of a CPU.
pub(super) struct Uses {
    counters: [CounterUse; ENTRIES],
}

impl Uses {
    /// Creates the uses of counters without events.
    pub(super) fn init() -> impl Init<Self, Infallible> {
        init!(Self {
            counters <- pin_init::init_array_from_fn(|_| CounterUse::new()),
        })
    }

    /// Returns the use of `counter`.
    #[inline(always)]
    pub(super) fn on(&self, counter: CounterId) -> &CounterUse {
        // The mask changes no index, and leaves no panic path for the NMI.
        &self.counters[counter.index() & (ENTRIES - 1)]
    }
}

/// The use of a counter.
pub(super) struct CounterUse {
    /// The index of the event that was last started on the counter, or became the owner of a shared
    /// one.
    event: AtomicU32,
    /// The way in which that event counts, a [`Way`].
    way: AtomicU8,
    /// The auto-reload period, which the processor starts as it records an overflow; 0 without
    /// auto-reload. Changes with each start of a precise event.
    reload: AtomicU64,
    /// The value when the counter was last read or written; if it is shared, when it was last
    /// written. For a metric: the slots of its share.
    pub(super) last: LastValue,
    /// The total and the riders, if the counter is shared.
    pub(super) shared_count: SharedCount,
    /// The last group read for which the shared counter was read, and the total that it had.
    group_read: AtomicU64,
    group_total: AtomicU64,
}

impl CounterUse {
    fn new() -> Self {
        Self {
            event: AtomicU32::new(0),
            way: AtomicU8::new(Way::Counter as u8),
            reload: AtomicU64::new(0),
            last: LastValue::default(),
            shared_count: SharedCount::default(),
            group_read: AtomicU64::new(0),
            group_total: AtomicU64::new(0),
        }
    }

    /// Records that an event that counts in this `way` gets the counter, which is no
    /// longer shared.
    #[inline]
    pub(super) fn arrive(&self, way: Way) {
        self.way.store(way as u8, Relaxed);
    }

    /// Records that `event` is being started, before the PMI handles the counter, or that it has
    /// become the owner of the shared counter.
    #[inline]
    pub(super) fn set_event(&self, event: EventId) {
        // CAST: an index is below 128.
        self.event.store(event.index() as u32, Relaxed);
    }

    /// Returns the id of the event that was last started; the event may have left since.
    #[inline]
    pub(super) fn last_event(&self) -> Option<EventId> {
        // CAST: `set_event()` has stored an index.
        EventId::from_index(self.event.load(Relaxed) as usize)
    }

    /// Returns whether [events share](super::riders) the counter.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.way.load(Relaxed) == Way::Shared as u8
    }

    /// Records that events share the counter, until the next event [arrives](Self::arrive).
    pub(super) fn set_shared(&self) {
        self.way.store(Way::Shared as u8, Relaxed);
    }

    /// Returns the total of the shared counter for the group read with this `number`: for the first
    /// member, the `total` now, and for the others the same.
    ///
    /// Not for an NMI that interrupts the group read: the total lacks the occurrences since then.
    pub(super) fn total_of_group(&self, number: u64, total: impl FnOnce() -> Total) -> Total {
        if self.group_read.load(Relaxed) != number {
            self.group_total.store(total().to_word(), Relaxed);
            self.group_read.store(number, Relaxed);
        }
        Total::from_word(self.group_total.load(Relaxed))
    }

    /// Returns whether the counter's event counts in another way than [`Way::Counter`].
    #[inline]
    pub(super) fn is_special(&self) -> bool {
        self.way.load(Relaxed) != Way::Counter as u8
    }

    /// Returns the way in which the counter's event counts.
    #[inline]
    pub(super) fn way(&self) -> Way {
        Way::from_number(self.way.load(Relaxed))
    }

    /// Returns the auto-reload period, see [`set_reload`](Self::set_reload).
    pub(super) fn reload(&self) -> u64 {
        self.reload.load(Relaxed)
    }

    /// Records the auto-reload period, which the processor starts as it records an overflow; with
    /// 0, the counter continues from 0 instead.
    pub(super) fn set_reload(&self, period: u64) {
        self.reload.store(period, Relaxed);
    }

    /// Returns the value when the counter was last read or written.
    pub(super) fn previous(&self) -> u64 {
        self.last.get()
    }
}
