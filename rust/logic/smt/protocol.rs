// SPDX-License-Identifier: GPL-2.0

//! What a thread does beside the other thread of its core: it plans, uses, and releases.
//!
//! ```text
//!  perf_pmu_disable
//!    add / commit ──► plan()       within the core's limits; what the plan takes is used at once
//!                     note_…()     what was placed and what was refused, where the threads contend
//!  perf_pmu_enable
//!    registers written ──► release()   what the plan has left is free, and what was lacking is told
//! ```
//!
//! What the plan takes is used before the sibling can look. What it does not need any more stays in
//! use until [`release`](ThreadState::release): the hardware may still have it.
//!
//! Each function gets the [`Core`], which the caller has locked, with the [`Thread`] that the CPU is in
//! there; [`None`] where the threads have nothing to agree on. Whoever has to schedule anew by that
//! comes back as the number of a CPU, to be told when the lock is dropped.
//!
//! Context: the CPU of the thread, interrupts off, PMU disabled; but for [`limits_now`] and
//! [`try_pinned`], which leave the PMU alone.

use super::{
    right_of_way::Needs,
    siblings::{Core, Thread},
    usage::Claim,
};
use crate::logic::{
    open::refusal::Refusal,
    regs::counter::CounterMask,
    sched::{
        constraint::Constraint, cpu_schedule::Roster, explanation::Explanation, limits::Limits,
    },
};

/// What [`ThreadState::plan`] refuses, and what it went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What could not be had.
    pub refusal: Refusal,
    /// The limits that held, [`transactions`](Self::transactions) included.
    pub limits: Limits,
    /// The counters of the limits that are left to transactions.
    pub transactions: CounterMask,
}

impl Denied {
    /// The same, of an event with that `constraint`, or a group with it as the sum.
    pub fn explain(&self, constraint: Constraint) -> Explanation {
        Explanation {
            refusal: self.refusal,
            constraint,
            limits: self.limits,
            transactions: self.transactions,
        }
    }
}

/// Whether all events that a plan is about, and those that are there, need nothing but a counter that
/// the core's other thread may have as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// They do.
    Yes,
    /// They do not, or it is not known.
    No,
}

impl Plain {
    /// Of the events of `roster`, those of an open transaction included.
    pub fn of<T: Copy + PartialEq>(roster: &Roster<T>) -> Self {
        match roster.is_plain() {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// What a thread keeps of its dealings with the sibling.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadState {
    /// What the sibling believes this thread to use.
    claimed: Claim,
    /// What was lacking since the PMU was disabled.
    needs: Needs,
}

impl ThreadState {
    /// What the sibling believes this thread to use.
    pub fn claimed(&self) -> &Claim {
        &self.claimed
    }

    /// Has `change` add to the plan in `roster`, within the limits that hold now, `transactions`
    /// having some counters. `is_pinned` says whether that which is added is a pinned group.
    ///
    /// Returns the verdict, and the CPU that has to schedule anew, if any.
    #[inline]
    pub fn plan<T: Copy + PartialEq>(
        &mut self,
        core: Option<(&mut Core, Thread)>,
        roster: &mut Roster<T>,
        plain: Plain,
        transactions: CounterMask,
        is_pinned: impl FnOnce() -> bool,
        change: impl FnOnce(&mut Roster<T>, &Limits) -> Result<(), Refusal>,
    ) -> (Result<(), Denied>, Option<u32>) {
        let Some((core, thread)) = core else {
            let limits = Limits::NONE.closing(transactions);
            let planned = change(roster, &limits).map_err(|refusal| Denied {
                refusal,
                limits,
                transactions,
            });
            return (planned, None);
        };
        // What happens most, and so is not to cost much.
        if plain == Plain::Yes && transactions.is_empty() && core.leaves_all_to(thread) {
            let planned = change(roster, &Limits::NONE);
            if planned.is_ok() {
                self.claimed.used = self.claimed.used | roster.taken();
                core.use_counters(thread, self.claimed.used);
            } else {
                self.needs.contends |= core.is_contended();
            }
            let planned = planned.map_err(|refusal| Denied {
                refusal,
                limits: Limits::NONE,
                transactions,
            });
            return (planned, None);
        }
        let yields = core.yields(thread);
        let limits = if yields && is_pinned() {
            core.limits_of_pinned(thread)
        } else {
            self.needs.yields |= yields;
            core.limits(thread)
        };
        let limits = limits.closing(transactions);
        let planned = change(roster, &limits);
        self.needs.contends |= core.is_contended();
        let mut woken = None;
        match planned {
            Ok(()) => {
                self.claimed = roster.claim().keeping(self.claimed);
                core.claim(thread, self.claimed);
                // What is left is not free yet. But an extra register may have got another value,
                // which the sibling can share.
                woken = core.wakes_sibling(thread);
            }
            Err(refusal) if refusal.is_for_the_moment() => self.wait(core, thread),
            Err(_) => {}
        }
        let planned = planned.map_err(|refusal| Denied {
            refusal,
            limits,
            transactions,
        });
        (planned, woken)
    }

    /// Says that a group of this thread would be placed if it were not for the sibling.
    pub fn wait(&mut self, core: &mut Core, thread: Thread) {
        self.needs.contends = true;
        core.wait(thread);
    }

    /// Notes down that a group was placed, if that is of interest to the sibling. `share` is the group's
    /// share of the time.
    #[inline]
    pub fn note_placed(&mut self, share: impl FnOnce() -> Option<u64>) {
        if self.needs.contends {
            if let Some(share) = share() {
                self.needs.place(share);
            }
        }
    }

    /// Notes down that a group was refused, if that is of interest to the sibling. `share` is the group's
    /// share of the time.
    pub fn note_refused<T: Copy + PartialEq>(
        &mut self,
        roster: &mut Roster<T>,
        share: impl FnOnce() -> u64,
    ) {
        if self.needs.contends {
            self.needs.refuse(share(), roster.take_wish());
        }
    }

    /// The same of a pinned group.
    pub fn note_pinned_refused<T: Copy + PartialEq>(&mut self, roster: &mut Roster<T>) {
        self.needs.refuse_pinned(roster.take_wish());
    }

    /// The plan in `roster` is settled. Returns the counters that it uses if they are all that there is
    /// to tell the sibling: no event needs anything else that the threads share, and nothing was lacking.
    #[inline]
    pub fn plain_use<T: Copy + PartialEq>(&self, roster: &mut Roster<T>) -> Option<CounterMask> {
        // What was wished is among the needs, or of no interest any more.
        let _ = roster.take_wish();
        let plain = roster.is_plain() && self.claimed.is_plain() && self.needs.is_empty();
        plain.then(|| roster.taken())
    }

    /// Tells the sibling of [`plain_use`](Self::plain_use). Returns whether that was all: if not, nothing
    /// has changed, and [`release`](Self::release) is to be called.
    #[inline]
    pub fn release_plain(&mut self, core: &mut Core, thread: Thread, used: CounterMask) -> bool {
        let done = core.settle_plain(thread, used);
        if done {
            self.claimed.used = used;
        }
        done
    }

    /// The plan in `roster` is settled. Returns what there is to [tell](Release::tell) the sibling of
    /// that, if anything.
    #[inline]
    pub fn release<T: Copy + PartialEq>(&mut self, roster: &mut Roster<T>) -> Option<Release> {
        let claim = roster.claim();
        // What was wished is among the needs, or of no interest any more.
        let _ = roster.take_wish();
        // Where the threads do not contend, there are no needs.
        if claim == self.claimed && !self.needs.contends && !self.needs.yields {
            return None;
        }
        self.claimed = claim;
        Some(Release {
            claim,
            needs: core::mem::take(&mut self.needs),
        })
    }
}

/// What a thread uses when its plan is settled, and what it lacked.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Release {
    claim: Claim,
    needs: Needs,
}

/// What the driver has to do after a [`Release`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The CPU that has to schedule anew, if any: the sibling's, which has waited for something that
    /// is free now, or makes way.
    pub woken: Option<u32>,
    /// Whether the groups that wait keep their places before those that were placed in spite of them:
    /// when the sibling has made way, what it made way for is tried first.
    pub keeps_places: bool,
}

impl Release {
    /// Tells the sibling. Where perf core's interval `is_over` on this thread, the right of way may
    /// change; `now` is the time in nanoseconds.
    pub fn tell(
        &self,
        core: &mut Core,
        thread: Thread,
        is_over: bool,
        now: impl FnOnce() -> u64,
    ) -> Told {
        Told {
            woken: core.settle(thread, self.claim, &self.needs, is_over, now),
            keeps_places: core.has_way(thread),
        }
    }
}

/// The limits that hold now for groups that rotate, `transactions` having some counters. Nothing is
/// noted down of a group that they keep from its counters.
pub fn limits_now(core: Option<(&Core, Thread)>, transactions: CounterMask) -> Limits {
    core.map_or(Limits::NONE, |(core, thread)| core.limits(thread))
        .closing(transactions)
}

/// Whether `fits` says so of the limits that hold now for a pinned group. If not, the thread waits for
/// what it was asked for.
pub fn try_pinned(
    core: Option<(&mut Core, Thread)>,
    transactions: CounterMask,
    fits: impl FnOnce(Limits) -> bool,
) -> bool {
    let Some((core, thread)) = core else {
        return fits(Limits::NONE.closing(transactions));
    };
    let fits = fits(core.limits_of_pinned(thread).closing(transactions));
    if !fits {
        core.wait(thread);
    }
    fits
}
