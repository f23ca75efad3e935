// SPDX-License-Identifier: GPL-2.0

//! Two threads of a core, and what each must leave to the other.
//!
//! On Sandy Bridge, Ivy Bridge and Haswell some events corrupt the counter of the same number on
//! the core's other thread (errata BJ122, BV98, HSD29). Such an event is *exclusive*: it gets a
//! counter only while the sibling does not use its own of that number, and nobody takes a counter
//! whose sibling counts such an event.
//!
//! Each thread says what it uses in a [`Claim`]. A claim is always computed from all of the
//! thread's events ([`Roster::claim`]), never changed step by step. So it cannot keep a counter
//! that an event has left, nor lose one that another event still has; mainline's can do both
//! (`intel_commit_scheduling()` and `intel_put_excl_constraints()`,
//! `arch/x86/events/intel/core.c:4334-4363`, `4549-4592`).
//!
//! On Nehalem and Westmere the threads of a core share the offcore response registers. While one of them has
//! a value in a register, the other can use it with that value only.
//!
//! A thread that could not place an event because of the other's claim *waits*. When that claim
//! changes so that more is left, the driver makes the thread schedule again.
//!
//! # Right of way
//!
//! Both threads may want what only one of them can have, for good: four events of any kind here, an
//! exclusive one there. So a thread that waits says what it *wants*, that is, what it would claim if
//! it were not for the other. When the perf core's interval is over on either thread
//! ([`Core::settle`]), the one with the smaller [share](super::right_of_way) of the time gets the
//! right of way:
//!
//! ```text
//!  A rotates, is refused, has less ──► A has the right of way; what it wants limits B
//!  B schedules again under these limits, and stops what is in A's way
//!    its claim is released ──► A schedules again, and takes what is left to it
//!  A's claim limits B; the right of way is over
//! ```
//!
//! A pinned group, which does not rotate, gets the right of way as soon as it is refused.
//!
//! Nothing is taken from B before B has stopped it: what A wants are limits for what B plans, and A
//! plans under B's claim as ever. Pinned groups of B do not see these limits. So if they are in
//! A's way, A finds what they leave, and the right of way is over, too. It changes once for each end of an
//! interval on either thread at most.
//!
//! Context: any; the driver keeps a [`Core`] under a lock.
//!
//! [`Roster::claim`]: crate::logic::sched::cpu_schedule::Roster::claim

#[cfg(test)]
mod tests;

use super::{
    right_of_way::{Needs, Standing},
    usage::Claim,
};
use crate::logic::{
    regs::counter::CounterMask,
    sched::{limits::Limits, register_plan::RegisterValues},
};

/// One of a core's two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The one that came first.
    First,
    /// The other.
    Second,
}

impl Thread {
    /// The other one.
    pub const fn sibling(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// What a core keeps of one of its threads.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    /// The thread's CPU, if it is there.
    cpu: Option<u32>,
    claim: Claim,
    /// The limits under which an event was refused that would have been placed without them.
    waiting: Option<Limits>,
    /// What the thread would have claimed then without the sibling.
    want: Option<Claim>,
    /// What it has come to, if it has been refused something while the threads were in each other's way.
    standing: Option<Standing>,
    /// How often in a row the sibling kept the right of way.
    denied: u8,
}

/// A thread that has been denied the right of way so often gets it. Shares alone could keep it waiting
/// for good, beside a group that never counts for another reason.
const MOST_DENIALS: u8 = 8;

/// So many times without a want the threads are not in each other's way any more, and what they have
/// come to is forgotten, so that nobody has to keep it up to date. While they are, wants come at every
/// other interval or so.
const LONG_CALM: u8 = 64;

/// That a thread has the right of way.
#[derive(Clone, Copy, Debug)]
struct Way {
    thread: Thread,
    /// Whether the sibling has made way, as far as it does.
    is_clear: bool,
    /// Whether it is for a pinned group.
    is_pinned: bool,
}

/// The claims of a core's two threads.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::smt::{
///     siblings::{Core, Thread},
///     usage::Claim,
/// };
/// use logic::regs::counter::CounterMask;
/// use logic::sched::limits::Limits;
///
/// let mut core = Core::new(4);
/// let (a, b) = (core.join(0).unwrap(), core.join(4).unwrap());
///
/// // An exclusive event on counter 2 of one thread.
/// let counter_2 = CounterMask::from_bits(1 << 2);
/// core.claim(a, Claim { used: counter_2, exclusive: counter_2, ..Claim::default() });
/// assert_eq!(core.limits(b).closed, counter_2);
/// assert_eq!(core.limits(b).gp, 2);
///
/// // The other thread cannot place an event, and is told when it can.
/// core.wait(b);
/// assert_eq!(core.wakes_sibling(a), None);
/// core.claim(a, Claim::default());
/// assert_eq!(core.wakes_sibling(a), Some(4));
/// assert_eq!(core.wakes_sibling(a), None);
/// ```
#[derive(Clone, Debug)]
pub struct Core {
    seats: [Seat; 2],
    /// General-purpose counters of a thread.
    gp: u32,
    /// Whether the threads share the [extra registers that can be](crate::logic::sched::extra_register::ExtraRegister::can_be_shared).
    shares_registers: bool,
    way: Option<Way>,
    /// How often in a row threads have settled without wanting anything of each other.
    calm: u8,
}

impl Core {
    /// A core whose threads have `gp` general-purpose counters each. None of them is there yet.
    pub const fn new(gp: u32) -> Self {
        let seat = Seat {
            cpu: None,
            claim: Claim {
                used: CounterMask::EMPTY,
                exclusive: CounterMask::EMPTY,
                registers: RegisterValues::NONE,
            },
            waiting: None,
            want: None,
            standing: None,
            denied: 0,
        };
        Self {
            seats: [seat; 2],
            gp,
            shares_registers: false,
            way: None,
            calm: 0,
        }
    }

    /// The same, with extra registers that the threads share.
    #[must_use]
    pub const fn sharing_registers(mut self) -> Self {
        self.shares_registers = true;
        self
    }

    const fn seat(&self, thread: Thread) -> &Seat {
        let [first, second] = &self.seats;
        match thread {
            Thread::First => first,
            Thread::Second => second,
        }
    }

    fn seat_mut(&mut self, thread: Thread) -> &mut Seat {
        let [first, second] = &mut self.seats;
        match thread {
            Thread::First => first,
            Thread::Second => second,
        }
    }

    /// The CPU with number `cpu` comes. `None` if there are two threads already.
    pub fn join(&mut self, cpu: u32) -> Option<Thread> {
        let threads = [Thread::First, Thread::Second];
        let thread = threads
            .into_iter()
            .find(|thread| self.seat(*thread).cpu.is_none())?;
        *self.seat_mut(thread) = Seat {
            cpu: Some(cpu),
            ..Seat::default()
        };
        Some(thread)
    }

    /// A thread goes, and its claim with it.
    pub fn leave(&mut self, thread: Thread) {
        *self.seat_mut(thread) = Seat::default();
        self.way = None;
    }

    /// What `thread` may not take: what the sibling claims and, where that has the right of way, wants.
    pub fn limits(&self, thread: Thread) -> Limits {
        match self.wanted_from(thread) {
            None => self.limits_of_pinned(thread),
            Some(want) => {
                let wanted = want.keeping(self.seat(thread.sibling()).claim);
                let mut limits = self.limits_beside(&wanted);
                if want.gp() > limits.gp_with_exclusive {
                    limits.closed_to_exclusive = CounterMask::ALL;
                }
                limits
            }
        }
    }

    /// What a pinned group of `thread` may not take: for these no right of way matters.
    pub fn limits_of_pinned(&self, thread: Thread) -> Limits {
        let sibling = self.seat(thread.sibling());
        match sibling.cpu {
            None => Limits::NONE,
            Some(_) => self.limits_beside(&sibling.claim),
        }
    }

    const fn limits_beside(&self, claim: &Claim) -> Limits {
        let limits = Limits::beside_sibling(self.gp);
        Limits {
            closed: claim.exclusive,
            closed_to_exclusive: claim.used,
            gp: if claim.exclusive.is_empty() {
                limits.gp
            } else {
                limits.gp_with_exclusive
            },
            registers: if self.shares_registers {
                claim.registers.shared()
            } else {
                RegisterValues::NONE
            },
            ..limits
        }
    }

    /// What the sibling of `thread` wants, if it has the right of way.
    fn wanted_from(&self, thread: Thread) -> Option<&Claim> {
        let sibling = thread.sibling();
        self.way.filter(|way| way.thread == sibling)?;
        self.seat(sibling).want.as_ref()
    }

    /// Whether `thread` has to make way for its sibling.
    pub fn yields(&self, thread: Thread) -> bool {
        self.wanted_from(thread).is_some()
    }

    /// Whether `thread` has the right of way. Then the groups that wait have to be tried in their order
    /// when it schedules next, before others that fitted without them.
    pub fn has_way(&self, thread: Thread) -> bool {
        self.way.is_some_and(|way| way.thread == thread)
    }

    /// Whether the threads are in each other's way: one wants something, or has taken it.
    pub fn is_contended(&self) -> bool {
        let contends = |seat: &Seat| seat.want.is_some() || seat.standing.is_some();
        self.seats.iter().any(contends)
    }

    /// Whether `thread`, with what it claims, is in the way of a sibling that wants `want`.
    fn is_in_the_way(&self, thread: Thread, want: &Claim) -> bool {
        let claim = &self.seat(thread).claim;
        let half = self.gp / 2;
        !(claim.used & want.exclusive).is_empty()
            || !(claim.exclusive & want.used).is_empty()
            || (!want.exclusive.is_empty() && claim.gp() > half)
            || (!claim.exclusive.is_empty() && want.gp() > half)
            || (self.shares_registers
                && want
                    .registers
                    .shared()
                    .is_in_the_way_of(&claim.registers.shared()))
    }

    /// Says what `thread` uses from now on. It must have been planned under the present
    /// [limits](Self::limits).
    pub fn claim(&mut self, thread: Thread, claim: Claim) {
        self.seat_mut(thread).claim = claim;
    }

    /// Whether `thread` may take what it likes, as long as that is counters for events that are not
    /// exclusive: [`limits`](Self::limits) does not say otherwise.
    pub const fn leaves_all_to(&self, thread: Thread) -> bool {
        self.way.is_none() && self.seat(thread.sibling()).claim.exclusive.is_empty()
    }

    /// Says that `thread` uses `counters` from now on, and the rest of its [claim](Self::claim) as
    /// before.
    pub fn use_counters(&mut self, thread: Thread, counters: CounterMask) {
        self.seat_mut(thread).claim.used = counters;
    }

    /// Says that `thread` could not place an event because of the present limits.
    pub fn wait(&mut self, thread: Thread) {
        self.seat_mut(thread).waiting = Some(self.limits(thread));
    }

    /// Says that the hardware of `thread` is as planned: it uses `claim` from now on, and lacked what
    /// `needs` says. Where perf core's interval `is_over` on it, the right of way may change. `now` is
    /// the time in nanoseconds, by a clock that both threads have.
    ///
    /// Returns the CPU that has to schedule anew, if any: the sibling's.
    pub fn settle(
        &mut self,
        thread: Thread,
        claim: Claim,
        needs: &Needs,
        is_over: bool,
        now: impl FnOnce() -> u64,
    ) -> Option<u32> {
        let sibling = thread.sibling();
        let seat = self.seat_mut(thread);
        seat.claim = claim;
        // A pinned group that was refused is not tried before the sibling has made way.
        let is_kept = |way: Way| way.thread == thread && way.is_pinned && !way.is_clear;
        if needs.is_pinned || !self.way.is_some_and(is_kept) {
            self.seat_mut(thread).want = needs.want.map(|(want, _)| want);
        }
        let seat = self.seat_mut(thread);
        if claim == Claim::default() && !needs.refused() {
            // Nothing is left of the thread's events.
            seat.standing = None;
        } else if needs.contends || seat.standing.is_some_and(|it| it.waits()) {
            let now = now();
            seat.standing = Some(needs.standing(now));
            if let Some((_, share)) = needs.want.filter(|_| is_over || needs.is_pinned) {
                self.ask(thread, share, needs.is_pinned, now);
            }
        }
        let seat = self.seat_mut(thread);
        let wants = seat.want.is_some();
        if !wants {
            seat.denied = 0;
        }
        self.calm = match self.seats.iter().any(|seat| seat.want.is_some()) {
            true => 0,
            false => self.calm.saturating_add(1),
        };
        if self.calm >= LONG_CALM {
            for seat in &mut self.seats {
                seat.standing = None;
            }
        }
        match self.way {
            // It has tried.
            Some(way) if way.thread == thread && (way.is_clear || !wants) => {
                self.way = None;
            }
            // It has just got the right of way, or waits for the sibling to make way.
            Some(way) if way.thread == thread => {
                let in_the_way = self
                    .seat(thread)
                    .want
                    .is_some_and(|want| self.is_in_the_way(sibling, &want));
                if !in_the_way {
                    self.way = None;
                } else if is_over || needs.is_pinned {
                    return self.seat(sibling).cpu;
                }
            }
            Some(way) if !way.is_clear => {
                let want = self.seat(sibling).want;
                if needs.yields || !want.is_some_and(|want| self.is_in_the_way(thread, &want)) {
                    self.way = Some(Way {
                        is_clear: true,
                        ..way
                    });
                    let seat = self.seat_mut(sibling);
                    seat.waiting = None;
                    return seat.cpu;
                }
            }
            _ => {}
        }
        self.wakes_sibling(thread)
    }

    /// Does what [`settle`](Self::settle) does for a `thread` that [lacked nothing](Needs::is_empty), whose
    /// claim was [plain](Claim::is_plain) and whose new claim is the counters `used`. Returns whether it has:
    /// neither thread may wait, want anything or have the right of way.
    #[inline]
    pub fn settle_plain(&mut self, thread: Thread, used: CounterMask) -> bool {
        let is_quiet =
            |seat: &Seat| seat.waiting.is_none() && seat.want.is_none() && seat.standing.is_none();
        if self.way.is_some() || !self.seats.iter().all(is_quiet) {
            return false;
        }
        let seat = self.seat_mut(thread);
        seat.claim.used = used;
        seat.denied = 0;
        self.calm = self.calm.saturating_add(1);
        true
    }

    /// Gives `thread` the right of way if what it wants, for a group with that `share`, is more urgent
    /// than what the sibling has.
    ///
    /// What a pinned group wants comes before all else.
    fn ask(&mut self, thread: Thread, share: u64, is_pinned: bool, now: u64) {
        if self.way.is_some_and(|way| way.is_pinned && !way.is_clear) {
            return;
        }
        let standing = self.seat(thread.sibling()).standing;
        let has_less = standing.is_some_and(|it| it.least(now) < share);
        let seat = self.seat_mut(thread);
        if has_less && !is_pinned && seat.denied < MOST_DENIALS {
            seat.denied = seat.denied.saturating_add(1);
            return;
        }
        seat.denied = 0;
        self.way = Some(Way {
            thread,
            is_clear: false,
            is_pinned,
        });
    }

    /// The CPU of `thread`'s sibling, if that waits, and more is left for it now than when it began
    /// to. It does not wait any more then.
    pub fn wakes_sibling(&mut self, thread: Thread) -> Option<u32> {
        let sibling = thread.sibling();
        self.seat(sibling).waiting.as_ref()?;
        let now = self.limits(sibling);
        let seat = self.seat_mut(sibling);
        seat.waiting.take_if(|before| now.loosen(before))?;
        seat.cpu
    }
}
