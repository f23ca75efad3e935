// SPDX-License-Identifier: GPL-2.0

//! The groups that the perf core would offer, in its order.

use super::{
    context::EventGroup,
    tree::{
        first_from,
        following,
        for_each_subtree,
        Subtree, //
    },
    InternalOperations,
    INACTIVE,
    OFFER_ALWAYS, //
};
use crate::{
    bindings,
    perf::Event, //
};
use core::{
    marker::PhantomData,
    ptr, //
};

/// The maximum number of subtrees that are searched. If the task's control group is nested deeper,
/// the event groups for the outermost control groups are left out.
const SUBTREES: usize = 8;

/// The groups of a context, or those behind a certain group, in the order in which the perf core
/// would offer them. Only groups that are enabled, and neither on a CPU nor
/// [offered](super::Scheduling::offer) already.
///
/// # Invariants
///
/// The first `len` pointers are to leaders in the tree of a context that is locked for `'a`.
pub struct Behind<'a, T: InternalOperations> {
    /// The next leader of each subtree.
    next: [*mut bindings::perf_event; SUBTREES],
    len: usize,
    _groups: PhantomData<&'a Event<T>>,
}

impl<T: InternalOperations> Clone for Behind<'_, T> {
    fn clone(&self) -> Self {
        Self {
            next: self.next,
            len: self.len,
            _groups: PhantomData,
        }
    }
}

impl<T: InternalOperations> Behind<'_, T> {
    /// # Safety
    ///
    /// `leader` must lead a flexible group, in a context that is locked for the lifetime and is
    /// being scheduled on this CPU.
    pub(super) unsafe fn new(leader: *mut bindings::perf_event) -> Self {
        // SAFETY: By this function's requirements.
        unsafe {
            let own = Subtree::of(leader);
            let mut behind = Self::none();
            behind.push(following(leader));
            let place = (*leader).group_index;
            for_each_subtree((*leader).ctx, own.pmu, |subtree| {
                if subtree != own {
                    behind.push(first_from((*leader).ctx, subtree, place));
                }
            });
            behind
        }
    }

    /// Returns all groups.
    ///
    /// # Safety
    ///
    /// `context` must be locked for the lifetime, and belong to this CPU or its task.
    pub(super) unsafe fn all(context: *mut bindings::perf_event_pmu_context) -> Self {
        let mut all = Self::none();
        // SAFETY: By this function's requirements.
        unsafe {
            for_each_subtree((*context).ctx, (*context).pmu, |subtree| {
                all.push(first_from((*context).ctx, subtree, 0));
            });
        }
        all
    }

    const fn none() -> Self {
        // INVARIANT: There are no pointers.
        Self {
            next: [ptr::null_mut(); SUBTREES],
            len: 0,
            _groups: PhantomData,
        }
    }

    /// Adds a subtree by its first leader. Does nothing for null.
    fn push(&mut self, leader: *mut bindings::perf_event) {
        if let Some(slot) = self.next.get_mut(self.len).filter(|_| !leader.is_null()) {
            // INVARIANT: The callers get leaders from functions of the tree.
            *slot = leader;
            self.len = self.len.wrapping_add(1);
        }
    }
}

impl<'a, T: InternalOperations> Iterator for Behind<'a, T> {
    type Item = EventGroup<'a, T>;

    fn next(&mut self) -> Option<EventGroup<'a, T>> {
        loop {
            // SAFETY: By the type invariant.
            let place = |slot: &&mut *mut bindings::perf_event| unsafe { (***slot).group_index };
            let last = self.len.checked_sub(1)?;
            let last_leader = *self.next.get(last)?;
            let mut slots = self.next.iter_mut().take(self.len);
            let slot = match last {
                0 => slots.next()?,
                _ => slots.min_by_key(place)?,
            };
            let leader = *slot;
            // SAFETY: By the type invariant.
            // INVARIANT: The next leader is from the tree; if there is none, the last pointer
            // replaces this one.
            let (state, caps) = unsafe {
                *slot = following(leader);
                if slot.is_null() {
                    *slot = last_leader;
                    self.len = last;
                }
                ((*leader).state, (*leader).group_caps)
            };
            if state == INACTIVE && caps & OFFER_ALWAYS == 0 {
                // INVARIANT: By the type invariant.
                return Some(EventGroup(leader, PhantomData));
            }
        }
    }
}
