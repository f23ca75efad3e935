// SPDX-License-Identifier: GPL-2.0

//! Who gets which counter.
//!
//! Three steps, each tried where the one before does not answer:
//!
//! 1. If every event can keep the counter it had, all keep it. Nothing needs to be programmed.
//!    If all but some can, the others are placed around them as in step 2.
//! 2. By ascending weight (number of counters in the constraint), the order of insertion within a
//!    weight: a fixed counter if one fits, else the lowest free general-purpose counter. Where an
//!    event with the overlap flag had a choice, the state is saved, and when a later event finds
//!    no counter, the choice is made again from there.
//! 3. An exact matching. Its verdict is final: a set of events that fits is never refused.
//!
//! An event with the pair flag takes an even counter and the one behind it.
//!
//! Mainline's rule (`x86_schedule_events()` and `perf_assign_events()`,
//! `arch/x86/events/core.c:841-1143`) is the first sentence of step 1, and step 2.
//! [`Policy::Mainline`] stops there, and without any previous counters both policies begin with
//! it. Different on purpose: going back restores everything, the number of general-purpose
//! counters in use and the second counter of a pair included, so step 2 here finds assignments
//! that mainline's misses; and the limit on general-purpose counters holds in step 1 too.
//!
//! # Bounds
//!
//! At most [`MAX_COUNTERS`] events, no recursion, no allocation; less than 2 KiB of stack, the
//! [`Problem`] included. An event is put into the order among at most as many. Step 2, which may be
//! tried for the new events and then for all, visits an event once, and once more for each way to
//! make the saved choices again, of which there are at most two at a time. Step 3 walks at most all
//! counters and all events once for each event, and does so for each way to lay out the pairs, of
//! which there are less than 256.
//! `selftests/host/tests/multisets.rs` counts the steps that the models' events really take.

use core::fmt;

use super::constraint::Constraint;
use crate::logic::regs::counter::{CounterId, CounterMask, PerCounter, MAX_COUNTERS};

/// Most events that can be on one PMU at a time: one for each counter.
pub const MAX_EVENTS: usize = MAX_COUNTERS;

/// Choices that step 2 remembers at a time (`SCHED_STATES_MAX` in mainline). Further ones are not
/// saved; step 3 covers what is missed by that.
const MAX_CHOICES: usize = 2;

/// The counters that can be the first of a pair: even, and below 16, because CPUID.80000022H:EBX
/// has four bits for the number of counters on the CPUs that have such events (AMD, from family
/// 17h on).
const PAIR_FIRST: CounterMask = CounterMask::from_bits(0x5555);

/// How far a [`Problem`] goes for an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By mainline's rule: all keep what they had, or all are placed by weight. For comparisons;
    /// mainline's defects are not part of the rule.
    Mainline,
    /// A set of events that fits is never refused, and who can stay stays.
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

/// A set of events, a bit for each.
///
/// # Invariants
///
/// No bit from [`MAX_EVENTS`] on is set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EventSet(u64);

impl EventSet {
    const EMPTY: Self = Self(0);

    /// Events 0 up to `count`, which is at most [`MAX_EVENTS`].
    const fn first(count: u8) -> Self {
        Self(1u64.wrapping_shl(count as u32).wrapping_sub(1))
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn len(self) -> u32 {
        self.0.count_ones()
    }

    const fn contains(self, event: EventIndex) -> bool {
        (self.0 >> (event.0 & 63)) & 1 != 0
    }

    const fn insert(&mut self, event: EventIndex) {
        self.0 |= 1u64.wrapping_shl(event.0 as u32);
    }

    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Iterator for EventSet {
    type Item = EventIndex;

    /// Takes the event that was inserted first out of the set.
    fn next(&mut self) -> Option<EventIndex> {
        if self.0 == 0 {
            return None;
        }
        // INVARIANT: no bit from `MAX_EVENTS` on is set, so the lowest is below it.
        let event = EventIndex(self.0.trailing_zeros() as u8);
        self.0 &= self.0.wrapping_sub(1);
        Some(event)
    }
}

/// One `T` for every event. As [`PerCounter`]: the index cannot be out of range.
// Aligned, so that bytes are copied eight at a time.
#[derive(Clone, Copy)]
#[repr(align(8))]
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

/// Numbers of events by ascending weight, and ascending within a weight.
#[derive(Clone, Copy)]
pub(in crate::logic) struct Order {
    /// The weight in the upper byte, the number in the lower one.
    keys: [u16; PER_EVENT],
    /// At most `MAX_EVENTS`.
    len: u8,
}

impl Order {
    /// No event yet.
    pub(in crate::logic) const EMPTY: Self = Self {
        keys: [0; PER_EVENT],
        len: 0,
    };

    /// Puts an event that may use the counters `wanted` where it belongs.
    pub(in crate::logic) fn insert(&mut self, event: u8, wanted: CounterMask) {
        let key = ((wanted.weight() as u16) << 8) | u16::from(event);
        let mut place = usize::from(self.len);
        self.len = self.len.wrapping_add(1);
        while place > 0 {
            let other = self.keys[place.wrapping_sub(1) & (PER_EVENT - 1)];
            if other < key {
                break;
            }
            self.keys[place & (PER_EVENT - 1)] = other;
            place = place.wrapping_sub(1);
        }
        self.keys[place & (PER_EVENT - 1)] = key;
    }

    /// The event at a place; `None` behind the last.
    pub(in crate::logic) fn get(&self, place: u8) -> Option<u8> {
        if place >= self.len {
            return None;
        }
        let key = self.keys[usize::from(place) & (PER_EVENT - 1)];
        // CAST: the number is the lower byte.
        Some(key as u8)
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
/// use logic::sched::assign::Problem;
/// use logic::sched::constraint::Constraint;
/// use logic::regs::counter::{CounterId, CounterMask};
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
    /// The counters that each event may use; of a pair, the first ones.
    wanted: PerEvent<CounterMask>,
    /// The events that are not kept, in the order in which step 2 places them.
    order: Order,
    /// The events with the overlap flag.
    overlap: EventSet,
    /// The events with the pair flag.
    pair: EventSet,
    /// The events that can keep the counter they had,
    kept: EventSet,
    /// that counter,
    counters: PerEvent<CounterId>,
    /// and all counters that are taken by this.
    used: CounterMask,
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
    /// Some events compete for fewer counters than they are, whatever the rest does. For events
    /// that take a pair, these are the pairs' first counters.
    Contended {
        /// How many events.
        events: u32,
        /// All counters that any of them may use.
        counters: CounterMask,
    },
    /// The events that take pairs of counters fit, and so do the others, but not together.
    Pairs {
        /// How many events take a pair.
        pairs: u32,
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
            Self::NotFound => f.write_str("the events fit, but the mainline policy misses it"),
        }
    }
}

/// A counter for every event of a [`Problem`]; of a pair, the first.
#[derive(Clone)]
pub struct Assignment {
    counters: PerEvent<CounterId>,
    len: u8,
}

impl Assignment {
    /// The counter of the event that was inserted as number `event`; `None` beyond the last.
    pub fn get(&self, event: usize) -> Option<CounterId> {
        self.iter().nth(event)
    }

    /// The counters in the order in which the events were inserted.
    pub fn iter(&self) -> impl Iterator<Item = CounterId> + '_ {
        self.counters.0.iter().take(usize::from(self.len)).copied()
    }
}

impl Problem {
    /// No event yet; at most `gp_limit` general-purpose counters may be used.
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

    /// Forgets all events. The limit and the policy stay.
    pub fn clear(&mut self) {
        self.overlap = EventSet::EMPTY;
        self.pair = EventSet::EMPTY;
        self.kept = EventSet::EMPTY;
        self.order.len = 0;
        self.used = CounterMask::EMPTY;
        self.len = 0;
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

    /// The counters that `event` takes if it gets `counter`.
    fn takes(&self, event: EventIndex, counter: CounterId) -> CounterMask {
        if self.pair.contains(event) {
            counter.mask() | behind(counter.mask())
        } else {
            counter.mask()
        }
    }

    /// Finds a counter for every event.
    ///
    /// # Errors
    ///
    /// When there is no assignment at all; the error says which events are too many for which
    /// counters. Under [`Policy::Mainline`] also when steps 1 and 2 find none.
    pub fn solve(&self) -> Result<Assignment, Shortage> {
        self.solve_stepwise(|| ())
    }

    /// The same, calling `step` whenever an event or a counter is looked at, so that how many
    /// steps are taken can be counted.
    pub fn solve_stepwise(&self, mut step: impl FnMut()) -> Result<Assignment, Shortage> {
        let mut assignment = Assignment {
            counters: self.counters,
            len: self.len,
        };
        let counters = &mut assignment.counters;
        if self.kept == EventSet::first(self.len) {
            if self.used.gp().weight() <= self.gp_limit {
                return Ok(assignment);
            }
        } else if self.kept.is_empty() || self.policy == Policy::Rpmu {
            // The new ones, around the others.
            if self.by_weight(&self.order, self.used, counters, &mut step) {
                return Ok(assignment);
            }
        }
        if !self.kept.is_empty() {
            // Everybody.
            let mut order = self.order;
            for event in self.kept {
                step();
                order.insert(event.0, self.wanted[event]);
            }
            if self.by_weight(&order, CounterMask::EMPTY, counters, &mut step) {
                return Ok(assignment);
            }
        }
        // Under either policy, it says why events do not fit.
        self.exactly(counters, &mut step)?;
        match self.policy {
            Policy::Mainline => Err(Shortage::NotFound),
            Policy::Rpmu => Ok(assignment),
        }
    }

    /// Step 2 for the events in `order`; others have `used`. Whether there is a counter for each of
    /// them: if not, what is in `counters` for them is good for nothing.
    fn by_weight(
        &self,
        order: &Order,
        used: CounterMask,
        counters: &mut PerEvent<CounterId>,
        step: &mut impl FnMut(),
    ) -> bool {
        /// How far it has come.
        #[derive(Clone, Copy)]
        struct State {
            /// Place in the order.
            place: u8,
            used: CounterMask,
            /// How many more events may be on general-purpose counters.
            room: u32,
            /// What the event at this place has tried already.
            tried: CounterMask,
        }

        // Each pair's second counter is set aside from the start.
        let pairs = if used.is_empty() {
            self.pair
        } else {
            self.pair.without(self.kept)
        };
        let mut room = self.gp_limit;
        // Counting bits is dear without an instruction for it.
        if !(used.is_empty() && pairs.is_empty()) {
            let gone = used.gp().weight().wrapping_add(pairs.len());
            let Some(left) = room.checked_sub(gone) else {
                return false;
            };
            room = left;
        }
        let mut state = State {
            place: 0,
            used,
            room,
            tried: CounterMask::EMPTY,
        };
        // Where events with the overlap flag chose, and how often.
        let mut saved = [state; MAX_CHOICES];
        let mut choices: usize = 0;

        // Events that are not as simple as most.
        let special = self.overlap.union(self.pair);
        // INVARIANT: only numbers of events are put into an order.
        while let Some(event) = order.get(state.place).map(EventIndex) {
            step();
            let is_special = special.contains(event);
            let mut free = self.wanted[event].without(state.used);
            if is_special {
                free = free.without(state.tried);
                if self.pair.contains(event) {
                    free = free.without(before(state.used));
                }
            }
            // A fixed counter, else the lowest general-purpose one if there is room for another.
            let fixed = free.fixed();
            let counter = if !fixed.is_empty() {
                fixed.lowest()
            } else if state.room != 0 {
                free.lowest()
            } else {
                None
            };
            let Some(counter) = counter else {
                // The latest choice that is left. Events behind it are placed anew.
                choices = choices.wrapping_sub(1);
                let Some(choice) = saved.get(choices) else {
                    return false;
                };
                state = *choice;
                continue;
            };
            if is_special {
                if self.overlap.contains(event) {
                    if let Some(slot) = saved.get_mut(choices) {
                        state.tried.insert(counter);
                        *slot = state;
                        choices = choices.wrapping_add(1);
                    }
                }
                if self.pair.contains(event) {
                    state.used = state.used | behind(counter.mask());
                }
                state.tried = CounterMask::EMPTY;
            }
            counters[event] = counter;
            state.used.insert(counter);
            if fixed.is_empty() {
                state.room = state.room.wrapping_sub(1);
            }
            state.place = state.place.wrapping_add(1);
        }
        true
    }

    /// Step 3: for one way after the other to lay out the pairs, everybody else on what is left.
    #[cold]
    fn exactly(
        &self,
        counters: &mut PerEvent<CounterId>,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        let singles = EventSet::first(self.len).without(self.pair);
        if self.pair.is_empty() {
            let mut matching = Matching::new(self);
            matching.add_all(singles, CounterMask::ALL, step)?;
            return matching.finish(counters);
        }

        // Why it fails if it fails: one of the kinds alone,
        let mut alone = Matching::new(self);
        alone.add_all(singles, CounterMask::ALL, step)?;
        let mut alone = Matching::new(self);
        alone.add_all(self.pair, PAIR_FIRST, step)?;
        // or the two together.
        let pairs = self.pair.len();
        let wanted: CounterMask = self
            .pair
            .fold(CounterMask::EMPTY, |all, event| all | self.wanted[event]);
        let mut firsts = CounterMask::EMPTY;
        loop {
            // The next subset of what is wanted, in ascending order of its bits.
            let next = firsts.bits().wrapping_sub(wanted.bits()) & wanted.bits();
            firsts = CounterMask::from_bits(next);
            if firsts.is_empty() {
                return Err(Shortage::Pairs { pairs });
            }
            step();
            if firsts.weight() != pairs {
                continue;
            }
            let mut matching = Matching::new(self);
            let rest = CounterMask::ALL.without(firsts | behind(firsts));
            if matching.add_all(self.pair, firsts, step).is_ok()
                && matching.add_all(singles, rest, step).is_ok()
            {
                return matching.finish(counters);
            }
        }
    }
}

/// The counters behind those in `counters`.
const fn behind(counters: CounterMask) -> CounterMask {
    CounterMask::from_bits(counters.bits() << 1)
}

/// The counters before those in `counters`.
const fn before(counters: CounterMask) -> CounterMask {
    CounterMask::from_bits(counters.bits() >> 1)
}

/// A bipartite matching of events and counters, grown along augmenting paths. Of a pair, it is the
/// first counter that is matched; the second has to be kept free by the caller.
///
/// # Invariants
///
/// `event_on[c]` is `Some(e)` exactly if `e` is in `matched` and `counter_of[e]` is `c`.
struct Matching<'a> {
    problem: &'a Problem,
    matched: EventSet,
    counter_of: PerEvent<CounterId>,
    event_on: PerCounter<Option<EventIndex>>,
}

impl<'a> Matching<'a> {
    const fn new(problem: &'a Problem) -> Self {
        Self {
            problem,
            matched: EventSet::EMPTY,
            counter_of: PerEvent::new(CounterId::FIRST),
            event_on: PerCounter::new(None),
        }
    }

    /// Gives all of `events`, of which none is matched yet, a counter in `within`.
    ///
    /// First as many of them as possible a fixed one, then everybody any. An augmenting path never
    /// empties a counter, so the fixed counters stay in use, and the number of general-purpose
    /// counters is the smallest there can be.
    fn add_all(
        &mut self,
        events: EventSet,
        within: CounterMask,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        for event in events {
            // Who finds none now finds one, or not, in the second round.
            let _ = self.add(event, within.fixed(), step);
        }
        for event in events.without(self.matched) {
            self.add(event, within, step)?;
        }
        Ok(())
    }

    /// The counters, if they are not too many.
    fn finish(self, counters: &mut PerEvent<CounterId>) -> Result<(), Shortage> {
        let mut used = CounterMask::EMPTY;
        for event in self.matched {
            used = used | self.problem.takes(event, self.counter_of[event]);
        }
        let needed = used.gp().weight();
        let limit = self.problem.gp_limit;
        if needed > limit {
            return Err(Shortage::GpLimit { needed, limit });
        }
        *counters = self.counter_of;
        Ok(())
    }

    /// Gives `newcomer` one of the counters in `within`, moving others among them if it must.
    ///
    /// Breadth first over the counters: `newcomer`'s first, then those of the events on them, and
    /// so on until one is free. If none is, the events that were met compete for the counters that
    /// were met, and they are one more than those.
    fn add(
        &mut self,
        newcomer: EventIndex,
        within: CounterMask,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        // The event through which each counter was reached.
        let mut reached_by = PerCounter::new(newcomer);
        let mut reached = CounterMask::EMPTY;
        // Counters whose events have not been looked at yet.
        let mut queue = CounterMask::EMPTY;
        let mut event = newcomer;
        loop {
            let wanted = self.problem.wanted[event] & within;
            for counter in wanted.without(reached) {
                step();
                reached.insert(counter);
                reached_by[counter] = event;
                if self.event_on[counter].is_none() {
                    self.matched.insert(newcomer);
                    self.move_along(newcomer, counter, &reached_by);
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
                    events: reached.weight().saturating_add(1),
                    counters: reached,
                });
            };
            event = next;
        }
    }

    /// Moves every event on the path from `newcomer` to `free` one counter along.
    fn move_along(
        &mut self,
        newcomer: EventIndex,
        free: CounterId,
        reached_by: &PerCounter<EventIndex>,
    ) {
        let mut counter = free;
        // No path is longer than there are counters.
        for _ in 0..MAX_COUNTERS {
            let event = reached_by[counter];
            // INVARIANT: both directions are written; whoever was on `counter` has moved on, or
            // nobody was, and what `event` leaves gets its new event next.
            let left = core::mem::replace(&mut self.counter_of[event], counter);
            self.event_on[counter] = Some(event);
            if event == newcomer {
                return;
            }
            counter = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A problem from masks with general-purpose counters at bit 0 and fixed ones at bit 32;
    /// `+ overlap` and `+ pair` set the flags, `was n` gives the previous counter's index.
    macro_rules! problem {
        ($limit:expr; $($mask:literal $(+ $flag:ident)* $(was $previous:literal)?),* $(,)?) => {{
            let mut problem = Problem::new($limit);
            $(
                let constraint = Constraint::any_of(CounterMask::from_bits($mask));
                $( let constraint = Constraint { $flag: true, ..constraint }; )*
                let previous = None $( .or(CounterId::from_index($previous)) )?;
                problem.push(constraint, previous).unwrap();
            )*
            problem
        }};
    }

    fn solve(problem: &Problem) -> Result<Vec<usize>, Shortage> {
        let assignment = problem.solve()?;
        Ok(assignment.iter().map(CounterId::index).collect())
    }

    fn solved(problem: &Problem) -> Vec<usize> {
        solve(problem).unwrap()
    }

    /// As far as step 2.
    fn by_weight(problem: Problem) -> Result<Vec<usize>, Shortage> {
        solve(&problem.with_policy(Policy::Mainline))
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
        let problem = problem![4; 0xf was 2, 0xf was 2];
        assert_eq!(by_weight(problem.clone()), Ok(vec![0, 1]));
        assert_eq!(solved(&problem), [2, 0]);
    }

    #[test]
    fn nobody_keeps_a_counter_that_the_constraint_rules_out() {
        let problem = problem![4; 0x3 was 2, 0xf was 3];
        assert_eq!(by_weight(problem.clone()), Ok(vec![0, 1]));
        assert_eq!(solved(&problem), [0, 3]);
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
        assert_eq!(by_weight(with), Ok(vec![3, 0, 1, 2]));
        let without = problem![4; 0b1001, 0b0011, 0b0111, 0b0111];
        assert_eq!(by_weight(without.clone()), Err(Shortage::NotFound));
        assert_eq!(solved(&without)[0], 3);
    }

    /// Six events on the six counters of AMD family 15h: mainline refuses them, because it does
    /// not restore the number of general-purpose counters in use when it goes back.
    #[test]
    fn going_back_restores_the_number_of_gp_counters() {
        let problem = problem![6; 0x09 + overlap, 0x07, 0x07, 0x07, 0x38, 0x38];
        assert_eq!(by_weight(problem), Ok(vec![3, 0, 1, 2, 4, 5]));
    }

    #[test]
    fn going_back_tries_another_fixed_counter() {
        // Both want a fixed counter; the first may take either, the second only the first's.
        let problem = problem![0; 0x3_0000_0000 + overlap, 0x5_0000_0000, 0x4_0000_0000];
        assert_eq!(by_weight(problem), Ok(vec![33, 32, 34]));
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

    #[test]
    fn the_mainline_policy_stops_before_the_matching() {
        let problem = problem![4; 0b1001, 0b0011, 0b0111, 0b0111];
        assert_eq!(by_weight(problem), Err(Shortage::NotFound));
        // What does not fit at all is told apart.
        assert!(matches!(
            by_weight(problem![4; 0b1, 0b1]),
            Err(Shortage::Contended { .. })
        ));
    }

    #[test]
    fn newcomers_are_placed_around_those_who_stay() {
        let problem = problem![4; 0xf was 0, 0xf, 0x1_0000_000f was 3, 0x2];
        assert_eq!(solved(&problem), [0, 2, 3, 1]);
        // By mainline's rule, everybody is placed anew.
        assert_eq!(by_weight(problem), Ok(vec![0, 2, 32, 1]));
    }

    #[test]
    fn who_is_in_a_newcomers_way_moves() {
        let problem = problem![4; 0xf was 1, 0xf was 0, 0x2];
        assert_eq!(solved(&problem), [0, 2, 1]);
    }

    #[test]
    fn the_limit_holds_for_newcomers() {
        let problem = problem![2; 0xf was 0, 0xf was 1, 0x1_0000_000f];
        assert_eq!(solved(&problem), [0, 1, 32]);
        let shortage = Shortage::GpLimit {
            needed: 3,
            limit: 2,
        };
        let problem = problem![2; 0xf was 0, 0xf was 1, 0xf];
        assert_eq!(problem.solve().err(), Some(shortage));
    }

    #[test]
    fn a_pair_takes_two_counters() {
        assert_eq!(solved(&problem![6; 0x3f + pair, 0x3f]), [0, 2]);
        assert_eq!(solved(&problem![6; 0x3f, 0x3f + pair]), [2, 0]);
        // Counter 1 is taken, so 0 will not do.
        assert_eq!(solved(&problem![6; 0x3f + pair, 0x2]), [2, 1]);
        assert_eq!(solved(&problem![6; 0x3f + pair, 0x2 was 1]), [2, 1]);
        // Kept with both counters, or not.
        assert_eq!(solved(&problem![6; 0x15 + pair was 2, 0x3f was 4]), [2, 4]);
        assert_eq!(solved(&problem![6; 0x15 + pair was 2, 0x3f was 3]), [2, 0]);
    }

    #[test]
    fn pairs_count_twice() {
        assert_eq!(solved(&problem![4; 0x15 + pair, 0x15 + pair]), [0, 2]);
        let shortage = Shortage::GpLimit {
            needed: 4,
            limit: 3,
        };
        for problem in [
            problem![3; 0x15 + pair, 0x15 + pair],
            problem![3; 0x15 + pair was 0, 0x15 + pair was 2],
            problem![3; 0x15 + pair was 0, 0x15 + pair],
        ] {
            assert_eq!(problem.solve().err(), Some(shortage));
        }
    }

    #[test]
    fn pairs_are_laid_out_anew_where_the_first_way_is_wrong() {
        // By weight, the pair takes 0 and 1.
        let problem = problem![6; 0x5 + pair, 0x03, 0x0b];
        assert_eq!(by_weight(problem.clone()), Err(Shortage::NotFound));
        let counters = solved(&problem);
        assert_eq!(counters, [2, 0, 1]);
    }

    #[test]
    fn pairs_that_leave_too_little() {
        let problem = problem![6; 0x15 + pair, 0x15 + pair, 0x3f, 0x3f, 0x3f];
        let shortage = problem.solve().err().unwrap();
        assert_eq!(shortage, Shortage::Pairs { pairs: 2 });
        assert_eq!(
            shortage.to_string(),
            "2 pairs of counters leave too few for the other events"
        );
        let four = problem![8; 0x15 + pair, 0x15 + pair, 0x15 + pair, 0x15 + pair];
        assert_eq!(
            four.solve().err(),
            Some(Shortage::Contended {
                events: 4,
                counters: CounterMask::from_bits(0x15),
            })
        );
    }

    #[test]
    fn going_back_frees_both_counters_of_a_pair() {
        // The pair goes to 0 and 1 first, where the other one has to be.
        let problem = problem![4; 0x5 + pair + overlap, 0x3, 0x3];
        assert_eq!(by_weight(problem), Ok(vec![2, 0, 1]));
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
