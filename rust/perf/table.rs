// SPDX-License-Identifier: GPL-2.0

//! The events that are on one CPU.

use super::{
    Event,
    Operations, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::{
        AtomicPtr,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// How many events may be on one CPU at a time.
///
/// More than any PMU has counters.
const SIZE: usize = 64;

/// The id of an event while it is on a CPU: small, and unique there.
///
/// # Invariants
///
/// The number is below [`SIZE`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EventId(u8);

impl EventId {
    /// Returns the number, 0 to 63.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn bit(self) -> u64 {
        1u64.wrapping_shl(self.0.into())
    }

    /// Returns the id with the given number, [`None`] from 64 on.
    pub fn from_index(index: usize) -> Option<Self> {
        // INVARIANT: Just checked; so nothing is lost by the cast either.
        (index < SIZE).then_some(Self(index as u8))
    }
}

/// The events that are on one CPU, by [`EventId`].
///
/// Callbacks of the CPU and NMIs that interrupt them read the table at any time, so each entry is
/// an atomic pointer.
///
/// # Invariants
///
/// A non-null entry points to an event that `add` was called for, on the CPU of the table, and
/// for which `del` has not returned yet. Its bit in `taken` is set, as are those of
/// [forgotten](Self::forget) events.
pub(super) struct Table<T: Operations> {
    events: [AtomicPtr<bindings::perf_event>; SIZE],
    /// For `insert()` and `remove()` only, which callbacks of the CPU alone call.
    taken: AtomicU64,
    _events: PhantomData<Event<T>>,
}

impl<T: Operations> Table<T> {
    pub(super) fn new() -> Self {
        Self {
            // INVARIANT: There are no non-null entries yet.
            events: [const { AtomicPtr::new(ptr::null_mut()) }; SIZE],
            taken: AtomicU64::new(0),
            _events: PhantomData,
        }
    }

    fn entry(&self, id: EventId) -> &AtomicPtr<bindings::perf_event> {
        // The mask changes nothing (see the invariant of `EventId`) but shows the compiler that
        // no bounds check is needed, so that there is no panic path in NMI context.
        &self.events[id.index() & (SIZE - 1)]
    }

    /// Assigns an id to `event`. [`None`] if all are taken.
    ///
    /// # Safety
    ///
    /// To be called by the `add` callback of `event`, on the CPU of the table. `remove()` must be
    /// called before `del` returns, or at once if `add` fails.
    pub(super) unsafe fn insert(&self, event: *mut bindings::perf_event) -> Option<EventId> {
        let taken = self.taken.load(Relaxed);
        // CAST: 64 at most, which is no id.
        let id = EventId::from_index(taken.trailing_ones() as usize)?;
        // INVARIANT: `event` is just being added, by this function's requirements.
        self.taken.store(taken | id.bit(), Relaxed);
        self.entry(id).store(event, Relaxed);
        Some(id)
    }

    /// Releases the id of an event.
    pub(super) fn remove(&self, id: EventId) {
        self.entry(id).store(ptr::null_mut(), Relaxed);
        let taken = self.taken.load(Relaxed);
        self.taken.store(taken & !id.bit(), Relaxed);
    }

    /// Returns whether `id` is that of `event`. Any CPU.
    #[inline]
    pub(super) fn holds(&self, id: EventId, event: *mut bindings::perf_event) -> bool {
        self.entry(id).load(Relaxed) == event
    }

    /// Removes `event`, which has the given id, if it is in the table. The id stays taken. Any CPU.
    pub(super) fn forget(&self, id: EventId, event: *mut bindings::perf_event) {
        let entry = self.entry(id);
        // The table may hold another event, or none.
        let _ = entry.compare_exchange(event, ptr::null_mut(), Relaxed, Relaxed);
    }

    /// Returns the event with the given id.
    ///
    /// # Safety
    ///
    /// The table must be that of the CPU that `_irqs` is about.
    pub(super) unsafe fn get<'a>(
        &'a self,
        id: EventId,
        _irqs: &'a LocalInterruptDisabled,
    ) -> Option<&'a Event<T>> {
        let event = self.entry(id).load(Relaxed);
        if event.is_null() {
            return None;
        }
        // SAFETY: By the type invariant, `del` has not returned for this event, so it is alive,
        // and `event_init` was called for it. It stays so for `'a`: the perf core calls `del` on
        // the CPU that the event is on and not in NMI context, which is not possible while
        // interrupts are off there and this code runs; and a `del` that is running right now
        // removes the entry only after it has returned from the driver, to which `'a` is confined.
        Some(unsafe { Event::from_raw(event) })
    }
}
