// SPDX-License-Identifier: GPL-2.0

//! Creation and registration of PMUs.

use super::{
    callbacks::Callbacks,
    Groups,
    Operations,
    Pmu, //
};
use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

impl<T: Operations> Pmu<T> {
    /// Creates a PMU that is not registered yet; `ops` initialises its driver.
    ///
    /// Fails with `ENOMEM`, or with the driver's error. Process context.
    // A PMU that is wrapped is made otherwise.
    #[allow(dead_code)]
    pub fn new(ops: impl Init<T, Error>, groups: Groups) -> Result<Arc<Self>> {
        // SAFETY: These are the callbacks.
        unsafe { Self::with_callbacks(const { &Callbacks::<T>::PMU }, ops, groups) }
    }
}

/// The time in which users can see and use a PMU. Dropping it ends this time.
///
/// As long as there are events, the module that owns the PMU cannot be unloaded, but by force.
/// Dropping then takes the events from their users, whose calls fail with `ENODEV` from then on
/// (`pmu_detach_events()`, `kernel/events/core.c`). If the PMU has [`Operations::unmapped`], it
/// waits until the users close them: `perf_pmu_unregister()` says `EBUSY` as long.
///
/// # Invariants
///
/// `perf_pmu_register()` has succeeded for `pmu.raw`, and `perf_pmu_unregister()` has not been
/// called.
pub struct Registration<T: Operations> {
    pmu: Arc<Pmu<T>>,
}

impl<T: Operations> Registration<T> {
    /// Makes `pmu` visible under `name` to users of events of type `event_type`, or else of a type
    /// that no other PMU has.
    ///
    /// `EBUSY` if `pmu` has been registered before, `ENOSPC` if another PMU has the type. Process
    /// context.
    pub fn new(pmu: Arc<Pmu<T>>, name: &'static CStr, event_type: Option<u32>) -> Result<Self> {
        if pmu.registered.xchg(true, Relaxed) {
            return Err(EBUSY);
        }
        let event_type = event_type.map_or(Ok(-1), i32::try_from)?;
        // SAFETY: `raw` is a valid `struct pmu` with all mandatory callbacks, and by the check
        // above it is not and was not registered. `name` and all that `raw` points to live until
        // it is unregistered: `raw` itself because `Registration` owns a reference.
        to_result(unsafe {
            bindings::perf_pmu_register(pmu.as_raw(), name.as_char_ptr(), event_type)
        })?;
        // INVARIANT: Just registered.
        Ok(Self { pmu })
    }
}

impl<T: Operations> Registration<T> {
    /// Returns the PMU.
    pub fn pmu(&self) -> &Pmu<T> {
        &self.pmu
    }
}

impl<T: Operations> Drop for Registration<T> {
    fn drop(&mut self) {
        let pmu = self.pmu.as_raw();
        // It says so while the last event, which does not keep the module any more, is going.
        // SAFETY: By the type invariant the PMU is registered.
        while unsafe { bindings::perf_pmu_unregister(pmu) } != 0 {
            fsleep(Delta::from_millis(1));
        }
    }
}
