// SPDX-License-Identifier: GPL-2.0

//! The search for groups that fit, behind a group that does not.

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
const MOST_FOUND: usize = 64;

/// Largest number of tried groups for which the search may be repeated within the interval.
const LONG_WALK: u32 = 64;

/// A group that waits.
pub trait Waiting: Copy {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// Calls `f` for each enabled event of the group, with an arbitrary handle, the event's demand,
    /// and its last counter.
    fn for_each_event(&self, f: impl FnMut(Self::Event, Demand, Option<CounterId>));

    /// Returns whether the group wants to be alone (`attr.exclusive`).
    fn is_exclusive(&self) -> bool;

    /// Returns whether the group may get counters although a group before it is refused. Exclusive
    /// groups may not. Nor may groups with a software event as leader, since the perf core could
    /// move the leader meanwhile (`perf_event_open()`, `kernel/events/core.c`).
    fn may_pass(&self) -> bool;

    /// Returns the distance by runtime from the last place of the order.
    fn lag(&self) -> u64;
}

/// The outcome of a search.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// The remaining counters, as [`CpuSchedule::reach`] returns them.
    pub reach: CounterMask,
    /// The last refusal of a group that would fit without the current limits, if there was one.
    pub refusal: Option<Refusal>,
    /// Number of groups that were tried.
    pub looked_at: u32,
}

impl Searched {
    /// Returns whether the search was long, so that it must not be repeated before the end of the
    /// interval.
    pub const fn is_long(&self) -> bool {
        self.looked_at > LONG_WALK
    }

    /// Returns the counters for which the search must not be repeated before the end of the
    /// interval: none after a short search.
    pub const fn left(&self) -> CounterMask {
        // A short search is repeated, since otherwise a group that is enabled meanwhile would not
        // be found before the end of the interval.
        match self.is_long() {
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
    /// The present limits.
    pub limits: Limits,
    /// The demand of all groups of the context, if known.
    pub wants: Option<&'a Wants>,
    /// The demand of the active groups, without a group that was just placed; [`Wants::NOTHING`] if
    /// `wants` is unknown, or if no group could use the counters. The search adds the groups that
    /// fit.
    pub active: &'a mut Wants,
    /// The active events on general-purpose counters that rotate with the groups; [`None`] if their
    /// kind does not matter.
    pub beside: Option<Beside>,
    /// Set if no group is active.
    pub is_first: bool,
    /// Set if groups may be found that ride on the counters of [equal
    /// events](CpuSchedule::equal_event).
    pub may_ride: bool,
    /// Set if groups that [may not pass](Waiting::may_pass) can be brought forward, in front of the
    /// offered one: at the end of an interval.
    pub may_bring_forward: bool,
}

/// Finds `groups` that fit beside the events of `schedule`. The groups are behind an offered one,
/// and are tried in their order. `found` is called with each group that fits, including groups that
/// [may not pass](Waiting::may_pass); groups of the other kind come last. It makes the perf core
/// offer a group that may pass. It brings any other group forward, in front of the offered one, and
/// then the perf core offers all groups again. If only the sibling keeps others from fitting
/// ([`Searched::refusal`]), the thread is to wait for the sibling.
///
/// Where corrupting events halve the counters, groups of one kind go first: the kind of the active
/// groups, or of the first group that fits if none is active. Groups that lag far behind go first
/// whatever their kind. The search ends as soon as no group could use the remaining counters, or
/// ride on the counters of others; with an exclusive group that fits; and with `MOST_FOUND` groups.
#[inline(never)]
pub fn look_ahead<G: Waiting>(
    schedule: &mut CpuSchedule<G::Event>,
    search: &mut Search<'_>,
    groups: impl Iterator<Item = G> + Clone,
    // Not generic, since the symbol's name would be too long.
    found: &mut dyn FnMut(G),
) -> Searched {
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
    let mut searched = Searched {
        reach,
        refusal: None,
        looked_at: 0,
    };
    let mut number = 0;
    'search: for is_second_pass in [false, true] {
        for group in groups.clone() {
            let could_use = |wants: &Wants| wants.could_use(active, reach, room);
            let any_left = !reach.is_empty() && wants.is_none_or(could_use);
            if !any_left && !search.may_ride {
                break 'search;
            }
            searched.looked_at = searched.looked_at.saturating_add(1);
            // The demand of the group, and of its events that would not ride.
            let mut whole = GroupWants::default();
            let mut is = GroupWants::default();
            let mut possible = true;
            group.for_each_event(|_, demand, _| {
                whole.add(demand.constraint);
                if !search.may_ride || !trial.would_ride(&demand) {
                    is.add(demand.constraint);
                    possible &= any_left && demand.constraint.counters.intersects(reach);
                }
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
                    found(group);
                    number += 1;
                    if group.is_exclusive() || number == MOST_FOUND {
                        break 'search;
                    }
                    is_first = false;
                    active.add(&whole, false);
                    if beside.is_some() && is.gp_only != 0 && first_kind.is_none() {
                        first_kind = Some(is.is_corrupting());
                    }
                    (reach, room) = trial.reach(counters, limits);
                }
                Err(refusal) if refusal.is_for_the_moment() => searched.refusal = Some(refusal),
                Err(_) => {}
            }
        }
        if first_kind.is_none() {
            break;
        }
    }
    searched.reach = reach;
    drop(trial);
    // Drops the wish that the trial may have made, since its group is not offered yet: the schedule
    // makes the wish again when the group is offered.
    let _ = schedule.take_wish();
    searched
}
