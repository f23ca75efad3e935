// SPDX-License-Identifier: GPL-2.0

//! Random numbers.

use crate::bindings;

/// Returns 64 random bits. Any context but an NMI.
pub fn word() -> u64 {
    // SAFETY: There is nothing to be kept for the call.
    unsafe { bindings::get_random_u64() }
}
