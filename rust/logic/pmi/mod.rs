// SPDX-License-Identifier: GPL-2.0

//! State that callbacks on a CPU share with its PMI.
//!
//! A PMI is an NMI. It may interrupt a callback between any two accesses, and runs to its end on
//! the same CPU before the callback continues. So the CPU sees each store at once, and no memory
//! ordering is needed, but the state has to be consistent for a PMI after each single store.
//!
//! Each protocol is a type of its own, generic over its [`Word`]s: the driver uses `core`'s
//! atomics, and in `selftests/host/tests/pmi.rs` a model checker puts PMIs everywhere.

pub mod last_value;
pub mod running;
pub mod shared_count;

use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

/// A word that callbacks and PMIs access, each time by one instruction.
pub trait Word {
    /// Creates a word with this value.
    fn new(value: u64) -> Self;

    /// Returns the value.
    fn load(&self) -> u64;

    /// Stores `value`.
    fn store(&self, value: u64);

    /// Stores `value` and returns the previous value.
    fn swap(&self, value: u64) -> u64;

    /// Sets `bits`.
    fn set_bits(&self, bits: u64);

    /// Stores `new` if the value is `current`.
    ///
    /// # Errors
    ///
    /// Fails with the value if it is not `current`.
    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64>;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.load(Relaxed)
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value, Relaxed);
    }

    #[inline(always)]
    fn swap(&self, value: u64) -> u64 {
        self.swap(value, Relaxed)
    }

    #[inline(always)]
    fn set_bits(&self, bits: u64) {
        self.fetch_or(bits, Relaxed);
    }

    #[inline(always)]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        self.compare_exchange(current, new, Relaxed, Relaxed)
            .map(|_| ())
    }
}
