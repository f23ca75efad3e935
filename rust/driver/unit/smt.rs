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
        sched::{cpu_schedule::Roster, limits::Limits},
        smt::{
            protocol::{limits_now, try_pinned, Denied, Plain, Told},
            siblings::{Core, Thread},
        },
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

    /// The core of `cpu`, and which of its threads that is; [`None`] where the threads have nothing to agree
    /// on.
    fn seated<'a>(
        &'a self,
        cx: &'a OnCpu<'_, Self>,
        cpu: &Cpu,
    ) -> Option<(RawSpinLockGuard<'a, Core>, Thread)> {
        let seat = cpu.sharing.seat()?;
        Some((self.core(seat, cx.irqs())?, seat.thread))
    }

    /// Has `change` add to the plan of this CPU, within the limits that hold now
    /// ([`ThreadState::plan`]). `event` is that which is added, or the first of its group.
    ///
    /// [`ThreadState::plan`]: crate::logic::smt::protocol::ThreadState::plan
    pub(in crate::driver) fn plan(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        plain: Plain,
        event: Option<EventId>,
        change: impl FnOnce(&mut Roster<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Denied> {
        let transactions = self.transactions.counters();
        let is_pinned = || event.is_some_and(|event| cx.is_pinned(event));
        let Own { roster, smt, .. } = own;
        let mut seated = self.seated(cx, cpu);
        let core = seated.as_mut().map(|(core, thread)| (&mut **core, *thread));
        let (planned, woken) = smt.plan(core, roster, plain, transactions, is_pinned, change);
        drop(seated);
        resched(cx.pmu(), woken);
        planned
    }

    /// The limits that hold now for groups that rotate. Nobody waits for them to change.
    pub(in crate::driver) fn limits_now(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu) -> Limits {
        let seated = self.seated(cx, cpu);
        let core = seated.as_ref().map(|(core, thread)| (&**core, *thread));
        limits_now(core, self.transactions.counters())
    }

    /// Says that a group of this CPU would be placed if it were not for the sibling.
    pub(in crate::driver) fn wait_for_sibling(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
    ) {
        if let Some((mut core, thread)) = self.seated(cx, cpu) {
            own.smt.wait(&mut core, thread);
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
        let mut seated = self.seated(cx, cpu);
        let core = seated.as_mut().map(|(core, thread)| (&mut **core, *thread));
        try_pinned(core, self.transactions.counters(), fits)
    }

    /// Notes down that `event`, or the group that it leads, was placed if it was, and if that is of
    /// interest to the sibling.
    #[inline]
    pub(in crate::driver) fn note_placed<'a>(
        own: &mut Own,
        planned: &Result<(), Denied>,
        event: impl FnOnce() -> Option<&'a Event<Self>>,
    ) {
        if planned.is_ok() {
            own.smt.note_placed(|| {
                let event = event()?;
                Some(event.data().share(now(), event.time_running()))
            });
        }
    }

    /// Notes down that `event`, or the group that it leads, was refused, if that is of interest to the
    /// sibling.
    pub(in crate::driver) fn note_refused(own: &mut Own, event: &Event<Self>) {
        own.smt.note_refused(&mut own.roster, || {
            event.data().share(now(), event.time_running())
        });
    }

    /// The same of a pinned group.
    pub(in crate::driver) fn note_pinned_refused(own: &mut Own) {
        own.smt.note_pinned_refused(&mut own.roster);
    }

    /// Says that the plan of this CPU is settled: what was left by that is free, and the sibling
    /// tries again if it has waited for it, or makes way.
    pub(in crate::driver) fn release(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut Own) {
        let Some(seat) = cpu.sharing.seat() else {
            return;
        };
        // What happens most.
        if let Some(used) = own.smt.plain_use(&mut own.roster) {
            if used == own.smt.claimed().used {
                return;
            }
            let core = self.core(seat, cx.irqs());
            if core.is_some_and(|mut core| own.smt.release_plain(&mut core, seat.thread, used)) {
                return;
            }
        }
        self.release_claim(cx, seat, own);
    }

    #[inline(never)]
    fn release_claim(&self, cx: &PmuDisabled<'_, Self>, seat: Seat, own: &mut Own) {
        let Some(release) = own.smt.release(&mut own.roster) else {
            return;
        };
        let is_over = cx.is_rotation();
        let Some(mut core) = self.core(seat, cx.irqs()) else {
            return;
        };
        let Told {
            woken,
            keeps_places,
        } = release.tell(&mut core, seat.thread, is_over, now);
        drop(core);
        if keeps_places {
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
