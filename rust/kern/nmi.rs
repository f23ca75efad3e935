// SPDX-License-Identifier: GPL-2.0

//! Non-maskable interrupts.

use crate::bindings;

/// Returns whether an NMI is being handled. Any context.
#[inline]
pub fn in_nmi() -> bool {
    // SAFETY: It only reads the CPU's preemption count.
    unsafe { bindings::rpmu_helper_in_nmi() }
}
