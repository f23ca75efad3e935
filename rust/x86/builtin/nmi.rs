// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's NMI handler, `perf_event_nmi_handler()` (`arch/x86/events/core.c`).
//!
//! It stays registered as long as the kernel runs. While `active_events` is not 0, it calls the
//! driver by the static call `x86_pmu_handle_irq`, measures the time, and reports it to the perf
//! core. Besides the built-in driver, `x86_add_exclusive()` (`arch/x86/events/core.c`) increments
//! `active_events`: for each event of Intel PT and BTS, and for each
//! [`NoTracers`](crate::x86::branches::NoTracers) of this driver.
//!
//! A driver that replaces the built-in one directs the static call to itself. If it registered a
//! second handler instead, the kernel would time two handlers for each NMI (`nmi_handle()`,
//! `arch/x86/kernel/nmi.c`), and while an event of a tracer is open, the built-in driver would
//! acknowledge the overflows of all counters (`intel_pmu_handle_irq()`,
//! `arch/x86/events/intel/core.c`).

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicI32,
        Ordering, //
    },
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// The amount that [`Handler::direct`] has added to `active_events`. While that changes, it is too
/// low rather than too high, so that [`Handler::serves_others`] misses no event of a tracer.
static OWN: AtomicI32 = AtomicI32::new(0);

/// The function that the built-in driver's NMI handler calls.
pub(in crate::x86) type Target = unsafe extern "C" fn(regs: *mut bindings::pt_regs) -> c_int;

/// The built-in driver's NMI handler, as an object that can be directed to another function.
///
/// # Invariants
///
/// The pointers are to kernel objects that are never freed: `active_events`, and the key and the
/// trampoline of the static call `x86_pmu_handle_irq`.
#[derive(Clone, Copy)]
pub struct Handler {
    active: NonNull<c_void>,
    key: NonNull<bindings::static_call_key>,
    trampoline: NonNull<c_void>,
}

// SAFETY: The pointers are to kernel objects that any thread may use. The methods say why their
// accesses do not race.
unsafe impl Send for Handler {}

// SAFETY: The methods access `active_events` atomically. The static call is changed by a function
// that takes its own locks.
unsafe impl Sync for Handler {}

impl Handler {
    /// Finds the handler. Fails if the kernel's symbols cannot be found. Process context.
    pub fn find() -> Result<Self> {
        let symbols = Symbols::new()?;
        // INVARIANT: These are the kernel's objects, found by their names.
        Ok(Self {
            active: symbols.find(c"active_events")?,
            key: symbols.find(c"__SCK__x86_pmu_handle_irq")?.cast(),
            trampoline: symbols.find(c"__SCT__x86_pmu_handle_irq")?,
        })
    }

    /// Returns `active_events`.
    fn active(&self) -> &Atomic<i32> {
        // CAST: an `atomic_t` is an `int`.
        // SAFETY: By the type invariant the pointer is to an `atomic_t` that is never freed. All
        // accesses to it are atomic.
        unsafe { Atomic::<i32>::from_ptr(self.active.as_ptr().cast()) }
    }

    /// Returns whether the handler may serve events of other drivers. Without such events, also
    /// returns true while there is a [`NoTracers`](crate::x86::branches::NoTracers), and briefly
    /// while the handler is being [directed](Self::direct) or given back. Any context.
    #[inline]
    pub(in crate::x86) fn serves_others(&self) -> bool {
        self.active().load(Relaxed) > OWN.load(Ordering::Relaxed)
    }

    /// Directs the handler to `target` for all NMIs, until the result is dropped. Process context;
    /// may sleep.
    pub(in crate::x86) fn direct(self, target: Target) -> Directed {
        // SAFETY: By the type invariant `key` is the key of a static call. The kernel itself
        // changes its target only when the built-in driver initialises
        // (`x86_pmu_static_call_update()`, `arch/x86/events/core.c`).
        let before = unsafe { bindings::rpmu_helper_static_call_target(self.key.as_ptr()) };
        self.redirect(target as *mut c_void);
        // Only now, so that the built-in driver is never called for events of this driver.
        self.active().add(1, Relaxed);
        OWN.store(1, Ordering::Relaxed);
        // INVARIANT: The call has just been directed and `active_events` incremented; `before` is
        // the previous target.
        Directed {
            handler: self,
            before,
        }
    }

    /// Redirects the static call.
    ///
    /// Rewriting the code sends an interrupt to each CPU (`smp_text_poke_batch_finish()`), which is
    /// taken only after an NMI there has returned. So no CPU is in the former target when this
    /// returns.
    fn redirect(&self, target: *mut c_void) {
        // SAFETY: By the type invariant the pointers belong to a static call. Both targets, the
        // caller's function and the previous one, have its type. The function takes its own locks.
        unsafe {
            bindings::rpmu_helper_static_call_redirect(
                self.key.as_ptr(),
                self.trampoline.as_ptr(),
                target,
            )
        };
    }
}

/// The built-in driver's NMI handler, directed to another function. Dropping directs it back.
///
/// # Invariants
///
/// The static call is directed to another function, and `before` is its previous target.
/// `active_events` has been incremented once for this object.
pub(in crate::x86) struct Directed {
    handler: Handler,
    before: *mut c_void,
}

// SAFETY: As for `Handler`.
unsafe impl Send for Directed {}

// SAFETY: There are no methods that take a shared reference.
unsafe impl Sync for Directed {}

impl Drop for Directed {
    fn drop(&mut self) {
        OWN.store(0, Ordering::Relaxed);
        // Decrement before redirecting, so that the built-in driver is never called without events.
        self.handler.active().add(-1, Relaxed);
        self.handler.redirect(self.before);
    }
}
