// SPDX-License-Identifier: GPL-2.0

//! Short ways to a plan, and to a refusal, for what happens most.

use super::{Roster, Slots};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::CounterMask,
    sched::{
        assign::{Order, Policy, Shortage},
        limits::Limits,
    },
};

impl<T: Copy + PartialEq> Roster<T> {
    /// The short way, for what happens most: nobody moves, the new events get what they had, or by
    /// ascending weight what is free. `false` if this does not do; nothing has changed then.
    ///
    /// It finds what [`solve`](Self::solve) would find.
    #[inline]
    pub(super) fn plan_beside(&mut self, limits: &Limits) -> bool {
        if self.pairs != 0 {
            return false;
        }
        let mut taken = self.taken;
        let mut fits = true;
        // Those of the new events that do not get what they had.
        let mut rest = Slots::NONE;
        for slot in self.fresh {
            let Some(entry) = self.at_mut(slot) else {
                continue;
            };
            fits &= entry.requirement.is_none();
            let counters = limits.counters(entry.constraint);
            match entry.previous {
                Some(it) if counters.contains(it) && !taken.contains(it) => {
                    taken.insert(it);
                    entry.planned = Some(it);
                }
                _ => rest = rest.with(Slots::only(slot)),
            }
        }
        if fits && !rest.is_empty() {
            // By mainline's rule, all keep what they had or nobody does.
            fits = (self.policy == Policy::Rpmu || taken.is_empty())
                && self.place_beside(rest, limits, &mut taken);
        }
        let limit = limits.gp(self.exclusive != 0);
        // Counting bits is dear without an instruction for it.
        if fits && limit != u32::MAX {
            fits = taken.gp().weight() <= limit.max(self.taken.gp().weight());
        }
        if fits {
            // INVARIANT: None of the new counters was taken before, nor twice here. What is new is not
            // programmed.
            self.taken = taken;
            self.unsettled = self.unsettled.with(self.fresh);
            self.fresh = Slots::NONE;
        } else {
            for slot in self.fresh {
                if let Some(entry) = self.at_mut(slot) {
                    entry.planned = None;
                }
            }
        }
        fits
    }

    /// Gives the new events of `rest` what is free beside `taken`. Whether there is something for each.
    fn place_beside(&mut self, rest: Slots, limits: &Limits, taken: &mut CounterMask) -> bool {
        // Sorting takes a while to set up.
        let mut others = rest;
        if let (Some(slot), None) = (others.next(), others.next()) {
            return self.place_one_beside(slot, limits, taken);
        }
        let mut order = Order::EMPTY;
        for (slot, entry) in rest.zip(self.at(rest)) {
            // CAST: a slot is below 64.
            order.insert(slot as u8, limits.counters(entry.constraint));
        }
        let mut number = 0;
        while let Some(slot) = order.get(number) {
            number = number.wrapping_add(1);
            if !self.place_one_beside(slot.into(), limits, taken) {
                return false;
            }
        }
        true
    }

    fn place_one_beside(&mut self, slot: usize, limits: &Limits, taken: &mut CounterMask) -> bool {
        let Some(entry) = self.at_mut(slot) else {
            return false;
        };
        let free = limits.counters(entry.constraint).without(*taken);
        let fixed = free.fixed();
        let Some(counter) = if fixed.is_empty() { free } else { fixed }.lowest() else {
            return false;
        };
        entry.planned = Some(counter);
        taken.insert(counter);
        true
    }

    /// The short way to refuse: all counters of a new event are taken by events that can have no
    /// others. [`None`] if this does not answer.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_beside(&self, limits: &Limits) -> Option<Refusal> {
        // Another refusal might come first, or hold for the moment only.
        if self.demanding != 0 || self.pairs != 0 || self.is_cut_by(limits) {
            return None;
        }
        let closed = |wanted: CounterMask| {
            wanted.is_subset(self.taken)
                && self.at(self.live.without(self.fresh)).all(|entry| {
                    entry.planned.is_none_or(|it| !wanted.contains(it))
                        || entry.constraint.counters.is_subset(wanted)
                })
        };
        let mut wanted = self.collected().map(|entry| entry.constraint.counters);
        wanted.find(|wanted| closed(*wanted)).map(|counters| {
            let events = counters.weight().wrapping_add(1);
            Shortage::Contended { events, counters }.into()
        })
    }
}
