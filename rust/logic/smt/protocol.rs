// SPDX-License-Identifier: GPL-2.0

//! The steps of a thread beside the other thread of its core: plan, use, release.
//!
//! ```text
//!  perf_pmu_disable
//!    add / commit ──► plan()       within the core's limits; the planned counters are in use at once
//!                     note_…()     records placed and refused groups, where the threads contend
//!  perf_pmu_enable
//!    registers written ──► release()   frees the other counters, and reports what was lacking
//! ```
//!
//! Planned counters are in use before the sibling can plan. Counters that the plan does not need
//! any more stay in use until [`release`](ThreadState::release), because the hardware may still
//! count on them.
//!
//! Each function takes the [`Core`], which the caller has locked, and the CPU's [`Thread`] in it;
//! [`None`] where the threads have nothing to agree on. A CPU that has to schedule again is
//! returned, for the caller to tell when it has dropped the lock.
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

/// The verdict on a plan: plain if all of its events, those on the CPU included, need nothing but a
/// counter, and leave the sibling's counters alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// It is plain.
    Yes,
    /// It is not, or that is not known.
    No,
}

impl Plain {
    /// Looks at the events of `schedule`, those of an open txn included.
    pub fn of<T: Copy + PartialEq>(schedule: &CpuSchedule<T>) -> Self {
        match schedule.is_plain() {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The state that a thread keeps for its sibling.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadState {
    /// The usage that the core knows of.
    usage: ThreadUsage,
    /// What the thread has lacked since the PMU was disabled.
    needs: Needs,
    /// The limits that the last refusal was decided under, with the counters left to TSX
    /// transactions.
    refused_under: Option<(Limits, CounterMask)>,
}

impl ThreadState {
    /// Returns the usage that the core knows of.
    pub fn usage(&self) -> &ThreadUsage {
        &self.usage
    }

    /// Calls `change` to add to the plan in `schedule`, within the limits that hold now. TSX
    /// transactions have the counters `tfa`. `is_pinned` tells whether a pinned group is added.
    ///
    /// Returns the CPU that has to schedule again, if any. [`explain`](Self::explain) explains a
    /// refusal.
    #[inline]
    pub fn plan<T: Copy + PartialEq>(
        &mut self,
        core: Option<(&mut Core, Thread)>,
        schedule: &mut CpuSchedule<T>,
        plain: Plain,
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
        if plain == Plain::Yes && tfa.is_empty() && core.leaves_all_to(thread) {
            let planned = change(schedule, &Limits::NONE);
            // The shares of placed groups count as well as those of refused ones.
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
        self.settle((core, thread), schedule, (&limits, tfa), planned)
    }

    /// Returns the limits for an event or group, if the sibling may restrict the counters.
    // Apart, as the next one: their stack is to be free again when others are tried for a group
    // that is refused.
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

    /// Tells the core of a plan, or of a refusal, under these limits.
    #[inline(never)]
    fn settle<T: Copy + PartialEq>(
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
                // No counter is free yet. But an extra register may have got another value, which
                // the sibling can share.
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

    /// Records that a plan was refused under `limits`, which are not those of the core.
    pub fn set_refused_under(&mut self, limits: Limits) {
        self.refused_under = Some((limits, CounterMask::EMPTY));
    }

    /// Explains the last `refusal`, of an event with that `constraint`, or of a group with it as
    /// the sum.
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

    /// Records that a group of this thread would fit if it were not for the sibling.
    pub fn wait(&mut self, core: &mut Core, thread: Thread) {
        self.needs.contends = true;
        core.wait(thread);
    }

    /// Records that a group was placed, if the threads contend. `share` returns the group's share
    /// of the time, as of the time that it is given; `clock` returns that time in nanoseconds.
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

    /// Records that a pinned group was refused.
    pub fn note_pinned_refused<T: Copy + PartialEq>(&mut self, schedule: &mut CpuSchedule<T>) {
        self.needs.refuse_pinned(schedule.take_wish());
    }

    /// Takes note that the plan in `schedule` is programmed. Returns the counters that it uses if
    /// the core needs to know no more: no event needs anything else that the threads share, and
    /// nothing was lacking.
    #[inline]
    pub fn plain_use<T: Copy + PartialEq>(
        &self,
        schedule: &mut CpuSchedule<T>,
    ) -> Option<CounterMask> {
        // A wish is among the needs, or obsolete.
        let _ = schedule.take_wish();
        let plain = schedule.is_plain() && self.usage.is_plain() && self.needs.is_empty();
        plain.then(|| schedule.taken())
    }

    /// Tells the core of [`plain_use`](Self::plain_use). Returns whether that was enough; if not,
    /// nothing has changed, and [`release`](Self::release) has to be called.
    #[inline]
    pub fn release_plain(&mut self, core: &mut Core, thread: Thread, used: CounterMask) -> bool {
        let done = core.release_plain(thread, used);
        if done {
            self.usage.used = used;
        }
        done
    }

    /// Takes note that the plan in `schedule` is programmed. Returns what is to be
    /// [told](Release::tell) to the core, if anything.
    #[inline]
    pub fn release<T: Copy + PartialEq>(
        &mut self,
        schedule: &mut CpuSchedule<T>,
    ) -> Option<Release<'_>> {
        // A wish is among the needs, or obsolete.
        let _ = schedule.take_wish();
        // There are no needs where the threads do not contend.
        let has_needs = self.needs.contends || self.needs.yields;
        if !has_needs && schedule.usage() == self.usage {
            return None;
        }
        self.usage = schedule.usage();
        Some(Release(self))
    }
}

/// A thread whose plan is programmed: what it uses and lacked is still to be [told](Self::tell).
#[must_use]
#[derive(Debug)]
pub struct Release<'a>(&'a mut ThreadState);

/// What the driver has to do after telling a [`Release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The CPU that has to schedule again, if any: the sibling's, which has waited for something
    /// that is free now, or has to make way.
    pub woken: Option<u32>,
    /// Set if refused groups keep their places before the groups that were placed instead of them:
    /// when the sibling has made way, the groups that it made way for are tried first.
    pub keeps_places: bool,
    /// Set if the threads contended when groups were placed: one limits the other.
    pub contends: bool,
}

impl Release<'_> {
    /// Records that a pinned group waits for room, and has to be woken when there is some.
    pub fn note_pinned_waits(&mut self) {
        self.0.needs.has_pinned = true;
    }

    /// Tells the core. At the end of an interval (`is_over`), the right of way may change; `clock`
    /// returns the time in nanoseconds.
    pub fn tell(
        self,
        core: &mut Core,
        thread: Thread,
        is_over: bool,
        clock: impl FnOnce() -> u64,
    ) -> Told {
        let ThreadState { usage, needs, .. } = self.0;
        let now = || needs.at.unwrap_or_else(clock);
        let told = Told {
            woken: core.release(thread, *usage, needs, is_over, now),
            keeps_places: core.has_way(thread),
            contends: needs.contends,
        };
        *needs = Needs::default();
        told
    }
}

/// Returns the limits that hold now for groups that rotate. TSX transactions have the counters
/// `tfa`.
pub fn limits_now(core: Option<(&Core, Thread)>, tfa: CounterMask) -> Limits {
    core.map_or(Limits::NONE, |(core, thread)| core.limits(thread))
        .closing(tfa)
}

/// Returns the verdict of `fits` on the limits that hold now for a pinned group. If it does not
/// fit, the thread waits for looser limits.
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
