// SPDX-License-Identifier: GPL-2.0

//! Temporary restrictions on counters that an event's constraint allows.
//!
//! A [`Constraint`] is permanent. Limits change while events run: the other thread of the core, or
//! for northbridge events another CPU of the node, uses a counter, or a sysfs setting reserves one
//! for TSX. The scheduler gets them from outside, and applies them to every plan.
//!
//! Limits restrict which counters an event may *take*. An event keeps the counter that it has, and
//! a CPU keeps as many general-purpose counters as it has, even beyond the limit: otherwise a later
//! change elsewhere could cause the failure of an event that needs no new counter. The exception:
//! if a new event is corrupting, the limit on the number holds for all events.

use super::register_plan::RegisterValues;
use crate::logic::{
    model::constraint::Constraint,
    regs::counter::CounterMask, //
};

/// The limits of a CPU's events.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::constraint::Constraint;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::limits::Limits;
///
/// let any = Constraint::any_of(CounterMask::first_gp(4));
/// let corrupting = Constraint { corrupting: true, ..any };
/// // The sibling uses counters 0 and 1, the latter for a corrupting event.
/// let limits = Limits {
///     closed: CounterMask::from_bits(0b10),
///     closed_to_sharing: CounterMask::from_bits(0b11),
///     ..Limits::NONE
/// };
/// assert_eq!(limits.counters(any).bits(), 0b1101);
/// assert_eq!(limits.counters(corrupting).bits(), 0b1100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Counters that no event may take.
    pub closed: CounterMask,
    /// Counters that events may not take if their counter concerns other CPUs:
    /// [corrupting](Constraint::corrupting) events and [northbridge](Constraint::northbridge)
    /// events. No processor has both kinds.
    pub closed_to_sharing: CounterMask,
    /// The maximum number of general-purpose counters that may be used.
    pub gp: u32,
    /// The maximum number if one of the events is corrupting and `gp` is not smaller.
    pub gp_with_corrupting: u32,
    /// The other thread's values in shared extra registers. Events cannot use these registers with
    /// other values.
    pub registers: RegisterValues,
}

impl Limits {
    /// No limits beyond the constraints.
    pub const NONE: Self = Self {
        closed: CounterMask::EMPTY,
        closed_to_sharing: CounterMask::EMPTY,
        gp: u32::MAX,
        gp_with_corrupting: u32::MAX,
        registers: RegisterValues::NONE,
    };

    /// Returns the limits that always hold for a thread that has a sibling and `gp` general-purpose
    /// counters: with corrupting events it may use half of them, and leaves the other half to the
    /// sibling.
    ///
    /// Mainline: `x86_schedule_events()`, `arch/x86/events/core.c`, which does not apply this limit
    /// when it validates a group.
    pub const fn beside_sibling(gp: u32) -> Self {
        Self {
            gp_with_corrupting: gp / 2,
            ..Self::NONE
        }
    }

    /// Returns the limits that remain if the sibling has no events. Drops the counters closed for
    /// TSX, too: on the CPUs that have them, the threads of a core do not coordinate.
    pub const fn lasting(&self) -> Self {
        Self {
            gp_with_corrupting: self.gp_with_corrupting,
            ..Self::NONE
        }
    }

    /// Closes `counters` to all events.
    #[must_use]
    pub const fn closing(self, counters: CounterMask) -> Self {
        Self {
            closed: self.closed.union(counters),
            ..self
        }
    }

    /// Returns the counters of `constraint` that may be taken.
    pub const fn counters(&self, constraint: Constraint) -> CounterMask {
        let open = constraint.counters.without(self.closed);
        if constraint.corrupting | constraint.northbridge {
            open.without(self.closed_to_sharing)
        } else {
            open
        }
    }

    /// Returns the maximum number of general-purpose counters. `corrupting` is set if one of the
    /// events is corrupting.
    pub const fn gp(&self, corrupting: bool) -> u32 {
        if corrupting && self.gp_with_corrupting < self.gp {
            self.gp_with_corrupting
        } else {
            self.gp
        }
    }

    /// Returns whether these limits allow events that `before` did not.
    pub fn loosen(&self, before: &Self) -> bool {
        self.gp > before.gp
            || self.gp_with_corrupting > before.gp_with_corrupting
            || !before.closed.is_subset(self.closed)
            || !before.closed_to_sharing.is_subset(self.closed_to_sharing)
            || before.registers.gives_way_to(&self.registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::regs::extra_register::ExtraRegister;

    fn holding(value: u64) -> RegisterValues {
        let mut values = RegisterValues::NONE;
        values
            .place(ExtraRegister::OffcoreResponse0, value)
            .unwrap();
        values
    }

    #[test]
    fn no_limits() {
        let corrupting = Constraint {
            corrupting: true,
            ..Constraint::any_of(CounterMask::from_bits(u64::MAX))
        };
        assert_eq!(Limits::NONE.counters(corrupting), corrupting.counters);
        assert_eq!(Limits::NONE.gp(true), u32::MAX);
    }

    #[test]
    fn the_smaller_limit_applies_with_corrupting_events() {
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
            closed_to_sharing: counters,
            gp: 2,
            gp_with_corrupting: 2,
            registers: holding(1),
        };
        assert!(!tight.loosen(&tight));
        for (limits, loosens) in [
            (Limits { gp: 3, ..tight }, true),
            (Limits { gp: 1, ..tight }, false),
            (
                Limits {
                    gp_with_corrupting: 3,
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
                    closed_to_sharing: CounterMask::from_bits(0b110),
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
            // Events with the new value can share the register now.
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
