// SPDX-License-Identifier: GPL-2.0

//! The search for groups that fit, behind one that does not.

use super::{
    queue::lags_far_behind,
    Beside,
    GroupWants,
    Wants, //
};
use crate::logic::{
    model::demand::Demand,
    refusal::Refusal,
    regs::counter::{
        CounterId,
        CounterMask, //
    },
    sched::{
        cpu_schedule::CpuSchedule,
        limits::Limits, //
    },
};

/// Largest number of groups that [`look_ahead`] finds.
const MOST_FOUND: usize = 16;

/// Number of tried groups from which on the search is not repeated before the end of the interval.
const LONG_WALK: u32 = 64;

/// A group that waits.
pub trait Waiting: Copy {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// Calls `f` for each enabled event of the group, with any handle, the event's demand, and the
    /// counter that it had last.
    fn for_each_event(&self, f: impl FnMut(Self::Event, Demand, Option<CounterId>));

    /// Returns whether the group wants to be alone (`attr.exclusive`).
    fn is_exclusive(&self) -> bool;

    /// Returns whether the group may go to the counters although one before it is refused. An
    /// exclusive one may not, nor one with a software event as its leader, which the perf core
    /// could move meanwhile (`perf_event_open()`, `kernel/events/core.c`).
    fn may_pass(&self) -> bool;

    /// Returns the distance by runtime from the last place of the order.
    fn lag(&self) -> u64;
}

/// The groups that [`look_ahead`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Found<G> {
    groups: [Option<G>; MOST_FOUND],
    /// The remaining counters, as [`CpuSchedule::reach`] returns them.
    pub reach: CounterMask,
    /// The refusal of a group that does not fit for the moment only, if there was one.
    pub refusal: Option<Refusal>,
    /// Number of groups that were tried.
    pub looked_at: u32,
}

impl<G: Copy> Found<G> {
    /// Nothing yet.
    pub const NOTHING: Self = Self {
        groups: [const { None }; MOST_FOUND],
        reach: CounterMask::EMPTY,
        refusal: None,
        looked_at: 0,
    };

    /// Returns the groups that fit, in their order, those that [may not pass](Waiting::may_pass)
    /// included.
    pub fn groups(&self) -> impl Iterator<Item = G> + '_ {
        self.groups.iter().flatten().copied()
    }

    /// Returns the counters for which the search is not to be repeated before the end of the
    /// interval: none, if it takes little time.
    pub const fn left(&self) -> CounterMask {
        // Without a search, a group that is enabled meanwhile is not found before the end of the
        // interval.
        match self.looked_at > LONG_WALK {
            true => self.reach,
            false => CounterMask::EMPTY,
        }
    }
}

/// The conditions of a search.
#[derive(Debug)]
pub struct Search<'a> {
    /// The thread's counters.
    pub counters: CounterMask,
    /// The limits that hold now.
    pub limits: Limits,
    /// The demand of all groups of the context, if known.
    pub wants: Option<&'a Wants>,
    /// The demand of the active groups, if that of all groups is known. Groups that fit are added.
    pub active: &'a mut Wants,
    /// The active events on general-purpose counters that rotate with the groups; [`None`] if their
    /// kind does not matter.
    pub beside: Option<Beside>,
    /// Set if no group is active.
    pub is_first: bool,
    /// Set if groups that [may not pass](Waiting::may_pass) can come in front of the offered one:
    /// an interval has ended.
    pub may_bring_forward: bool,
}

/// Finds those of `groups`, which are behind an offered one and are tried in this order, that fit
/// beside the events of `schedule`. The caller offers them as well, or has those that [may not
/// pass](Waiting::may_pass) come in front of the offered one, and all groups be offered again; if
/// others would fit but for the sibling ([`Found::refusal`]), the thread is to wait for it.
///
/// `found` is [`Found::NOTHING`]. It is not returned, since the copies would be on the kernel's
/// stack.
///
/// Where corrupting events halve the counters, groups of the active kind go first; without active
/// ones, of the kind of the first group that fits. Groups that lag far behind need not be of that
/// kind. Takes time for groups as long as there are counters that one could use.
#[inline(never)]
pub fn look_ahead<G: Waiting>(
    schedule: &mut CpuSchedule<G::Event>,
    search: &mut Search<'_>,
    groups: impl Iterator<Item = G> + Clone,
    found: &mut Found<G>,
) {
    let Search {
        counters,
        ref limits,
        wants,
        ref mut active,
        ..
    } = *search;
    let gp = counters.gp().weight();
    let split = wants.is_some_and(|wants| wants.unused_beside_corrupting(gp, limits) != 0);
    let beside = search.beside.filter(|_| split);
    let mut first_kind = beside.and_then(Beside::kind);
    let mut trial = schedule.trial();
    let (mut reach, mut room) = trial.reach(counters, limits);
    let mut is_first = search.is_first;
    let mut slots = found.groups.iter_mut();
    'search: for is_second_pass in [false, true] {
        for group in groups.clone() {
            let could_use = |wants: &Wants| wants.could_use(active, reach, room);
            if reach.is_empty() || !wants.is_none_or(could_use) {
                break 'search;
            }
            found.looked_at = found.looked_at.saturating_add(1);
            let mut is = GroupWants::default();
            let mut possible = true;
            group.for_each_event(|_, demand, _| {
                is.add(demand.constraint);
                possible &= demand.constraint.counters.intersects(reach);
            });
            if !possible || is.gp_only > room {
                continue;
            }
            let is_of_other_kind = first_kind.is_some_and(|corrupting| {
                is.gp_only != 0 && corrupting != is.is_corrupting() && !lags_far_behind(group.lag())
            });
            if is_of_other_kind != is_second_pass {
                continue;
            }
            let may_come = search.may_bring_forward && !is_second_pass;
            let may_come = may_come && (is_first || !group.is_exclusive());
            if !group.may_pass() && !may_come {
                continue;
            }
            group.for_each_event(|event, demand, last| trial.push(event, demand, last));
            match trial.fits(limits) {
                Ok(()) => {
                    let Some(slot) = slots.next() else {
                        break 'search;
                    };
                    *slot = Some(group);
                    if group.is_exclusive() {
                        break 'search;
                    }
                    is_first = false;
                    active.add(&is, false);
                    if beside.is_some() && is.gp_only != 0 && first_kind.is_none() {
                        first_kind = Some(is.is_corrupting());
                    }
                    (reach, room) = trial.reach(counters, limits);
                }
                Err(refusal) if refusal.is_for_the_moment() => found.refusal = Some(refusal),
                Err(_) => {}
            }
        }
        if first_kind.is_none() {
            break;
        }
    }
    found.reach = reach;
    drop(trial);
    // A wish for a group that is not offered yet: it comes again when the group is.
    let _ = schedule.take_wish();
}
