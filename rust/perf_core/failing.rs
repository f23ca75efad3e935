// SPDX-License-Identifier: GPL-2.0

//! Putting all events of a PMU into the error state, when their counts cannot be trusted any more.
//!
//! The perf core does this to pinned events without a counter alone. Others wait, and meanwhile
//! tools extrapolate the counts that they have. In the error state there is nothing to read.
//!
//! In the kernel proper the perf core would do this. Here `state` is written under the context's
//! lock, which guards it, but not by `perf_event_set_state()`: the time since the event's times
//! were last brought up to date is lost. Once the event's task has ended, the event is no longer in
//! the error state. So its time on counters is set to 0, and tools report that it was not counted.
//! A child's event withdraws its parent's time, too, which is what user space reads: once the perf
//! core has exchanged the contexts of a task and its child, the parent may belong to a task that
//! has ended. Events for control groups are left out, as by [`pinned`](super::pinned); they get no
//! counter either.

use super::{
    is_of_cgroup,
    InternalOperations,
    ERROR,
    INACTIVE, //
};
use crate::{
    bindings,
    perf::{
        Event,
        Pmu, //
    },
};
use core::{
    ptr,
    sync::atomic::{
        AtomicI64,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::{
    interrupt::local_interrupt_disable,
    sync::{
        atomic,
        rcu, //
    },
};

impl<T: InternalOperations> Event<T> {
    /// Returns whether [`Pmu::fail_events`] puts the event into the error state.
    pub fn can_fail(&self) -> bool {
        // SAFETY: The event is valid, and its control group does not change.
        !unsafe { is_of_cgroup(self.as_raw()) }
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Puts each event that is enabled and has no counter into the error state, together with its
    /// group's leader, and sets their time on counters to 0. From before this call on, the driver
    /// must refuse them all counters, on every CPU. An event that is enabled again later needs
    /// another call.
    ///
    /// Process context.
    pub fn fail_events(&self) {
        if !self.internals().was_open.load(atomic::Relaxed) {
            return;
        }
        // Keeps the contexts of events that are being freed, see `fail()`.
        let _guard = rcu::read_lock();
        let pmu = self.as_raw();
        // SAFETY: The PMU is valid and was registered, which initialised the lock.
        let lock = unsafe { &raw mut (*pmu).events_lock };
        // SAFETY: As above. The perf core takes the lock in process context only, as here, and
        // holds no lock of a context then. CAST: both are bindings of `spinlock_t`.
        unsafe { kernel::bindings::spin_lock(lock.cast()) };
        // SAFETY: Under the lock the list is consistent, and the events in it are valid. This is an
        // RCU read-side critical section.
        unsafe {
            let head = &raw mut (*pmu).events;
            let mut node = (*head).next;
            while node != head {
                fail(kernel::container_of!(node, bindings::perf_event, pmu_list));
                node = (*node).next;
            }
        }
        // SAFETY: The lock was taken above.
        unsafe { kernel::bindings::spin_unlock(lock.cast()) };
    }
}

/// Puts `event` and its leader into the error state if they are enabled and have no counter.
///
/// # Safety
///
/// `event` must be in its PMU's list, whose lock must be held, in an RCU read-side critical section
/// that began before the lock was taken.
unsafe fn fail(event: *mut bindings::perf_event) {
    // SAFETY: By this function's requirements. The perf core sets `ctx` once.
    let (private, context) = unsafe {
        (
            ptr::read_volatile(&raw const (*event).pmu_private),
            ptr::read_volatile(&raw const (*event).ctx),
        )
    };
    // Without data, the event has been destroyed (`__free_event()`), and has dropped its context or
    // is about to. The context is freed an RCU grace period later. With data, the event has dropped
    // it after the beginning of this critical section, or not at all: so it is valid.
    if private.is_null() || context.is_null() {
        return;
    }
    let _irqs = local_interrupt_disable();
    // SAFETY: The context is valid, and this code holds no context's lock.
    unsafe { bindings::rpmu_helper_raw_spin_lock(&raw mut (*context).lock) };
    // SAFETY: The lock is held, which guards the members that are accessed. While an event is in a
    // context, its leader is, too.
    unsafe {
        if (*event).attach_state & bindings::PERF_ATTACH_CONTEXT != 0 {
            let leader = (*event).group_leader;
            for it in [event, leader] {
                if (*it).state == INACTIVE && !is_of_cgroup(it) {
                    ptr::write_volatile(&raw mut (*it).state, ERROR);
                    withdraw_time(it);
                    if !(*it).parent.is_null() {
                        withdraw_time((*it).parent);
                    }
                }
            }
        }
        bindings::rpmu_helper_raw_spin_unlock(&raw mut (*context).lock);
    }
}

/// Sets the time on counters of `event`, and of its children that have ended, to 0.
///
/// # Safety
///
/// `event` must be valid, as the parent of a valid event is.
unsafe fn withdraw_time(event: *mut bindings::perf_event) {
    // SAFETY: By this function's requirements. The perf core changes the times of events on a
    // counter, of which there are none any more, and as a child ends, by an atomic addition.
    unsafe {
        let running = AtomicU64::from_ptr(&raw mut (*event).total_time_running);
        running.store(0, Relaxed);
        let inherited = &raw mut (*event).child_total_time_running.counter;
        AtomicI64::from_ptr(inherited).store(0, Relaxed);
    }
}
