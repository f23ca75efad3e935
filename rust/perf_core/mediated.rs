// SPDX-License-Identifier: GPL-2.0

//! Keeping out guests that own the PMU while they run: KVM's mediated vPMU
//! (`enable_mediated_pmu=1`).
//!
//! When KVM is loaded, it asks the built-in driver whether there can be such guests
//! (`perf_get_x86_pmu_capability()`, `arch/x86/events/core.c`). They need a PMU with
//! `PERF_PMU_CAP_MEDIATED_VPMU`, which expects any values in its registers after a guest has run.
//! Without this capability the perf core would leave the host's events on counters that the guest
//! writes.
//!
//! The perf core refuses such guests while there are events that count in guests and need the PMU
//! (`perf_create_mediated_pmu()`, `kernel/events/core.c`). [`NoMediatedGuests`] counts as one of
//! them.
//!
//! This has no place in the kernel proper, where KVM would ask the driver in charge.

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic,
        Relaxed, //
    },
    types::Opaque, //
};

/// Keeps guests from owning the PMU.
///
/// # Invariants
///
/// `events` is the perf core's `nr_include_guest_events`, in which this object is counted as an
/// event.
pub struct NoMediatedGuests {
    events: NonNull<i32>,
    /// The probe that reports refused guests.
    _probe: Option<Probe>,
}

// SAFETY: `events` is a global variable, which any thread may change by atomic operations.
unsafe impl Send for NoMediatedGuests {}

// SAFETY: No method takes a shared reference.
unsafe impl Sync for NoMediatedGuests {}

impl NoMediatedGuests {
    /// Refuses guests with a mediated vPMU from now on.
    ///
    /// Returns [`None`] if the kernel does not support such guests
    /// (`CONFIG_PERF_GUEST_MEDIATED_PMU`). Fails with `EBUSY` if there is one, and with `ENOENT` or
    /// another error if the perf core's variables cannot be found. Process context.
    pub fn new() -> Result<Option<Self>> {
        if !cfg!(CONFIG_PERF_GUEST_MEDIATED_PMU) {
            return Ok(None);
        }
        let symbols = Symbols::new()?;
        let guests = symbols.find(c"nr_mediated_pmu_vms")?.cast::<i32>();
        let events = symbols.find(c"nr_include_guest_events")?.cast::<i32>();
        let lock = symbols.find(c"perf_mediated_pmu_mutex")?.cast();

        // As `mediated_pmu_account_event()`, `kernel/events/core.c`: under the lock, an event and a
        // guest, which exclude each other, cannot be counted at the same time.
        // SAFETY: The variables are a `struct mutex` and two `atomic_t` of the perf core, in static
        // memory. This is process context, and the caller holds no lock that the perf core takes
        // inside this one.
        let free = unsafe {
            bindings::rpmu_helper_mutex_lock(lock.as_ptr());
            let free = counter(&guests).load(Relaxed) == 0;
            if free {
                counter(&events).fetch_add(1, ordering::Full);
            }
            bindings::rpmu_helper_mutex_unlock(lock.as_ptr());
            free
        };
        if !free {
            return Err(EBUSY);
        }
        // INVARIANT: The object has just been counted.
        Ok(Some(Self {
            events,
            _probe: Probe::new().ok(),
        }))
    }
}

impl Drop for NoMediatedGuests {
    fn drop(&mut self) {
        // As `mediated_pmu_unaccount_event()`.
        // SAFETY: By the type invariant.
        unsafe { counter(&self.events) }.fetch_add(-1, ordering::Full);
    }
}

/// # Safety
///
/// The pointer must be to an `atomic_t` that is never freed and is only changed by atomic
/// operations.
unsafe fn counter(counter: &NonNull<i32>) -> &Atomic<i32> {
    // SAFETY: By this function's requirements.
    unsafe { Atomic::from_ptr(counter.as_ptr()) }
}

/// A probe of the function by which KVM announces such a guest. As long as there is a
/// [`NoMediatedGuests`], the function fails.
///
/// # Invariants
///
/// The kprobe is registered.
struct Probe(Pin<KBox<Opaque<bindings::kprobe>>>);

// SAFETY: A kprobe may be unregistered by any thread.
unsafe impl Send for Probe {}

// SAFETY: No method takes a shared reference.
unsafe impl Sync for Probe {}

impl Probe {
    fn new() -> Result<Self> {
        let probe = KBox::pin(
            Opaque::new(bindings::kprobe {
                symbol_name: c"perf_create_mediated_pmu".as_char_ptr(),
                pre_handler: Some(refused),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The probe names a symbol and a handler and is otherwise zero, as it has to be. It
        // stays in place until `drop()` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kprobe(probe.get()) })?;
        // INVARIANT: The kprobe has just been registered.
        Ok(Self(probe))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. This waits until no CPU is in the handler.
        unsafe { bindings::rpmu_helper_unregister_kprobe(self.0.get()) };
    }
}

/// # Safety
///
/// For the kernel to call, at the entry of `perf_create_mediated_pmu()`.
unsafe extern "C" fn refused(_: *mut bindings::kprobe, _: *mut bindings::pt_regs) -> c_int {
    // For each guest, KVM logs a line of its own, which does not give the reason.
    kernel::pr_warn_once!(
        "guests with a mediated PMU are refused while rpmu is loaded; load KVM with \
         enable_mediated_pmu=0\n"
    );
    0
}
