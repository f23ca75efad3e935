// SPDX-License-Identifier: GPL-2.0

//! Explanations of failures and refusals in words.
//!
//! A [`Refusal`] names the missing resource, and the [`Limits`] at that time show its users.
//! Together they explain which events would have to give way.
//!
//! Context: any.

use core::fmt;

use super::limits::Limits;
use crate::logic::{
    model::{
        constraint::Constraint,
        demand::Unshared, //
    },
    refusal::{
        Refusal,
        Shortage, //
    },
    regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        extra_register::ExtraRegister, //
    },
};

/// The reason why a second group with slots fails.
pub const ONE_GROUP_HAS_SLOTS: &str =
    "slots count for one group at a time, and topdown metrics with them";

/// A counter that already counts what an event would count that got no counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldShare {
    /// The counter.
    pub counter: CounterId,
    /// The id (`PERF_EVENT_IOC_ID`) of the event on that counter: of the sampled one, if that is
    /// the reason.
    pub with: u64,
    /// The reason why the event does not share it.
    pub but: Unshared,
}

impl fmt::Display for WouldShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counter, with, but } = self;
        write!(f, "; would share {counter} with id={with}, but {but}")
    }
}

/// A refusal, with the constraint and the limits behind it.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::refusal::Shortage;
/// use logic::model::constraint::Constraint;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::explanation::Explanation;
/// use logic::sched::limits::Limits;
/// use logic::refusal::Refusal;
///
/// let counter_2 = CounterMask::from_bits(1 << 2);
/// let shortage = Shortage::Contended { events: 1, counters: CounterMask::EMPTY };
/// let explanation = Explanation {
///     refusal: Refusal::Limited(shortage),
///     constraint: Constraint::any_of(counter_2),
///     limits: Limits { closed: counter_2, ..Limits::NONE },
///     tfa: CounterMask::EMPTY,
/// };
/// assert!(explanation.to_string().contains("corrupting event of the core's other thread"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The refusal.
    pub refusal: Refusal,
    /// The constraint of the event, or for a group the sum of its events' constraints.
    pub constraint: Constraint,
    /// The limits, including [`tfa`](Self::tfa).
    pub limits: Limits,
    /// The counters that are left to TSX transactions (`allow_tsx_force_abort`).
    pub tfa: CounterMask,
}

impl Explanation {
    /// Returns the counters of the constraint, and the counters for which the events compete, if
    /// known.
    pub const fn counters(&self) -> CounterMask {
        match self.refusal {
            Refusal::DoesNotFit(Shortage::Contended { counters, .. })
            | Refusal::Limited(Shortage::Contended { counters, .. }) => {
                counters.union(self.constraint.counters)
            }
            _ => self.constraint.counters,
        }
    }

    /// Writes the obstacles on single counters, then those that concern all counters, then those in
    /// extra registers.
    fn obstacles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tfa = self.constraint.counters & self.tfa;
        let closed = self.constraint.counters & self.limits.closed.without(self.tfa);
        let in_use =
            self.constraint.counters & self.limits.closed_to_sharing.without(self.limits.closed);
        if !closed.is_empty() {
            write!(
                f,
                "; {}: taken by a corrupting event of the core's other thread",
                Listed(closed)
            )?;
        }
        if self.constraint.corrupting && !in_use.is_empty() {
            write!(
                f,
                "; {}: used by the core's other thread, and this event is corrupting",
                Listed(in_use)
            )?;
        }
        let node = self.constraint.counters & self.limits.closed_to_sharing;
        if self.constraint.northbridge && !node.is_empty() {
            write!(
                f,
                "; {}: the northbridge counts for another core of the node",
                Listed(node)
            )?;
        }
        if !tfa.is_empty() {
            write!(f, "; {}: left to TSX (allow_tsx_force_abort)", Listed(tfa))?;
        }
        if let Refusal::DoesNotFit(Shortage::GpLimit { limit, .. })
        | Refusal::Limited(Shortage::GpLimit { limit, .. }) = self.refusal
        {
            if limit == self.limits.gp {
                f.write_str("; corrupting events of the core's other thread have the rest")?;
            } else if limit == self.limits.gp_with_corrupting {
                f.write_str("; with a corrupting event, half is left to the core's other thread")?;
            }
        }
        if let Refusal::DoesNotFit(Shortage::Contended { counters, .. }) = self.refusal {
            if counters == CounterId::SLOTS.mask() {
                write!(f, "; {ONE_GROUP_HAS_SLOTS}")?;
            }
        }
        if self.refusal == Refusal::ExtraRegisterLimited {
            for register in ExtraRegister::ALL {
                if let Some(value) = self.limits.registers.get(register) {
                    write!(f, "; {register:?} holds {value:#x} for it")?;
                }
            }
        }
        Ok(())
    }
}

impl From<Refusal> for Explanation {
    /// Explains a refusal that does not concern counters.
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            constraint: Constraint::any_of(CounterMask::EMPTY),
            limits: Limits::NONE,
            tfa: CounterMask::EMPTY,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)?;
        match self.refusal {
            Refusal::DoesNotFit(_) | Refusal::Limited(_) | Refusal::ExtraRegisterLimited => {
                self.obstacles(f)
            }
            _ => Ok(()),
        }
    }
}

/// The reason why an event or a group got no counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The explanation.
    pub explanation: Explanation,
    /// A counter that the event, or an event of the group, would share.
    pub would_share: Option<WouldShare>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.explanation.fmt(f)?;
        self.would_share.map_or(Ok(()), |it| it.fmt(f))
    }
}

/// A list of counters, separated by commas.
pub struct Listed(pub CounterMask);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for counter in self.0 {
            write!(f, "{separator}{counter}")?;
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(refusal: Refusal, corrupting: bool, limits: Limits) -> String {
        Explanation {
            refusal,
            constraint: Constraint {
                corrupting,
                ..Constraint::any_of(CounterMask::from_bits(0b1100))
            },
            limits,
            tfa: CounterMask::EMPTY,
        }
        .to_string()
    }

    const CONTENDED: Shortage = Shortage::Contended {
        events: 1,
        counters: CounterMask::EMPTY,
    };

    #[test]
    fn the_sibling_is_named() {
        let limits = Limits {
            closed: CounterMask::from_bits(0b0100),
            closed_to_sharing: CounterMask::from_bits(0b1100),
            ..Limits::NONE
        };
        let any = explain(Refusal::Limited(CONTENDED), false, limits);
        assert!(any.contains("PMC2: taken by a corrupting event"), "{any}");
        assert!(!any.contains("this event is corrupting"), "{any}");
        let corrupting = explain(Refusal::Limited(CONTENDED), true, limits);
        assert!(
            corrupting.contains("PMC3: used by the core's other thread"),
            "{corrupting}"
        );
    }

    #[test]
    fn counter_3_is_left_to_tsx_and_not_to_the_sibling() {
        let counter_3 = CounterMask::from_bits(0b1000);
        let explanation = Explanation {
            refusal: Refusal::Limited(CONTENDED),
            constraint: Constraint::any_of(counter_3),
            limits: Limits::NONE.closing(counter_3),
            tfa: counter_3,
        };
        let text = explanation.to_string();
        assert!(text.contains("PMC3: left to TSX"), "{text}");
        assert!(!text.contains("other thread"), "{text}");
    }

    #[test]
    fn counters_of_the_node() {
        let explanation = Explanation {
            refusal: Refusal::Limited(Shortage::Contended {
                events: 1,
                counters: CounterMask::EMPTY,
            }),
            constraint: Constraint {
                northbridge: true,
                ..Constraint::any_of(CounterMask::first_gp(4))
            },
            limits: Limits {
                closed_to_sharing: CounterMask::from_bits(0b101),
                ..Limits::NONE
            },
            tfa: CounterMask::EMPTY,
        };
        let text = explanation.to_string();
        let expected = "PMC0,PMC2: the northbridge counts for another core of the node";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn slots_count_for_one_group() {
        for (counter, expected) in [(CounterId::SLOTS, true), (CounterId::FIRST, false)] {
            let shortage = Shortage::Contended {
                events: 2,
                counters: counter.mask(),
            };
            let text = explain(Refusal::DoesNotFit(shortage), false, Limits::NONE);
            assert_eq!(text.contains("one group at a time"), expected, "{text}");
        }
    }

    #[test]
    fn the_half_that_is_left_to_the_sibling() {
        let shortage = Shortage::GpLimit {
            needed: 3,
            limit: 2,
        };
        let text = explain(
            Refusal::DoesNotFit(shortage),
            true,
            Limits::beside_sibling(4),
        );
        assert!(text.contains("half is left"), "{text}");
    }

    #[test]
    fn the_value_in_the_register() {
        let mut limits = Limits::NONE;
        limits
            .registers
            .place(ExtraRegister::OffcoreResponse1, 0x10)
            .unwrap();
        let text = explain(Refusal::ExtraRegisterLimited, false, limits);
        assert!(text.contains("OffcoreResponse1 holds 0x10"), "{text}");
    }

    #[test]
    fn the_counter_that_the_event_would_share() {
        let reason = Reason {
            explanation: Refusal::DoesNotFit(CONTENDED).into(),
            would_share: Some(WouldShare {
                counter: CounterId::FIRST,
                with: 110,
                but: Unshared::Sampled,
            }),
        };
        let text = reason.to_string();
        let expected = "; would share PMC0 with id=110, but both are sampled";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn limits_do_not_explain_events_that_never_fit() {
        let limits = Limits {
            closed: CounterMask::from_bits(0b0100),
            ..Limits::NONE
        };
        let text = explain(Refusal::NoCounter, false, limits);
        assert_eq!(text, Refusal::NoCounter.to_string());
    }
}
