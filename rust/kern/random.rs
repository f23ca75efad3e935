// SPDX-License-Identifier: GPL-2.0

//! Random numbers.

use crate::bindings;

/// Returns 64 random bits. Any context but an NMI.
pub fn word() -> u64 {
    // SAFETY: The function has no requirements but the context, which this function's documentation
    // passes on.
    unsafe { bindings::get_random_u64() }
}
