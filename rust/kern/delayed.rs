// SPDX-License-Identifier: GPL-2.0

//! Code that runs once, after some time, in process context.
//!
//! In the kernel proper, `kernel::workqueue` would cancel work when its owner is dropped.

use kernel::{
    container_of, impl_has_delayed_work, new_delayed_work,
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    workqueue::{
        self,
        DelayedWork,
        Work,
        WorkItem, //
    },
};

/// A value with code that [`Delayed`] runs once, or [`Deferred`](super::deferred::Deferred) each
/// time it is asked to.
pub trait Run: Send + Sync + 'static {
    /// Called in process context, by a kernel thread that may sleep.
    fn run(&self);
}

#[pin_data]
struct Item<T: Run> {
    value: T,
    #[pin]
    work: DelayedWork<Self>,
}

impl_has_delayed_work! {
    impl{T: Run} HasDelayedWork<Self> for Item<T> { self.work }
}

impl<T: Run> WorkItem for Item<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.value.run();
    }
}

/// A value that [runs](Run::run) after some time, unless it is dropped before. Dropping while it
/// runs waits for its end.
///
/// # Invariants
///
/// Nothing but this value queues or cancels the work.
pub struct Delayed<T: Run>(Arc<Item<T>>);

impl<T: Run> Delayed<T> {
    /// Makes `value` run after `delay`, at most about 49 days.
    ///
    /// Fails with `ENOMEM`. Process context.
    pub fn new(value: T, delay: Msecs) -> Result<Self> {
        let item = Arc::pin_init(
            pin_init!(Item {
                value,
                work <- new_delayed_work!("rpmu::Delayed"),
            }),
            GFP_KERNEL,
        )?;
        // It cannot be queued already. Not the per-CPU queue, since the work may wait for others.
        drop(workqueue::system_unbound().enqueue_delayed(item.clone(), msecs_to_jiffies(delay)));
        // INVARIANT: Only this value has access to the item.
        Ok(Self(item))
    }
}

impl<T: Run> Drop for Delayed<T> {
    fn drop(&mut self) {
        let item = Arc::as_ptr(&self.0);
        // SAFETY: The item is valid, and its work is a part of a `delayed_work`, which is
        // initialised. Nothing holds a lock that the work takes.
        let was_pending = unsafe {
            let work = Work::raw_get(DelayedWork::raw_as_work(&raw const (*item).work));
            let delayed = container_of!(work, kernel::bindings::delayed_work, work);
            kernel::bindings::cancel_delayed_work_sync(delayed)
        };
        if was_pending {
            // SAFETY: The queue had a reference to the item, made by `Arc::into_raw()`, which it
            // has not given to `run()` and will not any more.
            drop(unsafe { Arc::from_raw(item) });
        }
    }
}
