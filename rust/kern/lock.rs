// SPDX-License-Identifier: GPL-2.0

//! A spinlock for contexts that must not sleep on PREEMPT_RT either.
//!
//! The kernel crate's [`SpinLock`](kernel::sync::SpinLock) sleeps on PREEMPT_RT. The perf core's
//! callbacks must not sleep.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use super::init::in_cell;
use crate::bindings;
use core::{
    cell::UnsafeCell,
    convert::Infallible,
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*,
    types::Opaque, //
};

/// A `raw_spinlock_t` with the value that it guards.
///
/// The lock is taken with interrupts off, so that no interrupt handler spins on a lock that its own
/// CPU holds. An NMI handler must not take it.
#[pin_data]
pub struct RawSpinLock<T> {
    #[pin]
    lock: Opaque<bindings::raw_spinlock_t>,
    value: UnsafeCell<T>,
}

// SAFETY: The value may be sent to another thread. No guard exists when the lock is moved, as a
// guard borrows it, and a `raw_spinlock_t` that is not held belongs to no thread.
unsafe impl<T: Send> Send for RawSpinLock<T> {}

// SAFETY: A shared reference gives access to the value through `lock()` only, and only one thread
// at a time has its guard.
unsafe impl<T: Send> Sync for RawSpinLock<T> {}

impl<T> RawSpinLock<T> {
    /// Makes a lock that guards a value, which `value` initialises. All locks made here are of one
    /// lockdep class.
    pub fn new<E>(value: impl Init<T, E>) -> impl PinInit<Self, E>
    where
        E: From<Infallible>,
    {
        try_pin_init!(Self {
            // SAFETY: The helper initialises the lock in place, and the lock is pinned.
            lock <- Opaque::ffi_init(|lock| unsafe {
                bindings::rpmu_helper_raw_spin_lock_init(lock)
            }),
            value <- in_cell(value),
        }? E)
    }

    /// Takes the lock, and gives access to the value until the guard is dropped.
    ///
    /// Any context with interrupts off except an NMI. A caller that already has a guard of this
    /// lock deadlocks.
    #[inline]
    pub fn lock<'a>(&'a self, irqs: &'a LocalInterruptDisabled) -> RawSpinLockGuard<'a, T> {
        // SAFETY: The lock is initialised.
        unsafe { bindings::rpmu_helper_raw_spin_lock(self.lock.get()) };
        // INVARIANT: The lock has just been taken.
        RawSpinLockGuard {
            lock: self,
            _irqs: irqs,
        }
    }
}

/// Access to the value that a [`RawSpinLock`] guards.
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
        // SAFETY: By the type invariant the lock is held, so that nothing else accesses the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for RawSpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant the lock is held, so that nothing else accesses the value,
        // and `self` is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for RawSpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant this CPU holds the lock.
        unsafe { bindings::rpmu_helper_raw_spin_unlock(self.lock.lock.get()) };
    }
}
