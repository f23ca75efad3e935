// SPDX-License-Identifier: GPL-2.0

//! The bits that AMD's event selects must not have on a CPU.
//!
//! With the bit HostOnly a counter does not count at all while SVM is off. KVM says when it turns
//! SVM on and off (`amd_pmu_enable_virt()`, `amd_pmu_disable_virt()`,
//! `arch/x86/events/amd/core.c`), and the built-in driver keeps in
//! `cpu_hw_events.perf_ctr_virt_mask` of the CPU the bits to leave out: HostOnly, or none. It then
//! programs its own events anew, of which there are none while another driver is in charge, and
//! with PerfMonV2 sets all bits of PerfCntrGlobalCtl.
//!
//! If the built-in driver has not initialised, nothing sets the mask when a CPU comes up; KVM does
//! all the same.

use super::Builtin;
use crate::{
    bindings::layouts::{
        cpu_hw_events,
        Member, //
    },
    x86::amd::virt::svm_is_on, //
};
use core::ptr::NonNull;
use kernel::interrupt::LocalInterruptDisabled;

/// `AMD64_EVENTSEL_HOSTONLY`.
const HOST_ONLY: u64 = 1 << 41;

/// `cpu_hw_events.perf_ctr_virt_mask` of all CPUs.
///
/// # Invariants
///
/// `events` is the kernel's per-CPU variable `cpu_hw_events`, and `mask` that member of it.
pub struct SelectMask {
    events: NonNull<cpu_hw_events>,
    mask: Member<cpu_hw_events, u64>,
    /// Set if the built-in driver has initialised.
    initialised: bool,
}

// SAFETY: The pointer is to a variable of the kernel that is never freed. A CPU uses its own part
// of it.
unsafe impl Send for SelectMask {}

// SAFETY: The methods access only this CPU's part of the variable, with interrupts off, so no other
// thread does so at the same time.
unsafe impl Sync for SelectMask {}

impl Builtin {
    /// Returns the place of the bits that event selects must not have.
    pub fn select_mask(&self) -> SelectMask {
        // INVARIANT: By the type invariant of `Builtin`.
        SelectMask {
            events: self.events,
            mask: self.layout.events.perf_ctr_virt_mask,
            initialised: self.initialised,
        }
    }
}

impl SelectMask {
    #[inline(always)]
    fn this_cpu(&self, _irqs: &LocalInterruptDisabled) -> *mut u64 {
        let offset = crate::bindings::inline::this_cpu_offset();
        self.mask.of(self.events.as_ptr().wrapping_byte_add(offset))
    }

    /// Returns the bits for this CPU. Any context.
    #[inline]
    pub fn get(&self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: By the type invariant it is the CPU's member. KVM and the built-in driver change
        // it on the CPU itself, as one word.
        unsafe { self.this_cpu(irqs).read_volatile() }
    }

    /// Sets the bits for this CPU, which has come up, if the built-in driver does not.
    pub fn starting(&self, irqs: &LocalInterruptDisabled) {
        if self.initialised {
            return;
        }
        let mask = if svm_is_on(irqs) { 0 } else { HOST_ONLY };
        // SAFETY: As in `get()`. Interrupts are off, so KVM does not change it meanwhile; it does
        // when it turns SVM on or off later.
        unsafe { self.this_cpu(irqs).write_volatile(mask) }
    }
}
