// SPDX-License-Identifier: GPL-2.0

//! The decisions about a group that is offered: whether it has to wait although it may fit, and which of
//! the groups behind it are offered as well when it is refused.

use super::{look_ahead::look_ahead, Beside, Found, Waiting, Wants};
use crate::logic::{
    regs::counter::CounterMask,
    sched::{cpu_schedule::Roster, limits::Limits},
};

/// A group of a context, of which an event is being added to the CPU. It takes turns with the context's
/// other groups.
pub trait Offer {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// A group that waits.
    type Group: Waiting<Event = Self::Event>;

    /// Whether the event corrupts the sibling thread's counts.
    fn is_corrupting(&self) -> bool;

    /// Whether any event of the group does.
    fn is_group_corrupting(&self) -> bool;

    /// Whether the group is pinned.
    fn is_pinned(&self) -> bool;

    /// Whether the group is offered because [`let_others_pass`] has found it.
    fn is_found(&self) -> bool;

    /// Whether `event`, which is on the CPU, takes turns with the group.
    fn takes_turns_with(&self, event: Self::Event) -> bool;

    /// What all groups of the context want, if that is known.
    fn wants(&mut self) -> Option<Wants>;

    /// What those groups of the context want that are on the CPU.
    fn active(&self) -> Wants;

    /// The limits that hold now.
    fn limits(&self) -> Limits;

    /// Whether groups can be offered although this one is refused.
    fn may_let_pass(&self) -> bool;

    /// Whether it is known that no group behind this one could use `reach`, the counters that are left:
    /// since it was refused last with the same [left](Found::left), nothing has changed, nor is an interval over.
    fn is_known_useless(&self, reach: CounterMask) -> bool;

    /// The groups that come after this one.
    fn behind(&self) -> impl Iterator<Item = Self::Group> + Clone;
}

/// Whether the group has to wait for others of its kind ([`Wants::waits_for_its_kind`]) to go on
/// counters with them, beside the events of `roster`, on a thread with `counters` that has a sibling.
#[inline]
pub fn waits_for_its_kind<O: Offer>(
    roster: &Roster<O::Event>,
    counters: CounterMask,
    offer: &mut O,
) -> bool {
    if !offer.is_corrupting() && !roster.any_exclusive() || offer.is_pinned() || offer.is_found() {
        return false;
    }
    let Some(wants) = offer.wants() else {
        return false;
    };
    let corrupting = offer.is_group_corrupting();
    let mut beside = Beside::default();
    for entry in roster.entries().filter(|it| it.planned().is_some()) {
        if offer.takes_turns_with(entry.event) {
            let count = match entry.constraint.exclusive {
                true => &mut beside.corrupting,
                false => &mut beside.others,
            };
            *count = count.wrapping_add(1);
        }
    }
    let gp = counters.gp().weight();
    wants.waits_for_its_kind(corrupting, beside, gp, &offer.limits())
}

/// Finds the groups behind one that is refused which fit beside the events of `roster`, on a thread with
/// `counters`, of which some are `closed` to all events. They are to be offered as well; and if others
/// could be placed but for the sibling, the thread is to wait for that.
///
/// A transaction of the refused group is cancelled. [`None`] if no group was looked for.
pub fn let_others_pass<O: Offer>(
    roster: &mut Roster<O::Event>,
    counters: CounterMask,
    closed: CounterMask,
    offer: &mut O,
) -> Option<Found<O::Group>> {
    if offer.is_pinned() {
        return None;
    }
    // The events of the group that is refused are not to be in the way.
    if roster.in_transaction() {
        roster.cancel();
    }
    let (reach, room) = roster.reach(counters, &Limits::NONE.closing(closed));
    if reach.is_empty() || !offer.may_let_pass() || offer.is_known_useless(reach) {
        return None;
    }
    let wants = offer.wants();
    let mut active = Wants::NOTHING;
    match &wants {
        Some(wants) if !wants.could_use(&active, reach, room) => return None,
        // To find out takes longer than the rest of the interval is worth.
        None if reach.gp().is_empty() => return None,
        Some(wants) => {
            active = offer.active();
            if !wants.could_use(&active, reach, room) {
                return None;
            }
        }
        None => {}
    }
    let limits = offer.limits();
    let wants = wants.as_ref().map(|wants| (wants, active));
    let found = look_ahead(roster, counters, &limits, wants, offer.behind());
    // What was wished for groups that are not offered yet: they say so when it is their turn.
    let _ = roster.take_wish();
    Some(found)
}
