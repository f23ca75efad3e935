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

/// Number of choices that are saved at a time (`SCHED_STATES_MAX` in mainline). Step 3 covers what
/// further ones would find.
const MAX_CHOICES: usize = 2;

impl Problem {
    /// Places the events in `order` beside others, which have `used`. Returns whether each got a
    /// counter; if not, their values in `counters` are meaningless.
    pub(super) fn by_weight(
        &self,
        order: &Order,
        used: CounterMask,
        counters: &mut PerEvent<CounterId>,
        step: &mut impl FnMut(),
    ) -> bool {
        /// The state at a place in the order.
        #[derive(Clone, Copy)]
        struct State {
            /// The place.
            place: u8,
            used: CounterMask,
            /// Number of general-purpose counters that may still be used.
            room: u32,
            /// The counters that the event at this place has tried.
            tried: CounterMask,
        }

        // Each pair's second counter is reserved from the start.
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
        // The choices of events with the overlap flag, and their number.
        let mut saved = [state; MAX_CHOICES];
        let mut choices: usize = 0;

        // Events with one of these flags.
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
            // A fixed counter, else the lowest general-purpose one if there is room for another.
            let fixed = free.beyond_gp();
            let counter = if !fixed.is_empty() {
                fixed.lowest()
            } else if state.room != 0 {
                free.lowest()
            } else {
                None
            };
            let Some(counter) = counter else {
                // Back to the latest saved choice. The events behind it are placed again.
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
