// SPDX-License-Identifier: GPL-2.0

//! Data that PMUs keep for tasks (`struct perf_ctx_data`).
//!
//! The perf core allocates the data, zeroed, when an event [needs](super::Attachment::TaskData) it:
//! for the event's task, or for all tasks if the event counts a CPU. It frees the data some time
//! after the last such event is closed or the task has ended (`attach_perf_ctx_data()`,
//! `kernel/events/core.c`). When a task is switched in or out, the PMU's
//! [`sched_task`](super::Operations::sched_task) gets the task's data; no other CPU uses the data
//! then.

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::needs_drop,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// The slab cache from which the perf core allocates data of the type `D`.
///
/// A task has one object, from the cache of the PMU whose event came first: PMUs with different
/// caches would not find each other's (`attach_task_ctx_data()`, `kernel/events/core.c`).
///
/// # Invariants
///
/// `raw` is a cache of objects that have the size and alignment of a `D`.
pub struct TaskDataCache<D> {
    raw: NonNull<bindings::kmem_cache>,
    _data: PhantomData<D>,
}

// SAFETY: A cache may be used on any CPU. It holds no `D` when it is dropped.
unsafe impl<D: Send + Sync> Send for TaskDataCache<D> {}

// SAFETY: A shared reference gives access to the pointer only, for the kernel's slab functions,
// which synchronise.
unsafe impl<D: Send + Sync> Sync for TaskDataCache<D> {}

impl<D: Zeroable + Send + Sync> TaskDataCache<D> {
    /// Makes a cache with this name. Fails with `ENOMEM`. Process context.
    pub fn new(name: &'static CStr) -> Result<Self> {
        const { assert!(!needs_drop::<D>(), "the perf core drops nothing") };
        // SAFETY: The name is a C string that lives as long as the module, and size and alignment
        // are those of a type.
        let raw = unsafe {
            bindings::rpmu_helper_kmem_cache_create(
                name.as_char_ptr(),
                size_of::<D>(),
                align_of::<D>(),
            )
        };
        // INVARIANT: The arguments are the size and alignment of a `D`.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _data: PhantomData,
        })
    }

    pub(super) fn as_raw(&self) -> *mut bindings::kmem_cache {
        self.raw.as_ptr()
    }
}

impl<D> Drop for TaskDataCache<D> {
    fn drop(&mut self) {
        // SAFETY: All PMUs with this cache are gone, and so are their events, whose data the perf
        // core frees by `call_rcu()` (`perf_free_ctx_data_rcu()`), for which the helper waits.
        unsafe { bindings::rpmu_helper_kmem_cache_destroy(self.raw.as_ptr()) };
    }
}
