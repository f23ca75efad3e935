// SPDX-License-Identifier: GPL-2.0

//! Times with a resolution of a few milliseconds, at the cost of reading one variable.

use crate::bindings;

/// Ticks per second.
const HZ: usize = bindings::RUST_CONST_HELPER_HZ as usize;

/// A time (`jiffies`).
#[derive(Clone, Copy)]
pub struct Ticks(usize);

impl Ticks {
    /// Returns the time now. Any context.
    #[inline]
    pub fn now() -> Self {
        // SAFETY: The variable is always valid. It changes under the reader, which gets the value
        // before or after.
        Self(unsafe { core::ptr::read_volatile(&raw const bindings::jiffies) })
    }

    /// Returns the time as a number that an atomic can hold.
    pub fn number(self) -> usize {
        self.0
    }

    /// Returns the time whose [`number()`](Self::number) is `number`.
    pub fn from_number(number: usize) -> Self {
        Self(number)
    }

    /// Returns the time in milliseconds, in steps of a tick.
    pub fn milliseconds(self) -> u64 {
        // CAST: `u64` has as many bits. The product wraps after millions of years.
        (self.0 as u64).wrapping_mul(1000) / HZ as u64
    }

    /// Returns the milliseconds since this time, in steps of a tick.
    pub fn age(self) -> u32 {
        let ticks = Self::now().0.wrapping_sub(self.0);
        // CAST: the result wraps after 49 days.
        (ticks.wrapping_mul(1000) / HZ) as u32
    }
}
