// SPDX-License-Identifier: GPL-2.0

//! How much of the time a group has counted lately: by this the threads of a core decide which of them
//! goes first where not both can have what they need ([`Core::settle`]).
//!
//! A [`Share`] is a moving average of the time on counters, which forgets with a time constant of
//! [`WINDOW`]. The group with the smaller share goes first. So shares become equal as far as they can,
//! whatever the phases of the two threads' timers, and an old event and a new one are soon on a par.
//!
//! Context: any; nothing but values.
//!
//! [`Core::settle`]: super::siblings::Core::settle

use super::usage::Claim;

/// Time constant of the average, in nanoseconds: 16 of the perf core's intervals of 4 ms.
pub const WINDOW: u64 = 1 << 26;

/// All of the time, as a share.
const ALL: u64 = 1 << 16;

/// What a group begins with: neither before all others nor behind them.
const BEGIN: u64 = ALL / 2;

/// A share `dt` nanoseconds later, of which `ran` were on counters.
const fn after(share: u64, dt: u64, ran: u64) -> u64 {
    let ran = if ran < dt { ran } else { dt };
    if dt < WINDOW {
        // No factor exceeds 2^26, and no product 2^42.
        let kept = share.wrapping_mul(WINDOW.wrapping_sub(dt));
        kept.wrapping_add(ran.wrapping_mul(ALL)) / WINDOW
    } else {
        // At least 1024, and so at most a little more than `ALL`.
        let share = ran / (dt / ALL);
        if share < ALL {
            share
        } else {
            ALL
        }
    }
}

/// The share of the time that a group has counted, and up to when that is known.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::smt::right_of_way::Share;
///
/// let (mut busy, mut idle) = (Share::NONE, Share::NONE);
/// assert_eq!(busy.account(1_000, 0), idle.account(1_000, 0));
/// // Four milliseconds later, on a counter and not.
/// assert!(busy.account(4_001_000, 4_000_000) > idle.account(4_001_000, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    share: u64,
    /// When it was last brought up to date; 0 if never.
    at: u64,
    /// The group's time on counters then.
    running: u64,
}

impl Share {
    /// Nothing is known of the group.
    pub const NONE: Self = Self {
        share: BEGIN,
        at: 0,
        running: 0,
    };

    /// As [`parts`](Self::parts) has returned it.
    pub const fn from_parts([share, at, running]: [u64; 3]) -> Self {
        Self { share, at, running }
    }

    /// As numbers, for atomics.
    pub const fn parts(self) -> [u64; 3] {
        [self.share, self.at, self.running]
    }

    /// Brings it up to date at the time `now`, when the group has been on counters for `running` in
    /// all, both in nanoseconds. Returns the share.
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

/// What a thread has come to: the smallest share of a group that waits, and of one that counts, as they
/// were at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::logic) struct Standing {
    waiting: Option<u64>,
    counting: Option<u64>,
    at: u64,
}

impl Standing {
    /// Whether a group waits.
    pub(in crate::logic) const fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// The smallest share at the time `now`, if nothing has changed hands since.
    pub(in crate::logic) fn least(&self, now: u64) -> u64 {
        let dt = now.saturating_sub(self.at);
        let waiting = self.waiting.map(|share| after(share, dt, 0));
        let counting = self.counting.map(|share| after(share, dt, dt));
        waiting.into_iter().chain(counting).min().unwrap_or(ALL)
    }
}

/// What a thread lacked while its events were placed, from when the PMU was disabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Whether it matters: one of the threads limits the other.
    pub contends: bool,
    /// Whether events were placed under the limits of what the other thread wants.
    pub yields: bool,
    /// The smallest share of a group that was refused, and of one that was placed.
    pub(in crate::logic) waiting: Option<u64>,
    pub(in crate::logic) counting: Option<u64>,
    /// The first group that would have been placed without the other thread: what the thread would use
    /// then, and the group's share.
    pub(in crate::logic) want: Option<(Claim, u64)>,
    /// Whether that is a pinned group, which does not wait for its turn.
    pub(in crate::logic) is_pinned: bool,
}

impl Needs {
    /// A group with that `share` has been placed.
    pub fn place(&mut self, share: u64) {
        self.counting = Some(self.counting.map_or(share, |least| least.min(share)));
    }

    /// A group with that `share` was refused. `wish` is what the thread would use if it were not for the
    /// other thread ([`Roster::take_wish`]).
    ///
    /// [`Roster::take_wish`]: crate::logic::sched::cpu_schedule::Roster::take_wish
    pub fn refuse(&mut self, share: u64, wish: Option<Claim>) {
        self.waiting = Some(self.waiting.map_or(share, |least| least.min(share)));
        self.want = self.want.or(wish.map(|wish| (wish, share)));
    }

    /// A pinned group was refused, with that `wish`.
    pub fn refuse_pinned(&mut self, wish: Option<Claim>) {
        if let Some(wish) = wish.filter(|_| !self.is_pinned) {
            self.want = Some((wish, 0));
            self.is_pinned = true;
        }
    }

    /// Whether the threads were not in each other's way.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        !self.contends && !self.yields && !self.refused()
    }

    /// Whether a group was refused.
    pub(in crate::logic) const fn refused(&self) -> bool {
        self.waiting.is_some() || self.want.is_some()
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
    fn a_share_comes_near_to_what_is_had() {
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
    fn long_times_are_no_trouble() {
        let mut share = Share::NONE;
        share.account(1, 0);
        assert_eq!(share.account(u64::MAX, u64::MAX / 2), ALL / 2);
        // Nor is a clock that goes back, or more time on counters than there was.
        assert_eq!(share.account(5, 7), ALL / 2);
        assert!(share.account(5 + WINDOW, u64::MAX) <= ALL);
    }

    #[test]
    fn the_least_is_what_waits_or_counts() {
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
        assert!(standing.waits() && needs.want.is_none());
        assert!(standing.least(100 + WINDOW / 8) < BEGIN);
        // The first wish is what is wanted.
        needs.refuse(7, Some(Claim::default()));
        needs.refuse(5, Some(Claim::default()));
        assert_eq!(needs.want, Some((Claim::default(), 7)));
        assert_eq!(needs.standing(100).least(100), 5);
        needs.refuse_pinned(None);
        assert!(!needs.is_pinned);
        needs.refuse_pinned(Some(Claim::default()));
        assert!(needs.is_pinned);
        assert_eq!(needs.standing(100).least(100), 5);
    }
}
