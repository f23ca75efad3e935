// SPDX-License-Identifier: GPL-2.0

//! TSX on processors whose transactions use a performance counter.
//!
//! Some Skylake processors use general-purpose counter 3 for TSX transactions, unless
//! `MSR_TSX_FORCE_ABORT` makes them abort every transaction at its start. Programs have to expect
//! aborts, so this only changes their speed.
//!
//! Source: Intel, "Performance Monitoring Impact of Intel Transactional Synchronization Extension
//! Memory Ordering Issue", 604224; `intel_set_tfa()`, `arch/x86/events/intel/core.c`.

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// Abort every transaction at its start.
const RTM_FORCE_ABORT: u64 = 1 << 0;

/// Sets whether all transactions on this CPU abort, which leaves counter 3 to the PMU.
///
/// If the processor has no such register, the kernel warns once.
pub fn set_force_abort(on: bool, _irqs: &LocalInterruptDisabled) {
    let value = if on { RTM_FORCE_ABORT } else { 0 };
    // SAFETY: RTM_FORCE_ABORT is the only bit that is ever set, and it changes neither memory nor
    // the meaning of code. A fault is caught by the accessor's exception table entry.
    unsafe { bindings::rpmu_helper_wrmsrq(bindings::MSR_TSX_FORCE_ABORT, value) }
}
