// SPDX-License-Identifier: GPL-2.0

//! Sharing of counters and extra registers with the other thread of the core.
//!
//! [`logic::smt`](crate::logic::smt) decides; this file takes the core's lock and applies its
//! decisions. Sharing is necessary only because of an erratum, or where threads share registers of
//! the PMU. Every possible CPU has a [`Core`] of its own. As a CPU goes online, it joins the core
//! of its sibling, or its own core if it is alone; as it goes offline, it leaves the core. So
//! neither the order of the two CPUs matters, nor whether a CPU was online when the module was
//! loaded.
//!
//! # Locks
//!
//! A core's lock is taken with interrupts off, by callbacks of the perf core (within the lock of a
//! context), and by CPUs that go online or offline. No other lock is taken within it, no two cores'
//! locks at a time, and the PMI takes none.

pub(in crate::driver) mod core_thread;

use crate::{
    driver::{
        cpu::{
            CallbackState,
            Cpu, //
        },
        unit::northbridge::Northbridges,
        CorePmu,
        Driver, //
    },
    kern::{
        cpu::online_cpus,
        lock::RawSpinLockGuard, //
    },
    logic::{
        refusal::Refusal,
        sched::{
            cpu_schedule::CpuSchedule,
            limits::Limits, //
        },
        smt::{
            protocol::{
                limits_now,
                try_pinned,
                CountersOnly,
                ReleaseOutcome, //
            },
            siblings::{
                Core,
                Thread, //
            },
        },
    },
    perf::{
        Event,
        EventId,
        OnCpu,
        PmuDisabled, //
    },
    x86::topology::{
        sibling,
        siblings, //
    },
};
use core::sync::atomic::Ordering::Relaxed;
use core_thread::{
    CoreThread,
    NO_CORE, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*,
    time::{
        ClockSource,
        Monotonic, //
    },
};

impl Driver {
    /// Returns whether `cpu` has an online sibling thread; if `cpu` is [`None`], whether every
    /// online CPU has one. False where the threads of a core need not coordinate.
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
        core_thread: CoreThread,
        irqs: &'a LocalInterruptDisabled,
    ) -> Option<RawSpinLockGuard<'a, Core>> {
        Some(self.cpus.get(core_thread.founder)?.sharing.core.lock(irqs))
    }

    /// Makes this CPU, which is going online or is online at load, a thread of its core.
    pub(in crate::driver) fn join_core(&self, irqs: &LocalInterruptDisabled) {
        if !self.shares_a_core {
            return;
        }
        let this = CpuId::current();
        let core_thread_of = |cpu| self.cpus.get(cpu)?.sharing.core_thread();
        let core_thread = siblings(this)
            .filter(|cpu| *cpu != this)
            .find_map(core_thread_of);
        let founder = core_thread.map_or(this, |core_thread| core_thread.founder);
        let Some(founding) = self.cpus.get(founder) else {
            return;
        };
        let thread = founding.sharing.core.lock(irqs).join(this.as_u32());
        if thread.is_none() {
            pr_warn!(
                "CPU {} is the third thread of its core, but only two coordinate their use of counters: \
                 counts may be wrong\n",
                this.as_u32()
            );
        }
        let core_thread = thread.map(|thread| CoreThread { founder, thread }.encode());
        let sharing = &self.cpus.this_cpu(irqs).sharing;
        sharing
            .core_thread
            .store(core_thread.unwrap_or(NO_CORE), Relaxed);
    }

    /// Removes this CPU, which is going offline or is online at unload, from its core, and frees
    /// its counters. Makes the sibling schedule again if it has waited for them. No event is on a
    /// counter of this CPU.
    pub(in crate::driver) fn leave_core(&self, pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
        let sharing = &self.cpus.this_cpu(irqs).sharing;
        let Some(core_thread) = sharing.core_thread() else {
            return;
        };
        sharing.core_thread.store(NO_CORE, Relaxed);
        let woken = self.core(core_thread, irqs).and_then(|mut core| {
            core.leave(core_thread.thread);
            core.wakes_sibling(core_thread.thread)
        });
        resched(pmu, woken);
    }

    /// Locks the core of `cpu`, and returns it with the CPU's thread; [`None`] if the CPU is
    /// in no core.
    fn lock_core<'a>(
        &'a self,
        cx: &'a OnCpu<'_, Self>,
        cpu: &Cpu,
    ) -> Option<(RawSpinLockGuard<'a, Core>, Thread)> {
        let core_thread = cpu.sharing.core_thread()?;
        Some((self.core(core_thread, cx.irqs())?, core_thread.thread))
    }

    /// Calls `change` to add to the plan of this CPU, within the present limits
    /// ([`ThreadState::plan`]). `event` is the event to add, or the first of its group. Makes the
    /// sibling schedule again if that becomes necessary. With a [northbridge](Northbridges::plan),
    /// the limits are those of the node.
    ///
    /// [`ThreadState::plan`]: crate::logic::smt::protocol::ThreadState::plan
    pub(in crate::driver) fn plan(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        counters_only: CountersOnly,
        event: Option<EventId>,
        change: impl FnOnce(&mut CpuSchedule<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if let Some(northbridge) = &self.units.northbridge {
            return self.plan_in_node(northbridge, cpu, cx.irqs(), own, change);
        }
        let transactions = self.left_to_tsx();
        let is_pinned = || event.is_some_and(|event| cx.is_pinned(event));
        let CallbackState { schedule, smt, .. } = own;
        let mut locked = self.lock_core(cx, cpu);
        let core = locked.as_mut().map(|(core, thread)| (&mut **core, *thread));
        let planned = smt.plan(
            core,
            schedule,
            counters_only,
            transactions,
            is_pinned,
            change,
        );
        drop(locked);
        resched(cx.pmu(), planned?);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn plan_in_node(
        &self,
        northbridge: &Northbridges,
        cpu: &Cpu,
        irqs: &LocalInterruptDisabled,
        own: &mut CallbackState,
        change: impl FnOnce(&mut CpuSchedule<EventId>, &Limits) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let CallbackState { schedule, smt, .. } = own;
        northbridge.plan(self.site(cpu, irqs), schedule, smt, change)
    }

    /// Returns the present limits for groups that rotate.
    #[inline(never)]
    pub(in crate::driver) fn limits_now(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu) -> Limits {
        let locked = self.lock_core(cx, cpu);
        let core = locked.as_ref().map(|(core, thread)| (&**core, *thread));
        limits_now(core, self.left_to_tsx())
    }

    /// Records that this CPU waits for its sibling: without the sibling's limits, a group would
    /// fit.
    #[inline(never)]
    pub(in crate::driver) fn wait_for_sibling(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        if let Some((mut core, thread)) = self.lock_core(cx, cpu) {
            own.smt.wait(&mut core, thread);
        }
    }

    /// Returns the verdict of `fits` on the present limits for a pinned group. If the group does
    /// not fit, this CPU waits for looser limits.
    pub(in crate::driver) fn try_within_limits(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        fits: impl FnOnce(Limits) -> bool,
    ) -> bool {
        let mut locked = self.lock_core(cx, cpu);
        let core = locked.as_mut().map(|(core, thread)| (&mut **core, *thread));
        try_pinned(core, self.left_to_tsx(), fits)
    }

    /// Records that `event`, or the group that it leads, was placed, if the threads contend.
    #[inline]
    pub(in crate::driver) fn note_placed<'a>(
        own: &mut CallbackState,
        event: impl FnOnce() -> Option<&'a Event<Self>>,
    ) {
        own.smt.note_placed(now, |now| {
            let event = event()?;
            Some(event.data().turn.share(now, event.time_running()))
        });
    }

    /// Records that `event`, or the group that it leads, was refused, if the threads contend.
    pub(in crate::driver) fn note_refused(own: &mut CallbackState, event: &Event<Self>) {
        own.smt.note_refused(&mut own.schedule, now, |now| {
            event.data().turn.share(now, event.time_running())
        });
    }

    /// Records that a pinned group was refused.
    pub(in crate::driver) fn note_pinned_refused(own: &mut CallbackState) {
        own.smt.note_pinned_refused(&mut own.schedule);
    }

    /// Frees the core's counters that this CPU's plan, now programmed, does not use. Makes the
    /// sibling schedule again if it has waited for them, or has to make way.
    pub(in crate::driver) fn release(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        let Some(core_thread) = cpu.sharing.core_thread() else {
            return;
        };
        // The common case: the plan needs only counters.
        if let Some(used) = own.smt.counters_only_use(&mut own.schedule) {
            if used == own.smt.usage().used {
                return;
            }
            let core = self.core(core_thread, cx.irqs());
            if core.is_some_and(|mut core| {
                own.smt
                    .release_counters_only(&mut core, core_thread.thread, used)
            }) {
                return;
            }
        }
        self.release_usage(cx, core_thread, own);
    }

    #[inline(never)]
    fn release_usage(
        &self,
        cx: &PmuDisabled<'_, Self>,
        core_thread: CoreThread,
        own: &mut CallbackState,
    ) {
        let Some(mut release) = own.smt.release(&mut own.schedule) else {
            return;
        };
        if cx.has_waiting_pinned() {
            release.note_pinned_waits();
        }
        let is_over = cx.is_rotation();
        let Some(mut core) = self.core(core_thread, cx.irqs()) else {
            return;
        };
        let ReleaseOutcome {
            woken,
            keeps_places,
            contends,
        } = release.report(&mut core, core_thread.thread, is_over, now);
        drop(core);
        own.rotation.placed_within |= contends && !is_over;
        // Groups are brought forward at the end of an interval only.
        if keeps_places && (!is_over || own.rotation.brought_forward.may_keep_places()) {
            cx.keep_places();
        }
        resched(cx.pmu(), woken);
    }
}

/// Returns the time in nanoseconds.
fn now() -> u64 {
    // CAST: never negative.
    Monotonic::ktime_get() as u64
}

/// Makes `cpu` schedule again. Must not be called with a core's lock held.
fn resched(pmu: &CorePmu, cpu: Option<u32>) {
    if let Some(cpu) = cpu.and_then(CpuId::from_u32) {
        pmu.resched(cpu);
    }
}
