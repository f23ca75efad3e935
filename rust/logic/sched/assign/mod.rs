// SPDX-License-Identifier: GPL-2.0

//! Assignment of counters to events.
//!
//! Three steps, each of which is taken if the previous one finds no answer:
//!
//! 1. If every event can have its previous counter, each gets it. Otherwise the events that cannot
//!    are placed beside the others as in step 2.
//! 2. Events are placed by ascending weight (number of counters in the constraint), then in the
//!    order of insertion: on a fixed counter if one fits, otherwise on the lowest free
//!    general-purpose counter. If an event with the overlap flag has a choice, the state is saved.
//!    When a later event finds no counter, placing continues from there with the next choice.
//! 3. An exact matching. Its verdict is final: a set of events that fits is never refused.
//!
//! An event with the pair flag takes an even counter and the next one.
//!
//! Mainline's rule (`x86_schedule_events()` and `perf_assign_events()`, `arch/x86/events/core.c`)
//! is the first sentence of step 1, and step 2. [`Policy::Mainline`] stops there; without any
//! previous counters, both policies begin with step 2. There are two intended differences. Going
//! back restores the complete state, including the number of general-purpose counters in use and
//! the second counter of a pair, so step 2 here finds assignments that mainline's misses. The limit
//! on general-purpose counters holds in step 1, too.
//!
//! # Bounds
//!
//! At most [`MAX_EVENTS`] events, no recursion, no allocation; less than 2 KiB of stack, including
//! the [`Problem`]. An insertion sort keeps the order. Step 2 may run for the new events and then
//! for all. It visits an event once, and once more for each combination of saved choices; at most
//! two choices are saved at a time. Step 3 visits at most all counters and all events once for each
//! event, and repeats this for each layout of the pairs, of which there are less than 256.
//! `selftests/host/tests/multisets.rs` counts the steps for the models' events.

mod events;
mod greedy;
mod matching;
#[cfg(test)]
mod tests;

use crate::logic::{
    model::constraint::Constraint,
    refusal::Shortage,
    regs::counter::{
        CounterId,
        CounterMask, //
    },
};
use events::{
    EventIndex,
    EventSet,
    PerEvent, //
};

pub(in crate::logic) use events::Order;
pub use events::MAX_EVENTS;

/// The counters that can be the first of a pair: even ones below 16, because CPUID.80000022H:EBX
/// has four bits for the number of counters on the CPUs that have such events (AMD, from family
/// 17h on).
const PAIR_FIRST: CounterMask = CounterMask::from_bits(0x5555);

/// The steps that a [`Problem`] takes to find an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Mainline's rule without its defects, for comparisons: all events keep their counters, or all
    /// are placed by weight.
    Mainline,
    /// All steps: a set of events that fits is never refused, and events keep their counters if
    /// they can.
    #[default]
    Rpmu,
}

impl Policy {
    /// Returns the policy of that name, a value of the module parameter `policy`.
    pub const fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"mainline" => Some(Self::Mainline),
            b"rpmu" => Some(Self::Rpmu),
            _ => None,
        }
    }
}

/// A set of events that need counters.
///
/// # Examples
///
/// Four events on four counters, in an order in which taking the first free counter fails:
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sched::assign::Problem;
/// use logic::model::constraint::Constraint;
/// use logic::regs::counter::{CounterId, CounterMask};
///
/// let mut problem = Problem::new(4);
/// for counters in [0b1001, 0b0011, 0b0111, 0b0111] {
///     let constraint = Constraint::any_of(CounterMask::from_bits(counters));
///     problem.push(constraint, None).unwrap();
/// }
/// let assignment = problem.solve().unwrap();
/// // The first event can only have counter 3: the other three need 0 to 2.
/// assert_eq!(assignment.iter().next(), CounterId::gp(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// The counters that each event may use; for pairs, the possible first counters.
    wanted: PerEvent<CounterMask>,
    /// The events that do not keep their counters, in the order in which step 2 places them.
    order: Order,
    /// The events with the overlap flag.
    overlap: EventSet,
    /// The events with the pair flag.
    pair: EventSet,
    /// The events that can keep their previous counter.
    kept: EventSet,
    /// The counters of the kept events.
    counters: PerEvent<CounterId>,
    /// All counters that the kept events occupy.
    used: CounterMask,
    /// At most `MAX_EVENTS`.
    len: u8,
    /// Maximum number of general-purpose counters that may be used.
    gp_limit: u32,
    policy: Policy,
}

/// The error for an event beyond [`MAX_EVENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A counter for every event of a [`Problem`]; for pairs, the first counter.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    counters: PerEvent<CounterId>,
    len: u8,
}

impl Assignment {
    /// No event.
    pub const NOTHING: Self = Self {
        counters: PerEvent::new(CounterId::FIRST),
        len: 0,
    };

    /// Returns the counters of the events, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = CounterId> + '_ {
        self.counters.0.iter().take(usize::from(self.len)).copied()
    }
}

impl Problem {
    /// Creates a problem without events, in which at most `gp_limit` general-purpose counters may
    /// be used.
    pub const fn new(gp_limit: u32) -> Self {
        Self {
            wanted: PerEvent::new(CounterMask::EMPTY),
            order: Order::EMPTY,
            overlap: EventSet::EMPTY,
            pair: EventSet::EMPTY,
            kept: EventSet::EMPTY,
            counters: PerEvent::new(CounterId::FIRST),
            used: CounterMask::EMPTY,
            len: 0,
            gp_limit,
            policy: Policy::Rpmu,
        }
    }

    /// Removes all events. Keeps the limit and the policy.
    pub fn clear(&mut self) {
        self.overlap = EventSet::EMPTY;
        self.pair = EventSet::EMPTY;
        self.kept = EventSet::EMPTY;
        self.order.clear();
        self.used = CounterMask::EMPTY;
        self.len = 0;
    }

    /// Sets the policy; [`new`](Self::new) sets [`Policy::Rpmu`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the policy, as [`with_policy`](Self::with_policy), in place.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Sets the number of general-purpose counters that may be used.
    pub fn limit_gp(&mut self, gp_limit: u32) {
        self.gp_limit = gp_limit;
    }

    /// Adds an event, with its previous or planned counter, if any. Fails for an event beyond
    /// [`MAX_EVENTS`].
    pub fn push(
        &mut self,
        constraint: Constraint,
        previous: Option<CounterId>,
    ) -> Result<(), Full> {
        if usize::from(self.len) >= MAX_EVENTS {
            return Err(Full);
        }
        let event = EventIndex(self.len);
        self.len = self.len.wrapping_add(1);
        let mut wanted = constraint.counters;
        if constraint.pair {
            wanted = wanted & PAIR_FIRST;
            self.pair.insert(event);
        }
        if constraint.overlap {
            self.overlap.insert(event);
        }
        self.wanted[event] = wanted;
        if let Some(counter) = previous {
            let takes = self.takes(event, counter);
            if wanted.contains(counter) && !self.used.intersects(takes) {
                self.kept.insert(event);
                self.counters[event] = counter;
                self.used = self.used | takes;
                return Ok(());
            }
        }
        self.order.insert(event.0, wanted);
        Ok(())
    }

    /// Returns the counters that `event` takes if it gets `counter`.
    fn takes(&self, event: EventIndex, counter: CounterId) -> CounterMask {
        if self.pair.contains(event) {
            counter.mask() | counter.mask().behind()
        } else {
            counter.mask()
        }
    }

    /// Finds a counter for every event.
    ///
    /// # Errors
    ///
    /// Fails with the [`Shortage`] if there is no assignment. Under [`Policy::Mainline`], also
    /// fails, with [`Shortage::NotFound`], if only step 3 finds one.
    pub fn solve(&self) -> Result<Assignment, Shortage> {
        self.solve_stepwise(|| ())
    }

    /// As [`solve`](Self::solve), but writes the result to `assignment`, which has no meaning after
    /// a failure.
    pub fn solve_into(&self, assignment: &mut Assignment) -> Result<(), Shortage> {
        self.solve_at(assignment, || ())
    }

    /// As [`solve`](Self::solve), but calls `step` for each visit of an event or a counter, so that
    /// tests can count them.
    pub fn solve_stepwise(&self, step: impl FnMut()) -> Result<Assignment, Shortage> {
        let mut assignment = Assignment::NOTHING;
        self.solve_at(&mut assignment, step)?;
        Ok(assignment)
    }

    fn solve_at(
        &self,
        assignment: &mut Assignment,
        mut step: impl FnMut(),
    ) -> Result<(), Shortage> {
        assignment.counters.0.copy_from_slice(&self.counters.0);
        assignment.len = self.len;
        let counters = &mut assignment.counters;
        if self.kept == EventSet::first(self.len) {
            if self.used.gp().weight() <= self.gp_limit {
                return Ok(());
            }
        } else if self.kept.is_empty() || self.policy == Policy::Rpmu {
            // Place the other events beside those that keep their counters.
            if self.by_weight(&self.order, self.used, counters, &mut step) {
                return Ok(());
            }
        }
        if !self.kept.is_empty() {
            // Place all events again.
            let mut order = self.order;
            for event in self.kept {
                step();
                order.insert(event.0, self.wanted[event]);
            }
            if self.by_weight(&order, CounterMask::EMPTY, counters, &mut step) {
                return Ok(());
            }
        }
        // Under mainline's policy, too: this finds the reason why events do not fit.
        self.exactly(counters, &mut step)?;
        match self.policy {
            Policy::Mainline => Err(Shortage::NotFound),
            Policy::Rpmu => Ok(()),
        }
    }
}

/// Returns the counter before each of `counters`, if there is one: the first counters of pairs.
const fn before(counters: CounterMask) -> CounterMask {
    CounterMask::from_bits(counters.bits() >> 1)
}
