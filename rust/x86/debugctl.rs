// SPDX-License-Identifier: GPL-2.0

//! IA32_DEBUGCTL, whose bits belong to different users.
//!
//! Source: Intel SDM volume 3, section 19.4.1; AMD APM volume 2, section 13.1.1.2.

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// A set of bits that control only counting and the recording of branches.
#[derive(Clone, Copy)]
pub(super) struct Bits(u64);

impl Bits {
    /// No bit.
    pub(super) const NONE: Self = Self(0);
    /// Counters stop in SMM.
    pub(super) const FREEZE_IN_SMM: Self = Self(bindings::DEBUGCTLMSR_FREEZE_IN_SMM as u64);
    /// Branches are recorded.
    pub(super) const LBR: Self = Self(bindings::DEBUGCTLMSR_LBR as u64);
    /// A PMI stops the recording.
    pub(super) const FREEZE_LBRS_ON_PMI: Self =
        Self(bindings::DEBUGCTLMSR_FREEZE_LBRS_ON_PMI as u64);

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Returns whether all of `bits` are set on this CPU.
pub(super) fn has(bits: Bits, _irqs: &LocalInterruptDisabled) -> bool {
    read() & bits.0 == bits.0
}

/// Clears and sets bits on this CPU. Writes the register only if its value changes.
///
/// Any context: an NMI in between changes only bits of [`Bits`] and, while an event of BTS is open,
/// the bits of BTS, and restores them for the code that it has interrupted.
#[inline]
pub(super) fn change(clear: Bits, set: Bits, _irqs: &LocalInterruptDisabled) {
    let before = read();
    let after = before & !clear.0 | set.0;
    if after != before {
        // SAFETY: Interrupts are off, and the kernel changes the other bits with interrupts off,
        // too, so they keep their values. The bits of `Bits` control only counting and branch
        // records. A fault is caught by the accessor's exception table entry.
        unsafe { bindings::rpmu_helper_wrmsrq(bindings::MSR_IA32_DEBUGCTLMSR, after) }
    }
}

/// As [`change`], for bits that the processor or a hypervisor may refuse: then nothing changes, and
/// the kernel does not warn.
pub(super) fn try_change(clear: Bits, set: Bits, _irqs: &LocalInterruptDisabled) {
    let before = read();
    let after = before & !clear.0 | set.0;
    if after != before {
        // SAFETY: As in `change()`.
        let _ = unsafe { bindings::rpmu_helper_wrmsrq_safe(bindings::MSR_IA32_DEBUGCTLMSR, after) };
    }
}

#[inline]
fn read() -> u64 {
    // SAFETY: Reading the register has no side effect.
    unsafe { bindings::rpmu_helper_rdmsrq(bindings::MSR_IA32_DEBUGCTLMSR) }
}
