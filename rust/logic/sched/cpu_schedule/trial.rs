// SPDX-License-Identifier: GPL-2.0

//! What could be added to a CPU's events, found out without adding it.

use super::{Roster, Slots, SLOTS};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    sched::{
        extra_register::{Demand, ExtraRegister},
        limits::Limits,
    },
    smt::usage::Claim,
};

impl<T: Copy + PartialEq> Roster<T> {
    /// Returns which of `counters` an event that is new would have to have one of to fit within
    /// `limits`, and for how many events that need a general-purpose counter there is room at most.
    ///
    /// These are the counters that are free, and those that an event would leave for one of them.
    /// Without them nothing fits; with them, it has to be [tried](Self::trial).
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        let mut free = counters.without(limits.closed).without(self.taken);
        let mut room = free.gp().weight();
        let limit = limits.gp(self.exclusive != 0);
        if limit != u32::MAX {
            room = room.min(limit.saturating_sub(self.taken.gp().weight()));
            if room == 0 {
                free = free.fixed();
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
            let leaves = entry.constraint.counters.intersects(free.fixed());
            if leaves && entry.planned.is_some_and(|it| counters.gp().contains(it)) {
                room = room.wrapping_add(1);
            }
        }
        (reach, room)
    }

    /// Begins to try what could be added. Whatever is tried, the roster is as it was when the
    /// result is dropped.
    pub fn trial(&mut self) -> Trial<'_, T> {
        // So that there is a slot for whoever there is room for, and nobody moves during the trial.
        self.close_gaps();
        let mut planned = [(None, None); SLOTS];
        for (saved, entry) in planned.iter_mut().zip(self.entries()) {
            *saved = (entry.planned, entry.planned_register);
        }
        Trial {
            before: self.live,
            fresh: core::mem::replace(&mut self.fresh, Slots::NONE),
            unsettled: self.unsettled,
            transaction: core::mem::replace(&mut self.transaction, true),
            pushed: Ok(()),
            taken: self.taken,
            planned,
            roster: self,
        }
    }
}

/// What could be added to a [`Roster`], one group after the other.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// # use logic::capabilities::{Capabilities, Cpuid, Leaf};
/// use logic::sched::constraint::Constraint;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::limits::Limits;
/// use logic::sched::cpu_schedule::Roster;
/// # let cpuid = Cpuid {
/// #     leaf_0: Leaf { eax: 0xd, ..Leaf::default() },
/// #     leaf_a: Leaf { eax: 0x0730_0403, ebx: 0, ecx: 0, edx: 0x603 },
/// #     ..Cpuid::default()
/// # };
/// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
/// let on = |bits| Constraint::any_of(CounterMask::from_bits(bits));
/// let mut roster = Roster::new(&capabilities);
/// roster.add("pinned", on(0x4), None, &Limits::NONE).unwrap();
///
/// let mut trial = roster.trial();
/// trial.push("a", on(0xf), None);
/// trial.push("b", on(0x4), None);
/// assert!(trial.fits(&Limits::NONE).is_err());
/// trial.push("c", on(0xf), None);
/// assert!(trial.fits(&Limits::NONE).is_ok());
/// drop(trial);
/// assert_eq!(roster.len(), 1);
/// ```
pub struct Trial<'a, T: Copy + PartialEq> {
    roster: &'a mut Roster<T>,
    /// The slots of events that were there before.
    before: Slots,
    /// Whether there was room for the events of the group that is being tried.
    pushed: Result<(), Refusal>,
    /// What is to be as it was.
    fresh: Slots,
    unsettled: Slots,
    transaction: bool,
    taken: CounterMask,
    planned: [(Option<CounterId>, Option<ExtraRegister>); SLOTS],
}

impl<T: Copy + PartialEq> Trial<'_, T> {
    /// Adds an event to the group that is tried next. The handle does not matter.
    pub fn push(&mut self, event: T, demand: impl Into<Demand>, previous: Option<CounterId>) {
        let pushed = self.roster.push(event, demand.into(), previous);
        self.pushed = self.pushed.and(pushed);
    }

    /// As [`Roster::reach`], beside all that fitted.
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        self.roster.reach(counters, limits)
    }

    /// Whether the group fits beside all that fitted before.
    ///
    /// # Errors
    ///
    /// As for [`Roster::commit`]. The group is forgotten then.
    pub fn fits(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let pushed = core::mem::replace(&mut self.pushed, Ok(()));
        let fits = pushed.and_then(|()| self.roster.plan(limits));
        if fits.is_err() {
            self.roster.drop_fresh();
        }
        fits
    }

    /// As [`Roster::take_wish`].
    pub fn take_wish(&mut self) -> Option<Claim> {
        self.roster.take_wish()
    }
}

impl<T: Copy + PartialEq> Drop for Trial<'_, T> {
    fn drop(&mut self) {
        let roster = &mut *self.roster;
        roster.drop_all(roster.live.without(self.before));
        roster.transaction = self.transaction;
        // INVARIANT: As before, and so is what the entries have planned.
        roster.fresh = self.fresh;
        roster.unsettled = self.unsettled;
        roster.taken = self.taken;
        for (slot, (planned, register)) in self.before.zip(self.planned) {
            if let Some(entry) = roster.at_mut(slot) {
                entry.planned = planned;
                entry.planned_register = register;
            }
        }
    }
}
