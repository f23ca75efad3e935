// SPDX-License-Identifier: GPL-2.0

//! Trials: whether groups would fit on a CPU, decided without adding them.

use super::{
    CpuSchedule,
    SlotSet,
    SLOT_COUNT, //
};
use crate::logic::{
    model::demand::Demand,
    refusal::Refusal,
    regs::counter::{
        CounterId,
        CounterMask, //
    },
    sched::limits::Limits, //
};

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// Returns the `counters` that new events can reach within `limits`, and an upper bound of the
    /// number of further events on general-purpose counters.
    ///
    /// A new event can reach free counters, and counters whose events could move to such a counter.
    /// An event that can use no reachable counter does not fit; for other events, a
    /// [trial](Self::trial) has to decide.
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        let mut free = counters.without(limits.closed).without(self.taken);
        let mut room = free.gp().weight();
        let limit = limits.gp(self.corrupting != 0);
        if limit != u32::MAX {
            room = room.min(limit.saturating_sub(self.taken.gp().weight()));
            if room == 0 {
                free = free.beyond_gp();
            }
        }
        if free.is_empty() {
            return (free, 0);
        }
        let mut reach = free;
        loop {
            let before = reach;
            for entry in self.entries() {
                let counter = entry
                    .planned
                    .filter(|_| entry.constraint.counters.intersects(reach));
                if let Some(counter) = counter {
                    reach.insert(counter);
                }
            }
            if reach == before {
                break;
            }
        }
        for entry in self.entries() {
            let leaves = entry.constraint.counters.intersects(free.beyond_gp());
            if leaves && entry.planned.is_some_and(|it| counters.gp().contains(it)) {
                room = room.wrapping_add(1);
            }
        }
        (reach, room)
    }

    /// Begins a trial. Dropping the trial restores the schedule, but not its
    /// [wish](Self::take_wish).
    pub fn trial(&mut self) -> Trial<'_, T> {
        // Now there is a slot for each further event, so no entry moves to another slot during the
        // trial.
        self.close_gaps();
        for slot in self.live {
            if let Some(entry) = &self.entries[slot & (SLOT_COUNT - 1)] {
                self.saved[slot & (SLOT_COUNT - 1)] = (entry.planned, entry.planned_register);
            }
        }
        Trial {
            before: self.live,
            fresh: core::mem::replace(&mut self.fresh, SlotSet::NONE),
            unprogrammed: self.unprogrammed,
            txn: core::mem::replace(&mut self.txn, true),
            pushed: Ok(()),
            sampled: SlotSet::NONE,
            sampled_before: SlotSet::NONE,
            taken: self.taken,
            keys: self.keys,
            schedule: self,
        }
    }
}

/// A trial of groups on a [`CpuSchedule`], one after the other.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// # use logic::capabilities::{Capabilities, Cpuid};
/// use logic::model::constraint::Constraint;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::limits::Limits;
/// use logic::sched::cpu_schedule::CpuSchedule;
/// # let cpuid = Cpuid::intel(3, 4, 3);
/// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
/// let on = |bits| Constraint::any_of(CounterMask::from_bits(bits));
/// let mut schedule = CpuSchedule::new(&capabilities);
/// schedule.add("pinned", on(0x4), None, &Limits::NONE).unwrap();
///
/// let mut trial = schedule.trial();
/// trial.push("a", on(0xf), None);
/// trial.push("b", on(0x4), None);
/// assert!(trial.fits(&Limits::NONE).is_err());
/// trial.push("c", on(0xf), None);
/// assert!(trial.fits(&Limits::NONE).is_ok());
/// drop(trial);
/// assert_eq!(schedule.len(), 1);
/// ```
pub struct Trial<'a, T: Copy + PartialEq> {
    schedule: &'a mut CpuSchedule<T>,
    /// The slots in use before the trial.
    before: SlotSet,
    /// The first refusal of an event of the current group.
    pushed: Result<(), Refusal>,
    /// The slots of the events on whose counters sampled events of the trial would ride, and below
    /// them the same without the current group.
    sampled: SlotSet,
    sampled_before: SlotSet,
    /// The state to restore.
    fresh: SlotSet,
    unprogrammed: SlotSet,
    txn: bool,
    taken: CounterMask,
    keys: u64,
}

impl<T: Copy + PartialEq> Trial<'_, T> {
    /// Returns whether an event with this `demand` would ride on the counter of an equal event, and
    /// so needs no counter.
    pub fn would_ride(&self, demand: &Demand) -> bool {
        self.schedule.may_have_equal(demand.key)
            && self.schedule.equal_slot(demand, self.sampled).is_some()
    }

    /// Adds an event to the current group, unless it [would ride](Self::would_ride) on the counter
    /// of an equal event. The handle may be any value.
    pub fn push(&mut self, event: T, demand: impl Into<Demand>, previous: Option<CounterId>) {
        let demand = demand.into();
        if self.schedule.may_have_equal(demand.key) {
            if let Some(slot) = self.schedule.equal_slot(&demand, self.sampled) {
                if demand.key.samples() {
                    self.sampled = self.sampled.with(SlotSet::only(slot));
                }
                return;
            }
        }
        let pushed = self.schedule.push(event, &demand, previous);
        self.pushed = self.pushed.and(pushed);
    }

    /// As [`CpuSchedule::reach`], including the groups that fit so far.
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        self.schedule.reach(counters, limits)
    }

    /// Decides whether the current group fits beside the groups that fit so far, and begins the
    /// next group.
    ///
    /// # Errors
    ///
    /// As for [`CpuSchedule::commit`]. Then the group is removed.
    pub fn fits(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let pushed = core::mem::replace(&mut self.pushed, Ok(()));
        let fits = pushed.and_then(|()| self.schedule.plan(limits));
        if fits.is_err() {
            self.schedule.drop_fresh();
            self.sampled = self.sampled_before;
        }
        self.sampled_before = self.sampled;
        fits
    }
}

impl<T: Copy + PartialEq> Drop for Trial<'_, T> {
    fn drop(&mut self) {
        let schedule = &mut *self.schedule;
        schedule.drop_all(schedule.live.without(self.before));
        schedule.txn = self.txn;
        // INVARIANT: All sets, and the planned counters of the entries, are as before the trial.
        schedule.fresh = self.fresh;
        schedule.unprogrammed = self.unprogrammed;
        schedule.taken = self.taken;
        schedule.keys = self.keys;
        for slot in self.before {
            let (planned, register) = schedule.saved[slot & (SLOT_COUNT - 1)];
            if let Some(entry) = schedule.at_mut(slot) {
                entry.planned = planned;
                entry.planned_register = register;
            }
        }
    }
}
