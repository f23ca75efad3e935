// SPDX-License-Identifier: GPL-2.0

//! Rotation: which groups go first where they outnumber the counters.
//!
//! The perf core offers the groups of a context to the PMU in the order of a tree, and moves one of
//! those that have counted to its end with each interval (`perf_rotate_context()`,
//! `kernel/events/core.c:4604`). So a group that does not fit keeps all behind it waiting
//! (`group_can_go_on()`, `core.c:2920`), and what a group gets depends on its neighbours.
//!
//! Here the order of the tree is by runtime: at the end of an interval each group that has counted
//! is put behind those that have had less ([`requeue`]). That takes time for the groups that have
//! counted, not for those that wait. When a group does not fit, and counters are left that another
//! could use ([`Wants::could_use`]), the groups behind it are looked at once ([`look_ahead`]). Those
//! that fit are put in front of it, so that the next time the perf core finds them by itself.
//!
//! The group in front is always placed if it fits at all, so no group starves. Where each group is one
//! event, the number of counters in use is the greatest possible, because sets of events that fit
//! on counters are a matroid.
//!
//! # Corrupting events
//!
//! An event that corrupts the sibling thread's counts leaves its thread half of the counters. Such
//! groups count together ([`Wants::waits_for_its_kind`]), and are charged for the counters that stay
//! unused because of them ([`Wants::charge`]): they count less often, and all groups together more.
//!
//! Context: any; nothing but values.

use crate::logic::{
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    sched::{constraint::Constraint, cpu_schedule::Roster, extra_register::Demand, limits::Limits},
};

/// What an interval on the counters costs a group. More than the perf core numbers new groups by.
pub const TURN: u64 = 1 << 16;

/// How far behind the last group of the order another can be when it is charged. What it had less
/// than that before is forgotten: it would be served first for as long.
const MEMORY: u64 = 8 * TURN;

/// Most groups that [`look_ahead`] finds.
pub const MOST_FOUND: usize = 16;

/// Returns a group's new place in the order, after an interval on the counters that costs it
/// `charge`. Its place by runtime was `had`; the last place of the order is `latest`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::{requeue, TURN};
///
/// // The groups are numbered as they come, and the first goes behind all others.
/// assert!(requeue(1, 8, TURN) > 8);
/// ```
pub const fn requeue(had: u64, latest: u64, charge: u64) -> u64 {
    let floor = latest.saturating_sub(MEMORY);
    let had = if had > floor { had } else { floor };
    had.saturating_add(charge)
}

/// What one group wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWants {
    /// The counters that any of its events may use,
    all: CounterMask,
    /// and one that may use no fixed counter, if there is such a one; else another.
    hard: CounterMask,
    /// Number of events, and of those that may use no fixed counter.
    events: u32,
    gp_only: u32,
    corrupting: bool,
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

    /// Whether a group wants to be alone.
    pub const fn any_alone(&self) -> bool {
        self.alone
    }

    /// How many of `gp` general-purpose counters stay unused while corrupting events count, although
    /// other groups could use them.
    fn unused_beside_corrupting(&self, gp: u32, limits: &Limits) -> u32 {
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

/// A group that waits, as [`look_ahead`] sees it.
pub trait Waiting: Copy {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// Calls `f` for each event that is counted when the group is: a handle, which does not matter,
    /// what it needs, and the counter that it had last.
    fn for_each_event(&self, f: impl FnMut(Self::Event, Demand, Option<CounterId>));

    /// Whether the group wants to be alone.
    fn is_alone(&self) -> bool;
}

/// What [`look_ahead`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Found<G> {
    groups: [Option<G>; MOST_FOUND],
    /// The counters that are left, as of [`Roster::reach`].
    pub reach: CounterMask,
    /// What is in the way of a group for the moment only, if there is such a group.
    pub refusal: Option<Refusal>,
    /// How many groups were looked at.
    pub looked_at: u32,
}

impl<G: Copy> Found<G> {
    /// The groups that fit.
    pub fn groups(&self) -> impl Iterator<Item = G> + '_ {
        self.groups.iter().flatten().copied()
    }
}

/// Finds out which of `groups`, in this order, fit beside the events of `roster`, on a thread with
/// `counters` and under `limits`. If it is known what all groups of the context want, it comes with
/// what those want that are `active`.
///
/// Where corrupting events halve the counters, groups go first that are of the kind that is on the
/// CPU. All this takes time for groups as long as there are counters that one could use.
pub fn look_ahead<G: Waiting>(
    roster: &mut Roster<G::Event>,
    counters: CounterMask,
    limits: &Limits,
    wants: Option<(&Wants, Wants)>,
    groups: impl Iterator<Item = G> + Clone,
) -> Found<G> {
    let (wants, mut active) = match wants {
        Some((wants, active)) => (Some(wants), active),
        None => (None, Wants::NOTHING),
    };
    let gp = counters.gp().weight();
    let split = wants.is_some_and(|wants| wants.unused_beside_corrupting(gp, limits) != 0);
    let first_kind = roster.any_exclusive();
    let mut trial = roster.trial();
    let (mut reach, mut room) = trial.reach(counters, limits);
    let mut found = Found {
        groups: [None; MOST_FOUND],
        reach,
        refusal: None,
        looked_at: 0,
    };
    let mut slots = found.groups.iter_mut();
    for kind in [Some(first_kind), Some(!first_kind)] {
        let kind = kind.filter(|_| split);
        for group in groups.clone() {
            let could_use = |wants: &Wants| wants.could_use(&active, reach, room);
            if reach.is_empty() || !wants.is_none_or(could_use) {
                break;
            }
            found.looked_at = found.looked_at.saturating_add(1);
            let mut is = GroupWants::default();
            let mut possible = !group.is_alone();
            group.for_each_event(|_, demand, _| {
                is.add(demand.constraint);
                possible &= demand.constraint.counters.intersects(reach);
            });
            if !possible || is.gp_only > room || kind.is_some_and(|kind| kind != is.corrupting) {
                continue;
            }
            group.for_each_event(|event, demand, last| trial.push(event, demand, last));
            match trial.fits(limits) {
                Ok(()) => {
                    let Some(slot) = slots.next() else { break };
                    *slot = Some(group);
                    active.add(&is, false);
                    (reach, room) = trial.reach(counters, limits);
                }
                Err(refusal) if refusal.is_for_the_moment() => found.refusal = Some(refusal),
                Err(_) => {}
            }
        }
        if kind.is_none() {
            break;
        }
    }
    found.reach = reach;
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::regs::counter::CounterMask;

    fn on(bits: u64) -> Constraint {
        Constraint::any_of(CounterMask::from_bits(bits))
    }

    fn wants(groups: &[&[Constraint]]) -> Wants {
        let mut wants = Wants::NOTHING;
        for group in groups {
            let mut is = GroupWants::default();
            group.iter().for_each(|it| is.add(*it));
            wants.add(&is, false);
        }
        wants
    }

    #[test]
    fn what_was_had_long_ago_is_forgotten() {
        assert_eq!(requeue(100 * TURN, 100 * TURN, TURN), 101 * TURN);
        assert_eq!(requeue(99 * TURN, 100 * TURN, TURN), 100 * TURN);
        assert_eq!(requeue(1, 100 * TURN, TURN), 101 * TURN - MEMORY);
        // However little is charged, the group is not the first of those that wait as long.
        assert!(requeue(1, 100 * TURN, 1) > 100 * TURN - MEMORY);
    }

    #[test]
    fn who_could_use_what_is_left() {
        let (any, fixed, both) = (on(0xf), on(0x1_0000_0000), on(0x1_0000_000f));
        let (gp, all) = (
            CounterMask::from_bits(0x8),
            CounterMask::from_bits(0x1_0000_0008),
        );
        let pairs = wants(&[&[any, any], &[any, any, fixed]]);
        let could_use = |wants: &Wants, reach, room| wants.could_use(&Wants::NOTHING, reach, room);
        assert!(!could_use(&pairs, gp, 1) && could_use(&pairs, gp, 2));
        // A fixed counter is of no use to a group that needs another as well.
        assert!(!could_use(&pairs, all.fixed(), 0));
        assert!(could_use(&wants(&[&[any, any], &[fixed]]), all.fixed(), 0));
        assert!(could_use(&wants(&[&[both]]), all.fixed(), 0));
        assert!(!could_use(&Wants::NOTHING, CounterMask::ALL, 8));
        // One that is on the CPU does not wait.
        let mixed = wants(&[&[any], &[any, any], &[any, any]]);
        assert!(could_use(&mixed, gp, 1) && !mixed.could_use(&wants(&[&[any]]), gp, 1));
        assert!(mixed.could_use(&wants(&[&[any], &[any, any]]), gp, 2));
    }

    #[test]
    fn a_counter_of_ones_own_is_not_contended_for() {
        let (any, fixed) = (on(0xf), on(0x1_0000_0000));
        let wants = wants(&[&[any], &[any], &[fixed]]);
        assert!(wants.contend_for(CounterMask::from_bits(0x2)));
        assert!(!wants.contend_for(fixed.counters));
        let mut alone = wants;
        alone.add(&GroupWants::default(), true);
        assert!(alone.contend_for(fixed.counters));
    }

    #[test]
    fn corrupting_events_wait_for_one_another() {
        let corrupting = Constraint {
            exclusive: true,
            ..on(0xf)
        };
        let (any, limits) = (on(0xf), Limits::beside_sibling(4));
        let wants = wants(&[&[corrupting], &[corrupting], &[any], &[any], &[any], &[any]]);
        let beside = |corrupting, others| Beside { corrupting, others };
        for (is_corrupting, beside, waits) in [
            (true, beside(0, 0), false),
            (true, beside(0, 1), true),
            (true, beside(1, 0), false),
            (false, beside(0, 1), false),
            (false, beside(1, 0), true),
            (false, beside(2, 0), false),
        ] {
            let it = wants.waits_for_its_kind(is_corrupting, beside, 4, &limits);
            assert_eq!(it, waits, "{is_corrupting} {beside:?}");
            // Alone in a core they leave nothing unused.
            assert!(!wants.waits_for_its_kind(is_corrupting, beside, 4, &Limits::NONE));
        }
        assert_eq!(wants.charge(false, 4, &limits), TURN);
        for (others, charge) in [(4, TURN), (5, TURN + TURN / 6), (7, TURN + TURN / 3)] {
            let wants = Wants { others, ..wants };
            assert_eq!(wants.charge(true, 4, &limits), charge);
            assert_eq!(wants.charge(true, 4, &Limits::NONE), TURN);
        }
    }
}
