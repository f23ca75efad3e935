// SPDX-License-Identifier: GPL-2.0

//! Random numbers.

use crate::bindings;

/// Returns 64 random bits. Any context but an NMI; with PREEMPT_RT, any context that may sleep.
pub fn word() -> u64 {
    // SAFETY: The function has no requirements but the context, which this function's documentation
    // passes on: it takes a `local_lock_t`, which sleeps on PREEMPT_RT (`drivers/char/random.c`).
    unsafe { bindings::get_random_u64() }
}
