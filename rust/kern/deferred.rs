// SPDX-License-Identifier: GPL-2.0

//! Code that any context can have run in process context.
//!
//! An NMI cannot queue work, since it may have interrupted the queue. So an irq_work does it as
//! soon as interrupts are on.
//!
//! C header: [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h)

use super::delayed::Run;
use crate::bindings;
use kernel::{
    impl_has_work, new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque,
    workqueue::{
        self,
        Work,
        WorkItem, //
    },
};

#[pin_data]
struct Item<T: Run> {
    value: T,
    irq_work: Opaque<bindings::irq_work>,
    #[pin]
    work: Work<Self>,
}

// SAFETY: Only functions of irq_work use `irq_work`, and they may be called on any CPU. The rest is
// `Send`.
unsafe impl<T: Run> Send for Item<T> {}

// SAFETY: The functions of irq_work synchronise. The rest is `Sync`.
unsafe impl<T: Run> Sync for Item<T> {}

impl_has_work! {
    impl{T: Run} HasWork<Self> for Item<T> { self.work }
}

impl<T: Run> WorkItem for Item<T> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.value.run();
    }
}

/// A value whose code [runs](Run::run) soon after each [request](Self::request), once for all
/// requests that came before. Dropping waits for its end.
///
/// # Invariants
///
/// Nothing but this value and its irq_work queues or cancels the work.
pub struct Deferred<T: Run>(Arc<Item<T>>);

impl<T: Run> Deferred<T> {
    /// Makes a value without a request. Fails with `ENOMEM`. Process context.
    pub fn new(value: T) -> Result<Self> {
        let mut irq_work: bindings::irq_work = pin_init::zeroed();
        // As `IRQ_WORK_INIT_HARD()`.
        irq_work.node.__bindgen_anon_1.u_flags = bindings::IRQ_WORK_HARD_IRQ;
        irq_work.func = Some(irq_work_callback::<T>);
        let item = pin_init!(Item {
            value,
            irq_work: Opaque::new(irq_work),
            work <- new_work!("rpmu::Deferred"),
        });
        // INVARIANT: Only this value and its irq_work have access to the item.
        Ok(Self(Arc::pin_init(item, GFP_KERNEL)?))
    }

    /// Makes the code run soon. Any context.
    pub fn request(&self) {
        // SAFETY: The irq_work is initialised, and stays in place until `drop()` has waited for it.
        // It may be queued in any context, even while it is queued.
        unsafe { bindings::irq_work_queue(self.0.irq_work.get()) };
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        &self.0.value
    }
}

impl<T: Run> Drop for Deferred<T> {
    fn drop(&mut self) {
        let item = Arc::as_ptr(&self.0);
        // SAFETY: The irq_work is initialised. This is process context, and nothing can request the
        // code any more.
        unsafe { bindings::irq_work_sync(self.0.irq_work.get()) };
        // SAFETY: The item is valid, and its work initialised. The caller holds no lock that the
        // work takes.
        let was_pending =
            unsafe { kernel::bindings::cancel_work_sync(Work::raw_get(&raw const (*item).work)) };
        if was_pending {
            // SAFETY: The queue had a reference to the item, made by `Arc::into_raw()`, which it
            // has not given to `run()` and will not any more.
            drop(unsafe { Arc::from_raw(item) });
        }
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, and with the `irq_work` of an [`Item<T>`] that a
/// [`Deferred<T>`] refers to.
unsafe extern "C" fn irq_work_callback<T: Run>(irq_work: *mut bindings::irq_work) {
    let irq_work: *mut Opaque<bindings::irq_work> = irq_work.cast();
    // SAFETY: By this function's requirements; dropping the `Deferred` waits for this function, so
    // the reference count does not drop to zero.
    let item = unsafe { ArcBorrow::from_raw(kernel::container_of!(irq_work, Item<T>, irq_work)) };
    // If the work is queued already, it has not begun yet. It may wait for others, so it does not
    // go to the per-CPU queue.
    let _ = workqueue::system_unbound().enqueue(Arc::from(item));
}
