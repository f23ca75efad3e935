// SPDX-License-Identifier: GPL-2.0

//! The riders of a CPU: events that share the counter of an equal event.
//!
//! One of the equal events on a CPU is in the CPU's schedule
//! ([`CpuSchedule`](super::cpu_schedule::CpuSchedule)), the *head*; the others ride on its counter.
//! When the head leaves, one of its riders becomes the head ([`Riders::promote`]).
//!
//! The event that the PMI serves need not be the head
//! ([`shared_count`](crate::logic::pmi::shared_count)): an NMI may change the served event, while
//! the head stays.
//!
//! Context: the CPU, interrupts off. Changed only while the PMU is disabled, or when all events
//! have left.

use crate::logic::pmi::shared_count::MAX_IDS;

/// The id of an event on its CPU, below [`MAX_IDS`].
pub type Id = usize;

const BITS: usize = u64::BITS as usize;
const _: () = assert!(MAX_IDS / BITS == 2);

/// A set of ids. Iterates in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids([u64; MAX_IDS / BITS]);

impl Ids {
    /// No id.
    pub const NONE: Self = Self([0; MAX_IDS / BITS]);

    /// Returns the number of the word with the bit of `id`, and the bit.
    const fn place(id: Id) -> (usize, u64) {
        // The mask only avoids a bounds check. CAST: less than 64.
        (
            (id / BITS) & (MAX_IDS / BITS - 1),
            1u64.wrapping_shl((id % BITS) as u32),
        )
    }

    /// Returns whether `id` is in the set.
    #[inline]
    pub const fn contains(&self, id: Id) -> bool {
        let (word, bit) = Self::place(id);
        self.0[word] & bit != 0
    }

    /// Returns whether the set is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0[0] | self.0[1] == 0
    }

    /// Returns the number of ids.
    // Counting takes 17 instructions a word, as the kernel does not assume POPCNT.
    pub const fn len(&self) -> u32 {
        if self.is_empty() {
            return 0;
        }
        self.0[0].count_ones().wrapping_add(self.0[1].count_ones())
    }

    /// Adds `id`.
    pub const fn insert(&mut self, id: Id) {
        let (word, bit) = Self::place(id);
        self.0[word] |= bit;
    }

    /// Removes `id`.
    pub const fn remove(&mut self, id: Id) {
        let (word, bit) = Self::place(id);
        self.0[word] &= !bit;
    }
}

impl Iterator for Ids {
    type Item = Id;

    fn next(&mut self) -> Option<Id> {
        let mut words = self.0.iter_mut().enumerate();
        let (number, word) = words.find(|(_, word)| **word != 0)?;
        // CAST: less than 64.
        let bit = word.trailing_zeros() as usize;
        *word &= word.wrapping_sub(1);
        Some(number.wrapping_mul(BITS).wrapping_add(bit))
    }
}

/// The riders of a CPU.
///
/// # Invariants
///
/// - `head` has the head of each rider in `riders`, and `carried` the number of riders of each
///   event.
/// - No head is a rider.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sched::riders::Riders;
///
/// let mut riders = Riders::NONE;
/// riders.join(7, 3);
/// riders.join(8, 3);
/// assert_eq!(riders.of(3).collect::<Vec<_>>(), [7, 8]);
///
/// // The head leaves.
/// assert_eq!(riders.promote(3), Some(7));
/// assert_eq!(riders.head_of(8), Some(7));
/// assert_eq!(riders.join_all(7, 9).collect::<Vec<_>>(), [7, 8]);
/// assert_eq!((riders.head_of(7), riders.head_of(8)), (Some(9), Some(9)));
/// riders.leave(7);
/// riders.leave(8);
/// assert!(riders.is_empty() && !riders.involve(9));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Riders {
    head: [u8; MAX_IDS],
    carried: [u8; MAX_IDS],
    riders: Ids,
}

impl Riders {
    /// No riders.
    pub const NONE: Self = Self {
        head: [0; MAX_IDS],
        carried: [0; MAX_IDS],
        riders: Ids::NONE,
    };

    /// Returns whether there are no riders.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.riders.is_empty()
    }

    /// Returns whether the event `id` is a rider or has one.
    #[inline]
    pub const fn involve(&self, id: Id) -> bool {
        // Mostly, there are no riders.
        !self.is_empty() && (self.riders.contains(id) || self.carries(id))
    }

    /// Returns whether the event `id` has riders.
    #[inline]
    const fn carries(&self, id: Id) -> bool {
        self.carried[id & (MAX_IDS - 1)] != 0
    }

    /// Returns the head of the rider `id`; [`None`] if it is no rider.
    pub const fn head_of(&self, id: Id) -> Option<Id> {
        match self.riders.contains(id) {
            // CAST: more bits.
            true => Some(self.head[id & (MAX_IDS - 1)] as Id),
            false => None,
        }
    }

    /// Returns all riders.
    pub const fn all(&self) -> Ids {
        self.riders
    }

    /// Returns the riders of `head`.
    pub fn of(&self, head: Id) -> impl Iterator<Item = Id> + '_ {
        self.riders
            .filter(move |id| self.head_of(*id) == Some(head))
    }

    /// Records that the event `id`, which is neither a rider nor a head, rides on the counter of
    /// `head`, which is no rider.
    #[inline]
    pub const fn join(&mut self, id: Id, head: Id) {
        // INVARIANT: By this function's requirements, `head` is no rider, and `id`, which becomes
        // one, is no head.
        // CAST: below `MAX_IDS`.
        self.head[id & (MAX_IDS - 1)] = head as u8;
        self.riders.insert(id);
        let carried = &mut self.carried[head & (MAX_IDS - 1)];
        *carried = carried.wrapping_add(1);
    }

    /// Removes the rider `id`. Returns its former head; [`None`] if it is no rider.
    #[inline]
    pub const fn leave(&mut self, id: Id) -> Option<Id> {
        let Some(head) = self.head_of(id) else {
            return None;
        };
        // INVARIANT: `head` has a rider less.
        self.riders.remove(id);
        let carried = &mut self.carried[head & (MAX_IDS - 1)];
        *carried = carried.wrapping_sub(1);
        Some(head)
    }

    /// Removes `head`. One of its riders becomes the head of the others, and is returned; [`None`]
    /// if it has no riders.
    pub fn promote(&mut self, head: Id) -> Option<Id> {
        let next = self.of(head).next()?;
        self.leave(next);
        for id in self.take(head) {
            self.join(id, next);
        }
        Some(next)
    }

    /// Lets `head`, which is no rider, and its riders ride on the counter of `other`, which is no
    /// rider either. Returns these new riders of `other`.
    pub fn join_all(&mut self, head: Id, other: Id) -> Ids {
        let mut moved = self.take(head);
        moved.insert(head);
        for id in moved {
            self.join(id, other);
        }
        moved
    }

    /// Removes all riders of `head`, and returns them.
    fn take(&mut self, head: Id) -> Ids {
        let mut taken = Ids::NONE;
        for id in self.riders {
            if self.head_of(id) == Some(head) {
                self.leave(id);
                taken.insert(id);
            }
        }
        taken
    }

    /// Forgets all riders.
    pub const fn clear(&mut self) {
        self.riders = Ids::NONE;
        self.carried = [0; MAX_IDS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map from each rider to its head.
        #[test]
        fn riders_have_the_heads_that_they_joined(
            steps in prop::collection::vec((0..4u8, 0..MAX_IDS, 0..MAX_IDS), 0..200),
        ) {
            let mut riders = Riders::NONE;
            let mut map = BTreeMap::new();
            for (step, id, head) in steps {
                let is_head = map.values().any(|it| *it == id);
                let any_rides = map.contains_key(&id) || map.contains_key(&head);
                match step {
                    0 if id != head && !is_head && !any_rides => {
                        riders.join(id, head);
                        map.insert(id, head);
                    }
                    1 => prop_assert_eq!(riders.leave(id), map.remove(&id)),
                    2 if !map.contains_key(&id) => {
                        let next = riders.promote(id);
                        let first = map.iter().find(|(_, head)| **head == id).map(|(id, _)| *id);
                        prop_assert_eq!(next, first);
                        if let Some(next) = next {
                            map.remove(&next);
                            map.values_mut().filter(|it| **it == id).for_each(|it| *it = next);
                        }
                    }
                    3 if id != head && !any_rides => {
                        map.values_mut().filter(|it| **it == id).for_each(|it| *it = head);
                        map.insert(id, head);
                        let moved: Vec<_> = riders.join_all(id, head).collect();
                        prop_assert!(moved.contains(&id));
                        prop_assert!(moved.iter().all(|it| map.get(it) == Some(&head)));
                    }
                    _ => {}
                }
                prop_assert_eq!(riders.is_empty(), map.is_empty());
                for id in 0..MAX_IDS {
                    prop_assert_eq!(riders.head_of(id), map.get(&id).copied());
                    let involved = map.contains_key(&id) || map.values().any(|it| *it == id);
                    prop_assert_eq!(riders.involve(id), involved);
                }
            }
        }
    }
}
