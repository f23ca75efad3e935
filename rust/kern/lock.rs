// SPDX-License-Identifier: GPL-2.0

//! A lock that can be taken where interrupts are off for a reason.
//!
//! The kernel crate's [`SpinLock`](kernel::sync::SpinLock) sleeps on PREEMPT_RT. Callbacks of the
//! perf core must not.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::bindings;
use core::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
};
use kernel::{interrupt::LocalInterruptDisabled, prelude::*, types::Opaque};

/// A `raw_spinlock_t` with what it guards.
///
/// It is taken with interrupts off, so that no interrupt comes in that wants it too. An NMI still
/// can: an NMI handler must not take one.
#[pin_data]
pub struct RawSpinLock<T> {
    #[pin]
    lock: Opaque<bindings::raw_spinlock_t>,
    value: UnsafeCell<T>,
}

// SAFETY: Who owns it may move to another thread as the value may: nobody holds the lock then, since
// a guard borrows it, and a `raw_spinlock_t` that nobody holds belongs to no thread.
unsafe impl<T: Send> Send for RawSpinLock<T> {}

// SAFETY: Shared, the value is only reached by `lock()`, whose guard one thread at a time has.
unsafe impl<T: Send> Sync for RawSpinLock<T> {}

impl<T> RawSpinLock<T> {
    /// A lock that guards `value`. All of them are of one class to lockdep.
    pub fn new(value: T) -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: The helper initialises the lock at a place where it stays.
            lock <- Opaque::ffi_init(|lock| unsafe {
                bindings::rpmu_helper_raw_spin_lock_init(lock)
            }),
            value: UnsafeCell::new(value),
        })
    }

    /// Waits until nobody else has the value, and gives access to it until the guard is dropped.
    ///
    /// Any context with interrupts off but an NMI; not by who has a guard already.
    #[inline]
    pub fn lock<'a>(&'a self, irqs: &'a LocalInterruptDisabled) -> RawSpinLockGuard<'a, T> {
        // SAFETY: The lock is initialised.
        unsafe { bindings::rpmu_helper_raw_spin_lock(self.lock.get()) };
        // INVARIANT: Just locked.
        RawSpinLockGuard {
            lock: self,
            _irqs: irqs,
        }
    }
}

/// Access to what a [`RawSpinLock`] guards.
///
/// # Invariants
///
/// The lock is held, by this CPU.
pub struct RawSpinLockGuard<'a, T> {
    lock: &'a RawSpinLock<T>,
    /// Keeps interrupts off, and by not being `Sync` keeps the guard from other threads.
    _irqs: &'a LocalInterruptDisabled,
}

impl<T> Deref for RawSpinLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariant nobody else accesses the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for RawSpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant nobody else accesses the value, and `self` is borrowed
        // mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for RawSpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is held.
        unsafe { bindings::rpmu_helper_raw_spin_unlock(self.lock.lock.get()) };
    }
}
