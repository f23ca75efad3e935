// SPDX-License-Identifier: GPL-2.0

//! Sets, tables and orders of the numbered events of a [`Problem`](super::Problem).

use crate::logic::regs::counter::{
    CounterMask,
    MAX_COUNTERS, //
};

/// Maximum number of events on a PMU: one for each counter.
pub const MAX_EVENTS: usize = MAX_COUNTERS;

/// Number of an event in a [`Problem`](super::Problem), in the order of insertion.
///
/// # Invariants
///
/// Below [`MAX_EVENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventIndex(pub(super) u8);

/// A set of events, as a bit mask. Iterates in ascending order of the events' numbers.
///
/// # Invariants
///
/// No bit from [`MAX_EVENTS`] on is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventSet(u64);

impl EventSet {
    pub(super) const EMPTY: Self = Self(0);

    /// Returns the first `count` events, at most [`MAX_EVENTS`].
    pub(super) const fn first(count: u8) -> Self {
        Self(1u64.wrapping_shl(count as u32).wrapping_sub(1))
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) const fn contains(self, event: EventIndex) -> bool {
        (self.0 >> (event.0 & 63)) & 1 != 0
    }

    pub(super) const fn insert(&mut self, event: EventIndex) {
        self.0 |= 1u64.wrapping_shl(event.0 as u32);
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Iterator for EventSet {
    type Item = EventIndex;

    /// Removes and returns the event with the lowest number.
    fn next(&mut self) -> Option<EventIndex> {
        if self.0 == 0 {
            return None;
        }
        // INVARIANT: no bit from `MAX_EVENTS` on is set, so the lowest is below it.
        let event = EventIndex(self.0.trailing_zeros() as u8);
        self.0 &= self.0.wrapping_sub(1);
        Some(event)
    }
}

/// A `T` for every event. The index cannot be out of range.
// Aligned so that bytes are copied eight at a time.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(super) struct PerEvent<T>(pub(super) [T; PER_EVENT]);

/// [`MAX_EVENTS`] rounded up to a power of two, so that masking an index bounds it.
const PER_EVENT: usize = MAX_EVENTS.next_power_of_two();

impl<T: Copy> PerEvent<T> {
    pub(super) const fn new(value: T) -> Self {
        Self([value; PER_EVENT])
    }
}

impl<T> core::ops::Index<EventIndex> for PerEvent<T> {
    type Output = T;

    fn index(&self, event: EventIndex) -> &T {
        &self.0[event.0 as usize & (PER_EVENT - 1)]
    }
}

impl<T> core::ops::IndexMut<EventIndex> for PerEvent<T> {
    fn index_mut(&mut self, event: EventIndex) -> &mut T {
        &mut self.0[event.0 as usize & (PER_EVENT - 1)]
    }
}

/// The numbers of events, sorted by weight and then by number. In a
/// [`CpuSchedule`](crate::logic::sched::cpu_schedule::CpuSchedule), the number is that of the slot.
#[derive(Clone, Copy, Debug)]
pub(in crate::logic) struct Order {
    /// The weight in the upper byte, the number in the lower one.
    keys: [u16; PER_EVENT],
    /// At most `MAX_EVENTS`.
    len: u8,
}

impl Order {
    /// The order of no event.
    pub(in crate::logic) const EMPTY: Self = Self {
        keys: [0; PER_EVENT],
        len: 0,
    };

    /// Removes all events.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Inserts an event that may use the counters `wanted`.
    pub(in crate::logic) fn insert(&mut self, event: u8, wanted: CounterMask) {
        let key = ((wanted.weight() as u16) << 8) | u16::from(event);
        let mut place = usize::from(self.len);
        self.len = self.len.wrapping_add(1);
        while place > 0 {
            let other = self.keys[place.wrapping_sub(1) & (PER_EVENT - 1)];
            if other < key {
                break;
            }
            self.keys[place & (PER_EVENT - 1)] = other;
            place = place.wrapping_sub(1);
        }
        self.keys[place & (PER_EVENT - 1)] = key;
    }

    /// Returns the event at a place; [`None`] behind the last event.
    pub(in crate::logic) fn get(&self, place: u8) -> Option<u8> {
        if place >= self.len {
            return None;
        }
        let key = self.keys[usize::from(place) & (PER_EVENT - 1)];
        // CAST: the number is the lower byte.
        Some(key as u8)
    }
}
