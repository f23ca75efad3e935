// SPDX-License-Identifier: GPL-2.0

//! Who gets which counter.
//!
//! Three steps, each tried where the one before does not answer:
//!
//! 1. If every event can keep the counter it had, all keep it. Nothing needs to be programmed.
//! 2. By ascending weight (number of counters in the constraint), the order of insertion within a
//!    weight: a fixed counter if one fits, else the lowest free general-purpose counter. Where an
//!    event with the overlap flag had a choice, the state is saved, and when a later event finds
//!    no counter, the choice is made again from there.
//! 3. An exact matching. Its verdict is final: a set of events that fits is never refused.
//!    [`Policy::Mainline`] leaves this step out.
//!
//! Steps 1 and 2 are mainline's (`x86_schedule_events()` and `perf_assign_events()`,
//! `arch/x86/events/core.c:841-1143`), and where mainline finds an assignment without
//! back-tracking, this one is the same. Different on purpose: going back restores everything,
//! the number of general-purpose counters in use included, so step 2 here finds assignments that
//! mainline's misses; and the limit on general-purpose counters holds in step 1 too.
//!
//! # Bounds
//!
//! At most [`MAX_COUNTERS`] events. Step 2 visits an event at most once per saved choice, step 3
//! walks at most all counters and all events once for each event. No recursion, no allocation;
//! about 2 KiB of stack, the [`Problem`] included.

use core::fmt;

use super::constraint::Constraint;
use super::counter::{CounterId, CounterMask, PerCounter, MAX_COUNTERS};

/// Most events that can be on one PMU at a time: one for each counter.
pub const MAX_EVENTS: usize = MAX_COUNTERS;

/// Choices that step 2 remembers at a time (`SCHED_STATES_MAX` in mainline). Further ones are not
/// saved; step 3 covers what is missed by that.
const MAX_CHOICES: usize = 2;

/// How far a [`Problem`] goes for an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By mainline's rule: the exact matching does not decide. For comparisons; mainline's defects
    /// are not part of the rule.
    Mainline,
    /// A set of events that fits is never refused.
    #[default]
    Rpmu,
}

impl Policy {
    /// The policy of that name, as the module parameter `policy` has it.
    pub const fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"mainline" => Some(Self::Mainline),
            b"rpmu" => Some(Self::Rpmu),
            _ => None,
        }
    }
}

/// Number of an event in a [`Problem`], in the order of insertion.
///
/// # Invariants
///
/// Below [`MAX_EVENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EventIndex(u8);

impl EventIndex {
    /// The one behind this. There is one: no caller comes here with the last.
    const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// One `T` for every event. As [`PerCounter`]: the index cannot be out of range.
#[derive(Clone, Copy)]
struct PerEvent<T>([T; PER_EVENT]);

/// [`MAX_EVENTS`] rounded up to a power of two, so that masking an index bounds it.
const PER_EVENT: usize = MAX_EVENTS.next_power_of_two();

impl<T: Copy> PerEvent<T> {
    const fn new(value: T) -> Self {
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

/// Events that want counters.
///
/// # Examples
///
/// Four events on four counters, in an order in which taking the first free counter fails:
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::assign::Problem;
/// use logic::constraint::Constraint;
/// use logic::counter::{CounterId, CounterMask};
///
/// let mut problem = Problem::new(4);
/// for counters in [0b1001, 0b0011, 0b0111, 0b0111] {
///     let constraint = Constraint::any_of(CounterMask::from_bits(counters));
///     problem.push(constraint, None).unwrap();
/// }
/// let assignment = problem.solve().unwrap();
/// // The first event can only have counter 3: the other three need 0 to 2.
/// assert_eq!(assignment.get(0), CounterId::gp(3));
/// ```
#[derive(Clone)]
pub struct Problem {
    /// The counters that each event may use.
    wanted: PerEvent<CounterMask>,
    /// Whether an event has the overlap flag.
    overlap: PerEvent<bool>,
    /// The counter that an event had.
    previous: PerEvent<Option<CounterId>>,
    /// At most `MAX_EVENTS`.
    len: u8,
    /// Most general-purpose counters that may be used.
    gp_limit: u32,
    policy: Policy,
}

/// A [`Problem`] has no room for a further event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Why events do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Some events compete for fewer counters than they are, whatever the rest does.
    Contended {
        /// How many events.
        events: u32,
        /// All counters that any of them may use.
        counters: CounterMask,
    },
    /// The events fit, but with more general-purpose counters than may be used.
    GpLimit {
        /// How many are needed at least.
        needed: u32,
        /// How many may be used.
        limit: u32,
    },
    /// The events fit, but mainline's rule does not find out how ([`Policy::Mainline`]).
    NotFound,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contended { events, counters } => write!(
                f,
                "{events} events compete for {} counters ({counters})",
                counters.weight()
            ),
            Self::GpLimit { needed, limit } => write!(
                f,
                "{needed} general-purpose counters are needed, {limit} may be used"
            ),
            Self::NotFound => f.write_str("the events fit, but the mainline policy misses it"),
        }
    }
}

/// A counter for every event of a [`Problem`].
#[derive(Clone)]
pub struct Assignment {
    counters: PerEvent<Option<CounterId>>,
    len: u8,
}

impl Assignment {
    /// The counter of the event that was inserted as number `event`; `None` beyond the last.
    pub fn get(&self, event: usize) -> Option<CounterId> {
        self.iter().nth(event)
    }

    /// The counters in the order in which the events were inserted.
    pub fn iter(&self) -> impl Iterator<Item = CounterId> + '_ {
        let counters = self.counters.0.iter().take(usize::from(self.len));
        // All of them are there.
        counters.filter_map(|counter| *counter)
    }
}

impl Problem {
    /// No event yet; at most `gp_limit` general-purpose counters may be used.
    pub const fn new(gp_limit: u32) -> Self {
        Self {
            wanted: PerEvent::new(CounterMask::EMPTY),
            overlap: PerEvent::new(false),
            previous: PerEvent::new(None),
            len: 0,
            gp_limit,
            policy: Policy::Rpmu,
        }
    }

    /// The same under another policy; [`new`](Self::new) gives [`Policy::Rpmu`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the number of general-purpose counters that may be used.
    pub fn limit_gp(&mut self, gp_limit: u32) {
        self.gp_limit = gp_limit;
    }

    /// Adds an event, and the counter that it had or is about to get, if any.
    pub fn push(
        &mut self,
        constraint: Constraint,
        previous: Option<CounterId>,
    ) -> Result<(), Full> {
        if usize::from(self.len) >= MAX_EVENTS {
            return Err(Full);
        }
        let event = EventIndex(self.len);
        self.wanted[event] = constraint.counters;
        self.overlap[event] = constraint.overlap;
        self.previous[event] = previous;
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Finds a counter for every event.
    ///
    /// # Errors
    ///
    /// When there is no assignment at all; the error says which events are too many for which
    /// counters. Under [`Policy::Mainline`] also when steps 1 and 2 find none.
    pub fn solve(&self) -> Result<Assignment, Shortage> {
        if let Some(assignment) = self.keep_all() {
            return Ok(assignment);
        }
        if let Some(assignment) = self.by_weight() {
            return Ok(assignment);
        }
        // Under either policy, it says why events do not fit.
        let exact = self.exactly()?;
        match self.policy {
            Policy::Mainline => Err(Shortage::NotFound),
            Policy::Rpmu => Ok(exact),
        }
    }

    fn events(&self) -> impl Iterator<Item = EventIndex> {
        // INVARIANT: `len` is at most `MAX_EVENTS`.
        (0..self.len).map(EventIndex)
    }

    /// Step 1.
    fn keep_all(&self) -> Option<Assignment> {
        let mut counters = PerEvent::new(None);
        let mut used = CounterMask::EMPTY;
        for event in self.events() {
            let counter = self.previous[event]?;
            if !self.wanted[event].contains(counter) || used.contains(counter) {
                return None;
            }
            used.insert(counter);
            counters[event] = Some(counter);
        }
        if used.gp().weight() > self.gp_limit {
            return None;
        }
        Some(Assignment {
            counters,
            len: self.len,
        })
    }

    /// The events by ascending weight, in the order of insertion within a weight.
    fn order(&self) -> PerEvent<EventIndex> {
        let mut order = PerEvent::new(EventIndex(0));
        let mut place = EventIndex(0);
        for weight in 0..=MAX_COUNTERS as u32 {
            for event in self.events() {
                if self.wanted[event].weight() == weight {
                    order[place] = event;
                    place = place.next();
                }
            }
        }
        order
    }

    /// Step 2.
    fn by_weight(&self) -> Option<Assignment> {
        /// Where an event with the overlap flag chose a counter.
        #[derive(Clone, Copy)]
        struct Choice {
            /// The event's place in the order.
            place: EventIndex,
            /// What was in use before it.
            used: CounterMask,
            /// What it has tried, the present choice included.
            tried: CounterMask,
        }

        let order = self.order();
        let mut counters = PerEvent::new(None);
        let mut choices: [Option<Choice>; MAX_CHOICES] = [None; MAX_CHOICES];
        let mut place = EventIndex(0);
        let mut used = CounterMask::EMPTY;
        let mut tried = CounterMask::EMPTY;

        while place.0 < self.len {
            let event = order[place];
            let free = self.wanted[event].without(used);
            if let Some(counter) = self.prefer(free.without(tried), used) {
                tried.insert(counter);
                if self.overlap[event] {
                    if let Some(choice) = choices.iter_mut().find(|choice| choice.is_none()) {
                        *choice = Some(Choice { place, used, tried });
                    }
                }
                counters[event] = Some(counter);
                used.insert(counter);
                place = place.next();
                tried = CounterMask::EMPTY;
            } else {
                // The latest choice that is left. Events behind it are placed anew.
                let choice = choices.iter_mut().rev().find_map(Option::take)?;
                place = choice.place;
                used = choice.used;
                tried = choice.tried;
            }
        }
        Some(Assignment {
            counters,
            len: self.len,
        })
    }

    /// The counter among `free` to take next: a fixed one, else the lowest general-purpose one
    /// if the limit allows for another.
    fn prefer(&self, free: CounterMask, used: CounterMask) -> Option<CounterId> {
        if let Some(counter) = free.fixed().lowest() {
            return Some(counter);
        }
        if used.gp().weight() >= self.gp_limit {
            return None;
        }
        free.gp().lowest()
    }

    /// Step 3.
    ///
    /// First as many events as possible on fixed counters, then everybody on any counter. An
    /// augmenting path never empties a counter, so the fixed counters stay in use, and the
    /// number of general-purpose counters is the smallest there can be.
    fn exactly(&self) -> Result<Assignment, Shortage> {
        let mut matching = Matching {
            wanted: &self.wanted,
            counter_of: PerEvent::new(None),
            event_on: PerCounter::new(None),
        };
        let fixed = CounterMask::from_bits(u64::MAX).fixed();
        for event in self.events() {
            // Who finds none now finds one, or not, in the second round.
            let _ = matching.place(event, fixed);
        }
        for event in self.events() {
            if matching.counter_of[event].is_none() {
                matching.place(event, CounterMask::from_bits(u64::MAX))?;
            }
        }
        let used = self.events().filter_map(|event| matching.counter_of[event]);
        let needed = used.collect::<CounterMask>().gp().weight();
        if needed > self.gp_limit {
            return Err(Shortage::GpLimit {
                needed,
                limit: self.gp_limit,
            });
        }
        Ok(Assignment {
            counters: matching.counter_of,
            len: self.len,
        })
    }
}

/// A bipartite matching of events and counters, grown along augmenting paths.
///
/// # Invariants
///
/// `counter_of[e]` is `Some(c)` exactly if `event_on[c]` is `Some(e)`.
struct Matching<'a> {
    wanted: &'a PerEvent<CounterMask>,
    counter_of: PerEvent<Option<CounterId>>,
    event_on: PerCounter<Option<EventIndex>>,
}

impl Matching<'_> {
    /// Gives `newcomer` one of the counters in `within`, moving others among them if it must.
    ///
    /// Breadth first over the counters: `newcomer`'s first, then those of the events on them, and
    /// so on until one is free. If none is, the events that were met compete for the counters that
    /// were met, and they are one more than those.
    fn place(&mut self, newcomer: EventIndex, within: CounterMask) -> Result<(), Shortage> {
        // The event through which each counter was reached.
        let mut reached_by = PerCounter::new(newcomer);
        let mut reached = CounterMask::EMPTY;
        // Counters whose events have not been looked at yet.
        let mut queue = CounterMask::EMPTY;
        let mut event = newcomer;
        loop {
            let wanted = self.wanted[event] & within;
            for counter in wanted.without(reached) {
                reached.insert(counter);
                reached_by[counter] = event;
                if self.event_on[counter].is_none() {
                    self.move_along(counter, &reached_by);
                    return Ok(());
                }
                queue.insert(counter);
            }
            // Every counter in the queue has an event, so this ends only with an empty queue.
            let next = queue.lowest().and_then(|counter| {
                queue.remove(counter);
                self.event_on[counter]
            });
            let Some(next) = next else {
                return Err(Shortage::Contended {
                    events: reached.weight() + 1,
                    counters: reached,
                });
            };
            event = next;
        }
    }

    /// Moves every event on the path that ends at `free` one counter along.
    fn move_along(&mut self, free: CounterId, reached_by: &PerCounter<EventIndex>) {
        let mut counter = free;
        // No path is longer than there are counters.
        for _ in 0..MAX_COUNTERS {
            let event = reached_by[counter];
            let left = self.counter_of[event];
            // INVARIANT: both directions are written; whoever was on `counter` has moved on, or
            // nobody was, and what `event` leaves gets its new event next.
            self.counter_of[event] = Some(counter);
            self.event_on[counter] = Some(event);
            match left {
                Some(left) => counter = left,
                // The newcomer: it had no counter.
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A problem from masks with general-purpose counters at bit 0 and fixed ones at bit 32;
    /// `+ overlap` after a mask sets the flag, `was n` gives the previous counter's index.
    macro_rules! problem {
        ($limit:expr; $($mask:literal $(was $previous:literal)? $(+ $overlap:ident)?),* $(,)?) => {{
            let mut problem = Problem::new($limit);
            $(
                let constraint = Constraint::any_of(CounterMask::from_bits($mask));
                $( let constraint = Constraint { $overlap: true, ..constraint }; )?
                let previous = None $( .or(CounterId::from_index($previous)) )?;
                problem.push(constraint, previous).unwrap();
            )*
            problem
        }};
    }

    fn indices(assignment: &Assignment) -> Vec<usize> {
        assignment.iter().map(CounterId::index).collect()
    }

    fn solved(problem: &Problem) -> Vec<usize> {
        indices(&problem.solve().unwrap())
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(solved(&Problem::new(4)), []);
    }

    #[test]
    fn all_keep_what_they_had() {
        assert_eq!(solved(&problem![4; 0xf was 2, 0xf was 0]), [2, 0]);
    }

    #[test]
    fn nobody_keeps_a_counter_that_two_had() {
        assert_eq!(solved(&problem![4; 0xf was 2, 0xf was 2]), [0, 1]);
    }

    #[test]
    fn nobody_keeps_a_counter_that_the_constraint_rules_out() {
        assert_eq!(solved(&problem![4; 0x3 was 2, 0xf was 3]), [0, 1]);
    }

    #[test]
    fn the_limit_holds_for_kept_counters() {
        let problem = problem![1; 0xf was 2, 0xf was 0];
        let shortage = Shortage::GpLimit {
            needed: 2,
            limit: 1,
        };
        assert_eq!(problem.solve().err(), Some(shortage));
    }

    #[test]
    fn fixed_first_then_lowest() {
        let problem = problem![4; 0x1_0000_000f, 0x1_0000_000f, 0xf];
        assert_eq!(solved(&problem), [32, 1, 0]);
    }

    #[test]
    fn the_most_constrained_is_placed_first() {
        // Three on 0-3, and one that can only have counter 2.
        assert_eq!(solved(&problem![4; 0xf, 0xf, 0xf, 0x4]), [0, 1, 3, 2]);
    }

    /// The example of overlapping constraints, with and without the flag that makes step 2 come back.
    #[test]
    fn overlapping_masks() {
        let with = problem![4; 0b1001 + overlap, 0b0011, 0b0111, 0b0111];
        assert_eq!(indices(&with.by_weight().unwrap()), [3, 0, 1, 2]);
        let without = problem![4; 0b1001, 0b0011, 0b0111, 0b0111];
        assert!(without.by_weight().is_none());
        assert_eq!(solved(&without)[0], 3);
    }

    /// Six events on the six counters of AMD family 15h: mainline refuses them, because it does
    /// not restore the number of general-purpose counters in use when it goes back.
    #[test]
    fn going_back_restores_the_number_of_gp_counters() {
        let problem = problem![6; 0x09 + overlap, 0x07, 0x07, 0x07, 0x38, 0x38];
        let assignment = problem.by_weight().unwrap();
        assert_eq!(indices(&assignment), [3, 0, 1, 2, 4, 5]);
    }

    #[test]
    fn going_back_tries_another_fixed_counter() {
        // Both want a fixed counter; the first may take either, the second only the first's.
        let problem = problem![0; 0x3_0000_0000 + overlap, 0x5_0000_0000, 0x4_0000_0000];
        assert_eq!(indices(&problem.by_weight().unwrap()), [33, 32, 34]);
    }

    #[test]
    fn more_choices_than_are_remembered() {
        // Three overlapping pairs that all have to give way.
        let problem = problem![8;
            0b0000_1001 + overlap, 0b0001_0010 + overlap, 0b0010_0100 + overlap,
            0b0000_0111, 0b0000_0111, 0b0000_0111,
        ];
        assert_eq!(solved(&problem)[..3], [3, 4, 5]);
    }

    /// The same as above: more than mainline's rule finds.
    #[test]
    fn the_mainline_policy_stops_before_the_matching() {
        let problem = problem![4; 0b1001, 0b0011, 0b0111, 0b0111].with_policy(Policy::Mainline);
        assert_eq!(problem.solve().err(), Some(Shortage::NotFound));
        let problem = problem![4; 0b1001 + overlap, 0b0011, 0b0111, 0b0111];
        let problem = problem.with_policy(Policy::Mainline);
        assert_eq!(solved(&problem), [3, 0, 1, 2]);
        // What does not fit at all is told apart.
        let problem = problem![4; 0b1, 0b1].with_policy(Policy::Mainline);
        assert!(matches!(
            problem.solve().err(),
            Some(Shortage::Contended { .. })
        ));
    }

    #[test]
    fn contention_names_the_events_and_counters() {
        let problem = problem![4; 0xf, 0x4, 0x4, 0xf];
        let shortage = problem.solve().err().unwrap();
        assert_eq!(
            shortage,
            Shortage::Contended {
                events: 2,
                counters: CounterMask::from_bits(0x4),
            }
        );
        assert_eq!(
            shortage.to_string(),
            "2 events compete for 1 counters (0x4)"
        );
    }

    #[test]
    fn an_event_without_counters_does_not_fit() {
        let problem = problem![4; 0xf, 0x0];
        assert_eq!(
            problem.solve().err(),
            Some(Shortage::Contended {
                events: 1,
                counters: CounterMask::EMPTY,
            })
        );
    }

    #[test]
    fn the_limit_is_met_by_using_fixed_counters() {
        // By weight, the first takes fixed 0 and leaves the second only counter 0.
        let problem = problem![0; 0x3_0000_0000, 0x1_0000_0001];
        assert_eq!(solved(&problem), [33, 32]);
        let problem = problem![1; 0xf, 0xf];
        let shortage = problem.solve().err().unwrap();
        assert_eq!(
            shortage.to_string(),
            "2 general-purpose counters are needed, 1 may be used"
        );
    }

    #[test]
    fn as_many_events_as_counters() {
        let mut problem = Problem::new(32);
        let all = Constraint::any_of(CounterMask::from_bits(u64::MAX));
        for _ in 0..MAX_EVENTS {
            problem.push(all, None).unwrap();
        }
        assert_eq!(problem.push(all, None), Err(Full));
        let used: CounterMask = problem.solve().unwrap().iter().collect();
        assert_eq!(used.weight() as usize, MAX_EVENTS);
    }
}
