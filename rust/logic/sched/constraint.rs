// SPDX-License-Identifier: GPL-2.0

//! The counters that an event may use, as the scheduler sees them.
//!
//! A model's table ([`EventConstraint`](crate::logic::model::EventConstraint)), cut to the counters
//! that the machine has, gives an event its [`Constraint`].

use crate::logic::regs::counter::CounterMask;

/// The counters one event may use on this machine, as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The counters. Empty where the event cannot be counted at all.
    pub counters: CounterMask,
    /// Whether a greedy choice among the counters can be a wrong one, because another event's
    /// counters overlap with these without containing them. The scheduler remembers where it had
    /// a choice for such an event, and comes back.
    pub overlap: bool,
    /// Whether the event corrupts the sibling thread's counter of the same number (errata BJ122,
    /// BV98, HSD29). Recorded here for the scheduling between the threads of a core.
    pub exclusive: bool,
    /// Whether the event takes the counter behind its own as well (large increments on AMD's
    /// CPUs). The counters are the first ones then, even; the second ones have to be there and free.
    pub pair: bool,
}

impl Constraint {
    /// Any of `counters`, with nothing special about it.
    pub const fn any_of(counters: CounterMask) -> Self {
        Self {
            counters,
            overlap: false,
            exclusive: false,
            pair: false,
        }
    }

    /// What either of two events may use, and what is special about one of them.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            counters: self.counters.union(other.counters),
            overlap: self.overlap | other.overlap,
            exclusive: self.exclusive | other.exclusive,
            pair: self.pair | other.pair,
        }
    }

    /// Whether some counter can count the event.
    pub const fn is_satisfiable(self) -> bool {
        !self.counters.is_empty()
    }
}
