// SPDX-License-Identifier: GPL-2.0

//! The demand for counters: of one group, and of all groups of a context.

#[cfg(test)]
mod tests;

use crate::logic::{
    model::{
        constraint::Constraint,
        demand::Key, //
    },
    regs::counter::{
        CounterId,
        CounterMask, //
    },
    sched::limits::Limits, //
};

/// The charge for an interval on the counters. Larger than the distance between new groups in the
/// perf core's order.
pub const TURN: u64 = 1 << 16;

/// The demand of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWants {
    /// The counters that its events may use.
    all: CounterMask,
    /// The counters that one of its events may use. This is an event that may use general-purpose
    /// counters only, if the group has one.
    hard: CounterMask,
    /// Number of events, and of events that may use general-purpose counters only.
    events: u32,
    pub(super) gp_only: u32,
    pub(super) corrupting: bool,
}

impl GroupWants {
    /// Adds an event of the group.
    pub fn add(&mut self, constraint: Constraint) {
        self.all = self.all | constraint.counters;
        self.corrupting |= constraint.corrupting;
        let gp_only = constraint.counters.beyond_gp().is_empty();
        if self.events == 0 || (gp_only && self.gp_only == 0) {
            self.hard = constraint.counters;
        }
        self.events = self.events.saturating_add(1);
        self.gp_only = self.gp_only.saturating_add(gp_only.into());
    }

    /// Returns whether the group has no event of the PMU.
    pub const fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Returns whether one of its events corrupts the sibling thread's counts.
    pub const fn is_corrupting(&self) -> bool {
        self.corrupting
    }

    /// Returns whether the group could count on counters that are neither general-purpose ones nor
    /// `taken`: all of its events may use such counters, and there are enough of them.
    pub fn needs_no_gp(&self, taken: CounterMask) -> bool {
        let free = self.all.beyond_gp().without(taken);
        self.gp_only == 0 && self.events <= free.weight()
    }
}

/// Number of classes of groups, by the number of general-purpose counters that they need.
const NEEDS: usize = 9;

/// The demand of all groups of a context, or of those that can be on the CPU together with its
/// current task. Removed groups may still be included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The counters that at least one group may use, and the counters that at least two may use.
    /// This and the numbers of groups below leave out [copies](Self::add_copy), except `by_need`.
    once: CounterMask,
    twice: CounterMask,
    /// For each number of general-purpose counters that groups need (the last class has all larger
    /// numbers): the counters of which each group needs one, and the number of groups.
    by_need: [(CounterMask, u32); NEEDS],
    /// Number of groups with corrupting events, and of other groups that need a general-purpose
    /// counter.
    corrupting: u32,
    others: u32,
    /// The general-purpose counters that the events of these other groups may use.
    for_others: CounterMask,
    /// Set if a group wants to be alone (`attr.exclusive`).
    alone: bool,
    /// The bits of the keys of all events ([`Key::bit`]), and of those that occur twice or more.
    keys: u64,
    equal_keys: u64,
}

/// An event with a planned counter.
#[derive(Clone, Copy, Debug)]
pub struct OnCounter {
    /// The counters that it may use.
    pub constraint: Constraint,
    /// The planned counter.
    pub counter: CounterId,
    /// Set if it rotates with the groups of the context in question.
    pub rotates: bool,
}

/// Number of events on general-purpose counters that rotate with a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Corrupting events.
    pub corrupting: u32,
    /// Other events.
    pub others: u32,
}

impl Beside {
    /// Counts the `events` on a CPU that rotate with a group. [`None`] if a corrupting event does
    /// not rotate: it limits the counters in any case.
    pub fn of(events: impl Iterator<Item = OnCounter>) -> Option<Self> {
        let mut beside = Self::default();
        // Corrupting events do not contend for fixed counters.
        for event in events.filter(|event| event.counter.is_gp()) {
            let count = match (event.constraint.corrupting, event.rotates) {
                (true, false) => return None,
                (false, false) => continue,
                (true, true) => &mut beside.corrupting,
                (false, true) => &mut beside.others,
            };
            *count = count.wrapping_add(1);
        }
        Some(beside)
    }

    /// Returns whether one of the counted events is corrupting; [`None`] if there are no events.
    pub(super) const fn kind(self) -> Option<bool> {
        match self {
            Self {
                corrupting: 0,
                others: 0,
            } => None,
            Self { corrupting, .. } => Some(corrupting != 0),
        }
    }
}

impl Wants {
    /// No group.
    pub const NOTHING: Self = Self {
        once: CounterMask::EMPTY,
        twice: CounterMask::EMPTY,
        by_need: [(CounterMask::EMPTY, 0); NEEDS],
        corrupting: 0,
        others: 0,
        for_others: CounterMask::EMPTY,
        alone: false,
        keys: 0,
        equal_keys: 0,
    };

    /// Adds a group. `alone` is set if it wants to be alone.
    pub fn add(&mut self, group: &GroupWants, alone: bool) {
        self.twice = self.twice | (self.once & group.all);
        self.once = self.once | group.all;
        if group.corrupting {
            self.corrupting = self.corrupting.saturating_add(1);
        } else if group.gp_only != 0 {
            self.others = self.others.saturating_add(1);
            self.for_others = self.for_others | group.all.gp();
        }
        self.add_copy(group, alone);
    }

    /// Adds a group whose events are all equal to events of other groups. They can count on the
    /// same counters at the same time, so the group does not contend for these.
    pub fn add_copy(&mut self, group: &GroupWants, alone: bool) {
        if let Some((hard, groups)) = self
            .by_need
            .get_mut((group.gp_only as usize).min(NEEDS - 1))
        {
            *hard = *hard | group.hard;
            *groups = groups.saturating_add(1);
        }
        self.alone |= alone;
    }

    /// Adds the `key` of an event of an added group. `again` is set if an event of another group
    /// has the key, too.
    pub fn add_key(&mut self, key: Key, again: bool) {
        self.keys |= key.bit();
        if again {
            self.equal_keys |= key.bit();
        }
    }

    /// Returns the bits of the keys of events that may ride on the counters of other groups of the
    /// context, or of events on the CPU that do not rotate with it, whose bits are `beside`. May
    /// include the bits of other keys.
    pub const fn rideable(&self, beside: u64) -> u64 {
        self.equal_keys | self.keys & beside
    }

    /// Returns whether a group wants to be alone.
    pub const fn any_alone(&self) -> bool {
        self.alone
    }

    /// Returns whether a group has corrupting events. If so, it matters which groups can be on the
    /// CPU at the same time.
    pub const fn any_corrupting(&self) -> bool {
        self.corrupting != 0
    }

    /// Returns whether a group that is not among the `active` ones could use the remaining
    /// counters: it may use one of the counters `reach`, and needs no more than `room`
    /// general-purpose counters ([`CpuSchedule::reach`]).
    pub fn could_use(&self, active: &Self, reach: CounterMask, room: u32) -> bool {
        // CAST: at most the number of counters.
        let mut needs = self
            .by_need
            .iter()
            .zip(&active.by_need)
            .take((room as usize).saturating_add(1));
        needs.any(|((hard, groups), (_, active))| hard.intersects(reach) && groups > active)
    }

    /// Returns whether another group contends for one of `counters`, or for the CPU as a whole. A
    /// group with corrupting events contends for all general-purpose counters, as it limits their
    /// number.
    pub const fn contend_for(&self, counters: CounterMask) -> bool {
        let limits = self.corrupting != 0 && self.corrupting.saturating_add(self.others) > 1;
        self.alone || self.twice.intersects(counters) || (limits && !counters.gp().is_empty())
    }

    /// Returns whether another group contends for one of `counters` indirectly, through `events` on
    /// the CPU that do not rotate: the group may use the counter of such an event, and the event
    /// could move to one of `counters`. A corrupting event limits the general-purpose counters,
    /// whichever of them it is on.
    #[cold]
    #[inline(never)]
    pub(super) fn contend_by_way_of(
        &self,
        events: impl Iterator<Item = OnCounter> + Clone,
        counters: CounterMask,
    ) -> bool {
        let limits = |it: OnCounter| it.constraint.corrupting && it.counter.is_gp() && !it.rotates;
        if !counters.gp().is_empty() && events.clone().any(limits) {
            return true;
        }
        // The counters that could be freed for another group.
        let mut wanted = self.once;
        loop {
            let before = wanted;
            for event in events.clone().filter(|event| !event.rotates) {
                if wanted.contains(event.counter) {
                    wanted = wanted | event.constraint.counters;
                }
            }
            if wanted == before {
                break;
            }
        }
        let lasting = events.filter(|it| !it.rotates && wanted.contains(it.counter));
        let counters_of = |it: OnCounter| it.constraint.counters;
        lasting.map(counters_of).any(|it| it.intersects(counters))
    }

    /// Returns the number of general-purpose counters, out of `gp`, that stay unused while
    /// corrupting events count, although other groups could use them.
    pub(super) fn unused_beside_corrupting(&self, gp: u32, limits: &Limits) -> u32 {
        let most = limits.gp(false).min(gp).min(self.others);
        let most = most.min(self.for_others.weight());
        match self.corrupting {
            0 => 0,
            _ => most.saturating_sub(limits.gp(true)),
        }
    }

    /// Returns the charge for an interval, on a thread with `gp` general-purpose counters. Groups
    /// with `corrupting` events pay more, by two thirds of the fraction of counters that stay
    /// unused because of them. They pay nothing extra if all other groups fit at the same time,
    /// since these would not gain anything.
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

    /// Returns whether a group, `corrupting` or not, has to wait although it may fit `beside` the
    /// active events, because these are of the other kind. A group that is not corrupting waits
    /// only as long as more corrupting groups could join.
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
