// SPDX-License-Identifier: GPL-2.0

//! Shares of the recent time in which groups have counted. If the threads of a core cannot both
//! have what they need, these shares decide which thread goes first ([`Core::release`]).
//!
//! A [`Share`] is a moving average of the time on counters, with the time constant [`WINDOW`]. The
//! group with the smaller share goes first. So shares become equal as far as possible, whatever the
//! phases of the two threads' timers, and a new event soon has the same rank as an old one.
//!
//! Context: any. The module only computes values.
//!
//! [`Core::release`]: super::siblings::Core::release

use crate::logic::sched::usage::ThreadUsage;

/// Time constant of the average, in nanoseconds: about 17 of the perf core's intervals of 4 ms.
pub const WINDOW: u64 = 1 << 26;

/// All of the time, as a share.
const ALL: u64 = 1 << 16;

/// The share of a new group, which puts it neither before nor behind all others.
const BEGIN: u64 = ALL / 2;

/// Returns a share after `dt` more nanoseconds, of which the group spent `ran` on counters.
const fn after(share: u64, dt: u64, ran: u64) -> u64 {
    let ran = if ran < dt { ran } else { dt };
    if dt < WINDOW {
        // No factor exceeds 2^26, and no product 2^42.
        let kept = share.wrapping_mul(WINDOW.wrapping_sub(dt));
        kept.wrapping_add(ran.wrapping_mul(ALL)) / WINDOW
    } else {
        // The divisor is at least 1024, so the result is at most a little more than `ALL`.
        let share = ran / (dt / ALL);
        if share < ALL {
            share
        } else {
            ALL
        }
    }
}

/// The share of the time in which a group has counted, at its last update.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::smt::right_of_way::Share;
///
/// let (mut busy, mut idle) = (Share::NONE, Share::NONE);
/// assert_eq!(busy.account(1_000, 0), idle.account(1_000, 0));
/// // Four milliseconds later: one was on a counter, the other was not.
/// assert!(busy.account(4_001_000, 4_000_000) > idle.account(4_001_000, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    share: u64,
    /// Time of the last update; 0 before the first.
    at: u64,
    /// The group's total time on counters at the last update.
    running: u64,
}

impl Share {
    /// The share of a group that has not counted yet.
    pub const NONE: Self = Self {
        share: BEGIN,
        at: 0,
        running: 0,
    };

    /// Restores a share from its [`parts`](Self::parts).
    pub const fn from_parts([share, at, running]: [u64; 3]) -> Self {
        Self { share, at, running }
    }

    /// Returns the share as numbers, to be kept in atomics.
    pub const fn parts(self) -> [u64; 3] {
        [self.share, self.at, self.running]
    }

    /// Updates and returns the share at the time `now`, with a total time on counters of `running`,
    /// both in nanoseconds.
    pub const fn account(&mut self, now: u64, running: u64) -> u64 {
        if self.at != 0 {
            let dt = now.saturating_sub(self.at);
            let ran = running.saturating_sub(self.running);
            self.share = after(self.share, dt, ran);
        }
        self.at = now;
        self.running = running;
        self.share
    }
}

/// The smallest shares of a thread's waiting groups and of its counting groups at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::logic) struct Standing {
    waiting: Option<u64>,
    counting: Option<u64>,
    at: u64,
}

impl Standing {
    /// Returns whether a group waits.
    pub(in crate::logic) const fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns the smallest share at the time `now`, if the same groups have counted since.
    pub(in crate::logic) fn least(&self, now: u64) -> u64 {
        let dt = now.saturating_sub(self.at);
        let waiting = self.waiting.map(|share| after(share, dt, 0));
        let counting = self.counting.map(|share| after(share, dt, dt));
        waiting.into_iter().chain(counting).min().unwrap_or(ALL)
    }
}

/// The resources that a thread has lacked while its events were placed, since it last reported them
/// to its core.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Set if the threads contend: one limits the other.
    pub contends: bool,
    /// Set if the sibling's wish limited the placing of events.
    pub yields: bool,
    /// The smallest share of a refused group, and of a placed one.
    pub(in crate::logic) waiting: Option<u64>,
    pub(in crate::logic) counting: Option<u64>,
    /// The usage with the first refused group that would fit without the sibling, and this group's
    /// share. If there is such a pinned group, the first one comes before others, with a share of
    /// 0.
    pub(in crate::logic) wish: Option<(ThreadUsage, u64)>,
    /// Set if the group of the wish is pinned, so that it does not rotate.
    pub(in crate::logic) is_pinned: bool,
    /// Set if a pinned group waits for room, refused now or before.
    pub(in crate::logic) has_pinned: bool,
    /// The time of all shares, in nanoseconds; [`None`] until a share is needed.
    pub(in crate::logic) at: Option<u64>,
}

impl Needs {
    /// Returns the time of all shares: the result of the first call of `clock`.
    pub fn time(&mut self, clock: impl FnOnce() -> u64) -> u64 {
        *self.at.get_or_insert_with(clock)
    }

    /// Records that a group with this `share` was placed.
    pub fn place(&mut self, share: u64) {
        self.counting = Some(self.counting.map_or(share, |least| least.min(share)));
    }

    /// Records that a group with this `share` was refused. `wish` is the usage that the thread
    /// would have with the group and without the sibling ([`CpuSchedule::take_wish`]).
    ///
    /// [`CpuSchedule::take_wish`]: crate::logic::sched::cpu_schedule::CpuSchedule::take_wish
    pub fn refuse(&mut self, share: u64, wish: Option<ThreadUsage>) {
        self.waiting = Some(self.waiting.map_or(share, |least| least.min(share)));
        self.wish = self.wish.or(wish.map(|wish| (wish, share)));
    }

    /// Records that a pinned group was refused, with this `wish`. Does nothing without a wish, or
    /// if another pinned group was recorded before.
    pub fn refuse_pinned(&mut self, wish: Option<ThreadUsage>) {
        if let Some(wish) = wish.filter(|_| !self.is_pinned) {
            self.wish = Some((wish, 0));
            self.is_pinned = true;
        }
    }

    /// Returns whether the thread has lacked nothing.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        !self.contends && !self.yields && !self.refused()
    }

    /// Returns whether a group was refused.
    pub(in crate::logic) const fn refused(&self) -> bool {
        self.waiting.is_some() || self.wish.is_some()
    }

    pub(in crate::logic) const fn standing(&self, now: u64) -> Standing {
        Standing {
            waiting: self.waiting,
            counting: self.counting,
            at: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_approaches_the_part_of_the_time_on_counters() {
        for (on, off) in [(1, 0), (1, 1), (1, 3), (0, 1)] {
            let mut share = Share::NONE;
            let (mut now, mut running) = (1, 0);
            share.account(now, running);
            for _ in 0..400 {
                now += 4_000_000 * (on + off);
                running += 4_000_000 * on;
                share.account(now, running);
            }
            let expected = ALL * on / (on + off);
            let [share, ..] = share.parts();
            assert!(share.abs_diff(expected) < ALL / 100, "{on} {off}: {share}");
        }
    }

    #[test]
    fn long_times_do_not_overflow() {
        let mut share = Share::NONE;
        share.account(1, 0);
        assert_eq!(share.account(u64::MAX, u64::MAX / 2), ALL / 2);
        // Nor does a clock that goes back, or more time on counters than has passed.
        assert_eq!(share.account(5, 7), ALL / 2);
        assert!(share.account(5 + WINDOW, u64::MAX) <= ALL);
    }

    #[test]
    fn the_least_share_is_of_a_waiting_or_counting_group() {
        let mut needs = Needs::default();
        assert_eq!(needs.standing(100).least(200), ALL);
        needs.place(BEGIN);
        needs.place(BEGIN + 1);
        let standing = needs.standing(100);
        assert!(!standing.waits() && !needs.refused());
        assert!(standing.least(100 + WINDOW / 8) > BEGIN);
        assert_eq!(standing.least(100 + 2 * WINDOW), ALL);
        needs.refuse(BEGIN, None);
        let standing = needs.standing(100);
        assert!(standing.waits() && needs.wish.is_none());
        assert!(standing.least(100 + WINDOW / 8) < BEGIN);
        // The first wish wins.
        needs.refuse(7, Some(ThreadUsage::default()));
        needs.refuse(5, Some(ThreadUsage::default()));
        assert_eq!(needs.wish, Some((ThreadUsage::default(), 7)));
        assert_eq!(needs.standing(100).least(100), 5);
        needs.refuse_pinned(None);
        assert!(!needs.is_pinned);
        needs.refuse_pinned(Some(ThreadUsage::default()));
        assert!(needs.is_pinned);
        assert_eq!(needs.standing(100).least(100), 5);
    }
}
