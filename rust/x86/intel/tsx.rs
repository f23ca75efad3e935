// SPDX-License-Identifier: GPL-2.0

//! Transactional memory, where it needs a performance counter of its own.
//!
//! Some Skylake parts run transactions with the help of general-purpose counter 3, unless
//! `MSR_TSX_FORCE_ABORT` tells them to abort every transaction at its start. Programs must be ready
//! for aborts, so that changes how fast they are and nothing else.
//!
//! Source: Intel, "Performance Monitoring Impact of Intel Transactional Synchronization Extension
//! Memory Ordering Issue", 604224; `arch/x86/events/intel/core.c:2941`.

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// The bit of the register that does it.
const RTM_FORCE_ABORT: u64 = 1 << 0;

/// Makes all transactions of this CPU abort, which leaves counter 3 to the PMU; or lets them be.
///
/// Where the processor has no such register, the kernel warns once.
pub fn set_force_abort(on: bool, _irqs: &LocalInterruptDisabled) {
    let value = if on { RTM_FORCE_ABORT } else { 0 };
    // SAFETY: Of the register's bits only RTM_FORCE_ABORT is ever set, and that leaves memory and
    // the meaning of code alone. A fault is caught by the accessor's exception table entry.
    unsafe { bindings::rpmu_helper_wrmsrq(bindings::MSR_TSX_FORCE_ABORT, value) }
}
