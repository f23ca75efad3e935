// SPDX-License-Identifier: GPL-2.0

//! The local APIC's entry for the performance counters, LVTPC: what a counter's overflow does.
//!
//! Where the built-in driver has initialised, the kernel arms the entry when a CPU comes up
//! (`setup_local_APIC()`). Where it has not, nobody does. After suspend the kernel restores what
//! was there before (`lapic_suspend()`, `lapic_resume()`).
//!
//! Source: Intel SDM volume 3, section 11.5.1. These functions expect that the machine has a local
//! APIC ([`Feature::APIC`]); without one the kernel's accessors do nothing.
//!
//! [`Feature::APIC`]: super::cpuid::Feature::APIC

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// A value of LVTPC, to be put back later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lvtpc(u32);

impl Lvtpc {
    /// Whether overflows raise nothing at present. The APIC sets this itself when it has delivered
    /// a performance monitoring interrupt.
    pub fn masked(self) -> bool {
        self.0 & bindings::APIC_LVT_MASKED != 0
    }
}

/// Reads LVTPC of this CPU.
#[inline]
pub fn lvtpc(_irqs: &LocalInterruptDisabled) -> Lvtpc {
    // SAFETY: Reading an entry of the local vector table has no side effect, and `apic` points to
    // the APIC driver that the kernel has chosen before modules can be loaded.
    Lvtpc(unsafe { bindings::rpmu_helper_apic_read(bindings::APIC_LVTPC) })
}

/// Lets the next overflow on this CPU raise an NMI.
///
/// The APIC masks the entry when it delivers the interrupt, so this is also what a handler has to
/// do before another can come.
#[inline]
pub fn lvtpc_arm(irqs: &LocalInterruptDisabled) {
    write(bindings::APIC_DM_NMI, irqs);
}

/// Lets overflows on this CPU raise nothing.
#[inline]
pub fn lvtpc_mask(irqs: &LocalInterruptDisabled) {
    write(bindings::APIC_DM_NMI | bindings::APIC_LVT_MASKED, irqs);
}

/// Puts back what [`lvtpc`] has read.
#[inline]
pub fn lvtpc_restore(value: Lvtpc, irqs: &LocalInterruptDisabled) {
    write(value.0, irqs);
}

#[inline]
fn write(value: u32, _irqs: &LocalInterruptDisabled) {
    // SAFETY: `apic` is valid as in `lvtpc`. `value` is either NMI delivery, which the kernel's NMI
    // entry takes from any source, or what has been in the register before.
    unsafe { bindings::rpmu_helper_apic_write(bindings::APIC_LVTPC, value) }
}
