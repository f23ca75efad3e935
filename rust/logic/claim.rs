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
//! Context: any; the driver keeps a [`Core`] under a lock.
//!
//! [`Roster::claim`]: super::roster::Roster::claim

use super::counter::CounterMask;
use super::limits::Limits;
use super::register_plan::RegisterValues;

/// What a thread's events have of what the threads of a core share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The counters in use.
    pub used: CounterMask,
    /// Those that are in use by exclusive events.
    pub exclusive: CounterMask,
    /// What the extra registers are to hold.
    pub registers: RegisterValues,
}

impl Claim {
    /// The same, and what was claimed before and is not planned for something else by now. It stays
    /// claimed until the plan is programmed.
    ///
    /// Until then the counters hold what their events have counted. Besides, perf core takes all
    /// events off and adds them again one by one: who has something, and only wants it again, must
    /// not lose it to the sibling in between.
    #[must_use]
    pub fn keeping(self, before: Self) -> Self {
        Self {
            used: self.used.union(before.used),
            exclusive: self.exclusive.union(before.exclusive),
            registers: self.registers.or(&before.registers),
        }
    }
}

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
}

/// The claims of a core's two threads.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::claim::{Claim, Core, Thread};
/// use logic::counter::CounterMask;
/// use logic::limits::Limits;
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
    /// Whether the threads share the [extra registers that can be](super::extra_register::ExtraRegister::can_be_shared).
    shares_registers: bool,
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
        };
        Self {
            seats: [seat; 2],
            gp,
            shares_registers: false,
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
    }

    /// What `thread` may not take.
    pub const fn limits(&self, thread: Thread) -> Limits {
        let sibling = self.seat(thread.sibling());
        if sibling.cpu.is_none() {
            return Limits::NONE;
        }
        let limits = Limits::beside_sibling(self.gp);
        Limits {
            closed: sibling.claim.exclusive,
            closed_to_exclusive: sibling.claim.used,
            gp: if sibling.claim.exclusive.is_empty() {
                limits.gp
            } else {
                limits.gp_with_exclusive
            },
            registers: if self.shares_registers {
                sibling.claim.registers.shared()
            } else {
                RegisterValues::NONE
            },
            ..limits
        }
    }

    /// Says what `thread` uses from now on. It must have been planned under the present
    /// [limits](Self::limits).
    pub fn claim(&mut self, thread: Thread, claim: Claim) {
        self.seat_mut(thread).claim = claim;
    }

    /// Whether `thread` may take what it likes, as long as that is counters for events that are not
    /// exclusive: [`limits`](Self::limits) does not say otherwise.
    pub const fn leaves_all_to(&self, thread: Thread) -> bool {
        self.seat(thread.sibling()).claim.exclusive.is_empty()
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

#[cfg(test)]
mod tests {
    use super::super::constraint::Constraint;
    use super::super::extra_register::ExtraRegister;
    use super::*;

    fn mask(bits: u64) -> CounterMask {
        CounterMask::from_bits(bits)
    }

    fn full_core() -> Core {
        let mut core = Core::new(4);
        assert_eq!(core.join(0), Some(Thread::First));
        assert_eq!(core.join(4), Some(Thread::Second));
        core
    }

    #[test]
    fn a_core_has_two_threads() {
        let mut core = full_core();
        assert_eq!(core.join(8), None);
        core.leave(Thread::First);
        assert_eq!(core.join(0), Some(Thread::First));
    }

    #[test]
    fn registers_are_shared_where_the_core_has_them() {
        for (mut core, register, shared) in [
            (full_core(), ExtraRegister::OffcoreResponse0, false),
            (
                full_core().sharing_registers(),
                ExtraRegister::OffcoreResponse0,
                true,
            ),
            (
                full_core().sharing_registers(),
                ExtraRegister::LoadLatency,
                false,
            ),
        ] {
            let mut claim = Claim::default();
            claim.registers.place(register, 1).unwrap();
            core.claim(Thread::First, claim);
            let held = core.limits(Thread::Second).registers.get(register);
            assert_eq!(held.is_some(), shared);
            core.wait(Thread::Second);
            core.claim(Thread::First, Claim::default());
            assert_eq!(core.wakes_sibling(Thread::First), shared.then_some(4));
        }
    }

    #[test]
    fn a_thread_alone_has_no_limits() {
        let mut core = full_core();
        assert_eq!(core.limits(Thread::First), Limits::beside_sibling(4));
        core.leave(Thread::Second);
        assert_eq!(core.limits(Thread::First), Limits::NONE);
    }

    #[test]
    fn the_claim_goes_with_the_thread() {
        let mut core = full_core();
        let claim = Claim {
            used: mask(0b11),
            exclusive: mask(0b10),
            ..Claim::default()
        };
        core.claim(Thread::Second, claim);
        core.wait(Thread::First);
        assert_eq!(core.limits(Thread::First).closed, mask(0b10));
        assert_eq!(core.limits(Thread::First).closed_to_exclusive, mask(0b11));
        core.leave(Thread::Second);
        assert_eq!(core.limits(Thread::First), Limits::NONE);
        assert_eq!(core.wakes_sibling(Thread::Second), Some(0));
        // Who comes in its place starts anew.
        assert_eq!(core.join(4), Some(Thread::Second));
        assert_eq!(core.limits(Thread::First), Limits::beside_sibling(4));
    }

    #[test]
    fn counters_in_use_do_not_limit_the_sibling_in_number() {
        let mut core = full_core();
        let claim = Claim {
            used: mask(0b1111),
            ..Claim::default()
        };
        core.claim(Thread::First, claim);
        let limits = core.limits(Thread::Second);
        assert_eq!(limits.gp, u32::MAX);
        assert_eq!(limits.closed, mask(0));
        assert_eq!(limits.closed_to_exclusive, mask(0b1111));
    }

    #[test]
    fn who_is_not_exclusive_is_limited_by_those_who_are_alone() {
        let plain = Constraint::any_of(mask(0b1111));
        for exclusive in [0, 0b1] {
            let mut core = full_core();
            let claim = Claim {
                used: mask(0b1),
                exclusive: mask(exclusive),
                ..Claim::default()
            };
            core.claim(Thread::First, claim);
            let limits = core.limits(Thread::Second);
            let cut = limits.counters(plain) != plain.counters || limits.gp(false) != u32::MAX;
            assert_eq!(core.leaves_all_to(Thread::Second), !cut);
            assert_eq!(cut, exclusive != 0);
            assert!(core.leaves_all_to(Thread::First));

            core.use_counters(Thread::First, mask(0b101));
            let limits = core.limits(Thread::Second);
            assert_eq!(limits.closed_to_exclusive, mask(0b101));
            assert_eq!(limits.closed, mask(exclusive));
        }
    }

    #[test]
    fn nobody_is_woken_by_a_claim_that_grows_or_stays() {
        let mut core = full_core();
        let claim = |bits| Claim {
            used: mask(bits),
            exclusive: mask(bits),
            ..Claim::default()
        };
        core.claim(Thread::First, claim(0b01));
        core.wait(Thread::Second);
        for (bits, wakes) in [(0b01, false), (0b11, false), (0b10, true), (0, false)] {
            core.claim(Thread::First, claim(bits));
            let woken = core.wakes_sibling(Thread::First);
            assert_eq!(woken, wakes.then_some(4), "{bits:#b}");
        }
    }
}
