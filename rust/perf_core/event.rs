// SPDX-License-Identifier: GPL-2.0

//! The state that this layer keeps for each event.

use super::InternalOperations;
use crate::perf::Event;
use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering::Relaxed, //
};

/// The state of an event.
#[derive(Default)]
pub struct EventState {
    /// Set once the event has been among the [`WaitingPinned`](super::pinned::WaitingPinned).
    pub(super) waits: AtomicBool,
    /// Set if [`pinned_opened`](crate::perf::Pmu::pinned_opened) has counted the event.
    pub(super) watched: AtomicBool,
    /// For the first event of the PMU in a group that rotates: the group's place by runtime. Valid
    /// as long as the group is at `place`.
    runtime: AtomicU64,
    /// The place at which the group was put (`group_index`).
    place: AtomicU64,
}

impl EventState {
    /// Marks the event as one of the [`WaitingPinned`](super::pinned::WaitingPinned).
    #[inline]
    pub(super) fn set_waiting(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Stores the group's place by runtime, and the place at which it was put.
    #[inline]
    pub(super) fn set_place(&self, runtime: u64, place: u64) {
        self.runtime.store(runtime, Relaxed);
        self.place.store(place, Relaxed);
    }

    /// Returns what [`set_place`](Self::set_place) has stored.
    #[inline]
    pub(super) fn place(&self) -> (u64, u64) {
        (self.runtime.load(Relaxed), self.place.load(Relaxed))
    }
}

/// Returns the state of an event.
#[inline(always)]
pub(super) fn internals_of<T: InternalOperations>(event: &Event<T>) -> &EventState {
    T::event_state(event.data())
}
