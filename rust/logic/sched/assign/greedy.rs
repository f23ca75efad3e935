// SPDX-License-Identifier: GPL-2.0

//! Step 2 of the [assignment](super): by ascending weight, with a way back.

use super::{
    before, behind,
    events::{EventIndex, Order, PerEvent},
    Problem,
};
use crate::logic::regs::counter::{CounterId, CounterMask};

/// Choices that step 2 remembers at a time (`SCHED_STATES_MAX` in mainline). Further ones are not
/// saved; step 3 covers what is missed by that.
const MAX_CHOICES: usize = 2;

impl Problem {
    /// Step 2 for the events in `order`; others have `used`. Whether there is a counter for each of
    /// them: if not, what is in `counters` for them is good for nothing.
    pub(super) fn by_weight(
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
}
