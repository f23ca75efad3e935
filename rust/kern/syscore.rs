// SPDX-License-Identifier: GPL-2.0

//! The last CPU goes to sleep, and wakes up; or the machine comes to its end.
//!
//! In suspend to RAM or to disk the other CPUs are switched off before, as if they were unplugged
//! ([`hotplug`](super::hotplug)). The last one loses its registers without that. At the end none is
//! switched off before.
//!
//! C header: [`include/linux/syscore_ops.h`](srctree/include/linux/syscore_ops.h)

use crate::bindings;
use kernel::{
    ffi::{c_int, c_void},
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc,
    types::Opaque,
};

/// What to do when the machine sleeps or ends.
pub trait Callbacks: Send + Sync {
    /// The CPU, the only one that runs, is about to lose its registers.
    fn suspend(&self, irqs: &LocalInterruptDisabled);

    /// The CPU is back, or was not put to sleep after all. Its registers may hold anything.
    fn resume(&self, irqs: &LocalInterruptDisabled);

    /// The machine is about to be switched off or restarted, or another kernel to be started on it.
    /// All CPUs run, and tasks on them, until that happens. Process context.
    fn shutdown(&self);
}

/// Registered callbacks. Dropping it unregisters them, and waits until none runs.
///
/// # Invariants
///
/// The entry is on the kernel's list; its data is what [`Arc::as_ptr`] gives for the callbacks.
pub struct Registration<T: Callbacks> {
    entry: Pin<KBox<Opaque<bindings::syscore>>>,
    _callbacks: Arc<T>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be let go from any thread.
unsafe impl<T: Callbacks> Send for Registration<T> {}

// SAFETY: A shared reference to a registration gives access to nothing.
unsafe impl<T: Callbacks> Sync for Registration<T> {}

impl<T: Callbacks> Registration<T> {
    const OPS: &'static bindings::syscore_ops = &bindings::syscore_ops {
        suspend: Some(suspend_callback::<T>),
        resume: Some(resume_callback::<T>),
        shutdown: Some(shutdown_callback::<T>),
    };

    /// Registers callbacks. `ENOMEM`. Process context.
    pub fn new(callbacks: Arc<T>) -> Result<Self> {
        let entry = KBox::pin(
            Opaque::new(bindings::syscore {
                ops: Self::OPS,
                data: Arc::as_ptr(&callbacks).cast_mut().cast(),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The entry stays where it is, and so do the callbacks, until `drop` has taken it out.
        unsafe { bindings::register_syscore(entry.get()) };
        // INVARIANT: Just done.
        Ok(Self {
            entry,
            _callbacks: callbacks,
        })
    }
}

impl<T: Callbacks> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the entry is on the list. The kernel's lock of it is held
        // while callbacks run.
        unsafe { bindings::unregister_syscore(self.entry.get()) };
    }
}

/// Calls `f` with the callbacks.
///
/// # Safety
///
/// For the kernel's callbacks: `data` is that of a [`Registration<T>`], and interrupts are off.
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
/// As for [`with`].
unsafe extern "C" fn suspend_callback<T: Callbacks>(data: *mut c_void) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with(data, T::suspend) };
    0
}

/// # Safety
///
/// As for [`with`].
unsafe extern "C" fn resume_callback<T: Callbacks>(data: *mut c_void) {
    // SAFETY: By this function's requirements.
    unsafe { with(data, T::resume) }
}

/// # Safety
///
/// For the kernel: `data` is that of a [`Registration<T>`].
unsafe extern "C" fn shutdown_callback<T: Callbacks>(data: *mut c_void) {
    // SAFETY: By this function's requirements; the registration owns a reference.
    unsafe { &*data.cast_const().cast::<T>() }.shutdown();
}
