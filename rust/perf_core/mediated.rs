// SPDX-License-Identifier: GPL-2.0

//! Guests that have the PMU to themselves while they run: KVM's mediated PMUs
//! (`enable_mediated_pmu=1`).
//!
//! KVM decides by the built-in driver, when it is loaded, whether there can be such guests
//! (`perf_get_x86_pmu_capability()`, `arch/x86/events/core.c`). Those need a PMU with
//! `PERF_PMU_CAP_MEDIATED_VPMU`, whose registers hold anything after a guest. Without it the perf
//! core would leave the host's events on the counters that the guest writes.
//!
//! The perf core refuses such guests while there are events that count in guests and need the PMU
//! (`perf_create_mediated_pmu()`, `kernel/events/core.c`). [`NoMediatedGuests`] counts as one of
//! them.
//!
//! This has no place in the kernel proper, where KVM would ask the driver that is in charge.

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

/// Keeps guests from having the PMU to themselves.
///
/// # Invariants
///
/// `events` is the perf core's `nr_include_guest_events`, in which one is counted for this object.
pub struct NoMediatedGuests {
    events: NonNull<i32>,
    /// Reports guests that are refused.
    _probe: Option<Probe>,
}

// SAFETY: The variable is a global one, which any thread may change by atomic operations.
unsafe impl Send for NoMediatedGuests {}

// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for NoMediatedGuests {}

impl NoMediatedGuests {
    /// Refuses such guests from now on.
    ///
    /// [`None`] if the kernel cannot have them (`CONFIG_PERF_GUEST_MEDIATED_PMU`). Fails with
    /// `EBUSY` if there is one, with `ENOENT` or another error if the perf core's variables cannot
    /// be found. Process context.
    pub fn new() -> Result<Option<Self>> {
        if !cfg!(CONFIG_PERF_GUEST_MEDIATED_PMU) {
            return Ok(None);
        }
        let symbols = Symbols::new()?;
        let guests = symbols.find(c"nr_mediated_pmu_vms")?.cast::<i32>();
        let events = symbols.find(c"nr_include_guest_events")?.cast::<i32>();
        let lock = symbols.find(c"perf_mediated_pmu_mutex")?.cast();

        // As `mediated_pmu_account_event()`, `kernel/events/core.c`: the lock keeps two from being
        // counted at once of which each excludes the other. SAFETY: The variables are a
        // `struct mutex` and two `atomic_t` of the perf core, in static memory. This is process
        // context, and no lock is held within which the perf core takes this one.
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
        // INVARIANT: Just counted.
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
/// The pointer must be to an `atomic_t` that is never freed, and that is changed by atomic
/// operations alone.
unsafe fn counter(counter: &NonNull<i32>) -> &Atomic<i32> {
    // SAFETY: By this function's requirements.
    unsafe { Atomic::from_ptr(counter.as_ptr()) }
}

/// A probe at the function by which KVM announces such a guest, which fails as long as there is a
/// [`NoMediatedGuests`].
///
/// # Invariants
///
/// The kprobe is registered.
struct Probe(Pin<KBox<Opaque<bindings::kprobe>>>);

// SAFETY: A kprobe may be unregistered by any thread.
unsafe impl Send for Probe {}

// SAFETY: A shared reference gives access to nothing.
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
        // stays where it is until `drop()` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kprobe(probe.get()) })?;
        // INVARIANT: Just registered.
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
    // KVM repeats its own line, which does not give the reason, for each guest.
    kernel::pr_warn_once!(
        "guests with a mediated PMU are refused while rpmu is loaded; load KVM with \
         enable_mediated_pmu=0\n"
    );
    0
}
