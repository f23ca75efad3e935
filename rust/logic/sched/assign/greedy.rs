// SPDX-License-Identifier: GPL-2.0

//! Step 2 of the [assignment](super): greedy by ascending weight, with back-tracking.

use super::{
    before,
    events::{
        EventIndex,
        Order,
        PerEvent, //
    },
    Problem, //
};
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};

/// Number of choices that are saved at a time (`SCHED_STATES_MAX` in mainline). Step 3 finds the
/// assignments for which more would be needed.
const MAX_CHOICES: usize = 2;

impl Problem {
    /// Places the events in `order` beside others, which occupy the counters `used`. Returns
    /// whether each got a counter; if not, their entries in `counters` have no meaning.
    pub(super) fn by_weight(
        &self,
        order: &Order,
        used: CounterMask,
        counters: &mut PerEvent<CounterId>,
        step: &mut impl FnMut(),
    ) -> bool {
        /// The state before an event of the order is placed.
        #[derive(Clone, Copy)]
        struct State {
            /// The index in the order of the event to place next.
            place: u8,
            used: CounterMask,
            /// Number of general-purpose counters that may still be taken.
            room: u32,
            /// The counters that were already tried for this event.
            tried: CounterMask,
        }

        // Reserve the second counter of each event that needs a pair.
        let pairs = if used.is_empty() {
            self.pair
        } else {
            self.pair.without(self.kept)
        };
        let mut room = self.gp_limit;
        // Counting bits is slow without POPCNT.
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
        // The saved choices of events with the overlap flag, and their number.
        let mut saved = [state; MAX_CHOICES];
        let mut choices: usize = 0;

        // Events with the overlap or the pair flag.
        let special = self.overlap.union(self.pair);
        // INVARIANT: An order contains only numbers of events.
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
            // Take a free fixed counter if there is one. Otherwise take the lowest general-purpose
            // counter, if the limit allows one more.
            let fixed = free.beyond_gp();
            let counter = if !fixed.is_empty() {
                fixed.lowest()
            } else if state.room != 0 {
                free.lowest()
            } else {
                None
            };
            let Some(counter) = counter else {
                // Go back to the latest saved choice, and place its event and all later ones again.
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
                    state.used = state.used | counter.mask().behind();
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
}
