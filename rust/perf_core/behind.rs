// SPDX-License-Identifier: GPL-2.0

//! The groups that the perf core would offer after a certain one.

use super::{
    context::WaitingGroup,
    tree::{first_from, following, for_each_current_cgroup, Subtree},
    InternalOperations, INACTIVE, OFFER_ALWAYS,
};
use crate::{bindings, perf::Event};
use core::{marker::PhantomData, ptr};
use kernel::cpu::CpuId;

/// How many subtrees are searched. Groups of control groups nested deeper than that wait.
const SUBTREES: usize = 8;

/// The groups that the perf core offers behind a certain one, in its order: those that are enabled, and
/// neither on a CPU nor offered anyway.
///
/// # Invariants
///
/// The first `len` pointers are those of leaders, in the tree of a context that is locked for `'a`.
pub struct Behind<'a, T: InternalOperations> {
    /// The next of each subtree.
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
    /// `leader` must be that of a flexible group in a context that is locked for the lifetime, and
    /// being scheduled on this CPU.
    pub(super) unsafe fn new(leader: *mut bindings::perf_event) -> Self {
        let mut next = [ptr::null_mut(); SUBTREES];
        let mut len = 0;
        let mut push = |leader: *mut bindings::perf_event| {
            if let Some(slot) = next.get_mut(len).filter(|_| !leader.is_null()) {
                *slot = leader;
                len = len.wrapping_add(1);
            }
        };
        // SAFETY: By this function's requirements.
        unsafe {
            let own = Subtree::of(leader);
            push(following(leader));
            let place = (*leader).group_index;
            let mut others = |subtree: Subtree| {
                if subtree != own {
                    push(first_from((*leader).ctx, subtree, place));
                }
            };
            // CAST: a CPU's number.
            let here = CpuId::current().as_u32() as i32;
            if !(*(*leader).ctx).task.is_null() {
                others(Subtree { cpu: -1, ..own });
                others(Subtree { cpu: here, ..own });
            } else {
                let none = Subtree {
                    cgroup: None,
                    ..own
                };
                others(none);
                for_each_current_cgroup((*leader).ctx, |cgroup| {
                    others(Subtree {
                        cgroup: Some(cgroup),
                        ..own
                    });
                });
            }
        }
        // INVARIANT: From the tree.
        Self {
            next,
            len,
            _groups: PhantomData,
        }
    }
}

impl<'a, T: InternalOperations> Iterator for Behind<'a, T> {
    type Item = WaitingGroup<'a, T>;

    fn next(&mut self) -> Option<WaitingGroup<'a, T>> {
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
            // INVARIANT: From the tree, or the last pointer takes the place of the one that goes.
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
                return Some(WaitingGroup(leader, PhantomData));
            }
        }
    }
}
