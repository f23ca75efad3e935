// SPDX-License-Identifier: GPL-2.0

//! Precise events on AMD's processors. The core PMU has none. Instruction-based sampling (IBS) has
//! them; the kernel's own driver (`arch/x86/events/amd/ibs.c`) keeps serving its PMUs.

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
    /// Finds the IBS driver. Returns [`None`] if the machine has no IBS.
    ///
    /// Fails if the driver's function cannot be found. Process context.
    pub fn find() -> Result<Option<Self>> {
        // SAFETY: The function returns a variable that is set at boot.
        if unsafe { bindings::get_ibs_caps() } == 0 {
            return Ok(None);
        }
        let forward = address_of(c"forward_event_to_ibs")?;
        // SAFETY: This is the address of the function that has the static call's type.
        unsafe { bindings::rpmu_helper_bind_forward_event_to_ibs(forward) };
        // INVARIANT: The function has just been bound.
        Ok(Some(Self(())))
    }

    /// Changes the attributes of a precise event so that it belongs to a PMU of IBS, if IBS can
    /// sample it. Returns true on success: `event_init()` must then fail with `ENOENT`, so that the
    /// perf core tries the other PMU. Otherwise this precision is not possible.
    ///
    /// Mainline: `amd_pmu_hw_config()`, `arch/x86/events/amd/core.c`.
    pub fn forward<T: Operations>(&self, event: &NewEvent<'_, T>) -> bool {
        // SAFETY: By the type invariant the function is bound. It uses only the event's attributes,
        // which the `event_init` callback may change: the perf core reads the type again if the
        // callback fails (`perf_init_event()`, `kernel/events/core.c`).
        let error = unsafe { bindings::rpmu_helper_forward_event_to_ibs(event.as_raw()) };
        error == ENOENT.to_errno()
    }
}
