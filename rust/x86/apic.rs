// SPDX-License-Identifier: GPL-2.0

//! LVTPC, the local APIC's entry for the performance counters: the interrupt that an overflow
//! raises.
//!
//! The kernel arms the entry when a CPU comes up (`setup_local_APIC()`) if the built-in driver has
//! initialised, and not otherwise. After suspend it restores the value from before
//! (`lapic_suspend()`, `lapic_resume()`).
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
    /// Returns whether overflows raise no interrupt. The APIC sets the mask bit itself when it
    /// delivers a performance monitoring interrupt.
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
/// The APIC masks the entry when it delivers the interrupt, so that a handler has to arm it again
/// for the next one.
#[inline]
pub fn lvtpc_arm(irqs: &LocalInterruptDisabled) {
    write(bindings::APIC_DM_NMI, irqs);
}

/// Restores a value that [`lvtpc`] has read.
#[inline]
pub fn lvtpc_restore(value: Lvtpc, irqs: &LocalInterruptDisabled) {
    write(value.0, irqs);
}

#[inline]
fn write(value: u32, _irqs: &LocalInterruptDisabled) {
    // SAFETY: `apic` is valid as in `lvtpc()`. `value` is NMI delivery, which the kernel's NMI
    // entry takes from any source, or a value that the register had before.
    unsafe { bindings::rpmu_helper_apic_write(bindings::APIC_LVTPC, value) }
}
