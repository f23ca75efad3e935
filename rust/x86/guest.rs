// SPDX-License-Identifier: GPL-2.0

//! Virtual machines that run on a CPU.

use super::nmi::NmiContext;
use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::prelude::*;

/// The kernel's information about running virtual machines.
///
/// # Invariants
///
/// `perf_arch_guest_misc_flags()` is bound.
pub struct Guests(());

impl Guests {
    /// Binds the function that returns the information. Fails if it cannot be found. Process
    /// context.
    pub fn bind() -> Result<Self> {
        let flags = Symbols::new()?.find(c"perf_arch_guest_misc_flags")?;
        // SAFETY: The address belongs to a function of the type that the static call has.
        unsafe { bindings::rpmu_helper_bind_perf_arch_guest_misc_flags(flags.as_ptr()) };
        // INVARIANT: The function has just been bound.
        Ok(Self(()))
    }

    /// Returns whether the NMI has interrupted a virtual machine of KVM.
    ///
    /// Mainline: `perf_guest_state()`, `include/linux/perf_event.h`.
    pub fn are_interrupted(&self, nmi: &NmiContext) -> bool {
        // SAFETY: By the type invariant the function is bound. It reads the flags in the registers,
        // which are valid until the handler returns, and calls KVM, as the perf core does for each
        // sample in NMIs (`guest_misc_flags()`, `arch/x86/events/core.c`).
        unsafe { bindings::rpmu_helper_guest_is_interrupted(nmi.regs().get()) }
    }
}
