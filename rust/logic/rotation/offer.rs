// SPDX-License-Identifier: GPL-2.0

//! The decisions about a group that the perf core offers: whether it has to wait although it may
//! fit, and which groups behind it are offered as well when it is refused.

use super::{
    look_ahead::{
        look_ahead,
        Search, //
    },
    queue::lags_far_behind,
    Beside,
    Found,
    GroupWants,
    Waiting,
    Wants, //
};
use crate::logic::{
    regs::counter::CounterMask,
    sched::{
        cpu_schedule::CpuSchedule,
        limits::Limits, //
    },
};

/// A group that the perf core offers, one of whose events is being added.
pub trait Offer {
    /// The driver's handle on an event.
    type Event: Copy + PartialEq;

    /// A group that waits.
    type Group: Waiting<Event = Self::Event>;

    /// Returns whether the event corrupts the sibling thread's counts.
    fn is_corrupting(&self) -> bool;

    /// Returns the demand of the group's enabled events.
    fn demand(&self) -> GroupWants;

    /// Returns whether the group is pinned, and so does not rotate.
    fn is_pinned(&self) -> bool;

    /// Returns whether the group is offered because [`let_others_pass`] or [`let_others_join`] has
    /// found it.
    fn is_found(&self) -> bool;

    /// Returns whether `event`, which is on the CPU, rotates with the group.
    fn rotates_with(&self, event: Self::Event) -> bool;

    /// Returns the demand of all groups of the context, if known.
    fn wants(&mut self) -> Option<Wants>;

    /// Returns the demand of the context's active groups.
    fn active(&self) -> Wants;

    /// Returns the limits that hold now.
    fn limits(&self) -> Limits;

    /// Returns whether other groups can be offered although this one is refused.
    fn may_let_pass(&self) -> bool;

    /// Returns whether groups that [may not pass](Waiting::may_pass) can come in front of this one:
    /// an interval has ended.
    fn may_bring_forward(&self) -> bool;

    /// Returns whether no other group of the context is active.
    fn is_first(&self) -> bool;

    /// Returns whether the group wants to be alone (`attr.exclusive`).
    fn is_exclusive(&self) -> bool;

    /// Returns the group's distance by runtime from the last place of the order.
    fn lag(&self) -> u64;

    /// Returns whether no group behind this one can use the remaining counters `reach`: the group
    /// was refused before with the same [left](Found::left), the context is the same, and no
    /// interval has ended.
    fn is_known_useless(&self, reach: CounterMask) -> bool;

    /// Returns the groups behind this one, in their order.
    fn behind(&self) -> impl Iterator<Item = Self::Group> + Clone;
}

/// Returns the number of events of `schedule` on general-purpose counters that rotate with the
/// group. [`None`] if corrupting events do not rotate with it: these limit the counters in any
/// case.
fn beside<O: Offer>(schedule: &CpuSchedule<O::Event>, offer: &O) -> Option<Beside> {
    let mut beside = Beside::default();
    for entry in schedule.entries() {
        // Fixed counters are nothing that a corrupting event could contend for.
        if !entry.planned().is_some_and(|counter| counter.is_gp()) {
            continue;
        }
        let count = match (entry.constraint.corrupting, offer.rotates_with(entry.event)) {
            (true, false) => return None,
            (false, false) => continue,
            (true, true) => &mut beside.corrupting,
            (false, true) => &mut beside.others,
        };
        *count = count.wrapping_add(1);
    }
    Some(beside)
}

/// Returns whether the group has to wait, to count together with others of its kind
/// ([`Wants::waits_for_its_kind`]), on a thread with `counters` that has a sibling.
#[inline]
pub fn waits_for_its_kind<O: Offer>(
    schedule: &CpuSchedule<O::Event>,
    counters: CounterMask,
    offer: &mut O,
) -> bool {
    if !offer.is_corrupting() && !schedule.any_corrupting() || offer.is_pinned() || offer.is_found()
    {
        return false;
    }
    // It would wait too often, behind groups that contend for a counter that it does not need.
    if lags_far_behind(offer.lag()) {
        return false;
    }
    let group = offer.demand();
    // Fixed counters are nothing that the groups contend for.
    if group.needs_no_gp(schedule.taken()) {
        return false;
    }
    let Some(wants) = offer.wants() else {
        return false;
    };
    let Some(beside) = beside(schedule, offer) else {
        return false;
    };
    let gp = counters.gp().weight();
    wants.waits_for_its_kind(group.is_corrupting(), beside, gp, &offer.limits())
}

/// Finds groups behind a refused one that fit beside the events of `schedule`, on a thread with
/// `counters`, of which some are `closed` to all events. The caller offers them as well, or has
/// those that [may not pass](Waiting::may_pass) come in front of the refused one, and all groups be
/// offered again; if others would fit but for the sibling ([`Found::refusal`]), the thread is to
/// wait for it.
///
/// Cancels a txn of the refused group. `found` is [`Found::NOTHING`]; returns whether there was a
/// search. It is not returned, since the copies would be on the kernel's stack.
pub fn let_others_pass<O: Offer>(
    schedule: &mut CpuSchedule<O::Event>,
    counters: CounterMask,
    closed: CounterMask,
    offer: &mut O,
    found: &mut Found<O::Group>,
) -> bool {
    if offer.is_pinned() {
        return false;
    }
    // The refused group's events must not be in the way.
    if schedule.in_txn() {
        schedule.cancel();
    }
    let (reach, room) = schedule.reach(counters, &Limits::NONE.closing(closed));
    if reach.is_empty() || !offer.may_let_pass() || offer.is_known_useless(reach) {
        return false;
    }
    let wants = offer.wants();
    let mut active = Wants::NOTHING;
    match &wants {
        Some(wants) if !wants.could_use(&active, reach, room) => return false,
        // A search would cost more than it gains in the rest of the interval.
        None if reach.gp().is_empty() => return false,
        Some(wants) => {
            active = offer.active();
            if !wants.could_use(&active, reach, room) {
                return false;
            }
        }
        None => {}
    }
    let is_first = offer.is_first();
    search(
        schedule,
        counters,
        offer,
        (wants.as_ref(), &mut active),
        is_first,
        found,
    );
    true
}

/// Finds groups that fit beside one that was placed at the end of an interval as the first of its
/// context, for the caller as those of [`let_others_pass`]. `found` is [`Found::NOTHING`]; returns
/// whether there was a search: it takes one where exclusive groups wait. The perf core refuses
/// these, and then all groups behind them, without a call of the driver.
pub fn let_others_join<O: Offer>(
    schedule: &mut CpuSchedule<O::Event>,
    counters: CounterMask,
    offer: &mut O,
    found: &mut Found<O::Group>,
) -> bool {
    if offer.is_pinned() || offer.is_exclusive() || offer.is_found() {
        return false;
    }
    let Some(wants) = offer.wants().filter(Wants::any_alone) else {
        return false;
    };
    if !offer.may_bring_forward() || !offer.may_let_pass() || !offer.is_first() {
        return false;
    }
    let mut active = Wants::NOTHING;
    search(
        schedule,
        counters,
        offer,
        (Some(&wants), &mut active),
        false,
        found,
    );
    true
}

/// Finds groups behind the offered one. `is_first` says whether no group of the context is active;
/// for the rest, see [`Search`].
fn search<O: Offer>(
    schedule: &mut CpuSchedule<O::Event>,
    counters: CounterMask,
    offer: &O,
    (wants, active): (Option<&Wants>, &mut Wants),
    is_first: bool,
    found: &mut Found<O::Group>,
) {
    let mut search = Search {
        counters,
        limits: offer.limits(),
        wants,
        active,
        beside: beside(schedule, offer),
        is_first,
        may_bring_forward: offer.may_bring_forward(),
    };
    look_ahead(schedule, &mut search, offer.behind(), found);
    // A wish for a group that is not offered yet: it comes again when the group is.
    let _ = schedule.take_wish();
}
