// SPDX-License-Identifier: GPL-2.0

//! The decisions about a group that the perf core offers: to let it wait although it may fit, and
//! to [search](super::look_ahead()) for groups behind it when it is refused or placed.
//!
//! They do not concern pinned groups, which do not rotate.

use super::{
    queue::lags_far_behind,
    Beside,
    GroupWants,
    Wants, //
};
use crate::logic::{
    regs::counter::CounterMask,
    sched::{
        cpu_schedule::CpuSchedule,
        limits::Limits, //
    },
};

/// A group that the perf core offers.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// The demand of its enabled events.
    pub demand: GroupWants,
    /// Its distance by runtime from the last place of the order.
    pub lag: u64,
    /// Set if it is offered because [`look_ahead`](super::look_ahead()) has found it.
    pub is_found: bool,
    /// Set if it wants to be alone (`attr.exclusive`).
    pub is_exclusive: bool,
}

impl Offered {
    /// Returns whether the group may have to [wait](Self::waits_for_its_kind) beside events on the
    /// CPU that have `taken` these counters.
    pub fn may_wait(&self, taken: CounterMask) -> bool {
        // A group that lags far behind would wait too often, behind groups that contend for a
        // counter that it does not need. Corrupting events and others contend for general-purpose
        // counters only.
        !self.is_found && !lags_far_behind(self.lag) && !self.demand.needs_no_gp(taken)
    }

    /// Returns whether the group has to wait, to count together with others of its kind
    /// ([`Wants::waits_for_its_kind`]). The thread has `counters` and a sibling, and these
    /// `limits`. `wants` is the demand of all groups of the context, if known. `taken` are the
    /// counters of the events on the CPU, and `beside` counts the events among them that rotate
    /// with the group.
    ///
    /// Returns false if neither the group nor the events on the CPU are corrupting.
    pub fn waits_for_its_kind(
        &self,
        wants: Option<&Wants>,
        (taken, beside): (CounterMask, Option<Beside>),
        counters: CounterMask,
        limits: &Limits,
    ) -> bool {
        let (Some(wants), Some(beside)) = (wants, beside) else {
            return false;
        };
        if !self.may_wait(taken) {
            return false;
        }
        let gp = counters.gp().weight();
        wants.waits_for_its_kind(self.demand.is_corrupting(), beside, gp, limits)
    }

    /// Returns whether to search for groups that fit beside this one, which was placed at the end
    /// of an interval as the first of its context. A search is needed if, by the demand `wants` of
    /// all groups, exclusive groups wait: the perf core refuses these, and then all groups behind
    /// them, without calling the driver.
    pub fn lets_others_join(&self, wants: &Wants) -> bool {
        wants.any_alone() && !self.is_exclusive && !self.is_found
    }
}

/// The counters that remain for groups behind a refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// As [`CpuSchedule::reach`] returns them.
    reach: CounterMask,
    room: u32,
}

impl Vacancy {
    /// Returns the counters that further events could [reach](CpuSchedule::reach) beside the events
    /// of `schedule`, on a thread with `counters`, some of which are `closed` to all events.
    /// Cancels a txn of the refused group, since its events would be counted as well.
    pub fn beside<T: Copy + PartialEq>(
        schedule: &mut CpuSchedule<T>,
        counters: CounterMask,
        closed: CounterMask,
    ) -> Self {
        if schedule.in_txn() {
            schedule.cancel();
        }
        let (reach, room) = schedule.reach(counters, &Limits::NONE.closing(closed));
        Self { reach, room }
    }

    /// Returns whether counters remain for groups behind the refused one, and differ from the
    /// counters that were [left](super::Searched::left) when it was refused before.
    pub fn is_new(&self, left: CounterMask) -> bool {
        !self.reach.is_empty() && self.reach != left
    }

    /// Returns whether to search for groups that could use the counters: by the demand `wants` of
    /// all groups of the context, a group that is not `active` could use them. If `wants` is
    /// unknown, a free general-purpose counter is enough. The flag of each active group is set if
    /// it wants to be alone. If `wants` is known and any group, active or not, could use the
    /// counters, adds the demand of the active groups to `sum`, which must be [`Wants::NOTHING`].
    pub fn is_wanted(
        &self,
        wants: Option<&Wants>,
        active: impl Iterator<Item = (GroupWants, bool)>,
        sum: &mut Wants,
    ) -> bool {
        let Some(wants) = wants else {
            // For fixed counters alone, a search would cost more than it gains in the rest of the
            // interval.
            return !self.reach.gp().is_empty();
        };
        if !wants.could_use(sum, self.reach, self.room) {
            return false;
        }
        for (group, alone) in active {
            if !group.is_empty() {
                sum.add(&group, alone);
            }
        }
        wants.could_use(sum, self.reach, self.room)
    }
}
