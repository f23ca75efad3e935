// SPDX-License-Identifier: GPL-2.0

//! What an event may not have at the moment, although its constraint allows it.
//!
//! A [`Constraint`] holds for good. Limits change while events run: the other thread of the core
//! uses a counter, or a switch in sysfs has given one to somebody else. They are decided outside of
//! the scheduler and looked at whenever it plans.
//!
//! Limits say what may be *taken*. An event that has its counter already is not driven from it, and
//! a CPU that has more general-purpose counters than it may take keeps as many: otherwise an event
//! that needs nothing new could be refused because of what others have done since.

use super::{constraint::Constraint, register_plan::RegisterValues};
use crate::logic::regs::counter::CounterMask;

/// What the events of a CPU may not take at the moment.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sched::constraint::Constraint;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::limits::Limits;
///
/// let any = Constraint::any_of(CounterMask::first_gp(4));
/// let exclusive = Constraint { exclusive: true, ..any };
/// // The sibling uses counters 0 and 1, the latter for an event that corrupts ours.
/// let limits = Limits {
///     closed: CounterMask::from_bits(0b10),
///     closed_to_exclusive: CounterMask::from_bits(0b11),
///     ..Limits::NONE
/// };
/// assert_eq!(limits.counters(any).bits(), 0b1101);
/// assert_eq!(limits.counters(exclusive).bits(), 0b1100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Counters that no event may take.
    pub closed: CounterMask,
    /// Counters that no [exclusive](Constraint::exclusive) event may take.
    pub closed_to_exclusive: CounterMask,
    /// Most general-purpose counters that may be used.
    pub gp: u32,
    /// The same, if one of the events is exclusive.
    pub gp_with_exclusive: u32,
    /// What the extra registers hold that a core's threads share: no event may have another value
    /// in them.
    pub registers: RegisterValues,
}

impl Limits {
    /// The constraints say it all.
    pub const NONE: Self = Self {
        closed: CounterMask::EMPTY,
        closed_to_exclusive: CounterMask::EMPTY,
        gp: u32::MAX,
        gp_with_exclusive: u32::MAX,
        registers: RegisterValues::NONE,
    };

    /// What always holds for a thread with `gp` general-purpose counters that has a sibling: with
    /// exclusive events, it may use half of them, so that the sibling is never left without.
    ///
    /// Mainline: `x86_schedule_events()`, `arch/x86/events/core.c:1085-1099`; but it forgets about
    /// this when it validates a group.
    pub const fn beside_sibling(gp: u32) -> Self {
        Self {
            gp_with_exclusive: gp / 2,
            ..Self::NONE
        }
    }

    /// What is left of it where the sibling has no events at the moment.
    pub const fn lasting(&self) -> Self {
        Self {
            gp_with_exclusive: self.gp_with_exclusive,
            ..Self::NONE
        }
    }

    /// The same, without `counters` for anybody.
    #[must_use]
    pub const fn closing(self, counters: CounterMask) -> Self {
        Self {
            closed: self.closed.union(counters),
            ..self
        }
    }

    /// The counters that are left of a constraint's.
    pub const fn counters(&self, constraint: Constraint) -> CounterMask {
        let open = constraint.counters.without(self.closed);
        if constraint.exclusive {
            open.without(self.closed_to_exclusive)
        } else {
            open
        }
    }

    /// Most general-purpose counters for events of which one is `exclusive`, or none is.
    pub const fn gp(&self, exclusive: bool) -> u32 {
        if exclusive && self.gp_with_exclusive < self.gp {
            self.gp_with_exclusive
        } else {
            self.gp
        }
    }

    /// Whether something may be taken under these limits that might not under `before`.
    pub fn loosen(&self, before: &Self) -> bool {
        self.gp > before.gp
            || self.gp_with_exclusive > before.gp_with_exclusive
            || !before.closed.is_subset(self.closed)
            || !before
                .closed_to_exclusive
                .is_subset(self.closed_to_exclusive)
            || before.registers.gives_way_to(&self.registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::sched::extra_register::ExtraRegister;

    fn holding(value: u64) -> RegisterValues {
        let mut values = RegisterValues::NONE;
        values
            .place(ExtraRegister::OffcoreResponse0, value)
            .unwrap();
        values
    }

    #[test]
    fn no_limits() {
        let exclusive = Constraint {
            exclusive: true,
            ..Constraint::any_of(CounterMask::from_bits(u64::MAX))
        };
        assert_eq!(Limits::NONE.counters(exclusive), exclusive.counters);
        assert_eq!(Limits::NONE.gp(true), u32::MAX);
    }

    #[test]
    fn the_smaller_limit_counts_with_exclusive_events() {
        let half = Limits::beside_sibling(4);
        assert_eq!((half.gp(false), half.gp(true)), (u32::MAX, 2));
        let one = Limits { gp: 1, ..half };
        assert_eq!((one.gp(false), one.gp(true)), (1, 1));
    }

    #[test]
    fn every_limit_can_loosen() {
        let counters = CounterMask::from_bits(0b11);
        let tight = Limits {
            closed: counters,
            closed_to_exclusive: counters,
            gp: 2,
            gp_with_exclusive: 2,
            registers: holding(1),
        };
        assert!(!tight.loosen(&tight));
        for (limits, loosens) in [
            (Limits { gp: 3, ..tight }, true),
            (Limits { gp: 1, ..tight }, false),
            (
                Limits {
                    gp_with_exclusive: 3,
                    ..tight
                },
                true,
            ),
            (
                Limits {
                    closed: CounterMask::from_bits(0b110),
                    ..tight
                },
                true,
            ),
            (
                Limits {
                    closed_to_exclusive: CounterMask::from_bits(0b110),
                    ..tight
                },
                true,
            ),
            (tight.closing(CounterMask::from_bits(0b100)), false),
            (
                Limits {
                    registers: RegisterValues::NONE,
                    ..tight
                },
                true,
            ),
            // Who wants the other value can share it now.
            (
                Limits {
                    registers: holding(2),
                    ..tight
                },
                true,
            ),
        ] {
            assert_eq!(limits.loosen(&tight), loosens, "{limits:?}");
        }
    }
}
