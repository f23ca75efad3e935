// SPDX-License-Identifier: GPL-2.0

//! The search for groups that fit, behind one that does not.

use super::{GroupWants, Wants};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    sched::{cpu_schedule::CpuSchedule, extra_register::Demand, limits::Limits},
};

/// Largest number of groups that [`look_ahead`] finds.
const MOST_FOUND: usize = 16;

/// Number of tried groups from which on the search is not repeated before the end of the interval.
const LONG_WALK: u32 = 64;

/// A group that waits.
pub trait Waiting: Copy {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// Calls `f` for each enabled event of the group, with any handle, the event's demand, and the counter
    /// that it had last.
    fn for_each_event(&self, f: impl FnMut(Self::Event, Demand, Option<CounterId>));

    /// Returns whether the group may go to the counters although one before it is refused. An exclusive one
    /// (`attr.exclusive`) may not, nor one with a software event as its leader, which the perf core could move
    /// meanwhile (`perf_event_open()`, `kernel/events/core.c:14140`).
    fn may_pass(&self) -> bool;
}

/// The groups that [`look_ahead`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Found<G> {
    groups: [Option<G>; MOST_FOUND],
    /// The remaining counters, as [`CpuSchedule::reach`] returns them.
    pub reach: CounterMask,
    /// The refusal of a group that does not fit for the moment only, if there was one.
    pub refusal: Option<Refusal>,
    /// Set if one of the groups could use the remaining counters, but [may not pass](Waiting::may_pass); as
    /// [`let_others_pass`](super::let_others_pass) returns it, if the refused group must go behind all others:
    /// it does not fit although it is the first, and the group behind it would wait for good.
    pub holds_up: bool,
    /// Number of groups that were tried.
    pub looked_at: u32,
}

impl<G: Copy> Found<G> {
    /// Returns the groups that fit.
    pub fn groups(&self) -> impl Iterator<Item = G> + '_ {
        self.groups.iter().flatten().copied()
    }

    /// Returns the counters for which the search is not to be repeated before the end of the interval: none, if
    /// it takes little time.
    pub const fn left(&self) -> CounterMask {
        // Without a search, a group that is enabled meanwhile is not found before the end of the interval.
        match self.looked_at > LONG_WALK {
            true => self.reach,
            false => CounterMask::EMPTY,
        }
    }
}

/// Finds those of `groups`, tried in this order, that fit beside the events of `schedule`, on a thread with
/// `counters` and under `limits`. `wants` is the demand of all groups of the context and of the active ones,
/// if known.
///
/// Where corrupting events halve the counters, groups of the active kind go first. Takes time for groups as
/// long as there are counters that one could use.
pub(super) fn look_ahead<G: Waiting>(
    schedule: &mut CpuSchedule<G::Event>,
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
    let first_kind = schedule.any_corrupting();
    let mut trial = schedule.trial();
    let (mut reach, mut room) = trial.reach(counters, limits);
    let mut found = Found {
        groups: [None; MOST_FOUND],
        reach,
        refusal: None,
        holds_up: false,
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
            let mut possible = true;
            group.for_each_event(|_, demand, _| {
                is.add(demand.constraint);
                possible &= demand.constraint.counters.intersects(reach);
            });
            if !possible || is.gp_only > room || kind.is_some_and(|kind| kind != is.corrupting) {
                continue;
            }
            if !group.may_pass() {
                found.holds_up = true;
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
