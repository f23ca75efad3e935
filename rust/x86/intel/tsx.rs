// SPDX-License-Identifier: GPL-2.0

//! TSX on processors whose transactions use a performance counter.
//!
//! Some Skylake parts use general-purpose counter 3 for TSX transactions, unless
//! `MSR_TSX_FORCE_ABORT` makes them abort every transaction at its start. Programs must be ready
//! for aborts, so this changes their speed only.
//!
//! Source: Intel, "Performance Monitoring Impact of Intel Transactional Synchronization Extension
//! Memory Ordering Issue", 604224; `intel_set_tfa()`, `arch/x86/events/intel/core.c`.

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// Abort every transaction at its start.
const RTM_FORCE_ABORT: u64 = 1 << 0;

/// Makes all transactions of this CPU abort, which leaves counter 3 to the PMU, or stops doing so.
///
/// Where the processor has no such register, the kernel warns once.
pub fn set_force_abort(on: bool, _irqs: &LocalInterruptDisabled) {
    let value = if on { RTM_FORCE_ABORT } else { 0 };
    // SAFETY: Of the register's bits only RTM_FORCE_ABORT is ever set, and that leaves memory and
    // the meaning of code alone. A fault is caught by the accessor's exception table entry.
    unsafe { bindings::rpmu_helper_wrmsrq(bindings::MSR_TSX_FORCE_ABORT, value) }
}
