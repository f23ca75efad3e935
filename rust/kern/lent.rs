// SPDX-License-Identifier: GPL-2.0

//! References that can be taken back.
//!
//! A value that is a part of another one, and works for it in a thread of its own, cannot own a
//! reference to that other value: neither would ever be dropped.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A place for a reference to a value, which a [`Loan`] puts there and takes back.
///
/// # Invariants
///
/// The pointer is to a value that a [`Loan`] keeps alive. It takes the pointer back, under the
/// lock, before it gives the value up.
#[pin_data]
pub struct Lent<T> {
    #[pin]
    value: Mutex<Option<NonNull<T>>>,
    _value: PhantomData<Arc<T>>,
}

// SAFETY: As for `Arc<T>`: other threads get shared references to the value.
unsafe impl<T: Send + Sync> Send for Lent<T> {}

// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Lent<T> {}

impl<T> Lent<T> {
    /// Makes an empty place.
    pub fn new() -> impl PinInit<Self> {
        // INVARIANT: There is no pointer.
        pin_init!(Self {
            value <- new_mutex!(None),
            _value: PhantomData,
        })
    }

    /// Calls `f` with the value, unless there is none. Meanwhile the value is not taken back.
    ///
    /// Process context. `f` must not drop the [`Loan`].
    pub fn with(&self, f: impl FnOnce(&T)) {
        let value = self.value.lock();
        if let Some(value) = *value {
            // SAFETY: By the type invariant the value is alive as long as the lock is held.
            f(unsafe { value.as_ref() });
        }
    }
}

/// Lends a value until it is dropped. Dropping waits for the borrower.
pub struct Loan<T> {
    value: Arc<T>,
    place: fn(&T) -> &Lent<T>,
}

impl<T> Loan<T> {
    /// Lends `value` to the `place` that it has, which must be empty. Process context.
    pub fn new(value: Arc<T>, place: fn(&T) -> &Lent<T>) -> Self {
        // INVARIANT: The loan keeps `value` alive, and takes the pointer back as it is dropped.
        *place(&value).value.lock() = Some(NonNull::from(&*value));
        Self { value, place }
    }
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        *(self.place)(&self.value).value.lock() = None;
    }
}
