// SPDX-License-Identifier: GPL-2.0

//! Syscore callbacks: suspend, resume and shutdown.
//!
//! In suspend to RAM or to disk, all CPUs but one are taken offline first
//! ([`hotplug`](super::hotplug)). The last one loses its registers while it is online. On shutdown
//! no CPU is taken offline first.
//!
//! C header: [`include/linux/syscore_ops.h`](srctree/include/linux/syscore_ops.h)

use crate::bindings;
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Callbacks for suspend, resume and shutdown.
pub trait Callbacks: Send + Sync {
    /// Called on the only CPU that is online, which is about to lose its registers.
    fn suspend(&self, irqs: &LocalInterruptDisabled);

    /// Called on this CPU after the machine has resumed, or if it was not suspended after all. The
    /// CPU's registers may hold any value.
    fn resume(&self, irqs: &LocalInterruptDisabled);

    /// Called before the machine is switched off or restarted, or starts another kernel (kexec).
    /// Other CPUs are online and run tasks. Process context.
    fn shutdown(&self);
}

/// Registered callbacks. Dropping unregisters them, and waits until none runs.
///
/// # Invariants
///
/// The entry is on the kernel's list, and its data is [`Arc::as_ptr`] of the callbacks.
pub struct Registration<T: Callbacks> {
    entry: Pin<KBox<Opaque<bindings::syscore>>>,
    _callbacks: Arc<T>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be released by any thread.
unsafe impl<T: Callbacks> Send for Registration<T> {}

// SAFETY: A registration has no methods that take a shared reference.
unsafe impl<T: Callbacks> Sync for Registration<T> {}

impl<T: Callbacks> Registration<T> {
    const OPS: &'static bindings::syscore_ops = &bindings::syscore_ops {
        suspend: Some(suspend_callback::<T>),
        resume: Some(resume_callback::<T>),
        shutdown: Some(shutdown_callback::<T>),
    };

    /// Registers callbacks. Fails with `ENOMEM`. Process context.
    pub fn new(callbacks: Arc<T>) -> Result<Self> {
        let entry = KBox::pin(
            Opaque::new(bindings::syscore {
                ops: Self::OPS,
                data: Arc::as_ptr(&callbacks).cast_mut().cast(),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The entry and the callbacks stay in place until `drop` has unregistered the
        // entry.
        unsafe { bindings::register_syscore(entry.get()) };
        // INVARIANT: The entry has just been put on the list.
        Ok(Self {
            entry,
            _callbacks: callbacks,
        })
    }
}

impl<T: Callbacks> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the entry is on the list. `syscore_shutdown()` holds the
        // list's lock while it calls callbacks; in suspend and resume, the task that drops this is
        // frozen. So none runs afterwards.
        unsafe { bindings::unregister_syscore(self.entry.get()) };
    }
}

/// Calls `f` with the callbacks.
///
/// # Safety
///
/// `data` must be the data of a [`Registration<T>`], and interrupts must be off.
unsafe fn with<T: Callbacks>(data: *mut c_void, f: impl FnOnce(&T, &LocalInterruptDisabled)) {
    // SAFETY: By this function's requirements; the registration owns a reference.
    let callbacks = unsafe { &*data.cast_const().cast::<T>() };
    // SAFETY: By this function's requirements.
    f(callbacks, unsafe {
        LocalInterruptDisabled::assume_disabled()
    });
}

/// # Safety
///
/// As [`with`].
unsafe extern "C" fn suspend_callback<T: Callbacks>(data: *mut c_void) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with(data, T::suspend) };
    0
}

/// # Safety
///
/// As [`with`].
unsafe extern "C" fn resume_callback<T: Callbacks>(data: *mut c_void) {
    // SAFETY: By this function's requirements.
    unsafe { with(data, T::resume) }
}

/// # Safety
///
/// `data` must be the data of a [`Registration<T>`].
unsafe extern "C" fn shutdown_callback<T: Callbacks>(data: *mut c_void) {
    // SAFETY: By this function's requirements; the registration owns a reference.
    unsafe { &*data.cast_const().cast::<T>() }.shutdown();
}
