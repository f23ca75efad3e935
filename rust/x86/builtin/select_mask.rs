// SPDX-License-Identifier: GPL-2.0

//! The bits that must be clear in AMD's event selects on a CPU.
//!
//! While SVM is off, a counter with the bit HostOnly does not count at all. KVM calls the built-in
//! driver when it turns SVM on and off (`amd_pmu_enable_virt()`, `amd_pmu_disable_virt()`,
//! `arch/x86/events/amd/core.c`). The built-in driver stores the bits to clear, HostOnly or none,
//! in the CPU's `cpu_hw_events.perf_ctr_virt_mask`. Then it programs its own events again (there
//! are none while another driver is in charge), and with PerfMonV2 sets all bits of
//! PerfCntrGlobalCtl.
//!
//! If the built-in driver has not initialised, nothing sets the mask when a CPU comes up, but KVM's
//! calls change it all the same.

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
/// `events` is the kernel's per-CPU variable `cpu_hw_events`, and `mask` is its member
/// `perf_ctr_virt_mask`.
pub struct SelectMask {
    events: NonNull<cpu_hw_events>,
    mask: Member<cpu_hw_events, u64>,
    /// Set if the built-in driver has initialised.
    initialised: bool,
}

// SAFETY: The pointer is to a kernel variable that is never freed. Each CPU uses its own part of
// it.
unsafe impl Send for SelectMask {}

// SAFETY: The methods access only this CPU's part of the variable, with interrupts off, so no other
// thread does so at the same time.
unsafe impl Sync for SelectMask {}

impl Builtin {
    /// Returns the bits that must be clear in event selects, for all CPUs.
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
        // SAFETY: By the type invariant this is the CPU's member. KVM and the built-in driver
        // change it on the CPU itself, as one word.
        unsafe { self.this_cpu(irqs).read_volatile() }
    }

    /// Sets the bits for this CPU, which is coming up, if the built-in driver does not.
    pub fn starting(&self, irqs: &LocalInterruptDisabled) {
        if self.initialised {
            return;
        }
        let mask = if svm_is_on(irqs) { 0 } else { HOST_ONLY };
        // SAFETY: As in `get()`. Interrupts are off, so KVM does not change the member meanwhile;
        // it does when it turns SVM on or off later.
        unsafe { self.this_cpu(irqs).write_volatile(mask) }
    }
}
