// SPDX-License-Identifier: GPL-2.0

//! Fast paths to a plan, and to a refusal, for common cases.

use super::{
    CpuSchedule,
    SlotSet, //
};
use crate::logic::{
    refusal::{
        Refusal,
        Shortage, //
    },
    regs::{
        counter::CounterMask,
        extra_register::ExtraRegister, //
    },
    sched::{
        assign::{
            Order,
            Policy, //
        },
        limits::Limits, //
    },
};

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// Plans without moving an event: new events get their previous counters, or free ones by
    /// ascending weight. Returns `false`, and changes nothing, if this is not possible.
    ///
    /// If it succeeds, the plan is that of [`solve`](Self::solve).
    #[inline]
    pub(super) fn plan_beside(&mut self, limits: &Limits) -> bool {
        if self.pairs != 0 {
            return false;
        }
        if self.demanding != 0 && !self.agree_on_registers(limits) {
            return false;
        }
        let mut taken = self.taken;
        // The new events that do not get their previous counter.
        let mut rest = SlotSet::NONE;
        for slot in self.fresh {
            let Some(entry) = self.at_mut(slot) else {
                continue;
            };
            let counters = limits.counters(entry.constraint);
            match entry.previous {
                Some(it) if counters.contains(it) && !taken.contains(it) => {
                    taken.insert(it);
                    entry.planned = Some(it);
                }
                _ => rest = rest.with(SlotSet::only(slot)),
            }
        }
        // Under mainline's rule, all events keep their counters or none does.
        let mut fits = rest.is_empty()
            || (self.policy == Policy::Rpmu || taken.is_empty())
                && self.place_beside(rest, limits, &mut taken);
        let limit = limits.gp(self.corrupting != 0);
        // Counting bits is slow without an instruction for it.
        if fits && limit != u32::MAX {
            fits = taken.gp().weight() <= limit.max(self.taken.gp().weight());
        }
        if fits {
            // INVARIANT: No new counter was taken before, or is taken twice here. The new events
            // are not programmed.
            self.taken = taken;
            self.unprogrammed = self.unprogrammed.with(self.fresh);
            self.fresh = SlotSet::NONE;
        } else {
            for slot in self.fresh {
                if let Some(entry) = self.at_mut(slot) {
                    entry.planned = None;
                }
            }
        }
        fits
    }

    /// Returns whether the new events need no extra register except the filter of branch records,
    /// with the same value for all events, including those of the core's other thread.
    #[cold]
    #[inline(never)]
    fn agree_on_registers(&self, limits: &Limits) -> bool {
        let theirs = limits.registers.get(ExtraRegister::LbrSelect);
        let mut select = self.lbr_select().map(u64::from).or(theirs);
        let agree = theirs.is_none() || select == theirs;
        self.at(self.fresh).all(|entry| {
            entry.requirement.is_none()
                && entry
                    .lbr_select
                    .map(u64::from)
                    .is_none_or(|wanted| agree && *select.get_or_insert(wanted) == wanted)
        })
    }

    /// Gives counters outside of `taken` to the new events in `rest`. Returns whether there is one
    /// for each.
    fn place_beside(&mut self, rest: SlotSet, limits: &Limits, taken: &mut CounterMask) -> bool {
        // One event needs no sorting.
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
        let fixed = free.beyond_gp();
        let Some(counter) = if fixed.is_empty() { free } else { fixed }.lowest() else {
            return false;
        };
        entry.planned = Some(counter);
        taken.insert(counter);
        true
    }

    /// Returns the refusal of a new event if events that can use no other counters have taken all
    /// of its counters; otherwise [`None`].
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_beside(&self, limits: &Limits) -> Option<Refusal> {
        // The refusal may then have another reason, or be temporary.
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
