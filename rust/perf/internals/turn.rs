// SPDX-License-Identifier: GPL-2.0

//! The end of a turn before the interval is over, and its repeated beginning.
//!
//! A turn ends when the CPU's [timer](super::rotation) expires. To end one in an NMI, the timer is made to
//! expire at once. That takes the timer's lock, which the NMI may have interrupted; so an irq_work does it, as
//! soon as interrupts are on. The same irq_work has all groups offered again after the order has changed, which
//! takes the locks of the contexts.
//!
//! The time from the request until the groups have been placed anew is measured: a driver decides by it whether turns end
//! too often.

use super::{rotation, time::clock};
use crate::{
    bindings,
    perf::{OnCpu, Operations, Pmu},
};
use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed},
};
use kernel::{interrupt::LocalInterruptDisabled, types::Opaque};

/// A CPU's request that the turn end, or begin again.
///
/// # Invariants
///
/// `pmu` is null or that of the PMU that this is a part of.
pub(in crate::perf) struct Turn {
    work: Opaque<bindings::irq_work>,
    pmu: AtomicPtr<bindings::pmu>,
    ends: AtomicBool,
    begins_again: AtomicBool,
    /// The time at which the turn was ended that is followed by the placing of groups; 0 if none was.
    began: AtomicU64,
    /// The time at which the last one had been ended, or was not because of its [`EndCost`].
    last: AtomicU64,
    /// The nanoseconds that the last end took.
    cost: AtomicU64,
}

/// The cost of ending turns on a CPU.
#[derive(Clone, Copy)]
pub struct EndCost {
    /// The nanoseconds since the last turn was ended early, or was not although it was requested.
    pub since: u64,
    /// The nanoseconds that the last end took.
    pub cost: u64,
}

// SAFETY: The functions of irq_work may be called on any CPU.
unsafe impl Send for Turn {}

// SAFETY: As above; they synchronise.
unsafe impl Sync for Turn {}

impl Turn {
    /// Returns a request that was not made yet.
    pub(in crate::perf) fn new<T: Operations>() -> Self {
        let mut work: bindings::irq_work = pin_init::zeroed();
        // As `IRQ_WORK_INIT_HARD()`.
        work.node.__bindgen_anon_1.u_flags = bindings::IRQ_WORK_HARD_IRQ;
        work.func = Some(turn_callback::<T>);
        // INVARIANT: It is null.
        Self {
            work: Opaque::new(work),
            pmu: AtomicPtr::new(ptr::null_mut()),
            ends: AtomicBool::new(false),
            begins_again: AtomicBool::new(false),
            began: AtomicU64::new(0),
            last: AtomicU64::new(0),
            cost: AtomicU64::new(0),
        }
    }

    /// Has all groups of `pmu` on this CPU offered again soon. Interrupts are off.
    #[cold]
    pub(super) fn begin_again(&self, pmu: *mut bindings::pmu) {
        self.begins_again.store(true, Relaxed);
        self.queue(pmu);
    }

    fn queue(&self, pmu: *mut bindings::pmu) {
        // INVARIANT: The PMU that this is a part of.
        self.pmu.store(pmu, Relaxed);
        // SAFETY: The irq_work is initialised, and stays where it is as long as the PMU, which waits for it
        // before it goes (`finish_turns()`). It may be queued in any context, also while it is queued.
        unsafe { bindings::irq_work_queue(self.work.get()) };
    }
}

impl<T: Operations> OnCpu<'_, T> {
    /// Ends the turn of the groups on this CPU soon, if `allows` it: those that wait come next. Nothing happens if none
    /// waits.
    ///
    /// Any context.
    pub fn end_turn(&self, allows: impl FnOnce(EndCost) -> bool) {
        let turn = &self.pmu().cpu_state(self).internals.turn;
        let now = clock();
        if !allows(EndCost {
            since: now.wrapping_sub(turn.last.load(Relaxed)),
            cost: turn.cost.load(Relaxed),
        }) {
            turn.last.store(now, Relaxed);
            return;
        }
        turn.ends.store(true, Relaxed);
        turn.queue(self.pmu().as_raw());
    }
}

impl Turn {
    /// Measures the end of a turn, if this is one.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    #[inline]
    pub(in crate::perf) unsafe fn after_enable(&self) {
        let began = self.began.load(Relaxed);
        if began == 0 {
            return;
        }
        let pmu = self.pmu.load(Relaxed);
        // SAFETY: The PMU is registered, as it is being enabled, and interrupts are off. By the type invariant it is
        // the one of this: it was stored before `began`.
        if unsafe { rotation::is_under_way(pmu) } {
            let now = clock();
            self.began.store(0, Relaxed);
            self.last.store(now, Relaxed);
            self.cost.store(now.wrapping_sub(began), Relaxed);
        }
    }
}

impl<T: Operations> Pmu<T> {
    /// Waits until no turn is being ended or begun again. The PMU must have no events. Process context.
    pub(in crate::perf) fn finish_turns(&self) {
        for state in self.cpu_states() {
            // SAFETY: The irq_work is initialised, and this is process context.
            unsafe { bindings::irq_work_sync(state.internals.turn.work.get()) };
        }
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, with the `work` of a [`Turn`] that is part of a [`Pmu<T>`].
unsafe extern "C" fn turn_callback<T: Operations>(work: *mut bindings::irq_work) {
    let work: *mut Opaque<bindings::irq_work> = work.cast();
    // SAFETY: By this function's requirements; the PMU waits for this function before it goes.
    let (turn, pmu) = unsafe {
        let turn = &*kernel::container_of!(work, Turn, work);
        (turn, Pmu::<T>::from_raw(turn.pmu.load(Relaxed)))
    };
    let ends = turn.ends.swap(false, Relaxed);
    let begins_again = turn.begins_again.swap(false, Relaxed);
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if !pmu.internals.is_open() {
        return;
    }
    if begins_again {
        // SAFETY: The PMU is registered: `close_internals()` waits for this function before that ends. Interrupts
        // are off, and no lock of the perf core is held on this CPU, as this is an interrupt.
        unsafe { bindings::rpmu_helper_perf_pmu_resched(pmu.as_raw()) };
    }
    if ends {
        turn.began.store(clock().max(1), Relaxed);
        // SAFETY: As above.
        unsafe { rotation::expire(pmu.as_raw(), irqs) };
    }
}
