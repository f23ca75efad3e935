// SPDX-License-Identifier: GPL-2.0

//! Events that should count on a CPU but do not: no counter is free for them, or they wait for
//! their turn.
//!
//! The perf core offers only some of them to the PMU. All are in the lists of a CPU's two current
//! contexts: its own, and the running task's.
//!
//! Each list is read under its context's lock. Events join and leave a context (`list_add_event()`,
//! `list_del_event()`) and a group (`perf_group_attach()`, `perf_group_detach()`) under that lock,
//! and an event is destroyed only after it has left its context. Turning interrupts off is not
//! enough: while a CPU's own context is inactive, `perf_remove_from_context()`
//! (`kernel/events/core.c`) removes its events on the caller's CPU. This is the case if its only
//! events are for control groups that do not run there.
//!
//! The lock is a raw spinlock that the perf core takes only with interrupts off. So an interrupt
//! handler never finds it held by its own CPU, and may wait for it. The locks of the two contexts
//! are never held together here, so their order (the CPU's own first) does not matter.

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

/// The group of an event that has no counter.
#[derive(Clone, Copy)]
pub struct InactiveGroup {
    /// The perf core's number of the leader.
    pub number: u64,
    /// Set if the group is in the error state: it is a pinned group, and the perf core does not try
    /// it again.
    pub is_error: bool,
}

impl<T: InternalOperations> OnCpu<'_, T> {
    /// Calls `f` for each event of the PMU that is enabled and should be on this CPU, but has no
    /// counter, with its group. In each context the newest events come first.
    ///
    /// Events for control groups are left out: it is not known here whether they should count.
    ///
    /// To be called outside of the PMU's callbacks and of NMIs, without a lock of the perf core.
    pub fn for_each_inactive(&self, mut f: impl FnMut(&Event<T>, InactiveGroup)) {
        if !self.pmu().internals().is_open() {
            return;
        }
        // SAFETY: The PMU is open, so it is registered: before that ends, `close_resched()` closes
        // it, and waits for all code that runs with interrupts off, such as this.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: `here` is valid while the PMU is registered. Before it is unregistered,
        // `close_resched()` waits for all code that runs with interrupts off, such as this. The
        // first pointer is set once, to a context that is never freed. The perf core changes the
        // second pointer only on this CPU, with interrupts off.
        let (own, task) = unsafe {
            (
                ptr::read_volatile(&raw const (*here).epc.ctx),
                (*here).task_epc,
            )
        };
        // SAFETY: The pointer to a task's context is set by `__link_epc()`, for one of its events,
        // and cleared when the context is scheduled out or its last event of the PMU is removed.
        // All of this happens on this CPU with interrupts off. Until then the context and its `ctx`
        // are valid. The caller holds no lock of a context: it is an interrupt handler, or a task
        // that has turned interrupts off.
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
        // SAFETY: `lock` is the lock of a valid context, this CPU does not hold it, and interrupts
        // are off.
        unsafe { bindings::rpmu_helper_raw_spin_lock(lock) };
        // SAFETY: The context is valid, and its lock is held.
        unsafe { self.for_each_locked(context, f) };
        // SAFETY: The lock was taken above.
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
        // SAFETY: By this function's requirements the context is valid, and its lock is held,
        // without which the list does not change.
        let mut node = unsafe { (*head).next };
        while node != head {
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, event_entry) };
            // SAFETY: An event in the list has been opened and not destroyed. The same holds for
            // its leader: before a leader is destroyed, `perf_group_detach()` makes its siblings
            // leaders, under the lock.
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
            // SAFETY: `node` is in the list, which does not change while the lock is held.
            node = unsafe { (*node).next };
        }
    }

    /// Returns the number of the leader of the event's group. The event must be on this CPU.
    pub fn group_of(&self, event: &Event<T>) -> u64 {
        // SAFETY: The event is valid, and so is its leader: the event can leave its group only on
        // this CPU, and interrupts are off.
        unsafe { (*(*event.as_raw()).group_leader).id }
    }

    /// Returns whether the event's group is pinned, so that it does not rotate. The event must be
    /// on this CPU.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: As in `group_of()`. Single-bit attributes do not change.
        unsafe { (*(*event.as_raw()).group_leader).attr.pinned() != 0 }
    }
}
