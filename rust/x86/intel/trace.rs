// SPDX-License-Identifier: GPL-2.0

//! Intel PT and BTS, which trace branches. Their drivers (`arch/x86/events/intel/pt.c`, `bts.c`)
//! have PMUs of their own, `intel_pt` and `intel_bts`, and share the PMI with the driver of the
//! core PMU.
//!
//! The built-in driver also handles their part of the PMI. A driver that is [called in its
//! place](crate::x86::builtin::nmi) has to do so itself:
//!
//! - Bit 55 of IA32_PERF_GLOBAL_STATUS means that PT has filled a region of its output.
//! - BTS has no status bit. Its events are paused during the PMI, because they use no counter that
//!   GLOBAL_CTRL could stop.
//!
//! Their events may stay open when the module is unloaded: from then on, the built-in driver serves
//! them.

use crate::{
    bindings,
    kern::symbols::Symbols,
    x86::{
        builtin::nmi::Handler,
        cpuid::Feature,
        nmi::NmiContext, //
    },
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::prelude::*;

/// The tracers of this machine.
///
/// # Invariants
///
/// The functions of each tracer that the machine has are bound.
pub struct Tracers {
    has_pt: bool,
    has_bts: bool,
    handler: Handler,
}

impl Tracers {
    /// Finds the tracers of this machine and binds their functions.
    ///
    /// Fails if the kernel's symbols cannot be found. Process context.
    pub fn find() -> Result<Self> {
        let symbols = Symbols::new()?;
        let handler = Handler::find()?;
        let has_pt = Feature::INTEL_PT.present();
        if has_pt {
            let interrupt = symbols.find(c"intel_pt_interrupt")?;
            // The trampoline jumps to the function that KVM has set, or returns 0. Kernels without
            // support for guests lack it.
            let guest = symbols.find(c"__SCT____perf_guest_handle_intel_pt_intr");
            let guest = guest.map_or(null_mut(), NonNull::as_ptr);
            // SAFETY: The addresses belong to functions of the types that the static calls have.
            // The helper does not bind null.
            unsafe { bindings::rpmu_helper_bind_intel_pt(interrupt.as_ptr(), guest) };
        }
        // `bts_init()` also requires that PTI is off. If it has failed, the functions return at
        // once.
        let has_bts = Feature::DTES64.present() && Feature::BTS.present();
        if has_bts {
            let disable = symbols.find(c"intel_bts_disable_local")?;
            let interrupt = symbols.find(c"intel_bts_interrupt")?;
            let enable = symbols.find(c"intel_bts_enable_local")?;
            // SAFETY: Each address belongs to a function of the type that its static call has.
            unsafe {
                bindings::rpmu_helper_bind_intel_bts(
                    disable.as_ptr(),
                    interrupt.as_ptr(),
                    enable.as_ptr(),
                )
            };
        }
        // INVARIANT: The functions have just been bound.
        Ok(Self {
            has_pt,
            has_bts,
            handler,
        })
    }

    /// Returns whether the machine has Intel PT.
    #[inline]
    pub fn has_pt(&self) -> bool {
        self.has_pt
    }

    /// Returns whether an event of a tracer may be open. Any context.
    #[inline]
    pub fn are_used(&self) -> bool {
        (self.has_pt || self.has_bts) && self.handler.serves_others()
    }

    /// Returns the built-in driver's NMI handler.
    pub fn handler(&self) -> &Handler {
        &self.handler
    }

    /// Handles bit 55 of IA32_PERF_GLOBAL_STATUS, which the caller has acknowledged: PT in a guest,
    /// or in this kernel.
    ///
    /// Mainline: `handle_pmi_common()`, `arch/x86/events/intel/core.c`.
    #[cold]
    pub fn pt_interrupt(&self, _nmi: &NmiContext) {
        if !self.has_pt {
            return;
        }
        // SAFETY: By the type invariant the functions are bound. They are called as the built-in
        // driver calls them: on the CPU of the PMI, in the NMI. `intel_pt_interrupt()` does nothing
        // if PT has no event there. KVM may unregister its handler meanwhile, and then waits until
        // no NMI is in it (`perf_unregister_guest_info_callbacks()`, `kernel/events/core.c`).
        unsafe {
            if bindings::rpmu_helper_guest_handle_intel_pt_intr() == 0 {
                bindings::rpmu_helper_intel_pt_interrupt();
            }
        }
    }

    /// Pauses the BTS event of this CPU, if there is one, until the result is dropped. Returns
    /// [`None`] without BTS, and if no event of a tracer [may be open](Self::are_used).
    #[inline]
    pub fn pause_bts<'a>(&self, nmi: &'a NmiContext) -> Option<PausedBts<'a>> {
        (self.has_bts && self.are_used()).then(|| {
            // SAFETY: By the type invariant the function is bound. It is called as the built-in
            // driver calls it, on the CPU of the PMI, in the NMI, so it does not race with the
            // callbacks of the PMU `intel_bts` (`arch/x86/events/intel/bts.c`).
            unsafe { bindings::rpmu_helper_intel_bts_disable_local() };
            // INVARIANT: The event has just been paused.
            PausedBts { _nmi: nmi }
        })
    }
}

/// A BTS event that is paused during a PMI. Dropping resumes it.
///
/// # Invariants
///
/// `intel_bts_disable_local()` has been called in this NMI, on this CPU.
pub struct PausedBts<'a> {
    _nmi: &'a NmiContext,
}

impl PausedBts<'_> {
    /// Hands the records in this CPU's buffer to the event's user, if the buffer has reached its
    /// interrupt threshold. Returns the number of overflows, 0 or 1.
    #[inline]
    pub fn interrupt(&self) -> u32 {
        // SAFETY: By the type invariant the event is paused, as the function requires.
        let handled = unsafe { bindings::rpmu_helper_intel_bts_interrupt() };
        // CAST: 0 or 1.
        handled as u32
    }
}

impl Drop for PausedBts<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant the event is paused.
        unsafe { bindings::rpmu_helper_intel_bts_enable_local() };
    }
}
