// SPDX-License-Identifier: GPL-2.0

//! Groups that are offered or go behind all others, and orders that are kept, until the PMU is enabled again.

use super::{
    context::WaitingGroup,
    tree::{last_offered, move_to},
    ACTIVE, OFFER_ALWAYS,
};
use crate::{bindings, perf::Operations};
use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// The most groups that can be offered at a time.
const OFFERS: usize = 32;

/// The offers and orders on a CPU that have to be taken back when the PMU is enabled.
///
/// # Invariants
///
/// Non-null pointers are those of leaders, and of contexts, that are locked on this CPU; both leaders
/// of an entry are in one context. Only callbacks on this CPU use it, not in an NMI.
pub(in crate::perf) struct Offers {
    /// The groups with the flag, and the refused ones that they go in front of, if any.
    groups: [[AtomicPtr<bindings::perf_event>; 2]; OFFERS],
    /// Refused groups that go behind all others of their contexts: the task's, and the CPU's own.
    last: [AtomicPtr<bindings::perf_event>; 2],
    /// The contexts whose order is kept.
    kept: [AtomicPtr<bindings::perf_event_context>; 2],
}

impl Offers {
    pub(in crate::perf) fn new() -> Self {
        // INVARIANT: There is none.
        Self {
            groups: [const { [const { AtomicPtr::new(ptr::null_mut()) }; 2] }; OFFERS],
            last: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
            kept: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
        }
    }

    /// # Safety
    ///
    /// Both must be leaders of groups in one context that is locked on this CPU until the PMU has been
    /// enabled. `leader` must not be a software event.
    pub(super) unsafe fn push(
        &self,
        leader: *mut bindings::perf_event,
        before: *mut bindings::perf_event,
    ) {
        let free = |entry: &&[AtomicPtr<bindings::perf_event>; 2]| entry[0].load(Relaxed).is_null();
        if let Some([group, refused]) = self.groups.iter().find(free) {
            // INVARIANT: By this function's requirements.
            group.store(leader, Relaxed);
            refused.store(before, Relaxed);
            // SAFETY: By this function's requirements.
            unsafe { (*leader).group_caps |= OFFER_ALWAYS };
        }
    }

    /// # Safety
    ///
    /// `leader` must be that of a flexible group in a context that is locked on this CPU until the PMU has been
    /// enabled.
    pub(super) unsafe fn push_last(&self, leader: *mut bindings::perf_event) {
        let free = |entry: &&AtomicPtr<bindings::perf_event>| entry.load(Relaxed).is_null();
        if let Some(slot) = self.last.iter().find(free) {
            // INVARIANT: By this function's requirements.
            slot.store(leader, Relaxed);
        }
    }

    /// # Safety
    ///
    /// `context` must be locked on this CPU until the PMU has been enabled.
    pub(super) unsafe fn keep_order(&self, context: *mut bindings::perf_event_context) {
        let free = |entry: &&AtomicPtr<bindings::perf_event_context>| entry.load(Relaxed).is_null();
        // SAFETY: By this function's requirements.
        let is_kept = unsafe { (*context).rotate_disable } != 0;
        if let Some(slot) = self.kept.iter().find(free).filter(|_| !is_kept) {
            // INVARIANT: By this function's requirements.
            slot.store(context, Relaxed);
            // SAFETY: By this function's requirements.
            unsafe { (*context).rotate_disable = 1 };
        }
    }

    /// Leaves the groups at their places in the order.
    pub(super) fn keep_places(&self) {
        for [_, refused] in &self.groups {
            // INVARIANT: A null pointer.
            refused.store(ptr::null_mut(), Relaxed);
        }
        for leader in &self.last {
            // INVARIANT: A null pointer.
            leader.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Takes everything back, and moves the groups that have found a place in front of the refused ones, and
    /// those that go behind all others.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    #[inline]
    pub(in crate::perf) unsafe fn take_back<T: Operations>(&self) {
        let [kept, _] = &self.kept;
        let [last, _] = &self.last;
        let [[group, _], ..] = &self.groups;
        if !kept.load(Relaxed).is_null()
            || !group.load(Relaxed).is_null()
            || !last.load(Relaxed).is_null()
        {
            // SAFETY: By this function's requirements.
            unsafe { self.take_all_back::<T>() };
        }
    }

    /// # Safety
    ///
    /// As for [`take_back`](Self::take_back).
    #[inline(never)]
    unsafe fn take_all_back<T: Operations>(&self) {
        for slot in &self.kept {
            let context = slot.load(Relaxed);
            if context.is_null() {
                break;
            }
            // INVARIANT: No pointer is left.
            slot.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context is still locked.
            unsafe { (*context).rotate_disable = 0 };
        }
        for [group, refused] in &self.groups {
            let (leader, before) = (group.load(Relaxed), refused.load(Relaxed));
            if leader.is_null() {
                break;
            }
            // INVARIANT: No pointer is left.
            group.store(ptr::null_mut(), Relaxed);
            refused.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context of both is still locked. The perf core has
            // offered all its groups and walks its tree no more: it has kept the PMU disabled for
            // as long (`Scheduling::may_offer()`).
            unsafe {
                (*leader).group_caps &= !OFFER_ALWAYS;
                let is_placed = (*leader).state == ACTIVE;
                if is_placed && !before.is_null() && (*(*leader).ctx).rotate_disable == 0 {
                    // INVARIANT: A leader, of a context that is locked.
                    let waiting = WaitingGroup::<T>(leader, PhantomData);
                    let place = (*before).group_index.saturating_sub(1);
                    waiting.set_place(waiting.runtime_place(), place);
                    move_to(leader, place);
                }
            }
        }
        for slot in &self.last {
            let leader = slot.load(Relaxed);
            if leader.is_null() {
                break;
            }
            // INVARIANT: No pointer is left.
            slot.store(ptr::null_mut(), Relaxed);
            // SAFETY: As above.
            unsafe {
                if (*leader).state != ACTIVE && (*(*leader).ctx).rotate_disable == 0 {
                    // INVARIANT: A leader, of a context that is locked.
                    let waiting = WaitingGroup::<T>(leader, PhantomData);
                    let pmu = (*(*leader).pmu_ctx).pmu;
                    let place = last_offered((*leader).ctx, pmu).saturating_add(1);
                    waiting.set_place(place, place);
                    move_to(leader, place);
                }
            }
        }
    }
}
