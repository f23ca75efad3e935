// SPDX-License-Identifier: GPL-2.0

//! The slow path to a plan: all events of the CPU as one
//! [`Problem`](crate::logic::sched::assign::Problem).

use super::{
    CpuSchedule,
    Entries,
    SlotSet,
    SLOT_COUNT, //
};
use crate::logic::{
    model::demand::Requirement,
    refusal::{
        Refusal,
        Shortage, //
    },
    regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        extra_register::ExtraRegister, //
    },
    sched::{
        limits::Limits,
        register_plan::{
            self,
            Conflict,
            RegisterValues, //
        },
        usage::ThreadUsage, //
    },
};

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// Plans all events anew. Its verdict is final.
    #[cold]
    #[inline(never)]
    pub(super) fn plan_anew(&mut self, limits: &Limits) -> Result<(), Refusal> {
        if let Err(refusal) = self.solve(limits) {
            // Without any limit, even a lasting one: that one ends when the sibling goes offline,
            // and then the thread is woken.
            if self.is_cut_by(limits) && self.solve(&Limits::NONE).is_ok() {
                self.wish_for(limits);
                return Err(refusal.for_the_moment());
            }
            return Err(refusal);
        }
        // INVARIANT: All entries have planned counters, and these become `taken`.
        self.taken = self.assignment.iter().collect();
        self.fresh = SlotSet::NONE;
        self.unprogrammed = SlotSet::NONE;
        for (slot, counter) in self.live.zip(self.assignment.iter()) {
            let Some(entry) = &mut self.entries[slot & (SLOT_COUNT - 1)] else {
                continue;
            };
            entry.planned = Some(counter);
            entry.planned_register = entry.requirement.and_then(|it| self.registers.find(it));
            if !entry.is_programmed() {
                self.unprogrammed = self.unprogrammed.with(SlotSet::only(slot));
            }
        }
        Ok(())
    }

    /// Makes the usage of all events, including the fresh ones, the [wish](Self::take_wish), if
    /// they fit under the lasting limits and there is no wish yet.
    #[inline(never)]
    fn wish_for(&mut self, limits: &Limits) {
        if self.wish.is_some() {
            return;
        }
        if self.solve(&limits.lasting()).is_ok() {
            let mut usage = ThreadUsage {
                registers: self.registers,
                ..ThreadUsage::default()
            };
            for (entry, counter) in self.entries().zip(self.assignment.iter()) {
                usage.used.insert(counter);
                if entry.constraint.corrupting {
                    usage.corrupting.insert(counter);
                }
            }
            self.wish = Some(usage);
        }
    }

    /// Finds a counter for every event, within `limits` for new ones, and values for the extra
    /// registers. Stores the result in `assignment` and `registers`: the kernel's stack is too
    /// small to return it.
    pub(super) fn solve(&mut self, limits: &Limits) -> Result<(), Refusal> {
        self.registers = match self.demanding {
            0 => RegisterValues::NONE,
            _ => self.plan_registers(limits)?,
        };
        let gp_limit = self.gp_limit(limits);

        let problem = &mut self.problem;
        problem.clear();
        problem.limit_gp(gp_limit);
        problem.set_policy(self.policy);
        let entries = Entries {
            entries: &self.entries,
            slots: self.live,
        };
        for entry in entries {
            let mut constraint = entry.constraint;
            let has = entry.planned.map_or(CounterMask::EMPTY, CounterId::mask);
            constraint.counters = limits.counters(constraint) | has;
            let preferred = entry.planned.or(entry.previous);
            if problem.push(constraint, preferred).is_err() {
                return Err(Shortage::more_than(self.counters).into());
            }
        }
        problem.solve_into(&mut self.assignment)?;
        Ok(())
    }

    /// Returns the maximum number of general-purpose counters: the limit, or the number of taken
    /// ones if there are more, because a new event may get a fixed counter. A corrupting event
    /// always needs a general-purpose counter: if one of the new events is corrupting, the limit
    /// holds for all events.
    fn gp_limit(&self, limits: &Limits) -> u32 {
        let limit = limits.gp(self.corrupting != 0);
        match self.collected().any(|entry| entry.constraint.corrupting) {
            true => limit,
            false => limit.max(self.taken.gp().weight()),
        }
    }

    /// Finds values for the extra registers.
    // A separate function, so that its stack is free again when counters are assigned.
    #[inline(never)]
    fn plan_registers(&self, limits: &Limits) -> Result<RegisterValues, Conflict> {
        let wanted = Wanted {
            entries: self.entries(),
            branches: None,
        };
        register_plan::plan(wanted, limits.registers)
    }

    /// Returns whether `limits` may restrict the events.
    pub(super) fn is_cut_by(&self, limits: &Limits) -> bool {
        limits.gp(self.corrupting != 0) != u32::MAX
            || self.entries().any(|entry| {
                limits.counters(entry.constraint) != entry.constraint.counters
                    || (entry.demand().needs_register() && limits.registers != RegisterValues::NONE)
            })
    }
}

/// The requirements of events for extra registers, each with the register that the event has.
#[derive(Clone)]
struct Wanted<'a, T> {
    entries: Entries<'a, T>,
    /// The previous event's requirement of LBR_SELECT, if it has another requirement, too.
    branches: Option<(Requirement, Option<ExtraRegister>)>,
}

impl<T> Iterator for Wanted<'_, T> {
    type Item = (Requirement, Option<ExtraRegister>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(branches) = self.branches.take() {
            return Some(branches);
        }
        self.entries.find_map(|entry| {
            let mut wanted = entry.demand().requirements();
            let first = wanted.next()?;
            self.branches = wanted.next().map(|second| (second, entry.planned_register));
            Some((first, entry.planned_register))
        })
    }
}
