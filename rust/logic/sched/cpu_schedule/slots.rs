// SPDX-License-Identifier: GPL-2.0

//! Slots for the events of a CPU.

use crate::logic::sched::assign::MAX_EVENTS;

/// Number of slots. There are more slots than events, so that a removed event can leave a gap and
/// no other event moves to another slot. The gaps are closed when the last slot has been used, and
/// before a [trial](super::CpuSchedule::trial).
pub(super) const SLOT_COUNT: usize = 64;
const _: () = assert!(MAX_EVENTS < SLOT_COUNT);

/// A set of slots, as a bit mask. Iterates in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotSet(pub(super) u64);

impl SlotSet {
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn contains(self, slot: usize) -> bool {
        self.0 & Self::only(slot).0 != 0
    }

    /// Returns the set with only `slot`.
    pub(super) const fn only(slot: usize) -> Self {
        Self(1u64.wrapping_shl(slot as u32))
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the first slot behind all slots of the set; [`SLOT_COUNT`] if there is none.
    pub(super) const fn end(self) -> usize {
        SLOT_COUNT.wrapping_sub(self.0.leading_zeros() as usize)
    }
}

impl Iterator for SlotSet {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        Some(slot)
    }
}
