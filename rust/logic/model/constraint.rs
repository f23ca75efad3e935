// SPDX-License-Identifier: GPL-2.0

//! The counters that an event may use on this machine.
//!
//! An event's [`Constraint`] is its entry in a table of the model
//! ([`EventConstraint`](crate::logic::model::EventConstraint)), restricted to the machine's
//! counters. Without an entry, it is all general-purpose counters.

use crate::logic::regs::counter::CounterMask;

/// The counters that an event may use on this machine, as input of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// The counters. Empty if the event cannot be counted at all.
    pub counters: CounterMask,
    /// Set if a greedy choice among the counters can be wrong, because another event's counters
    /// overlap with these without containing them. The scheduler saves its choices for such an
    /// event, so that it can go back to them.
    pub overlap: bool,
    /// Set if the event corrupts the sibling thread's counter of the same number (errata BJ122,
    /// BV98, HSD29). The threads of a core coordinate such events ([`smt`](crate::logic::smt)).
    pub corrupting: bool,
    /// Set if the event takes the next counter, too (large increments on AMD's CPUs). Then the
    /// counters are the first ones of pairs, which are even; the second ones have to exist and be
    /// free.
    pub pair: bool,
    /// Set if AMD's northbridge counts the event: then counter n of all cores of a node is the same
    /// counter. The cores coordinate such events ([`northbridge`](crate::logic::smt::northbridge)).
    pub northbridge: bool,
}

impl Constraint {
    /// Returns whether the constraints are equal.
    // Compares all flags at once, as each event that shares a counter is compared.
    #[inline]
    pub const fn is_equal(&self, other: &Self) -> bool {
        self.counters.bits() == other.counters.bits() && self.flags() == other.flags()
    }

    #[inline]
    const fn flags(&self) -> u32 {
        u32::from_ne_bytes([
            self.overlap as u8,
            self.corrupting as u8,
            self.pair as u8,
            self.northbridge as u8,
        ])
    }

    /// Returns a constraint with `counters` and without flags.
    pub const fn any_of(counters: CounterMask) -> Self {
        Self {
            counters,
            overlap: false,
            corrupting: false,
            pair: false,
            northbridge: false,
        }
    }

    /// Returns the union of two constraints: the counters and the flags that one of them has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            counters: self.counters.union(other.counters),
            overlap: self.overlap | other.overlap,
            corrupting: self.corrupting | other.corrupting,
            pair: self.pair | other.pair,
            northbridge: self.northbridge | other.northbridge,
        }
    }

    /// Returns whether some counter can count the event.
    pub const fn is_satisfiable(self) -> bool {
        !self.counters.is_empty()
    }
}
