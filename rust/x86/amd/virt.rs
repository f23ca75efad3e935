// SPDX-License-Identifier: GPL-2.0

//! Secure virtual machines (SVM).
//!
//! Source: APM volume 2, section 3.1.7 (EFER).

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// EFER.SVME.
const SVME: u64 = 1 << 12;

/// Returns whether a hypervisor has enabled SVM on this CPU.
pub fn svm_is_on(_irqs: &LocalInterruptDisabled) -> bool {
    // SAFETY: Every 64-bit processor has the register, and reading it has no side effect.
    let efer = unsafe { bindings::rpmu_helper_rdmsrq(bindings::MSR_EFER) };
    efer & SVME != 0
}
