// SPDX-License-Identifier: GPL-2.0

//! Pinned groups that wait for counters which something outside of their CPU holds.
//!
//! The perf core puts a pinned group that does not fit into the error state, and leaves it there
//! until its user enables it again. This is right if other events of the CPU are in its way: they
//! were there first, or have priority. An obstacle outside of the CPU, however, disappears without
//! notice to the user. So the driver marks groups that such an obstacle keeps from counting
//! ([`Scheduling::wait_if_pinned`]). When the CPU schedules anew ([`Pmu::resched`]), marked groups
//! that are still in the error state are tried again.
//!
//! While a group waits, its user sees the error state: nothing to read. The time counts as enabled
//! and not running, so a later count is known to be incomplete.
//!
//! Each event waits by itself, an inherited one as well as its parent. If the task has moved to
//! another CPU meanwhile, its group leaves the error state once there is room on the CPU where it
//! waits, and is tried when the task is next scheduled.
//!
//! Some groups stay in the error state until the user enables them: groups for control groups,
//! whose time the perf core accounts in places that this layer cannot reach, and, while
//! [`MAX_WAITING`] groups wait on a CPU, any other group there.
//!
//! A group that is disabled while it is in the error state no longer waits.
//! [`DisableWatch`](crate::perf_core::DisableWatch) detects this; without one, no group is tried
//! again.
//!
//! In the kernel proper the perf core would do this: the driver would return another error. Here
//! `state` is written under the context's lock, which guards it, but not by
//! `perf_event_set_state()`, which would account the time in the error state as time in which the
//! event was off. `perf_event_enable()` is no alternative: it sleeps, so a task would have to call
//! it later, and it also enables an event that its user has disabled meanwhile, because the perf
//! core does not record that an event was disabled in the error state.

use super::{
    internals_of,
    is_of_cgroup,
    InternalOperations,
    ERROR,
    INACTIVE, //
};
use crate::{
    bindings,
    perf::{
        for_each_member,
        Event,
        OnCpu,
        Pmu,
        Scheduling, //
    },
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    sync::atomic::{
        ordering,
        Atomic,
        Relaxed, //
    },
};

/// The maximum number of groups that wait on a CPU at a time.
const MAX_WAITING: usize = 16;

type Slot = Atomic<*mut bindings::perf_event>;

/// The groups that wait on a CPU, each by one of its events of the PMU.
///
/// # Invariants
///
/// A non-null slot points to an event whose `destroy` callback has not cleared the slot yet by
/// [`forget()`](Self::forget). The CPU itself fills slots, with interrupts off; any CPU clears
/// them.
pub(in crate::perf_core) struct WaitingPinned([Slot; MAX_WAITING]);

impl WaitingPinned {
    pub(in crate::perf_core) const fn new() -> Self {
        // INVARIANT: No slot is filled.
        Self([const { Atomic::new(ptr::null_mut()) }; MAX_WAITING])
    }

    /// # Safety
    ///
    /// The slots must belong to this CPU, and `event` must be in a context whose lock this CPU
    /// holds. [`forget()`](Self::forget) must be called in the event's `destroy` callback.
    unsafe fn remember(&self, event: *mut bindings::perf_event) {
        let holds = |what| move |slot: &&Atomic<_>| slot.load(Relaxed) == what;
        if self.0.iter().any(|slot| holds(event)(&slot)) {
            return;
        }
        if let Some(free) = self.0.iter().find(holds(ptr::null_mut())) {
            // INVARIANT: By this function's requirements.
            free.store(event, Relaxed);
        }
    }

    fn forget(&self, event: *mut bindings::perf_event) {
        self.forget_if(|it| ptr::eq(it, event));
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|slot| slot.load(Relaxed).is_null())
    }

    /// Clears the slots of the events for which `f` returns true.
    pub(in crate::perf_core) fn forget_if(&self, f: impl Fn(*mut bindings::perf_event) -> bool) {
        for slot in &self.0 {
            let event = slot.load(ordering::Acquire);
            if !event.is_null() && f(event) {
                let _ = slot.cmpxchg(event, ptr::null_mut(), ordering::Full);
            }
        }
    }
}

/// A waiting pinned group.
///
/// # Invariants
///
/// `leader` is valid, and the lock of its context is held.
pub struct PinnedGroup<'a, T: InternalOperations> {
    leader: *mut bindings::perf_event,
    pmu: *mut bindings::pmu,
    _events: PhantomData<&'a Event<T>>,
}

impl<T: InternalOperations> PinnedGroup<'_, T> {
    /// Calls `f` for each enabled event of this PMU.
    pub fn for_each_event(&self, mut f: impl FnMut(&Event<T>)) {
        let visit = |event: *mut bindings::perf_event, enabled| {
            // SAFETY: The event is in the group, which by the type invariant does not change.
            if enabled && unsafe { (*event).pmu } == self.pmu {
                // SAFETY: The event belongs to this PMU, a `Pmu<T>`, and is in a group, so it was
                // opened. Before it is destroyed, it leaves the group under the context's lock,
                // which is held by the type invariant.
                f(unsafe { Event::from_raw(event) });
            }
        };
        // SAFETY: By the type invariant.
        unsafe { for_each_member(self.leader, visit) };
    }
}

impl<'a, T: InternalOperations> OnCpu<'a, T> {
    /// Returns the waiting groups.
    fn waiting(&self) -> &'a WaitingPinned {
        &self.data().waiting
    }

    /// Returns whether [`Pmu::resched`] of this CPU has pinned groups to try again.
    #[inline]
    pub fn has_waiting_pinned(&self) -> bool {
        self.pmu().internals().has_waited.load(Relaxed) && !self.waiting().is_empty()
    }

    /// Returns whether the event with the given id is in a pinned group; `false` if it is not on
    /// this CPU.
    pub fn is_pinned(&self, id: crate::perf::EventId) -> bool {
        self.event(id).is_some_and(|event| {
            // SAFETY: An event on this CPU can leave its group only on this CPU, and not while
            // interrupts are off. Until then its leader is valid.
            unsafe { (*(*event.as_raw()).group_leader).attr.pinned() != 0 }
        })
    }
}

impl<T: InternalOperations> Scheduling<'_, T> {
    /// Marks the group of the event with the given id as refused because something outside of the
    /// CPU holds counters. If the group is pinned, the next [`Pmu::resched`] of this CPU tries it
    /// again.
    ///
    /// The event must be in a group that is being added.
    pub fn wait_if_pinned(&self, id: crate::perf::EventId) {
        let Some(event) = self.event(id).filter(|_| self.is_pinned(id)) else {
            return;
        };
        if !self.pmu().internals().retries_pinned.load(Relaxed) {
            return;
        }
        internals_of(event).set_waiting();
        self.pmu().internals().has_waited.store(true, Relaxed);
        // SAFETY: The event is on this CPU, so the lock of its context is held. Since `waits` is
        // set, `destroy` calls `forget()`.
        unsafe { self.waiting().remember(event.as_raw()) };
    }
}

/// The result of trying a waiting group again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The group has left the error state, and is added when the CPU next schedules.
    Retry,
    /// There is no place for the group yet.
    Waits,
    /// The group was enabled, disabled or closed, or is not to be tried again.
    Gone,
}

impl<T: InternalOperations> Pmu<T> {
    /// Takes groups that wait on this CPU out of the error state if the driver has a place for
    /// them. Calls `resched` after each, because only then it is known whether the next one has a
    /// place, too. Returns whether `resched` was called.
    ///
    /// The caller must not hold a lock of the perf core.
    pub(in crate::perf_core) fn retry_pinned(
        &self,
        irqs: &LocalInterruptDisabled,
        resched: impl Fn(),
    ) -> bool {
        let mut any = false;
        let cx = self.on_cpu(irqs);
        for slot in &cx.waiting().0 {
            let event = slot.load(ordering::Acquire);
            if event.is_null() {
                continue;
            }
            // SAFETY: By the type invariant of `WaitingPinned` the event is not freed before
            // `destroy` has cleared the slot and an RCU grace period has passed. This is an RCU
            // reader, since interrupts are off.
            let verdict = unsafe { self.retry(&cx, slot, event) };
            if verdict != Verdict::Waits {
                let _ = slot.cmpxchg(event, ptr::null_mut(), ordering::Full);
            }
            if verdict == Verdict::Retry {
                resched();
                any = true;
            }
        }
        any
    }

    /// Decides about the group of `event`, and takes the group out of the error state if it is to
    /// be tried.
    ///
    /// # Safety
    ///
    /// `event` must be an event of this PMU that has been in a context and is not freed.
    unsafe fn retry(
        &self,
        cx: &OnCpu<'_, T>,
        slot: &Slot,
        event: *mut bindings::perf_event,
    ) -> Verdict {
        // SAFETY: An event of this PMU keeps the context to which it was added, and the context
        // lives as long as the event.
        let lock = unsafe { &raw mut (*(*event).ctx).lock };
        // SAFETY: This is the lock of a context; interrupts are off, and the caller holds no such
        // lock.
        unsafe { bindings::rpmu_helper_raw_spin_lock(lock) };
        // SAFETY: By this function's requirements; the lock is held.
        let verdict = unsafe { self.retry_locked(cx, slot, event) };
        // SAFETY: The lock was taken above.
        unsafe { bindings::rpmu_helper_raw_spin_unlock(lock) };
        verdict
    }

    /// # Safety
    ///
    /// As for [`retry`](Self::retry), and the lock of the event's context must be held.
    unsafe fn retry_locked(
        &self,
        cx: &OnCpu<'_, T>,
        slot: &Slot,
        event: *mut bindings::perf_event,
    ) -> Verdict {
        // A task that disabled the group while this code waited for the lock has cleared the slot.
        if slot.load(ordering::Acquire) != event || !self.internals().retries_pinned.load(Relaxed) {
            return Verdict::Gone;
        }
        // SAFETY: By this function's requirements.
        if unsafe { (*event).attach_state } & bindings::PERF_ATTACH_CONTEXT == 0 {
            return Verdict::Gone;
        }
        // SAFETY: The event is in a context. So its leader is in the context, too, and both stay
        // until the lock is released.
        let leader = unsafe { (*event).group_leader };
        // SAFETY: The leader is valid as long as the event is in its group, which it can only leave
        // under the lock that is held. The lock guards `state`, too.
        let (state, of_cgroup) = unsafe { ((*leader).state, is_of_cgroup(leader)) };
        if state != ERROR || of_cgroup {
            return Verdict::Gone;
        }
        // INVARIANT: The event is in the leader's group, so the leader is valid; the lock of their
        // context is held.
        let group = PinnedGroup {
            leader,
            pmu: self.as_raw(),
            _events: PhantomData,
        };
        if !self.ops().has_room_for(cx, &group) {
            return Verdict::Waits;
        }
        // SAFETY: The lock that guards the state is held. When an event leaves the error state, the
        // perf core otherwise only updates its times, which need no change here, and the accounting
        // of control groups (`perf_event_set_state()`, `perf_cgroup_event_enable()`), and the group
        // is for none.
        unsafe { ptr::write_volatile(&raw mut (*leader).state, INACTIVE) };
        Verdict::Retry
    }

    /// Forgets `event`, which is being destroyed.
    pub(in crate::perf_core) fn forget_waiting(&self, event: *mut bindings::perf_event) {
        for state in self.data_of_cpus() {
            state.waiting.forget(event);
        }
    }
}
