// SPDX-License-Identifier: GPL-2.0

//! Step 3 of the [assignment](super): an exact matching.

use super::{
    events::{
        EventIndex,
        EventSet,
        PerEvent, //
    },
    Problem,
    PAIR_FIRST, //
};
use crate::logic::{
    refusal::Shortage,
    regs::counter::{
        CounterId,
        CounterMask,
        PerCounter,
        MAX_COUNTERS, //
    },
};

impl Problem {
    /// Finds a matching. Tries each layout of the pairs, and matches the other events with the
    /// remaining counters.
    #[cold]
    pub(super) fn exactly(
        &self,
        counters: &mut PerEvent<CounterId>,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        let singles = EventSet::first(self.len).without(self.pair);
        // One value for all attempts: the kernel's stack is small.
        let mut matching = Matching::new(self);
        matching.add_all(singles, CounterMask::ALL, step)?;
        if self.pair.is_empty() {
            return matching.finish(counters);
        }

        // If the pairs do not fit even by themselves, report that.
        matching.clear();
        matching.add_all(self.pair, PAIR_FIRST, step)?;
        // From here on, a failure means that pairs and single events do not fit together.
        let pairs = self.pair.len();
        let wanted: CounterMask = self
            .pair
            .fold(CounterMask::EMPTY, |all, event| all | self.wanted[event]);
        let mut firsts = CounterMask::EMPTY;
        loop {
            // The next subset of the wanted counters, in ascending order of its bits.
            let next = firsts.bits().wrapping_sub(wanted.bits()) & wanted.bits();
            firsts = CounterMask::from_bits(next);
            if firsts.is_empty() {
                return Err(Shortage::Pairs { pairs });
            }
            step();
            if firsts.weight() != pairs {
                continue;
            }
            matching.clear();
            let rest = CounterMask::ALL.without(firsts | firsts.behind());
            if matching.add_all(self.pair, firsts, step).is_ok()
                && matching.add_all(singles, rest, step).is_ok()
            {
                return matching.finish(counters);
            }
        }
    }
}

/// A bipartite matching of events and counters, extended along augmenting paths. An event with the
/// pair flag is matched with its first counter; the caller has to keep the second one free.
///
/// # Invariants
///
/// `event_on[c]` is `Some(e)` if and only if `e` is in `matched` and `counter_of[e]` is `c`.
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

    /// Removes all events from the matching.
    fn clear(&mut self) {
        // INVARIANT: No event is matched, and none is on a counter.
        for event in core::mem::replace(&mut self.matched, EventSet::EMPTY) {
            self.event_on[self.counter_of[event]] = None;
        }
    }

    /// Matches all `events`, none of which may be matched yet, with counters in `within`.
    ///
    /// First matches as many as possible with fixed counters, then the others with any counter. An
    /// augmenting path never frees a counter, so the fixed counters stay in use, and the number of
    /// general-purpose counters is minimal.
    #[inline(never)]
    fn add_all(
        &mut self,
        events: EventSet,
        within: CounterMask,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        for event in events {
            // The second round handles the failures.
            let _ = self.add(event, within.beyond_gp(), step);
        }
        for event in events.without(self.matched) {
            self.add(event, within, step)?;
        }
        Ok(())
    }

    /// Stores the counters of the events in `counters`, if they take no more general-purpose
    /// counters than allowed.
    fn finish(&self, counters: &mut PerEvent<CounterId>) -> Result<(), Shortage> {
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

    /// Matches `newcomer` with a counter in `within`, and moves other events among these counters
    /// if necessary.
    ///
    /// Searches breadth first: the counters of `newcomer`, then the counters of the events on
    /// these, and so on until one is free. If none is free, the visited events compete for the
    /// visited counters, which are one fewer.
    fn add(
        &mut self,
        newcomer: EventIndex,
        within: CounterMask,
        step: &mut impl FnMut(),
    ) -> Result<(), Shortage> {
        // The event by which each counter was reached.
        let mut reached_by = PerCounter::new(newcomer);
        let mut reached = CounterMask::EMPTY;
        // Counters whose events have not been visited.
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
            // Every counter in the queue has an event, so the result is `None` only for an empty
            // queue.
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

    /// Moves every event on the path from `newcomer` to `free` to the next counter.
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
            // INVARIANT: Both directions are written. An event that was on `counter` has moved, and
            // the counter that `event` leaves gets its new event in the next step.
            let left = core::mem::replace(&mut self.counter_of[event], counter);
            self.event_on[counter] = Some(event);
            if event == newcomer {
                return;
            }
            counter = left;
        }
    }
}
