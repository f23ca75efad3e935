// SPDX-License-Identifier: GPL-2.0

//! What a CPU agrees on with the other thread of its core: who may use which counter, and what the
//! extra registers hold.
//!
//! Only where the PMU has an erratum, or registers in common, that make it necessary. Every possible
//! CPU has a [`Core`] of its own; a CPU that comes sits down at the one that its sibling sits at, or
//! at its own if it is alone. It stays there until it goes. So it does not matter which of the two
//! came first, and a CPU that was off when the module was loaded is like any other.
//!
//! # Locks
//!
//! A core's lock is taken by callbacks of the perf core, that is, within the lock of a context; by
//! CPUs that come and go; with interrupts off. No other lock is taken within it, no two cores' locks
//! at a time, and the PMI takes none.

use crate::{
    driver::{
        cpu::{Cpu, Own},
        CorePmu, Driver,
    },
    kern::{
        cpu::{online_cpus, possible_cpus},
        lock::{RawSpinLock, RawSpinLockGuard},
    },
    logic::{
        model::{Model, Scope},
        open::refusal::Refusal,
        pmu::Pmu,
        regs::counter::CounterMask,
        sched::{
            constraint::Constraint, cpu_schedule::Roster, explanation::Explanation, limits::Limits,
        },
        smt::claim::{Core, Thread},
    },
    perf::{Event, EventId, OnCpu, PmuDisabled},
    x86::topology::{sibling, siblings, threads_per_core},
};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*,
    time::{ClockSource, Monotonic},
};

/// A CPU's part in the sharing.
#[pin_data]
pub(in crate::driver) struct Sharing {
    /// The core that this CPU has founded; where its sibling has founded one, it is not used.
    #[pin]
    core: RawSpinLock<Core>,
    /// Where this CPU sits: [`Seat::encode`], or [`NO_SEAT`]. The CPU itself writes it.
    seat: AtomicU64,
}

/// What [`Driver::plan`] refuses, and what it went by.
pub(in crate::driver) struct Denied {
    pub(in crate::driver) refusal: Refusal,
    pub(in crate::driver) limits: Limits,
    /// The counters of the limits that are left to transactions.
    pub(in crate::driver) transactions: CounterMask,
}

impl Denied {
    /// The same, of an event with that `constraint`, or a group with it as the sum.
    pub(in crate::driver) fn explain(&self, constraint: Constraint) -> Explanation {
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
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::driver) enum Plain {
    Yes,
    /// Or it is not known.
    No,
}

impl Plain {
    /// Of the events of `roster`, those of an open transaction included.
    pub(in crate::driver) fn of(roster: &Roster<EventId>) -> Self {
        match roster.is_plain() {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// Not an encoded seat.
const NO_SEAT: u64 = u64::MAX;

/// Which thread of which core a CPU is.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Seat {
    /// The CPU that has founded the core.
    founder: CpuId,
    thread: Thread,
}

impl Seat {
    fn encode(self) -> u64 {
        let thread = match self.thread {
            Thread::First => 0,
            Thread::Second => 1,
        };
        (u64::from(self.founder.as_u32()) << 1) | thread
    }

    fn decode(code: u64) -> Option<Self> {
        // What is lost by the cast is not there in the code of a seat.
        let founder = CpuId::from_u32(u32::try_from(code >> 1).ok()?)?;
        let thread = match code & 1 {
            0 => Thread::First,
            _ => Thread::Second,
        };
        Some(Self { founder, thread })
    }
}

impl Sharing {
    /// A CPU that is not there yet.
    pub(in crate::driver) fn new(pmu: &Pmu) -> impl PinInit<Self> + use<> {
        let core = Core::new(pmu.capabilities.gp());
        let core = match pmu.model.offcore_scope {
            Scope::Core => core.sharing_registers(),
            Scope::Thread => core,
        };
        pin_init!(Self {
            core <- RawSpinLock::new(core),
            seat: AtomicU64::new(NO_SEAT),
        })
    }

    fn seat(&self) -> Option<Seat> {
        Seat::decode(self.seat.load(Relaxed))
    }
}

/// Whether threads of a core have to agree with one another on this machine.
///
/// A machine whose cores have one thread each, and where no CPU can join, does without.
pub(in crate::driver) fn is_needed(model: &Model, ht_workaround: bool) -> bool {
    let counters = model.ht_erratum.is_some() && ht_workaround;
    let registers = model.offcore_scope == Scope::Core;
    (counters || registers)
        && (threads_per_core() > 1 || online_cpus().count() < possible_cpus().count())
}

impl Driver {
    /// Whether an event on `cpu`, or one that may go anywhere, will always find the core's other
    /// thread beside it. That may change with CPUs that come and go; what counts is now.
    pub(in crate::driver) fn always_has_sibling(&self, cpu: Option<CpuId>) -> bool {
        let has_sibling = |cpu| sibling(cpu).is_some();
        self.shares_a_core
            && match cpu {
                Some(cpu) => has_sibling(cpu),
                None => online_cpus().all(has_sibling),
            }
    }

    fn core<'a>(
        &'a self,
        seat: Seat,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<RawSpinLockGuard<'a, Core>> {
        Some(self.cpus.get(seat.founder)?.sharing.core.lock(irqs))
    }

    /// This CPU comes: it is a thread of its core from now on.
    pub(in crate::driver) fn join_core(&self, irqs: &LocalInterruptDisabled) {
        if !self.shares_a_core {
            return;
        }
        let this = CpuId::current();
        let seat_of = |cpu| self.cpus.get(cpu)?.sharing.seat();
        let seat = siblings(this).filter(|cpu| *cpu != this).find_map(seat_of);
        let founder = seat.map_or(this, |seat| seat.founder);
        let Some(founding) = self.cpus.get(founder) else {
            return;
        };
        let thread = founding.sharing.core.lock(irqs).join(this.as_u32());
        if thread.is_none() {
            pr_warn!(
                "CPU {} is the third thread of its core, of which two know what the others use; \
                 counts may be wrong\n",
                this.as_u32()
            );
        }
        let seat = thread.map(|thread| Seat { founder, thread }.encode());
        let sharing = &self.cpus.this_cpu(irqs).sharing;
        sharing.seat.store(seat.unwrap_or(NO_SEAT), Relaxed);
    }

    /// This CPU goes, and what it has claimed is free. No event is on it.
    pub(in crate::driver) fn leave_core(&self, pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
        let sharing = &self.cpus.this_cpu(irqs).sharing;
        let Some(seat) = sharing.seat() else { return };
        sharing.seat.store(NO_SEAT, Relaxed);
        let woken = self.core(seat, irqs).and_then(|mut core| {
            core.leave(seat.thread);
            core.wakes_sibling(seat.thread)
        });
        resched(pmu, woken);
    }

    /// Has `change` add to the plan of this CPU, within the limits that hold now. `event` is that which is
    /// added, or the first of its group.
    ///
    /// What the plan takes is claimed before anybody else can look. What it does not need any more
    /// stays claimed until the plan is settled: the hardware may still have it.
    pub(in crate::driver) fn plan(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        plain: Plain,
        event: Option<EventId>,
        change: impl FnOnce(&mut Roster<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Denied> {
        let seat = cpu.sharing.seat();
        let transactions = self.transactions.counters();
        let Some((seat, mut core)) =
            seat.and_then(|seat| Some((seat, self.core(seat, cx.irqs())?)))
        else {
            let limits = Limits::NONE.closing(transactions);
            return change(&mut own.roster, &limits).map_err(|refusal| Denied {
                refusal,
                limits,
                transactions,
            });
        };
        // What happens most, and so is not to cost much.
        if plain == Plain::Yes && transactions.is_empty() && core.leaves_all_to(seat.thread) {
            let planned = change(&mut own.roster, &Limits::NONE);
            if planned.is_ok() {
                own.claimed.used = own.claimed.used | own.roster.taken();
                core.use_counters(seat.thread, own.claimed.used);
            } else {
                own.needs.contends |= core.is_contended();
            }
            return planned.map_err(|refusal| Denied {
                refusal,
                limits: Limits::NONE,
                transactions,
            });
        }
        let yields = core.yields(seat.thread);
        let limits = if yields && event.is_some_and(|event| cx.is_pinned(event)) {
            core.limits_of_pinned(seat.thread)
        } else {
            own.needs.yields |= yields;
            core.limits(seat.thread)
        };
        let limits = limits.closing(transactions);
        let planned = change(&mut own.roster, &limits);
        own.needs.contends |= core.is_contended();
        let mut woken = None;
        match planned {
            Ok(()) => {
                own.claimed = own.roster.claim().keeping(own.claimed);
                core.claim(seat.thread, own.claimed);
                // What is left is not free yet. But an extra register may have got another value,
                // which the sibling can share.
                woken = core.wakes_sibling(seat.thread);
            }
            Err(refusal) if refusal.is_for_the_moment() => {
                own.needs.contends = true;
                core.wait(seat.thread);
            }
            Err(_) => {}
        }
        drop(core);
        resched(cx.pmu(), woken);
        planned.map_err(|refusal| Denied {
            refusal,
            limits,
            transactions,
        })
    }

    /// The limits that hold now for groups that rotate. Nobody waits for them to change.
    pub(in crate::driver) fn limits_now(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu) -> Limits {
        let core = cpu
            .sharing
            .seat()
            .and_then(|seat| Some(self.core(seat, cx.irqs())?.limits(seat.thread)));
        core.unwrap_or(Limits::NONE)
            .closing(self.transactions.counters())
    }

    /// Says that a group of this CPU would be placed if it were not for the sibling.
    pub(in crate::driver) fn wait_for_sibling(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
    ) {
        let seat = cpu.sharing.seat();
        if let Some((seat, mut core)) =
            seat.and_then(|seat| Some((seat, self.core(seat, cx.irqs())?)))
        {
            own.needs.contends = true;
            core.wait(seat.thread);
        }
    }

    /// Whether `fits` says so of the limits that hold now for a pinned group. If not, what it was asked
    /// for is waited for.
    pub(in crate::driver) fn try_within_limits(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        fits: impl FnOnce(Limits) -> bool,
    ) -> bool {
        let closed = self.transactions.counters();
        let seat = cpu.sharing.seat();
        let Some((seat, mut core)) =
            seat.and_then(|seat| Some((seat, self.core(seat, cx.irqs())?)))
        else {
            return fits(Limits::NONE.closing(closed));
        };
        let fits = fits(core.limits_of_pinned(seat.thread).closing(closed));
        if !fits {
            core.wait(seat.thread);
        }
        fits
    }

    /// Notes down that `event`, or the group that it leads, was placed if it was, and if that is of
    /// interest to the sibling.
    #[inline]
    pub(in crate::driver) fn note_placed<'a>(
        own: &mut Own,
        planned: &Result<(), Denied>,
        event: impl FnOnce() -> Option<&'a Event<Self>>,
    ) {
        if own.needs.contends && planned.is_ok() {
            if let Some(event) = event() {
                let share = event.data().share(now(), event.time_running());
                own.needs.place(share);
            }
        }
    }

    /// Notes down that `event`, or the group that it leads, was refused, if that is of interest to the
    /// sibling.
    pub(in crate::driver) fn note_refused(own: &mut Own, event: &Event<Self>) {
        if own.needs.contends {
            let share = event.data().share(now(), event.time_running());
            own.needs.refuse(share, own.roster.take_wish());
        }
    }

    /// The same of a pinned group.
    pub(in crate::driver) fn note_pinned_refused(own: &mut Own) {
        own.needs.refuse_pinned(own.roster.take_wish());
    }

    /// Says that the plan of this CPU is settled: what was left by that is free, and the sibling
    /// tries again if it has waited for it, or makes way.
    pub(in crate::driver) fn release(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut Own) {
        let Some(seat) = cpu.sharing.seat() else {
            return;
        };
        // What was wished is among the needs, or of no interest any more.
        let _ = own.roster.take_wish();
        // What happens most.
        if own.roster.is_plain() && own.claimed.is_plain() && own.needs.is_empty() {
            let used = own.roster.taken();
            if used == own.claimed.used {
                return;
            }
            let core = self.core(seat, cx.irqs());
            if core.is_some_and(|mut core| core.settle_plain(seat.thread, used)) {
                own.claimed.used = used;
                return;
            }
        }
        self.release_claim(cx, seat, own);
    }

    #[inline(never)]
    fn release_claim(&self, cx: &PmuDisabled<'_, Self>, seat: Seat, own: &mut Own) {
        let claim = own.roster.claim();
        // Where the threads do not contend, there are no needs.
        if claim == own.claimed && !own.needs.contends && !own.needs.yields {
            return;
        }
        let needs = core::mem::take(&mut own.needs);
        own.claimed = claim;
        let is_over = cx.is_rotation();
        let Some(mut core) = self.core(seat, cx.irqs()) else {
            return;
        };
        let woken = core.settle(seat.thread, claim, &needs, is_over, now);
        let has_way = core.has_way(seat.thread);
        drop(core);
        if has_way {
            // When the sibling has made way, what it made way for is tried first.
            cx.keep_places();
        }
        resched(cx.pmu(), woken);
    }
}

/// The time in nanoseconds.
fn now() -> u64 {
    // CAST: never negative.
    Monotonic::ktime_get() as u64
}

/// Not with a core's lock held.
fn resched(pmu: &CorePmu, cpu: Option<u32>) {
    if let Some(cpu) = cpu.and_then(CpuId::from_u32) {
        pmu.resched(cpu);
    }
}
