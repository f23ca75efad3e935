// SPDX-License-Identifier: GPL-2.0

//! LVTPC, the local APIC's entry for performance counters, which determines the interrupt on
//! overflow.
//!
//! When a CPU comes up, the kernel arms the entry if the built-in driver has initialised, and only
//! then (`setup_local_APIC()`). After suspend it restores the previous value (`lapic_suspend()`,
//! `lapic_resume()`).
//!
//! Source: Intel SDM volume 3, section 11.5.1. Without a local APIC ([`Feature::APIC`]), the
//! kernel's accessors do nothing.
//!
//! [`Feature::APIC`]: super::cpuid::Feature::APIC

use crate::bindings;
use kernel::interrupt::LocalInterruptDisabled;

/// A value of LVTPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lvtpc(u32);

impl Lvtpc {
    /// Returns whether the entry is masked, so that overflows raise no interrupt. Intel's APICs set
    /// the mask bit when they deliver a performance monitoring interrupt; AMD's do not
    /// (`amd_pmu_v2_handle_irq()`, `arch/x86/events/amd/core.c`).
    pub fn masked(self) -> bool {
        self.0 & bindings::APIC_LVT_MASKED != 0
    }
}

/// Reads LVTPC of this CPU.
#[inline]
pub fn lvtpc(_irqs: &LocalInterruptDisabled) -> Lvtpc {
    // SAFETY: Reading an entry of the local vector table has no side effect. `apic` points to the
    // APIC driver, which the kernel has chosen before modules can be loaded.
    Lvtpc(unsafe { bindings::rpmu_helper_apic_read(bindings::APIC_LVTPC) })
}

/// Lets the next overflow on this CPU raise an NMI.
///
/// A handler has to arm the entry again if the APIC [masks](Lvtpc::masked) it when it delivers the
/// interrupt.
#[inline]
pub fn lvtpc_arm(irqs: &LocalInterruptDisabled) {
    write(bindings::APIC_DM_NMI, irqs);
}

/// Keeps overflows on this CPU from raising interrupts.
pub fn lvtpc_mask(irqs: &LocalInterruptDisabled) {
    write(bindings::APIC_DM_NMI | bindings::APIC_LVT_MASKED, irqs);
}

/// Restores a value that [`lvtpc`] has read.
#[inline]
pub fn lvtpc_restore(value: Lvtpc, irqs: &LocalInterruptDisabled) {
    write(value.0, irqs);
}

#[inline]
fn write(value: u32, _irqs: &LocalInterruptDisabled) {
    // SAFETY: `apic` is valid as in `lvtpc()`. `value` selects NMI delivery, and the kernel's NMI
    // entry accepts NMIs from any source, or it is a value that the register had before.
    unsafe { bindings::rpmu_helper_apic_write(bindings::APIC_LVTPC, value) }
}
