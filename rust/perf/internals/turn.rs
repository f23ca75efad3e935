// SPDX-License-Identifier: GPL-2.0

//! The end of a turn before the interval is over.
//!
//! A turn ends when the CPU's [timer](super::rotation) expires. To end one in an NMI, the timer is made to
//! expire at once. That takes the timer's lock, which the NMI may have interrupted; so an irq_work does it, as
//! soon as interrupts are on.

use super::rotation;
use crate::{
    bindings,
    perf::{OnCpu, Operations, Pmu},
};
use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};
use kernel::{interrupt::LocalInterruptDisabled, types::Opaque};

/// A CPU's request that the turn end.
///
/// # Invariants
///
/// `pmu` is null or that of the PMU that this is a part of.
pub(in crate::perf) struct TurnEnd {
    work: Opaque<bindings::irq_work>,
    pmu: AtomicPtr<bindings::pmu>,
}

// SAFETY: The functions of irq_work may be called on any CPU.
unsafe impl Send for TurnEnd {}

// SAFETY: As above; they synchronise.
unsafe impl Sync for TurnEnd {}

impl TurnEnd {
    /// Returns a request that was not made yet.
    pub(in crate::perf) fn new<T: Operations>() -> Self {
        let mut work: bindings::irq_work = pin_init::zeroed();
        // As `IRQ_WORK_INIT_HARD()`.
        work.node.__bindgen_anon_1.u_flags = bindings::IRQ_WORK_HARD_IRQ;
        work.func = Some(end_turn_callback::<T>);
        // INVARIANT: It is null.
        Self {
            work: Opaque::new(work),
            pmu: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

impl<T: Operations> OnCpu<'_, T> {
    /// Ends the turn of the groups on this CPU soon: those that wait come next. Nothing happens if none waits.
    ///
    /// Any context.
    pub fn end_turn(&self) {
        let turn_end = &self.pmu().cpu_state(self).internals.turn_end;
        // INVARIANT: That PMU.
        turn_end.pmu.store(self.pmu().as_raw(), Relaxed);
        // SAFETY: The irq_work is initialised, and stays where it is as long as the PMU, which waits for it
        // before it goes (`finish_turn_ends()`). It may be queued in any context, also while it is queued.
        unsafe { bindings::irq_work_queue(turn_end.work.get()) };
    }
}

impl<T: Operations> Pmu<T> {
    /// Waits until no turn is being ended. The PMU must have no events. Process context.
    pub(in crate::perf) fn finish_turn_ends(&self) {
        for state in self.cpu_states() {
            // SAFETY: The irq_work is initialised, and this is process context.
            unsafe { bindings::irq_work_sync(state.internals.turn_end.work.get()) };
        }
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, with the `work` of a [`TurnEnd`] that is part of a [`Pmu<T>`].
unsafe extern "C" fn end_turn_callback<T: Operations>(work: *mut bindings::irq_work) {
    let work: *mut Opaque<bindings::irq_work> = work.cast();
    // SAFETY: By this function's requirements; the PMU waits for this function before it goes.
    let pmu = unsafe {
        let turn_end = kernel::container_of!(work, TurnEnd, work);
        Pmu::<T>::from_raw((*turn_end).pmu.load(Relaxed))
    };
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if pmu.internals.is_open() {
        // SAFETY: The PMU is registered: `close_internals()` waits for this function before that ends.
        unsafe { rotation::expire(pmu.as_raw(), irqs) };
    }
}
