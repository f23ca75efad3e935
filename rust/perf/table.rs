// SPDX-License-Identifier: GPL-2.0

//! The events that are on one CPU.

use super::{
    Event,
    Operations, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    num::NonZeroU64,
    ptr,
    sync::atomic::{
        AtomicPtr,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The maximum number of events on one CPU at a time.
///
/// More than any PMU has counters, since events may share a counter.
pub const MAX_EVENTS: usize = 128;
const SIZE: usize = MAX_EVENTS;
const WORDS: usize = SIZE / u64::BITS as usize;

/// The id of an event while it is on a CPU: small, and unique there.
///
/// # Invariants
///
/// The number is below [`SIZE`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EventId(u8);

impl EventId {
    /// Returns the number, below [`MAX_EVENTS`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the number of the word with the id's bit, and the bit.
    fn place(self) -> (usize, u64) {
        // The mask changes nothing, by the type invariant.
        let word = usize::from(self.0 / 64) & (WORDS - 1);
        (word, 1u64.wrapping_shl((self.0 % 64).into()))
    }

    /// Returns the id with the given number; [`None`] if it is [`MAX_EVENTS`] or more.
    pub fn from_index(index: usize) -> Option<Self> {
        // INVARIANT: The number has just been checked.
        // CAST: so it fits in a `u8`.
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
/// A non-null entry points to an event for which `add` was called on the table's CPU, and `del` has
/// not returned yet. Its bit in `taken` is set. The bits of [forgotten](Self::forget) events are
/// set, too.
pub(super) struct Table<T: Operations> {
    events: [AtomicPtr<bindings::perf_event>; SIZE],
    /// The taken ids. Only `insert()` and `remove()` use it, which only callbacks on the CPU call.
    taken: [AtomicU64; WORDS],
    _events: PhantomData<Event<T>>,
}

impl<T: Operations> Table<T> {
    pub(super) fn new() -> Self {
        Self {
            // INVARIANT: There are no non-null entries yet.
            events: [const { AtomicPtr::new(ptr::null_mut()) }; SIZE],
            taken: [const { AtomicU64::new(0) }; WORDS],
            _events: PhantomData,
        }
    }

    fn entry(&self, id: EventId) -> &AtomicPtr<bindings::perf_event> {
        // The mask changes nothing, by the invariant of `EventId`. It shows the compiler that no
        // bounds check is needed, so that there is no panic path in NMI context.
        &self.events[id.index() & (SIZE - 1)]
    }

    /// Assigns an id to `event`. Returns [`None`] if all are taken.
    ///
    /// # Safety
    ///
    /// To be called by the `add` callback of `event`, on the CPU of the table. `remove()` must be
    /// called before `del` returns, or at once if `add` fails.
    pub(super) unsafe fn insert(&self, event: *mut bindings::perf_event) -> Option<EventId> {
        let mut words = (0u8..).zip(&self.taken);
        let (number, word, free) = words.find_map(|(number, word)| {
            Some((number, word, NonZeroU64::new(!word.load(Relaxed))?))
        })?;
        // CAST: less than 64.
        let bit = free.trailing_zeros() as u8;
        // INVARIANT: There are `SIZE` bits.
        let id = EventId(number.wrapping_mul(64).wrapping_add(bit));
        word.store(!(free.get() & free.get().wrapping_sub(1)), Relaxed);
        // INVARIANT: By this function's requirements `event` is just being added.
        self.entry(id).store(event, Relaxed);
        Some(id)
    }

    /// Releases the id of an event.
    pub(super) fn remove(&self, id: EventId) {
        self.entry(id).store(ptr::null_mut(), Relaxed);
        let (word, bit) = id.place();
        let taken = self.taken[word].load(Relaxed);
        self.taken[word].store(taken & !bit, Relaxed);
    }

    /// Returns whether `event` has the id `id`. Any CPU.
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
    /// The table must belong to the CPU on which `_irqs` proves that interrupts are off.
    pub(super) unsafe fn get<'a>(
        &'a self,
        id: EventId,
        _irqs: &'a LocalInterruptDisabled,
    ) -> Option<&'a Event<T>> {
        let event = self.entry(id).load(Relaxed);
        if event.is_null() {
            return None;
        }
        // SAFETY: By the type invariant, `del` has not returned for this event, so it is alive, and
        // `event_init` was called for it. Both stay true for `'a`: the perf core calls `del` on the
        // event's CPU and not in NMI context, which cannot happen while interrupts are off there
        // and this code runs. A `del` that is already running removes the entry only after the
        // driver has returned, and `'a` is confined to the driver.
        Some(unsafe { Event::from_raw(event) })
    }
}
