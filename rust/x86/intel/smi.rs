// SPDX-License-Identifier: GPL-2.0

//! Counters that stop while the processor is in system management mode.
//!
//! Source: Intel SDM volume 3, section 19.4.1 (IA32_DEBUGCTL).

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

const FREEZE_IN_SMM: u64 = bindings::DEBUGCTLMSR_FREEZE_IN_SMM as u64;

/// Makes the counters of this CPU stop in SMM, or not.
///
/// Needs version 2 of architectural performance monitoring. Mainline: `flip_smm_bit()`,
/// `arch/x86/events/intel/core.c:5996`.
pub fn set_freeze_on_smi(on: bool, _irqs: &LocalInterruptDisabled) {
    // SAFETY: Reading the register has no side effect.
    let before = unsafe { bindings::rpmu_helper_rdmsrq(bindings::MSR_IA32_DEBUGCTLMSR) };
    let after = if on {
        before | FREEZE_IN_SMM
    } else {
        before & !FREEZE_IN_SMM
    };
    if after != before {
        // SAFETY: Interrupts are off, and the kernel changes the other bits with interrupts off
        // too, so they keep their values. This bit controls counting only. A fault is caught by the
        // accessor's exception table entry.
        unsafe { bindings::rpmu_helper_wrmsrq(bindings::MSR_IA32_DEBUGCTLMSR, after) }
    }
}
