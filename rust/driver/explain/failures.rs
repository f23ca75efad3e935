// SPDX-License-Identifier: GPL-2.0

//! The events and groups that found no place on a CPU, and why: the last few.
//!
//! Kept where a placement fails, as values, and put into words when somebody asks
//! ([`snapshot`](super::snapshot)). One that has been placed since is still in here; who asks leaves
//! it out.

use crate::{
    kern::{caller::Caller, ticks::Ticks},
    logic::sched::explanation::Explanation,
    perf::{Event, Operations},
};
use kernel::prelude::*;

/// So many are kept for a CPU.
pub(in crate::driver) const KEPT: usize = 8;

/// An event, or the leader of a group, that found no place.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Unplaced {
    /// When that was last.
    pub(in crate::driver) when: Ticks,
    /// How often it was, as far as is known.
    pub(in crate::driver) times: u32,
    /// The perf core's number of the event.
    pub(in crate::driver) number: u64,
    /// `attr.type` and `attr.config`.
    pub(in crate::driver) asked_for: (u32, u64),
    /// Events of the group, the leader included.
    pub(in crate::driver) members: u32,
    /// Whether it must always be on a counter, and so is in the error state now.
    pub(in crate::driver) pinned: bool,
    /// Who it counts for, if it does not count for all of the CPU.
    pub(in crate::driver) task: Option<Caller>,
    pub(in crate::driver) explanation: Explanation,
}

impl Unplaced {
    /// The event, with so many `members` in its group, finds no place now on the CPU that this runs
    /// on.
    fn now<T: Operations>(event: &Event<T>, members: u32, explanation: Explanation) -> Self {
        Self {
            when: Ticks::now(),
            times: 1,
            number: event.number(),
            asked_for: event.asked_for(),
            members,
            pinned: event.is_pinned(),
            task: event.is_of_task().then(Caller::current),
            explanation,
        }
    }
}

/// The last ones of a CPU.
///
/// # Invariants
///
/// `next` is below [`KEPT`].
pub(in crate::driver) struct UnplacedList {
    slots: KBox<[Option<Unplaced>; KEPT]>,
    /// Where one goes that is not there yet.
    next: usize,
}

impl UnplacedList {
    /// `ENOMEM`, or an empty one.
    pub(in crate::driver) fn new() -> Result<Self> {
        let slots = KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL)?;
        // INVARIANT: 0 is below `KEPT`.
        Ok(Self { slots, next: 0 })
    }

    /// Keeps the event: in its own place if it is there already, else in that of who came first.
    pub(in crate::driver) fn push<T: Operations>(
        &mut self,
        event: &Event<T>,
        members: u32,
        explanation: Explanation,
    ) {
        let mut unplaced = Unplaced::now(event, members, explanation);
        for slot in self.slots.iter_mut().flatten() {
            if slot.number == unplaced.number {
                unplaced.times = slot.times.saturating_add(1);
                *slot = unplaced;
                return;
            }
        }
        if let Some(slot) = self.slots.get_mut(self.next) {
            *slot = Some(unplaced);
        }
        // INVARIANT: A remainder.
        self.next = (self.next + 1) % KEPT;
    }

    /// All of them.
    pub(in crate::driver) fn slots(&self) -> &[Option<Unplaced>; KEPT] {
        &self.slots
    }
}
