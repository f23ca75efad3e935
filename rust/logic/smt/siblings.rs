// SPDX-License-Identifier: GPL-2.0

//! The two threads of a core, and the counters that each has to leave to the other.
//!
//! On Sandy Bridge, Ivy Bridge and Haswell some events corrupt the counter of the same number on
//! the core's other thread (errata BJ122, BV98, HSD29). Such an event is *corrupting*: it gets a
//! counter only while the sibling does not use its counter of that number, and no event gets a
//! counter while the sibling's counter of that number counts a corrupting event.
//!
//! Each thread reports its [`ThreadUsage`] to its core. A usage is computed from all of the
//! thread's events ([`CpuSchedule::usage`]), not changed event by event; only until a plan is
//! programmed, the usage before the plan is [added](ThreadUsage::keeping). So no counter stays in
//! use after its event has left, or is lost while another event still has it; mainline's state can
//! do both (`intel_commit_scheduling()` and `intel_put_excl_constraints()`,
//! `arch/x86/events/intel/core.c`).
//!
//! On Nehalem and Westmere the threads of a core share the offcore response registers and
//! LBR_SELECT. While one thread has a value in a register, the other can only use the register with
//! the same value.
//!
//! A thread that could not place an event because of the other's usage *waits*. When the other's
//! usage leaves more room, the driver makes the waiting thread schedule again.
//!
//! # Right of way
//!
//! Both threads may permanently need resources that only one of them can have: four events of any
//! kind on one, a corrupting event on the other. So a waiting thread states its *wish*: the usage
//! that it would have alone in the core. At the end of a rotation interval of a thread that has a
//! wish ([`Core::release`]), this thread gets the right of way, unless a group of the sibling has a
//! smaller [share](super::right_of_way) of the time:
//!
//! ```text
//!  A's interval ends, A lacks a resource, A's share is smaller
//!    ──► A has the right of way; A's wish limits B
//!  B schedules again under these limits, and stops the events in A's way
//!    B releases their counters ──► A schedules again, and takes them
//!  A's usage limits B; the right of way is over
//! ```
//!
//! A pinned group, which does not rotate, gets the right of way as soon as it is refused.
//!
//! B loses no counter before it has stopped the counter's event: A's wish limits B's plans, and A
//! still plans under B's usage. B's pinned groups ignore A's wish: if they are in A's way, A takes
//! the counters that they leave, and the right of way ends all the same. A thread that was denied
//! the right of way several times in a row gets it whatever the shares.
//!
//! Context: any; the driver keeps a [`Core`] under a lock.
//!
//! [`CpuSchedule::usage`]: crate::logic::sched::cpu_schedule::CpuSchedule::usage

#[cfg(test)]
mod tests;

use super::right_of_way::{
    Needs,
    Standing, //
};
use crate::logic::{
    regs::counter::CounterMask,
    sched::{
        limits::Limits,
        register_plan::RegisterValues,
        usage::ThreadUsage, //
    },
};

/// One of a core's two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The thread that joined first.
    First,
    /// The other thread.
    Second,
}

impl Thread {
    /// Returns the other thread.
    pub const fn sibling(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// The core's state of one of its threads.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadEntry {
    /// The thread's CPU, if it is online.
    cpu: Option<u32>,
    usage: ThreadUsage,
    /// If the thread waits: its [limits](Core::limits) when it last began to wait.
    waiting: Option<Limits>,
    /// The usage that the thread would have without the sibling, with the refused event placed.
    wish: Option<ThreadUsage>,
    /// The shares of the thread's groups at its last release while the threads contended; [`None`]
    /// if that is long ago.
    standing: Option<Standing>,
    /// Number of times in a row that the thread was denied the right of way.
    denied: u8,
    /// Number of [releases](Core::release) of either thread since this thread lacked a resource.
    silence: u16,
    /// Number of times that the thread's state was [cleared](Core::doubt_sibling) after a long
    /// silence.
    doubts: u8,
}

impl ThreadEntry {
    /// Returns whether the thread neither waits nor has a wish, and has not contended lately.
    #[inline]
    const fn is_quiet(&self) -> bool {
        self.waiting.is_none() && self.wish.is_none() && self.standing.is_none()
    }

    /// Counts a release in which the thread had no new need. Returns whether the thread has had no
    /// new need for long, although it is not quiet.
    fn is_silent_for_long(&mut self) -> bool {
        if self.is_quiet() {
            self.doubts = 0;
            return false;
        }
        self.silence = self.silence.saturating_add(1);
        self.silence >> self.doubts >= LONG_SILENCE
    }
}

/// Maximum number of times in a row that a thread is denied the right of way. Without a maximum, it
/// could wait forever: the share of a sibling's group that never counts, for whatever reason, stays
/// smaller.
const MOST_DENIALS: u8 = 8;

/// Number of releases without a wish after which the threads no longer contend. The shares of their
/// groups are dropped then, which saves their updates. While threads contend, one has a wish about
/// every other interval.
const LONG_CALM: u8 = 64;

/// Number of releases without a new need of a waiting thread after which the core doubts that the
/// thread still lacks a resource ([`Core::doubt_sibling`]). The number doubles with each doubt, up
/// to [`MOST_DOUBTS`] times, so that a group that really waits costs the sibling almost nothing.
const LONG_SILENCE: u16 = 64;
const MOST_DOUBTS: u8 = 9;

/// The right of way.
#[derive(Clone, Copy, Debug)]
struct RightOfWay {
    thread: Thread,
    /// Set if the sibling has made way, as far as it can.
    is_clear: bool,
    /// Set if the right of way is for a pinned group.
    is_pinned: bool,
}

/// The two threads of a core.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::{limits::Limits, usage::ThreadUsage};
/// use logic::smt::siblings::{Core, Thread};
///
/// let mut core = Core::new(4);
/// let (a, b) = (core.join(0).unwrap(), core.join(4).unwrap());
///
/// // A corrupting event on counter 2 of one thread.
/// let counter_2 = CounterMask::from_bits(1 << 2);
/// core.set_usage(
///     a,
///     ThreadUsage { used: counter_2, corrupting: counter_2, ..ThreadUsage::default() },
/// );
/// assert_eq!(core.limits(b).closed, counter_2);
/// assert_eq!(core.limits(b).gp, 2);
///
/// // The other thread cannot place an event, and waits until its limits are looser.
/// core.wait(b);
/// assert_eq!(core.wakes_sibling(a), None);
/// core.set_usage(a, ThreadUsage::default());
/// assert_eq!(core.wakes_sibling(a), Some(4));
/// assert_eq!(core.wakes_sibling(a), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Core {
    entries: [ThreadEntry; 2],
    /// The number of general-purpose counters of a thread.
    gp: u32,
    /// Set if the threads share the extra registers that [can be
    /// shared](crate::logic::regs::extra_register::ExtraRegister::can_be_shared).
    shares_registers: bool,
    way: Option<RightOfWay>,
    /// Number of releases in a row without a wish.
    calm: u8,
}

impl Core {
    /// A core without threads or counters.
    pub const NOTHING: Self = {
        let entry = ThreadEntry {
            cpu: None,
            usage: ThreadUsage {
                used: CounterMask::EMPTY,
                corrupting: CounterMask::EMPTY,
                registers: RegisterValues::NONE,
            },
            waiting: None,
            wish: None,
            standing: None,
            denied: 0,
            silence: 0,
            doubts: 0,
        };
        Self {
            entries: [entry; 2],
            gp: 0,
            shares_registers: false,
            way: None,
            calm: 0,
        }
    };

    /// Creates a core without threads. Its threads will have `gp` general-purpose counters each.
    pub const fn new(gp: u32) -> Self {
        let mut core = Self::NOTHING;
        core.set_up(gp, false);
        core
    }

    /// Sets the number of general-purpose counters of a thread, and whether the threads share extra
    /// registers. There must be no threads.
    pub const fn set_up(&mut self, gp: u32, shares_registers: bool) {
        self.gp = gp;
        self.shares_registers = shares_registers;
    }

    /// Makes the threads share extra registers.
    #[must_use]
    pub const fn sharing_registers(mut self) -> Self {
        self.shares_registers = true;
        self
    }

    const fn entry(&self, thread: Thread) -> &ThreadEntry {
        let [first, second] = &self.entries;
        match thread {
            Thread::First => first,
            Thread::Second => second,
        }
    }

    fn entry_mut(&mut self, thread: Thread) -> &mut ThreadEntry {
        let [first, second] = &mut self.entries;
        match thread {
            Thread::First => first,
            Thread::Second => second,
        }
    }

    /// Adds the CPU with number `cpu` as a thread. Returns [`None`] if there are already two
    /// threads.
    pub fn join(&mut self, cpu: u32) -> Option<Thread> {
        let threads = [Thread::First, Thread::Second];
        let thread = threads
            .into_iter()
            .find(|thread| self.entry(*thread).cpu.is_none())?;
        *self.entry_mut(thread) = ThreadEntry {
            cpu: Some(cpu),
            ..ThreadEntry::default()
        };
        Some(thread)
    }

    /// Removes a thread and its usage, and ends the right of way.
    pub fn leave(&mut self, thread: Thread) {
        *self.entry_mut(thread) = ThreadEntry::default();
        self.way = None;
    }

    /// Returns the limits of `thread`: the sibling's usage, and the sibling's wish if it has the
    /// right of way.
    pub fn limits(&self, thread: Thread) -> Limits {
        match self.wish_against(thread) {
            None => self.limits_of_pinned(thread),
            Some(wish) => {
                let wished = wish.keeping(self.entry(thread.sibling()).usage);
                let mut limits = self.limits_beside(&wished);
                if wish.gp() > limits.gp_with_corrupting {
                    limits.closed_to_sharing = CounterMask::ALL;
                }
                limits
            }
        }
    }

    /// Returns the limits of a pinned group of `thread`, which the right of way does not affect.
    pub fn limits_of_pinned(&self, thread: Thread) -> Limits {
        let sibling = self.entry(thread.sibling());
        match sibling.cpu {
            None => Limits::NONE,
            Some(_) => self.limits_beside(&sibling.usage),
        }
    }

    const fn limits_beside(&self, usage: &ThreadUsage) -> Limits {
        let limits = Limits::beside_sibling(self.gp);
        Limits {
            closed: usage.corrupting,
            closed_to_sharing: usage.used,
            gp: if usage.corrupting.is_empty() {
                limits.gp
            } else {
                limits.gp_with_corrupting
            },
            registers: if self.shares_registers {
                usage.registers.shared()
            } else {
                RegisterValues::NONE
            },
            ..limits
        }
    }

    /// Returns the wish of the sibling of `thread`, if the sibling has the right of way.
    fn wish_against(&self, thread: Thread) -> Option<&ThreadUsage> {
        let sibling = thread.sibling();
        self.way.filter(|way| way.thread == sibling)?;
        self.entry(sibling).wish.as_ref()
    }

    /// Returns whether `thread` has to make way for its sibling.
    pub fn yields(&self, thread: Thread) -> bool {
        self.wish_against(thread).is_some()
    }

    /// Returns whether `thread` has the right of way. Then, when it next schedules, its waiting
    /// groups have to be tried in their order, before the groups that were placed instead of them.
    pub fn has_way(&self, thread: Thread) -> bool {
        self.way.is_some_and(|way| way.thread == thread)
    }

    /// Returns whether the threads contend: one has a wish, or they have contended recently.
    pub fn is_contended(&self) -> bool {
        let contends = |entry: &ThreadEntry| entry.wish.is_some() || entry.standing.is_some();
        self.entries.iter().any(contends)
    }

    /// Returns whether the usage of `thread` is in the way of a sibling with this `wish`.
    fn is_in_the_way(&self, thread: Thread, wish: &ThreadUsage) -> bool {
        let usage = &self.entry(thread).usage;
        let half = self.gp / 2;
        !(usage.used & wish.corrupting).is_empty()
            || !(usage.corrupting & wish.used).is_empty()
            || (!wish.corrupting.is_empty() && usage.gp() > half)
            || (!usage.corrupting.is_empty() && wish.gp() > half)
            || (self.shares_registers
                && wish
                    .registers
                    .shared()
                    .is_in_the_way_of(&usage.registers.shared()))
    }

    /// Records the usage of `thread`, which must have been planned under the current
    /// [limits](Self::limits), or under the [limits of a pinned group](Self::limits_of_pinned).
    pub fn set_usage(&mut self, thread: Thread, usage: ThreadUsage) {
        self.entry_mut(thread).usage = usage;
    }

    /// Returns whether the [`limits`](Self::limits) of `thread` only restrict corrupting events and
    /// extra registers.
    pub const fn leaves_all_to(&self, thread: Thread) -> bool {
        self.way.is_none() && self.entry(thread.sibling()).usage.corrupting.is_empty()
    }

    /// Records that `thread` uses `counters`. The rest of its [usage](Self::set_usage) stays.
    pub fn use_counters(&mut self, thread: Thread, counters: CounterMask) {
        self.entry_mut(thread).usage.used = counters;
    }

    /// Records that `thread` waits for looser limits than the current ones. A pinned group, whose
    /// limits may be looser, is woken when it fits and the sibling's right of way is over.
    pub fn wait(&mut self, thread: Thread) {
        let limits = self.limits(thread);
        let entry = self.entry_mut(thread);
        entry.waiting = Some(limits);
        entry.silence = 0;
    }

    /// Records that the plan of `thread` is programmed, with its complete `usage` and its `needs`.
    /// A thread with a wish may get the right of way at the end of its interval (`is_over`), or at
    /// once for a pinned group. Any release may end the right of way. `now` returns the time in
    /// nanoseconds, by a clock that both threads share.
    ///
    /// Returns the sibling's CPU if it has to schedule again.
    pub fn release(
        &mut self,
        thread: Thread,
        usage: ThreadUsage,
        needs: &Needs,
        is_over: bool,
        now: impl FnOnce() -> u64,
    ) -> Option<u32> {
        let sibling = thread.sibling();
        let entry = self.entry_mut(thread);
        entry.usage = usage;
        if needs.refused() {
            entry.silence = 0;
        }
        // A refused pinned group waits until the sibling has made way. Until then, its wish stays.
        let is_kept = |way: RightOfWay| way.thread == thread && way.is_pinned && !way.is_clear;
        if needs.is_pinned || !self.way.is_some_and(is_kept) {
            self.entry_mut(thread).wish = needs.wish.map(|(wish, _)| wish);
        }
        let entry = self.entry_mut(thread);
        if usage == ThreadUsage::default() && !needs.refused() {
            // The thread has no events left.
            entry.standing = None;
        } else if needs.contends || entry.standing.is_some_and(|it| it.waits()) {
            let now = now();
            entry.standing = Some(needs.standing(now));
            if let Some((_, share)) = needs.wish.filter(|_| is_over || needs.is_pinned) {
                self.ask(thread, share, needs.is_pinned, now);
            }
        }
        let entry = self.entry_mut(thread);
        let has_wish = entry.wish.is_some();
        if !has_wish {
            entry.denied = 0;
        }
        self.calm = match self.entries.iter().any(|entry| entry.wish.is_some()) {
            true => 0,
            false => self.calm.saturating_add(1),
        };
        if self.calm >= LONG_CALM {
            for entry in &mut self.entries {
                entry.standing = None;
            }
        }
        match self.way {
            // The thread has tried its refused groups again.
            Some(way) if way.thread == thread && (way.is_clear || !has_wish) => {
                self.way = None;
            }
            // The thread has just got the right of way, or waits for the sibling to make way.
            Some(way) if way.thread == thread => {
                let in_the_way = self
                    .entry(thread)
                    .wish
                    .is_some_and(|wish| self.is_in_the_way(sibling, &wish));
                if !in_the_way {
                    self.way = None;
                } else if is_over || needs.is_pinned {
                    return self.entry(sibling).cpu;
                }
            }
            Some(way) if !way.is_clear => {
                let wish = self.entry(sibling).wish;
                if needs.yields || !wish.is_some_and(|wish| self.is_in_the_way(thread, &wish)) {
                    self.way = Some(RightOfWay {
                        is_clear: true,
                        ..way
                    });
                    let entry = self.entry_mut(sibling);
                    entry.waiting = None;
                    return entry.cpu;
                }
            }
            _ => {}
        }
        let woken = self.wakes_sibling(thread);
        self.doubt(thread, needs.has_pinned);
        woken.or_else(|| self.doubt_sibling(thread))
    }

    /// Ends the waiting of `thread` if it has lacked nothing for long. Rotating groups are tried
    /// again at the end of an interval without being woken, pinned ones are not.
    fn doubt(&mut self, thread: Thread, has_pinned: bool) {
        let entry = self.entry_mut(thread);
        if entry.waiting.is_some() && !has_pinned && entry.is_silent_for_long() {
            entry.waiting = None;
        }
    }

    /// Drops the sibling's stale wait and wish, if it has lacked nothing for long. Then returns the
    /// sibling's CPU, which has to schedule again, so that it waits anew if it still lacks
    /// anything.
    ///
    /// Refused events disappear without a callback: the perf core calls none for events that are
    /// not on the CPU (`event_sched_out()`, `kernel/events/core.c`). So the sibling may wait for an
    /// event that does not exist any more.
    fn doubt_sibling(&mut self, thread: Thread) -> Option<u32> {
        let sibling = thread.sibling();
        let entry = self.entry_mut(sibling);
        if !entry.is_silent_for_long() {
            return None;
        }
        let cpu = entry.cpu;
        *entry = ThreadEntry {
            cpu,
            usage: entry.usage,
            doubts: entry.doubts.saturating_add(1).min(MOST_DOUBTS),
            ..ThreadEntry::default()
        };
        self.way.take_if(|way| way.thread == sibling);
        cpu
    }

    /// Does the work of [`release`](Self::release) for a `thread` that [lacked
    /// nothing](Needs::is_empty), whose usage was [counters only](ThreadUsage::uses_counters_only)
    /// and is now the counters `used`. Does nothing and returns false if a thread waits, has a
    /// wish, has contended lately, or has the right of way.
    #[inline]
    pub fn release_counters_only(&mut self, thread: Thread, used: CounterMask) -> bool {
        if self.way.is_some() || !self.entries.iter().all(ThreadEntry::is_quiet) {
            return false;
        }
        let entry = self.entry_mut(thread);
        entry.usage.used = used;
        entry.denied = 0;
        self.calm = self.calm.saturating_add(1);
        true
    }

    /// Gives `thread` the right of way for a group with this `share`, unless the sibling has a
    /// group with a smaller share. A pinned group, and a thread that was denied [`MOST_DENIALS`]
    /// times in a row, get it all the same. Does nothing while the right of way is for a pinned
    /// group and the other thread has not made way.
    fn ask(&mut self, thread: Thread, share: u64, is_pinned: bool, now: u64) {
        if self.way.is_some_and(|way| way.is_pinned && !way.is_clear) {
            return;
        }
        let standing = self.entry(thread.sibling()).standing;
        let has_less = standing.is_some_and(|it| it.least(now) < share);
        let entry = self.entry_mut(thread);
        if has_less && !is_pinned && entry.denied < MOST_DENIALS {
            entry.denied = entry.denied.saturating_add(1);
            return;
        }
        entry.denied = 0;
        self.way = Some(RightOfWay {
            thread,
            is_clear: false,
            is_pinned,
        });
    }

    /// Ends the waiting of the sibling of `thread`, and returns the sibling's CPU, if the sibling's
    /// limits are looser now than when it began to wait.
    pub fn wakes_sibling(&mut self, thread: Thread) -> Option<u32> {
        let sibling = thread.sibling();
        self.entry(sibling).waiting.as_ref()?;
        let now = self.limits(sibling);
        let entry = self.entry_mut(sibling);
        entry.waiting.take_if(|before| now.loosen(before))?;
        entry.cpu
    }
}
