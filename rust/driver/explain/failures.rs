// SPDX-License-Identifier: GPL-2.0

//! The last events and groups that got no counter on a CPU, and the reasons.
//!
//! A failure is recorded as values, and explained when debugfs is read
//! ([`snapshot`](super::snapshot)). An event that has got a counter meanwhile is still recorded
//! here, but not shown.

use crate::{
    kern::{
        caller::Caller,
        ticks::Ticks, //
    },
    logic::sched::explanation::Reason,
    perf::{
        Event,
        Operations, //
    },
};
use kernel::prelude::*;

/// The number of failures that are kept for a CPU.
pub(in crate::driver) const KEPT: usize = 8;

/// An event, or the leader of a group, that got no counter.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Failure {
    /// The time of the last failure.
    pub(in crate::driver) when: Ticks,
    /// The number of failures since the event was first recorded.
    pub(in crate::driver) times: u32,
    /// The event's id (`PERF_EVENT_IOC_ID`).
    pub(in crate::driver) number: u64,
    /// `attr.type` and `attr.config`.
    pub(in crate::driver) attr_config: (u32, u64),
    /// The number of events of the group that were tried, including the leader.
    pub(in crate::driver) members: u32,
    /// Set if the event is pinned: the failure has put it into the error state.
    pub(in crate::driver) pinned: bool,
    /// The task that the event counts, unless it counts a CPU.
    pub(in crate::driver) task: Option<Caller>,
    pub(in crate::driver) reason: Reason,
}

impl Failure {
    /// Describes the failure of `event` on this CPU now. `members` is the number of events of its
    /// group that were tried.
    fn now<T: Operations>(event: &Event<T>, members: u32, reason: Reason) -> Self {
        Self {
            when: Ticks::now(),
            times: 1,
            number: event.number(),
            attr_config: event.attr_config(),
            members,
            pinned: event.is_pinned(),
            task: event.is_of_task().then(Caller::current),
            reason,
        }
    }
}

/// The last failures of a CPU.
///
/// # Invariants
///
/// `next` is below [`KEPT`].
pub(in crate::driver) struct Failures {
    slots: KBox<[Option<Failure>; KEPT]>,
    /// The slot for the next event that has none.
    next: usize,
}

impl Failures {
    /// Makes an empty list. Fails with `ENOMEM`.
    pub(in crate::driver) fn new() -> Result<Self> {
        let slots = KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL)?;
        // INVARIANT: 0 is below `KEPT`.
        Ok(Self { slots, next: 0 })
    }

    /// Records a failure of `event`. An event without a slot gets a free one or, if all are in use,
    /// the one assigned longest ago.
    pub(in crate::driver) fn push<T: Operations>(
        &mut self,
        event: &Event<T>,
        members: u32,
        reason: Reason,
    ) {
        let mut failure = Failure::now(event, members, reason);
        for slot in self.slots.iter_mut().flatten() {
            if slot.number == failure.number {
                failure.times = slot.times.saturating_add(1);
                *slot = failure;
                return;
            }
        }
        if let Some(slot) = self.slots.get_mut(self.next) {
            *slot = Some(failure);
        }
        // INVARIANT: A remainder of `KEPT` is below it.
        self.next = (self.next + 1) % KEPT;
    }

    /// Returns the slots, in no order.
    pub(in crate::driver) fn slots(&self) -> &[Option<Failure>; KEPT] {
        &self.slots
    }
}
