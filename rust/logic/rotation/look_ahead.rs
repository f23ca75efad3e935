// SPDX-License-Identifier: GPL-2.0

//! Finds groups that fit beside those that count, behind one that does not.

use super::{GroupWants, Wants};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    sched::{cpu_schedule::Roster, extra_register::Demand, limits::Limits},
};

/// Most groups that [`look_ahead`] finds.
const MOST_FOUND: usize = 16;

/// When so many groups were looked at, that is not done again before the interval is over.
const LONG_WALK: u32 = 64;

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

    /// The counters that no group needs to be looked for again before the interval is over: none, if that
    /// takes little time.
    pub const fn left(&self) -> CounterMask {
        // A group that is enabled meanwhile is not seen from there before the interval is over, so
        // that is for many groups only.
        match self.looked_at > LONG_WALK {
            true => self.reach,
            false => CounterMask::EMPTY,
        }
    }
}

/// Finds out which of `groups`, in this order, fit beside the events of `roster`, on a thread with
/// `counters` and under `limits`. If it is known what all groups of the context want, it comes with
/// what those want that are `active`.
///
/// Where corrupting events halve the counters, groups go first that are of the kind that is on the
/// CPU. All this takes time for groups as long as there are counters that one could use.
pub(super) fn look_ahead<G: Waiting>(
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
