// SPDX-License-Identifier: GPL-2.0

//! Intel PT and BTS: their part of the PMI, while this driver handles it.

use crate::{
    driver::hw::Hardware,
    logic::regs::global::Status,
    x86::{
        apic,
        builtin,
        intel::trace::{
            PausedBts,
            Tracers, //
        },
        nmi::NmiContext, //
    },
};
use kernel::prelude::*;

/// The part of the PMI that belongs to Intel PT and BTS.
pub(in crate::driver) struct Tracing {
    /// [`None`] if the built-in driver's functions cannot be found.
    tracers: Option<Tracers>,
}

impl Tracing {
    /// Finds the functions of the machine's tracers. Logs a notice if they cannot be found.
    ///
    /// Process context.
    #[inline(never)]
    pub(in crate::driver) fn new() -> Self {
        let tracers = Tracers::find().inspect_err(|error| {
            pr_notice!(
                "the built-in driver's NMI handler cannot be replaced ({error:?}): it takes overflows \
                 while events of intel_pt or intel_bts are open\n"
            );
        });
        Self {
            tracers: tracers.ok(),
        }
    }

    /// Returns the built-in driver's NMI handler, if it was found.
    pub(in crate::driver) fn handler(&self) -> Option<&builtin::nmi::Handler> {
        self.tracers.as_ref().map(Tracers::handler)
    }

    /// Pauses the BTS event of this CPU, if there is one, until the result is dropped.
    #[inline]
    pub(in crate::driver) fn pause_bts<'a>(&self, nmi: &'a NmiContext) -> Option<PausedBts<'a>> {
        self.tracers.as_ref()?.pause_bts(nmi)
    }

    /// Returns whether Intel PT has raised the PMI.
    #[inline]
    pub(in crate::driver) fn is_due(&self, status: Status) -> bool {
        status.is_trace() && self.tracers.as_ref().is_some_and(Tracers::has_pt)
    }

    /// Handles the interrupt of Intel PT, if it is [due](Self::is_due). It must have been
    /// acknowledged. Returns the number of interrupts, 0 or 1.
    #[inline]
    pub(in crate::driver) fn pt_interrupt(&self, status: Status, nmi: &NmiContext) -> u32 {
        if !status.is_trace() {
            return 0;
        }
        let Some(tracers) = self.tracers.as_ref().filter(|it| it.has_pt()) else {
            return 0;
        };
        tracers.pt_interrupt(nmi);
        1
    }

    /// Handles an NMI of a CPU that has had no event of this driver, or was given back. Returns the
    /// number of tracers' interrupts, or 1 for a late NMI.
    ///
    /// The kernel, or the built-in driver, has armed LVTPC on this CPU. No counter runs.
    #[cold]
    pub(in crate::driver) fn handle_alone(&self, hardware: &Hardware, nmi: &NmiContext) -> u32 {
        let irqs = nmi.irqs();
        let Some(tracers) = self.tracers.as_ref().filter(|it| it.are_used()) else {
            return 0;
        };
        let bts = tracers.pause_bts(nmi);
        let mut handled = bts.as_ref().map_or(0, PausedBts::interrupt);
        let status = hardware.status(irqs);
        if self.is_due(status) {
            hardware.acknowledge(status, irqs);
            handled = handled.wrapping_add(self.pt_interrupt(status, nmi));
        }
        // An earlier NMI may have handled the interrupt that has masked LVTPC.
        if handled == 0 && apic::lvtpc(irqs).masked() {
            handled = 1;
        }
        if handled != 0 {
            nmi.count_pmi();
            apic::lvtpc_arm(irqs);
        }
        handled
    }
}
