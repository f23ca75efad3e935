// SPDX-License-Identifier: GPL-2.0

//! Pinned groups that wait for counters that others hold at the moment.
//!
//! The perf core puts a pinned group that does not fit into the error state, and leaves it there
//! until its user enables it again. That is right where other events of the CPU are in its way:
//! they were there first, or come before it. An obstacle outside of the CPU, though, goes away
//! without the user knowing. So the driver marks the groups that meet one
//! ([`Scheduling::wait_if_pinned`]), and those that are still in the error state when the CPU
//! schedules anew ([`Pmu::resched`]) are tried again.
//!
//! While a group waits, its user sees the error state: nothing to read. The time counts as enabled
//! and not running, so a later count is known to be incomplete.
//!
//! Each event waits for itself: an inherited one like its parent. If the task has moved to another
//! CPU meanwhile, its group leaves the error state and is tried when the task is scheduled next.
//!
//! Groups of a cgroup, whose time the perf core accounts in places out of reach, and those beyond
//! [`SLOTS`] on a CPU stay in the error state until the user enables them.
//!
//! A group that is disabled while it is in the error state waits no longer, which
//! [`DisableWatch`](crate::perf_core::DisableWatch) sees to. Without one, none is tried again.
//!
//! In the kernel proper the perf core would do this: the driver would return another error. Here
//! `state` is written under the context's lock, which guards it, but not by
//! `perf_event_set_state()`: that would take the time in the error state for time that the event
//! was off. `perf_event_enable()` would do more than that. It sleeps, so a task would have to call
//! it later, and it enables an event that its user has disabled meanwhile: the perf core does not
//! tell one that was disabled in the error state from one that was not.

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

/// The most groups that can wait on a CPU at a time.
const SLOTS: usize = 16;

type Slot = Atomic<*mut bindings::perf_event>;

/// One event of the PMU for each group that waits on a CPU.
///
/// # Invariants
///
/// A non-null slot points to an event whose `destroy` callback has not returned yet, or that it has
/// not been cleared of by a [`forget()`](Self::forget) in there. The CPU itself fills slots, with
/// interrupts off; any CPU clears them.
pub(in crate::perf_core) struct Waiting([Slot; SLOTS]);

impl Waiting {
    pub(in crate::perf_core) const fn new() -> Self {
        // INVARIANT: No slot is filled.
        Self([const { Atomic::new(ptr::null_mut()) }; SLOTS])
    }

    /// # Safety
    ///
    /// `event` must be in a context whose lock this CPU, the owner of the slots, holds;
    /// [`forget()`](Self::forget) must be called in its `destroy` callback.
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

/// A pinned group that waits.
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
            // SAFETY: An event of the group, which by the type invariant does not change.
            if enabled && unsafe { (*event).pmu } == self.pmu {
                // SAFETY: The event is of this PMU, a `Pmu<T>`, and in a group, so it was opened.
                // It is not destroyed before it has left the group, which takes the context's lock:
                // by the type invariant that is held.
                f(unsafe { Event::from_raw(event) });
            }
        };
        // SAFETY: By the type invariant.
        unsafe { for_each_member(self.leader, visit) };
    }
}

impl<'a, T: InternalOperations> OnCpu<'a, T> {
    /// Returns the groups that wait.
    fn waiting(&self) -> &'a Waiting {
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
            // SAFETY: An event that is on this CPU leaves its group on this CPU, which this keeps
            // from it with interrupts off. Until then its leader is valid.
            unsafe { (*(*event.as_raw()).group_leader).attr.pinned() != 0 }
        })
    }
}

impl<T: InternalOperations> Scheduling<'_, T> {
    /// Marks the group of the event with the given id as refused because of others' counters. If it
    /// is pinned, the next [`Pmu::resched`] of this CPU tries it again.
    ///
    /// The event must be one of a group that is being added.
    pub fn wait_if_pinned(&self, id: crate::perf::EventId) {
        let Some(event) = self.event(id).filter(|_| self.is_pinned(id)) else {
            return;
        };
        if !self.pmu().internals().retries_pinned.load(Relaxed) {
            return;
        }
        internals_of(event).set_waiting();
        self.pmu().internals().has_waited.store(true, Relaxed);
        // SAFETY: The event is on this CPU, so that the lock of its context is held. `destroy`
        // forgets it, as it `waits`.
        unsafe { self.waiting().remember(event.as_raw()) };
    }
}

/// What becomes of a group that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is out of the error state, and added when the CPU schedules next.
    Retry,
    /// There is no place for it yet.
    Waits,
    /// It has been enabled, disabled or closed.
    Gone,
}

impl<T: InternalOperations> Pmu<T> {
    /// Gets groups that wait on this CPU out of the error state, if the driver has a place for
    /// them, and calls `resched` after each: what the next has place beside is seen only then.
    /// Returns whether it was called.
    ///
    /// No lock of the perf core may be held.
    pub(in crate::perf_core) fn retry_pinned(
        &self,
        irqs: &LocalInterruptDisabled,
        resched: impl Fn(),
    ) -> bool {
        let mut any = false;
        let Some(cx) = self.on_cpu(irqs) else {
            return any;
        };
        for slot in &cx.waiting().0 {
            let event = slot.load(ordering::Acquire);
            if event.is_null() {
                continue;
            }
            // SAFETY: By the type invariant of `Waiting` the event is not freed before `destroy`
            // has cleared the slot, and then not before RCU readers have gone, of which this is
            // one: interrupts are off.
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

    /// Decides about the group of `event`, and takes it out of the error state if it is to be
    /// tried.
    ///
    /// # Safety
    ///
    /// `event` must be an event of this PMU that has been in a context, and is not freed.
    unsafe fn retry(
        &self,
        cx: &OnCpu<'_, T>,
        slot: &Slot,
        event: *mut bindings::perf_event,
    ) -> Verdict {
        // SAFETY: An event of this PMU keeps the context that it is added to, and that is there as
        // long as the event is.
        let lock = unsafe { &raw mut (*(*event).ctx).lock };
        // SAFETY: The lock of a context; interrupts are off, and the caller holds none.
        unsafe { bindings::rpmu_helper_raw_spin_lock(lock) };
        // SAFETY: The lock is held.
        let verdict = unsafe { self.retry_locked(cx, slot, event) };
        // SAFETY: Taken above.
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
        // A task that disabled the group while this waited for the lock has cleared the slot
        // before.
        if slot.load(ordering::Acquire) != event || !self.internals().retries_pinned.load(Relaxed) {
            return Verdict::Gone;
        }
        // SAFETY: By this function's requirements.
        if unsafe { (*event).attach_state } & bindings::PERF_ATTACH_CONTEXT == 0 {
            return Verdict::Gone;
        }
        // SAFETY: The event is in a context. So it has a leader, which is in there too, and both
        // stay until the lock is released.
        let leader = unsafe { (*event).group_leader };
        // SAFETY: The leader is valid as long as the event is in its group, which it leaves under
        // the lock that is held. The lock guards `state`, too.
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
        // SAFETY: The state is guarded by the lock that is held. The perf core keeps nothing else
        // in step with a change from the error state but the event's times, which are to go on as
        // they do, and the books of cgroups (`perf_event_set_state()`,
        // `perf_cgroup_event_enable()`): the group is none's.
        unsafe { ptr::write_volatile(&raw mut (*leader).state, INACTIVE) };
        Verdict::Retry
    }

    /// Forgets `event`, which is about to go.
    pub(in crate::perf_core) fn forget_waiting(&self, event: *mut bindings::perf_event) {
        for state in self.data_of_cpus() {
            state.waiting.forget(event);
        }
    }
}
