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
    /// Creates a PMU that is not registered yet, and whose events need no data of tasks; `ops`
    /// initialises its driver.
    ///
    /// Fails with `ENOMEM`, or with the driver's error. Process context.
    // Layers on top make PMUs by `with_callbacks()`.
    #[allow(dead_code)]
    pub fn new(ops: impl Init<T, Error>, groups: Groups) -> Result<Arc<Self>> {
        // SAFETY: The callbacks are `Callbacks::PMU`, unchanged.
        unsafe { Self::with_callbacks(const { &Callbacks::<T>::PMU }, ops, groups, None) }
    }
}

/// A registered PMU, which users can see and use. Dropping unregisters it.
///
/// As long as there are events, the PMU's module can only be unloaded by force. Dropping then
/// detaches the events from their users, whose `ioctl()` and `mmap()` calls fail with `ENODEV` from
/// then on (`pmu_detach_events()`, `kernel/events/core.c`). If the PMU has
/// [`Operations::unmapped`], dropping waits until the users close the events: until then
/// `perf_pmu_unregister()` returns `EBUSY`.
///
/// # Invariants
///
/// `perf_pmu_register()` has succeeded for `pmu.raw`, and `perf_pmu_unregister()` has not been
/// called.
pub struct Registration<T: Operations> {
    pmu: Arc<Pmu<T>>,
}

impl<T: Operations> Registration<T> {
    /// Makes `pmu` visible to users under `name` and the event type `event_type`, or under a new
    /// type if this is [`None`].
    ///
    /// Fails with `EBUSY` if `pmu` has been registered before or if another PMU has the type, or
    /// with another error of `perf_pmu_register()`. Process context.
    pub fn new(pmu: Arc<Pmu<T>>, name: &'static CStr, event_type: Option<u32>) -> Result<Self> {
        if pmu.registered.xchg(true, Relaxed) {
            return Err(EBUSY);
        }
        let wanted = event_type.map_or(Ok(-1), i32::try_from)?;
        // SAFETY: `raw` is a valid `struct pmu` with all mandatory callbacks, and by the check
        // above it has never been registered. `name` and all that `raw` points to live until it is
        // unregistered: `raw` itself because `Registration` owns a reference.
        to_result(unsafe {
            bindings::perf_pmu_register(pmu.as_raw(), name.as_char_ptr(), wanted)
        })?;
        // INVARIANT: The PMU has just been registered.
        let registration = Self { pmu };
        // If another PMU has the type, the kernel only warns, and takes the next type that is free.
        if event_type.is_some_and(|wanted| registration.pmu.event_type() != wanted) {
            return Err(EBUSY);
        }
        Ok(registration)
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
        // This fails while there are events: if the module was removed by force, or while the last
        // event is being freed, after it has dropped its reference to the module. SAFETY: By the
        // type invariant the PMU is registered.
        while unsafe { bindings::perf_pmu_unregister(pmu) } != 0 {
            fsleep(Delta::from_millis(1));
        }
    }
}
