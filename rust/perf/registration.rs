// SPDX-License-Identifier: GPL-2.0

//! Creation and registration of PMUs.

use super::{callbacks::Callbacks, Groups, Operations, Pmu};
use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{atomic::Relaxed, Arc},
    time::{delay::fsleep, Delta},
};

impl<T: Operations> Pmu<T> {
    /// Creates a PMU that is not registered yet; `ops` initialises its driver.
    ///
    /// Fails with `ENOMEM`, or with the driver's error. Process context.
    pub fn new(ops: impl Init<T, Error>, groups: Groups) -> Result<Arc<Self>> {
        Self::with_callbacks(const { &Callbacks::<T>::PMU }, ops, groups)
    }
}

/// The time in which users can see and use a PMU. Dropping it ends this time.
///
/// As long as there are events, the module that owns the PMU cannot be unloaded.
///
/// # Invariants
///
/// `perf_pmu_register()` has succeeded for `pmu.raw`, and `perf_pmu_unregister()` has not been
/// called.
pub struct Registration<T: Operations> {
    pmu: Arc<Pmu<T>>,
}

impl<T: Operations> Registration<T> {
    /// Makes `pmu` visible under `name` to users of events of type `event_type`.
    ///
    /// `EBUSY` if `pmu` has been registered before, `ENOSPC` if another PMU has the type. Process
    /// context.
    pub fn new(pmu: Arc<Pmu<T>>, name: &'static CStr, event_type: u32) -> Result<Self> {
        if pmu.registered.xchg(true, Relaxed) {
            return Err(EBUSY);
        }
        let event_type = event_type.try_into()?;
        // SAFETY: `raw` is a valid `struct pmu` with all mandatory callbacks, and by the check
        // above it is not and was not registered. `name` and all that `raw` points to live until
        // it is unregistered: `raw` itself because `Registration` owns a reference.
        to_result(unsafe {
            bindings::perf_pmu_register(pmu.as_raw(), name.as_char_ptr(), event_type)
        })?;
        pmu.internals.open();
        // INVARIANT: Just registered.
        Ok(Self { pmu })
    }
}

impl<T: Operations> Drop for Registration<T> {
    fn drop(&mut self) {
        let pmu = self.pmu.as_raw();
        // SAFETY: By the type invariant the PMU is registered.
        unsafe { self.pmu.close_internals() };
        // It says so while the last event, which does not keep the module any more, is going.
        // SAFETY: As above.
        while unsafe { bindings::perf_pmu_unregister(pmu) } != 0 {
            fsleep(Delta::from_millis(1));
        }
        // Overflows may have requested the end of a turn until the last event had gone.
        self.pmu.finish_turns();
    }
}
