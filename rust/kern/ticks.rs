// SPDX-License-Identifier: GPL-2.0

//! When something was, to a few milliseconds, at the cost of reading a variable.

use crate::bindings;

/// A time (`jiffies`).
#[derive(Clone, Copy)]
pub struct Ticks(usize);

impl Ticks {
    /// The time now. Any context.
    #[inline]
    pub fn now() -> Self {
        // SAFETY: The variable is always there. It changes under the reader, who gets the value
        // before or after.
        Self(unsafe { core::ptr::read_volatile(&raw const bindings::jiffies) })
    }

    /// As a number, to be kept in an atomic.
    pub fn number(self) -> usize {
        self.0
    }

    /// The time of which [`number()`](Self::number) is `number`.
    pub fn from_number(number: usize) -> Self {
        Self(number)
    }

    /// Milliseconds since then, in steps of a tick.
    pub fn age(self) -> u32 {
        let ticks = Self::now().0.wrapping_sub(self.0);
        // CAST: good for 49 days.
        (ticks.wrapping_mul(1000) / bindings::HZ as usize) as u32
    }
}
