// SPDX-License-Identifier: GPL-2.0

//! What groups want of the counters, one by one and all together.

#[cfg(test)]
mod tests;

use super::TURN;
use crate::logic::{
    regs::counter::CounterMask,
    sched::{constraint::Constraint, limits::Limits},
};

/// What one group wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWants {
    /// The counters that any of its events may use,
    all: CounterMask,
    /// and one that may use no fixed counter, if there is such a one; else another.
    hard: CounterMask,
    /// Number of events, and of those that may use no fixed counter.
    events: u32,
    pub(super) gp_only: u32,
    pub(super) corrupting: bool,
}

impl GroupWants {
    /// Adds an event of the group.
    pub fn add(&mut self, constraint: Constraint) {
        self.all = self.all | constraint.counters;
        self.corrupting |= constraint.exclusive;
        let gp_only = constraint.counters.fixed().is_empty();
        if self.events == 0 || (gp_only && self.gp_only == 0) {
            self.hard = constraint.counters;
        }
        self.events = self.events.saturating_add(1);
        self.gp_only = self.gp_only.saturating_add(gp_only.into());
    }

    /// Whether the group has events of the PMU.
    pub const fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether one of its events corrupts the sibling thread's counts.
    pub const fn is_corrupting(&self) -> bool {
        self.corrupting
    }
}

/// How many needs for counters are told apart, from none on.
const NEEDS: usize = 9;

/// What the groups of a context want, all together. Groups that have gone may still be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The counters that at least one group may use, and at least two.
    once: CounterMask,
    twice: CounterMask,
    /// By how many general-purpose counters a group needs, up to the most that are told apart: one
    /// counter of these is needed, and so many groups there are.
    by_need: [(CounterMask, u32); NEEDS],
    /// Number of groups with corrupting events, and without.
    corrupting: u32,
    others: u32,
    /// Whether a group wants to be alone (`attr.exclusive`).
    alone: bool,
}

/// How many events of a context's groups that take turns are on the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Corrupting ones.
    pub corrupting: u32,
    /// The others.
    pub others: u32,
}

impl Wants {
    /// No group.
    pub const NOTHING: Self = Self {
        once: CounterMask::EMPTY,
        twice: CounterMask::EMPTY,
        by_need: [(CounterMask::EMPTY, 0); NEEDS],
        corrupting: 0,
        others: 0,
        alone: false,
    };

    /// Adds a group, which may want to be alone.
    pub fn add(&mut self, group: &GroupWants, alone: bool) {
        self.twice = self.twice | (self.once & group.all);
        self.once = self.once | group.all;
        if let Some((hard, groups)) = self
            .by_need
            .get_mut((group.gp_only as usize).min(NEEDS - 1))
        {
            *hard = *hard | group.hard;
            *groups = groups.saturating_add(1);
        }
        if group.corrupting {
            self.corrupting = self.corrupting.saturating_add(1);
        } else {
            self.others = self.others.saturating_add(1);
        }
        self.alone |= alone;
    }

    /// Whether a group that is not among the `active` ones could use what is left: it may use one of
    /// the counters `reach`, and `room` general-purpose counters are enough for it
    /// ([`Roster::reach`]).
    pub fn could_use(&self, active: &Self, reach: CounterMask, room: u32) -> bool {
        // CAST: at most the number of counters.
        let mut needs = self
            .by_need
            .iter()
            .zip(&active.by_need)
            .take((room as usize).saturating_add(1));
        needs.any(|((hard, groups), (_, active))| hard.intersects(reach) && groups > active)
    }

    /// Whether a group that has `counters` has to share one of them, or its time on the CPU.
    pub const fn contend_for(&self, counters: CounterMask) -> bool {
        self.alone || self.twice.intersects(counters)
    }

    /// How many of `gp` general-purpose counters stay unused while corrupting events count, although
    /// other groups could use them.
    pub(super) fn unused_beside_corrupting(&self, gp: u32, limits: &Limits) -> u32 {
        let most = limits.gp(false).min(gp).min(self.others);
        match self.corrupting {
            0 => 0,
            _ => most.saturating_sub(limits.gp(true)),
        }
    }

    /// Returns what an interval costs a group, on a thread with `gp` general-purpose counters:
    /// more for those with `corrupting` events, by two thirds of the part of the counters that stays
    /// unused because of them. That is not so where the other groups all fit together: then nobody
    /// gets more if these get less.
    pub fn charge(&self, corrupting: bool, gp: u32, limits: &Limits) -> u64 {
        if !corrupting {
            return TURN;
        }
        let unused = self.unused_beside_corrupting(gp, limits);
        let unused = u64::from(unused.min(self.others.saturating_sub(gp)));
        let more =
            (TURN.wrapping_mul(2).wrapping_mul(unused)).checked_div(u64::from(gp).wrapping_mul(3));
        TURN.saturating_add(more.unwrap_or(0))
    }

    /// Whether a group, `corrupting` or not, has to wait although it may fit `beside` the others: they
    /// are of the other kind, and of these more wait.
    pub fn waits_for_its_kind(
        &self,
        corrupting: bool,
        beside: Beside,
        gp: u32,
        limits: &Limits,
    ) -> bool {
        if self.unused_beside_corrupting(gp, limits) == 0 {
            return false;
        }
        if corrupting {
            beside.corrupting == 0 && beside.others > 0
        } else {
            beside.corrupting > 0 && beside.corrupting < limits.gp(true).min(self.corrupting)
        }
    }
}
