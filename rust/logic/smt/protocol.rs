// SPDX-License-Identifier: GPL-2.0

//! The steps by which a thread coordinates with the other thread of its core: plan, use, release.
//!
//! ```text
//!  perf_pmu_disable
//!    add / commit ──► plan()       within the core's limits; the planned counters are in use at once
//!                     note_…()     records placed and refused groups, where the threads contend
//!  perf_pmu_enable
//!    registers written ──► release()   frees the other counters, and reports unmet needs
//! ```
//!
//! Planned counters are marked as used before the sibling can plan. Counters that the plan does not
//! need any more stay marked until [`release`](ThreadState::release), because the hardware may
//! still count on them.
//!
//! Functions that need the [`Core`] take it locked, with the CPU's [`Thread`] in it; [`None`] if
//! the threads share nothing, or if the core has no thread for the CPU. Some return a CPU that has
//! to schedule again; the caller notifies it after dropping the lock.
//!
//! Context: the CPU of the thread, interrupts off, PMU disabled. [`limits_now`] and [`try_pinned`]
//! may run with the PMU enabled.

use super::{
    right_of_way::Needs,
    siblings::{
        Core,
        Thread, //
    },
};
use crate::logic::{
    model::constraint::Constraint,
    refusal::Refusal,
    regs::counter::CounterMask,
    sched::{
        cpu_schedule::CpuSchedule,
        explanation::Explanation,
        limits::Limits,
        usage::ThreadUsage, //
    },
};

/// The demand of a plan: [`Yes`](Self::Yes) if all of its events, including those on the CPU, need
/// only a counter, and do not affect the sibling's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountersOnly {
    /// All events only need a counter.
    Yes,
    /// Some event needs more, or this is not known.
    No,
}

impl CountersOnly {
    /// Checks the events of `schedule`, including those of an open txn.
    pub fn of<T: Copy + PartialEq>(schedule: &CpuSchedule<T>) -> Self {
        match schedule.needs_counters_only() {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The state that a thread keeps for coordinating with its sibling.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadState {
    /// The usage that was last reported to the core.
    usage: ThreadUsage,
    /// The needs of the thread since they were last [reported](Release::report).
    needs: Needs,
    /// The limits of the last refusal, with the counters reserved for TSX transactions.
    refused_under: Option<(Limits, CounterMask)>,
}

impl ThreadState {
    /// Returns the usage that was last reported to the core.
    pub fn usage(&self) -> &ThreadUsage {
        &self.usage
    }

    /// Calls `change` to add to the plan in `schedule`, within the current limits. The counters
    /// `tfa` are reserved for TSX transactions. `is_pinned` is set if a pinned group is added.
    ///
    /// Returns the CPU that has to schedule again, if any. [`explain`](Self::explain) explains a
    /// refusal.
    #[inline]
    pub fn plan<T: Copy + PartialEq>(
        &mut self,
        core: Option<(&mut Core, Thread)>,
        schedule: &mut CpuSchedule<T>,
        counters_only: CountersOnly,
        tfa: CounterMask,
        is_pinned: impl FnOnce() -> bool,
        change: impl FnOnce(&mut CpuSchedule<T>, &Limits) -> Result<(), Refusal>,
    ) -> Result<Option<u32>, Refusal> {
        let Some((core, thread)) = core else {
            let limits = Limits::NONE.closing(tfa);
            let planned = change(schedule, &limits);
            if planned.is_err() {
                self.refused_under = Some((limits, tfa));
            }
            return planned.map(|()| None);
        };
        // The common case.
        if counters_only == CountersOnly::Yes && tfa.is_empty() && core.leaves_all_to(thread) {
            let planned = change(schedule, &Limits::NONE);
            // Decisions need the shares of placed groups as well as of refused ones.
            self.needs.contends |= core.is_contended();
            if planned.is_ok() {
                self.usage.used = self.usage.used | schedule.taken();
                core.use_counters(thread, self.usage.used);
            } else {
                self.refused_under = None;
            }
            return planned.map(|()| None);
        }
        let yields = core.yields(thread);
        let is_pinned = yields && is_pinned();
        let limits = self.limits_beside((core, thread), yields, is_pinned, tfa);
        let planned = change(schedule, &limits);
        self.report_plan((core, thread), schedule, (&limits, tfa), planned)
    }

    /// Returns the limits of an event or group on a thread whose sibling may restrict the counters.
    /// If the sibling's wish is among them, records this in the needs.
    // Separate, like the next function: their stack has to be free again when other groups are
    // tried in place of a refused one.
    #[inline(never)]
    fn limits_beside(
        &mut self,
        (core, thread): (&Core, Thread),
        yields: bool,
        is_pinned: bool,
        tfa: CounterMask,
    ) -> Limits {
        let limits = if is_pinned {
            core.limits_of_pinned(thread)
        } else {
            self.needs.yields |= yields;
            core.limits(thread)
        };
        limits.closing(tfa)
    }

    /// Reports to the core a plan, or a refusal, under these limits.
    #[inline(never)]
    fn report_plan<T: Copy + PartialEq>(
        &mut self,
        (core, thread): (&mut Core, Thread),
        schedule: &CpuSchedule<T>,
        (limits, tfa): (&Limits, CounterMask),
        planned: Result<(), Refusal>,
    ) -> Result<Option<u32>, Refusal> {
        self.needs.contends |= core.is_contended();
        match planned {
            Ok(()) => {
                self.usage = schedule.usage().keeping(self.usage);
                core.set_usage(thread, self.usage);
                // No counter is free yet, but an extra register may have a new value, which the
                // sibling can share.
                Ok(core.wakes_sibling(thread))
            }
            Err(refusal) => {
                if refusal.is_for_the_moment() {
                    self.wait(core, thread);
                }
                self.refused_under = Some((*limits, tfa));
                Err(refusal)
            }
        }
    }

    /// Records that a plan was refused under `limits`, which are not from the core.
    pub fn set_refused_under(&mut self, limits: Limits) {
        self.refused_under = Some((limits, CounterMask::EMPTY));
    }

    /// Explains the last `refusal`, of an event with `constraint`, or of a group whose constraints
    /// sum up to it.
    pub fn explain(&self, refusal: Refusal, constraint: Constraint) -> Explanation {
        let none = (Limits::NONE, CounterMask::EMPTY);
        let (limits, tfa) = self.refused_under.unwrap_or(none);
        Explanation {
            refusal,
            constraint,
            limits,
            tfa,
        }
    }

    /// Records that the thread waits: one of its groups would fit without the sibling.
    pub fn wait(&mut self, core: &mut Core, thread: Thread) {
        self.needs.contends = true;
        core.wait(thread);
    }

    /// Records that a group was placed, if the threads contend. `share` returns the group's share
    /// at a given time, and `clock` the present time in nanoseconds.
    #[inline]
    pub fn note_placed(
        &mut self,
        clock: impl FnOnce() -> u64,
        share: impl FnOnce(u64) -> Option<u64>,
    ) {
        if self.needs.contends {
            if let Some(share) = share(self.needs.time(clock)) {
                self.needs.place(share);
            }
        }
    }

    /// Records that a group was refused, if the threads contend. `clock` and `share` are as in
    /// [`note_placed`](Self::note_placed).
    pub fn note_refused<T: Copy + PartialEq>(
        &mut self,
        schedule: &mut CpuSchedule<T>,
        clock: impl FnOnce() -> u64,
        share: impl FnOnce(u64) -> u64,
    ) {
        if self.needs.contends {
            let share = share(self.needs.time(clock));
            self.needs.refuse(share, schedule.take_wish());
        }
    }

    /// Records that a pinned group was refused, and takes the wish from `schedule`.
    pub fn note_pinned_refused<T: Copy + PartialEq>(&mut self, schedule: &mut CpuSchedule<T>) {
        self.needs.refuse_pinned(schedule.take_wish());
    }

    /// Drops the wish of `schedule`, whose plan is programmed. Returns the plan's counters if the
    /// core needs no other report: there are no needs, and neither the plan nor the last reported
    /// usage has anything else that concerns the sibling.
    #[inline]
    pub fn counters_only_use<T: Copy + PartialEq>(
        &self,
        schedule: &mut CpuSchedule<T>,
    ) -> Option<CounterMask> {
        // A wish is either part of the needs, or obsolete.
        let _ = schedule.take_wish();
        let counters_only = schedule.needs_counters_only()
            && self.usage.uses_counters_only()
            && self.needs.is_empty();
        counters_only.then(|| schedule.taken())
    }

    /// Reports the result of [`counters_only_use`](Self::counters_only_use) to the core. Returns
    /// false if this is not enough: then nothing has changed, and [`release`](Self::release) has to
    /// be called.
    #[inline]
    pub fn release_counters_only(
        &mut self,
        core: &mut Core,
        thread: Thread,
        used: CounterMask,
    ) -> bool {
        let done = core.release_counters_only(thread, used);
        if done {
            self.usage.used = used;
        }
        done
    }

    /// Records that the plan in `schedule` is programmed. Returns the [`Release`] that has to be
    /// [reported](Release::report) to the core, if any.
    #[inline]
    pub fn release<T: Copy + PartialEq>(
        &mut self,
        schedule: &mut CpuSchedule<T>,
    ) -> Option<Release<'_>> {
        // A wish is either part of the needs, or obsolete.
        let _ = schedule.take_wish();
        // There are no other needs if the threads do not contend.
        let has_needs = self.needs.contends || self.needs.yields;
        if !has_needs && schedule.usage() == self.usage {
            return None;
        }
        self.usage = schedule.usage();
        Some(Release(self))
    }
}

/// A thread whose plan is programmed, and whose usage and needs have to be [reported](Self::report)
/// to the core.
#[must_use]
#[derive(Debug)]
pub struct Release<'a>(&'a mut ThreadState);

/// The driver's tasks after reporting a [`Release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOutcome {
    /// The sibling's CPU, if it has to schedule again: it has waited for a resource that is free
    /// now, or has to make way.
    pub woken: Option<u32>,
    /// Set if refused groups stay in front of the groups that were placed instead of them, so that
    /// they are tried first when the sibling has made way.
    pub keeps_places: bool,
    /// Set if the threads contended when groups were placed: one limited the other.
    pub contends: bool,
}

impl Release<'_> {
    /// Records that a pinned group waits for room, so that the thread is woken when there is room.
    pub fn note_pinned_waits(&mut self) {
        self.0.needs.has_pinned = true;
    }

    /// Reports to the core, and clears the needs. `is_over` is set at the end of an interval, when
    /// the right of way may be given to a thread ([`Core::release`]); `clock` returns the time in
    /// nanoseconds.
    pub fn report(
        self,
        core: &mut Core,
        thread: Thread,
        is_over: bool,
        clock: impl FnOnce() -> u64,
    ) -> ReleaseOutcome {
        let ThreadState { usage, needs, .. } = self.0;
        let now = || needs.at.unwrap_or_else(clock);
        let outcome = ReleaseOutcome {
            woken: core.release(thread, *usage, needs, is_over, now),
            keeps_places: core.has_way(thread),
            contends: needs.contends,
        };
        *needs = Needs::default();
        outcome
    }
}

/// Returns the current limits for groups that rotate. The counters `tfa` are reserved for TSX
/// transactions.
pub fn limits_now(core: Option<(&Core, Thread)>, tfa: CounterMask) -> Limits {
    core.map_or(Limits::NONE, |(core, thread)| core.limits(thread))
        .closing(tfa)
}

/// Returns the result of `fits` for the current limits of a pinned group. If the group does not
/// fit, a thread of a `core` waits for looser limits.
pub fn try_pinned(
    core: Option<(&mut Core, Thread)>,
    tfa: CounterMask,
    fits: impl FnOnce(Limits) -> bool,
) -> bool {
    let Some((core, thread)) = core else {
        return fits(Limits::NONE.closing(tfa));
    };
    let fits = fits(core.limits_of_pinned(thread).closing(tfa));
    if !fits {
        core.wait(thread);
    }
    fits
}
