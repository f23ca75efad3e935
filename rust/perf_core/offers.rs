// SPDX-License-Identifier: GPL-2.0

//! Groups that are offered or moved forward, and orders that are kept, until the PMU is enabled
//! again.

use super::{
    context::EventGroup,
    tree::move_to,
    InternalOperations,
    ACTIVE,
    INACTIVE,
    OFFER_ALWAYS, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering::Relaxed, //
    },
};

/// The maximum number of groups that are offered at a time: as many as one search finds.
const OFFERS: usize = 64;

/// A CPU's offers and kept orders, which are withdrawn when the PMU is enabled.
///
/// # Invariants
///
/// Non-null pointers are to leaders in contexts that are locked on this CPU, or to such contexts.
/// Both leaders of an entry are in one context. Only callbacks on this CPU use the value, not in an
/// NMI.
pub(in crate::perf_core) struct Offers {
    /// The groups that are offered, which have the flag [`OFFER_ALWAYS`], or only moved. Each with
    /// the group in front of which it moves, or behind which if that group was placed; null if it
    /// does not move.
    groups: [[AtomicPtr<bindings::perf_event>; 2]; OFFERS],
    /// The contexts whose order is kept.
    kept: [AtomicPtr<bindings::perf_event_context>; 2],
}

impl Offers {
    pub(in crate::perf_core) fn new() -> Self {
        // INVARIANT: There is none.
        Self {
            groups: [const { [const { AtomicPtr::new(ptr::null_mut()) }; 2] }; OFFERS],
            kept: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
        }
    }

    /// Requests to move the group of `leader` in front of the group of `before`, or behind it if
    /// that has a place. If the group of `leader` `may_pass`, it is also offered, and moves only if
    /// it then finds a place; otherwise it moves only if it still waits.
    ///
    /// Does nothing if the group is in the list already, or the list is full.
    ///
    /// # Safety
    ///
    /// `leader` and `before` must lead groups in one context, which is locked on this CPU until the
    /// PMU has been enabled. If it may pass, `leader` must not be a software event.
    pub(super) unsafe fn push(
        &self,
        leader: *mut bindings::perf_event,
        before: *mut bindings::perf_event,
        may_pass: bool,
    ) {
        let is_free = |it: *mut bindings::perf_event| it.is_null() || it == leader;
        let entry = self.groups.iter().find(|[it, _]| is_free(it.load(Relaxed)));
        let entry = entry.filter(|[it, _]| it.load(Relaxed).is_null());
        if let Some([group, refused]) = entry {
            // INVARIANT: By this function's requirements.
            group.store(leader, Relaxed);
            refused.store(before, Relaxed);
            if may_pass {
                // SAFETY: By this function's requirements.
                unsafe { (*leader).group_caps |= OFFER_ALWAYS };
            }
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

    /// Keeps the offered groups at their places in the order.
    pub(super) fn keep_places(&self) {
        for [group, refused] in &self.groups {
            if group.load(Relaxed).is_null() {
                break;
            }
            // INVARIANT: The pointer is null.
            refused.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Withdraws all offers and kept orders. Moves the groups that have found a place, and those
    /// that are to move forward. If there are any of the latter, returns their PMU, whose groups
    /// have to be offered again.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    pub(in crate::perf_core) unsafe fn take_back<T: InternalOperations>(
        &self,
    ) -> Option<*mut bindings::pmu> {
        let mut again = None;
        for slot in &self.kept {
            let context = slot.load(Relaxed);
            if context.is_null() {
                break;
            }
            // INVARIANT: The pointer is null.
            slot.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context is still locked.
            unsafe { (*context).rotate_disable = 0 };
        }
        for [group, refused] in &self.groups {
            let (leader, before) = (group.load(Relaxed), refused.load(Relaxed));
            if leader.is_null() {
                break;
            }
            // INVARIANT: The pointer is null.
            group.store(ptr::null_mut(), Relaxed);
            refused.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context of both is still locked. The perf core does
            // not walk its tree any more: it has offered all groups before it has enabled the PMU
            // (`Scheduling::may_offer()`).
            unsafe {
                let was_offered = (*leader).group_caps & OFFER_ALWAYS != 0;
                (*leader).group_caps &= !OFFER_ALWAYS;
                let state = if was_offered { ACTIVE } else { INACTIVE };
                let moves = (*leader).state == state && !before.is_null();
                if moves && (*(*leader).ctx).rotate_disable == 0 {
                    // INVARIANT: By the invariant of `Offers`, `leader` is a leader in a context
                    // that is locked.
                    let waiting = EventGroup::<T>(leader, PhantomData);
                    let place = match (*before).state {
                        ACTIVE => (*before).group_index,
                        _ => {
                            if (*before).group_index == 0 {
                                // No place is in front of it.
                                // INVARIANT: By the invariant of `Offers`, `before` is a leader in
                                // a context that is locked.
                                let refused = EventGroup::<T>(before, PhantomData);
                                refused.set_place(refused.runtime_place(), 1);
                                move_to(before, 1);
                            }
                            (*before).group_index.saturating_sub(1)
                        }
                    };
                    waiting.set_place(waiting.runtime_place(), place);
                    move_to(leader, place);
                    if !was_offered {
                        again = Some((*(*leader).pmu_ctx).pmu);
                    }
                }
            }
        }
        again
    }
}
