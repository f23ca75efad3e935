// SPDX-License-Identifier: GPL-2.0

//! Events that should count on a CPU and do not: no counter is free for them, or they wait for
//! their turn.
//!
//! The perf core offers only some of them to the PMU. All are in the lists of the two contexts that
//! a CPU has at a time: its own, and that of the running task.
//!
//! Each list is read under its context's lock. Events join and leave a context (`list_add_event()`,
//! `list_del_event()`) and a group (`perf_group_attach()`, `perf_group_detach()`) under that lock,
//! and an event is destroyed only after it has left its context. Interrupts off alone are not
//! enough: while a CPU's own context is inactive, as when its only events are of control groups
//! that do not run there, `perf_remove_from_context()` (`kernel/events/core.c`) removes an event on
//! the caller's CPU.
//!
//! The lock is a raw spinlock that the perf core takes only with interrupts off. So an interrupt
//! never finds it held by its own CPU, and may wait for it. The locks of the two contexts are never
//! held together here, so their order (the CPU's own first) does not matter.

use super::{
    is_of_cgroup,
    rotation,
    InternalOperations,
    ERROR,
    INACTIVE, //
};
use crate::{
    bindings,
    perf::{
        Event,
        OnCpu, //
    },
};
use core::ptr;
use kernel::cpu::CpuId;

/// The group of an event that is on no counter.
#[derive(Clone, Copy)]
pub struct InactiveGroup {
    /// The perf core's number of the leader.
    pub number: u64,
    /// Set if the group is in the error state: it is pinned, and the perf core does not try it
    /// again.
    pub is_error: bool,
}

impl<T: InternalOperations> OnCpu<'_, T> {
    /// Calls `f` for each event of the PMU that is enabled and should be on this CPU, but is on no
    /// counter; with the group that it is in. In each context the newest come first.
    ///
    /// Events of cgroups are left out, as it is not known here whether they should count.
    ///
    /// In an interrupt that has come in between callbacks, not in one of these.
    pub fn for_each_inactive(&self, mut f: impl FnMut(&Event<T>, InactiveGroup)) {
        if !self.pmu().internals().is_open() {
            return;
        }
        // SAFETY: The PMU is registered: before that ends, `close()` says so, and then waits for
        // all that run with interrupts off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: `here` is valid while the PMU is registered. Before that ends, `close_resched()`
        // waits for all that run with interrupts off, as this does. The first pointer is set once,
        // to a context that is never freed. The perf core changes the second only on this CPU, with
        // interrupts off.
        let (own, task) = unsafe {
            (
                ptr::read_volatile(&raw const (*here).epc.ctx),
                (*here).task_epc,
            )
        };
        // SAFETY: A task's context is linked from here from `__link_epc()`, for one of its events,
        // until it is scheduled out or its last event of the PMU is removed, all of which happens
        // on this CPU with interrupts off. Until then it and its `ctx` are valid. An interrupt or a
        // task that turns interrupts off holds no lock of a context.
        unsafe {
            if !own.is_null() {
                self.for_each_in(own, &mut f);
            }
            if !task.is_null() {
                self.for_each_in((*task).ctx, &mut f);
            }
        }
    }

    /// # Safety
    ///
    /// `context` must be valid, and this CPU must not hold a context's lock.
    unsafe fn for_each_in(
        &self,
        context: *mut bindings::perf_event_context,
        f: &mut impl FnMut(&Event<T>, InactiveGroup),
    ) {
        // SAFETY: By this function's requirements.
        let lock = unsafe { &raw mut (*context).lock };
        // SAFETY: The lock of a context, and interrupts are off.
        unsafe { bindings::rpmu_helper_raw_spin_lock(lock) };
        // SAFETY: The lock is held.
        unsafe { self.for_each_locked(context, f) };
        // SAFETY: Taken above.
        unsafe { bindings::rpmu_helper_raw_spin_unlock(lock) };
    }

    /// # Safety
    ///
    /// `context` must be valid, and its lock be held.
    unsafe fn for_each_locked(
        &self,
        context: *mut bindings::perf_event_context,
        f: &mut impl FnMut(&Event<T>, InactiveGroup),
    ) {
        let pmu = self.pmu().as_raw();
        // SAFETY: By this function's requirements.
        let head = unsafe { &raw mut (*context).event_list };
        // SAFETY: By this function's requirements the context is valid, and its lock, under which
        // alone the list changes, is held.
        let mut node = unsafe { (*head).next };
        while node != head {
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, event_entry) };
            // SAFETY: An event in the list has been opened and not destroyed. So has its leader:
            // `perf_group_detach()` makes the siblings leaders under the lock before that is
            // destroyed.
            unsafe {
                let leader = (*it).group_leader;
                let (group, own) = ((*leader).state, (*it).state);
                if ptr::eq((*it).pmu, pmu)
                    && (own == INACTIVE || own == ERROR)
                    && (group == ERROR || group == INACTIVE && (*leader).attr.pinned() == 0)
                    && CpuId::from_i32((*it).cpu).is_none_or(|cpu| cpu == CpuId::current())
                    && !is_of_cgroup(it)
                {
                    let group = InactiveGroup {
                        number: (*leader).id,
                        is_error: group == ERROR,
                    };
                    f(Event::from_raw(it), group);
                }
            }
            // SAFETY: As for the first.
            node = unsafe { (*node).next };
        }
    }

    /// Returns the number of the leader of the event's group. The event must be on this CPU.
    pub fn group_of(&self, event: &Event<T>) -> u64 {
        // SAFETY: The event is valid, and so is its leader, which the event leaves on this CPU
        // alone, with interrupts off.
        unsafe { (*(*event.as_raw()).group_leader).id }
    }

    /// Returns whether the event's group is pinned, so that it does not rotate. The event must be
    /// on this CPU.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: As in `group_of()`. Attributes that are single bits do not change.
        unsafe { (*(*event.as_raw()).group_leader).attr.pinned() != 0 }
    }
}
