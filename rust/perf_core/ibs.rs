// SPDX-License-Identifier: GPL-2.0

//! Precise events on AMD's processors, which their core PMU does not have: instruction-based
//! sampling (IBS). The kernel's driver for it (`arch/x86/events/amd/ibs.c`) has PMUs of its own,
//! and stays in charge of them.

use crate::{
    bindings,
    kern::symbols::address_of,
    perf::{
        NewEvent,
        Operations, //
    },
};
use kernel::prelude::*;

/// The kernel's driver for IBS.
///
/// # Invariants
///
/// `forward_event_to_ibs()` is bound.
pub struct Ibs(());

impl Ibs {
    /// Finds the driver. Returns [`None`] if the machine has no IBS.
    ///
    /// Fails if the driver's function is out of reach. Process context.
    pub fn find() -> Result<Option<Self>> {
        // SAFETY: The function returns a variable that is set at boot.
        if unsafe { bindings::get_ibs_caps() } == 0 {
            return Ok(None);
        }
        let forward = address_of(c"forward_event_to_ibs")?;
        // SAFETY: The address is that of the function whose type the static call has.
        unsafe { bindings::rpmu_helper_bind_forward_event_to_ibs(forward) };
        // INVARIANT: Just bound.
        Ok(Some(Self(())))
    }

    /// Makes a precise event one of IBS's PMU, if that can sample it, by changing its attributes.
    /// Returns whether the perf core is to try another PMU, by an `event_init()` that fails with
    /// `ENOENT`; if not, there is no such precision.
    ///
    /// Mainline: `amd_pmu_hw_config()`, `arch/x86/events/amd/core.c`.
    pub fn forward<T: Operations>(&self, event: &NewEvent<'_, T>) -> bool {
        // SAFETY: By the type invariant the function is bound. It uses the event's attributes
        // alone, which are the `event_init` callback's to change: the perf core reads the type
        // again if that fails (`perf_init_event()`, `kernel/events/core.c`).
        let error = unsafe { bindings::rpmu_helper_forward_event_to_ibs(event.as_raw()) };
        error == ENOENT.to_errno()
    }
}
