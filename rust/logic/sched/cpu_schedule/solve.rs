// SPDX-License-Identifier: GPL-2.0

//! The slow path to a plan: all events of the CPU as one [`Problem`].

use super::{CpuSchedule, Slots};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    sched::{
        assign::{Assignment, Problem, Shortage},
        limits::Limits,
        register_plan::{self, RegisterValues},
    },
    smt::usage::ThreadUsage,
};

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// Plans all events anew. Its verdict is final.
    #[cold]
    #[inline(never)]
    pub(super) fn plan_anew(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let (assignment, registers) = match self.solve(limits) {
            Err(refusal) if self.is_cut_by(limits) && self.solve(&Limits::NONE).is_ok() => {
                if self.wish.is_none() {
                    self.wish = self.usage_under(&limits.lasting());
                }
                return Err(refusal.for_the_moment());
            }
            solved => solved?,
        };
        // INVARIANT: All entries have a planned counter, and these become `taken`.
        self.taken = assignment.iter().collect();
        self.fresh = Slots::NONE;
        self.unprogrammed = Slots::NONE;
        for (slot, counter) in self.live.zip(assignment.iter()) {
            let Some(entry) = self.at_mut(slot) else {
                continue;
            };
            entry.planned = Some(counter);
            entry.planned_register = entry.requirement.and_then(|it| registers.find(it));
            if !entry.is_programmed() {
                self.unprogrammed = self.unprogrammed.with(Slots::only(slot));
            }
        }
        Ok(())
    }

    /// Finds a counter for every event, within `limits` for new ones, and values for the extra registers.
    pub(super) fn solve(&self, limits: &Limits) -> Result<(Assignment, RegisterValues), Refusal> {
        let mut registers = RegisterValues::NONE;
        if self.demanding != 0 {
            let wanted = self.entries().flat_map(|it| {
                let planned = it.planned_register;
                let requirements = it.demand().requirements();
                requirements.map(move |required| (required, planned))
            });
            registers = register_plan::plan(wanted, limits.registers)?;
        }
        let gp_limit = limits.gp(self.corrupting != 0);
        let gp_limit = gp_limit.max(self.taken.gp().weight());

        let mut problem = Problem::new(gp_limit).with_policy(self.policy);
        for entry in self.entries() {
            let mut constraint = entry.constraint;
            let has = entry.planned.map_or(CounterMask::EMPTY, CounterId::mask);
            constraint.counters = limits.counters(constraint) | has;
            let wish = entry.planned.or(entry.previous);
            if problem.push(constraint, wish).is_err() {
                return Err(Shortage::more_than(self.counters).into());
            }
        }
        Ok((problem.solve()?, registers))
    }

    /// Returns the usage of all events, the fresh ones included, under `limits`, if they fit.
    fn usage_under(&self, limits: &Limits) -> Option<ThreadUsage> {
        let (assignment, registers) = self.solve(limits).ok()?;
        let mut usage = ThreadUsage::default();
        for (entry, counter) in self.entries().zip(assignment.iter()) {
            usage.used.insert(counter);
            if entry.constraint.corrupting {
                usage.corrupting.insert(counter);
            }
        }
        usage.registers = registers;
        Some(usage)
    }

    /// Returns whether `limits` restrict the events at all.
    pub(super) fn is_cut_by(&self, limits: &Limits) -> bool {
        limits.gp(self.corrupting != 0) != u32::MAX
            || self.entries().any(|entry| {
                limits.counters(entry.constraint) != entry.constraint.counters
                    || (entry.demand().needs_register() && limits.registers != RegisterValues::NONE)
            })
    }
}
