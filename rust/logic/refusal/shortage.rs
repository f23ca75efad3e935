// SPDX-License-Identifier: GPL-2.0

//! Reasons why events do not fit on the counters.

use core::fmt;

use crate::logic::regs::counter::CounterMask;

/// The reason why events do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Some events outnumber the counters that they may use, wherever the other events are put. For
    /// events that take pairs, these are the first counters of the pairs.
    Contended {
        /// Number of events.
        events: u32,
        /// The counters that they may use.
        counters: CounterMask,
    },
    /// The events that take pairs of counters fit, and so do the others, but not together.
    Pairs {
        /// Number of events that take a pair.
        pairs: u32,
    },
    /// The events fit, but with more general-purpose counters than may be used.
    GpLimit {
        /// Smallest number needed.
        needed: u32,
        /// Largest number allowed.
        limit: u32,
    },
    /// The events fit, but mainline's rule does not find an assignment
    /// ([`Policy::Mainline`](crate::logic::sched::assign::Policy::Mainline)).
    NotFound,
}

impl Shortage {
    /// Returns the shortage in which one event more than `counters` competes for them.
    pub const fn more_than(counters: CounterMask) -> Self {
        Self::Contended {
            events: counters.weight().wrapping_add(1),
            counters,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contended { events, counters } => write!(
                f,
                "{events} events compete for {} counters ({counters})",
                counters.weight()
            ),
            Self::Pairs { pairs } => {
                write!(
                    f,
                    "{pairs} pairs of counters leave too few for the other events"
                )
            }
            Self::GpLimit { needed, limit } => write!(
                f,
                "{needed} general-purpose counters are needed, {limit} may be used"
            ),
            Self::NotFound => {
                f.write_str("the events fit, but the mainline policy finds no assignment")
            }
        }
    }
}
