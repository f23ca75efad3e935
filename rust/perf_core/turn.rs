// SPDX-License-Identifier: GPL-2.0

//! Ending a turn before the interval is over, beginning a turn again, and enabling a PMU that the
//! perf core has left disabled.
//!
//! A turn ends when the CPU's [timer](super::rotation) expires. To end a turn from an NMI, the
//! timer is made to expire at once. This needs the timer's lock, whose holder the NMI may have
//! interrupted, so an irq_work does it as soon as interrupts are on. The same irq_work has all
//! groups offered again after their order has changed, which needs the locks of the contexts.
//!
//! It also looks whether the perf core has left the PMU disabled. At a switch between control
//! groups, the perf core disables the PMU if the CPU's context has events of control groups, and
//! enables it afterwards on the same condition (`perf_cgroup_switch()`, `kernel/events/core.c`). A
//! pinned event of a control group that gets no counter in between no longer counts for the
//! condition (`merge_sched_in()`). If it was the last one, the PMU stays disabled, and no event
//! would ever count on this CPU again. The driver refuses such an event, or the perf core does it
//! by itself, beside an exclusive group.
//!
//! The time from the irq_work until the groups have been placed anew is measured, so that a driver
//! can judge whether turns end too often.

use super::{
    is_of_cgroup,
    rotation,
    time::clock,
    InternalOperations, //
};
use crate::{
    bindings,
    perf::{
        Event,
        OnCpu,
        Pmu, //
    },
};
use core::{
    ptr,
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::{
    interrupt::LocalInterruptDisabled,
    types::Opaque, //
};

/// A CPU's request to end the turn, to begin it again, or to enable the PMU.
///
/// # Invariants
///
/// `pmu` is null, or the PMU that contains this value.
pub(in crate::perf_core) struct Turn {
    work: Opaque<bindings::irq_work>,
    pmu: AtomicPtr<bindings::pmu>,
    ends: AtomicBool,
    begins_again: AtomicBool,
    /// Set if the perf core may leave the PMU disabled.
    may_be_left: AtomicBool,
    /// The time at which the timer was made to expire; 0 once the PMU has been enabled afterwards.
    began: AtomicU64,
    /// The time at which a turn was last ended early, or a request was last refused because of its
    /// [`EndCost`].
    last: AtomicU64,
    /// The time at which a turn was last ended early.
    ended: AtomicU64,
    /// The nanoseconds that this took.
    cost: AtomicU64,
}

/// The multiple of the last end's cost after which [`EndCost::since`] ignores refused requests, so
/// that the cost is measured again.
const LONG_AGO: u64 = 64;

/// The cost of ending turns early on a CPU.
#[derive(Clone, Copy)]
pub struct EndCost {
    /// The nanoseconds since a turn was last ended early, or since a request was last refused. If
    /// the last early end is long ago, refused requests are ignored.
    pub since: u64,
    /// The nanoseconds that the last early end took; 0 if there was none.
    pub cost: u64,
}

// SAFETY: The functions of irq_work may be called on any CPU.
unsafe impl Send for Turn {}

// SAFETY: Only the functions of irq_work use `work`, and they synchronise. The rest is atomic.
unsafe impl Sync for Turn {}

impl Turn {
    /// Makes a value without a request.
    pub(in crate::perf_core) fn new<T: InternalOperations>() -> Self {
        let mut work: bindings::irq_work = pin_init::zeroed();
        // As `IRQ_WORK_INIT_HARD()`.
        work.node.__bindgen_anon_1.u_flags = bindings::IRQ_WORK_HARD_IRQ;
        work.func = Some(turn_callback::<T>);
        // INVARIANT: `pmu` is null.
        Self {
            work: Opaque::new(work),
            pmu: AtomicPtr::new(ptr::null_mut()),
            ends: AtomicBool::new(false),
            begins_again: AtomicBool::new(false),
            may_be_left: AtomicBool::new(false),
            began: AtomicU64::new(0),
            last: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            cost: AtomicU64::new(0),
        }
    }

    /// Makes the perf core offer all groups of `pmu` on this CPU again soon. Interrupts are off.
    #[cold]
    pub(super) fn begin_again(&self, pmu: *mut bindings::pmu) {
        self.begins_again.store(true, Relaxed);
        self.queue(pmu);
    }

    fn queue(&self, pmu: *mut bindings::pmu) {
        // INVARIANT: `pmu` is the PMU that contains this value.
        self.pmu.store(pmu, Relaxed);
        // SAFETY: The irq_work is initialised, and stays in place as long as the PMU, which waits
        // for it before it is freed (`finish_turns()`). It may be queued in any context, even while
        // it is queued.
        unsafe { bindings::irq_work_queue(self.work.get()) };
    }
}

impl<T: InternalOperations> OnCpu<'_, T> {
    /// Ends the turn of the groups on this CPU soon, if `allows` returns true; then waiting groups
    /// get their turn. Nothing happens if no group waits.
    ///
    /// Any context.
    pub fn end_turn(&self, allows: impl FnOnce(EndCost) -> bool) {
        if !self.pmu().internals().is_open() {
            return;
        }
        let turn = &self.data().turn;
        let now = clock();
        let cost = turn.cost.load(Relaxed);
        // The cost is only measured when a turn is ended. The last measurement may include an
        // interruption, as by a hypervisor, so refused requests must not keep it in force for good.
        let mut since = now.wrapping_sub(turn.ended.load(Relaxed));
        if since / LONG_AGO < cost {
            since = now.wrapping_sub(turn.last.load(Relaxed));
        }
        if !allows(EndCost { since, cost }) {
            turn.last.store(now, Relaxed);
            return;
        }
        turn.ends.store(true, Relaxed);
        turn.queue(self.pmu().as_raw());
    }
}

impl<T: InternalOperations> OnCpu<'_, T> {
    /// Enables the PMU of this CPU soon if the perf core leaves it disabled because the pinned
    /// group of `event` is refused.
    ///
    /// To be called when such a group is refused, with interrupts off.
    #[cold]
    pub fn pinned_refused(&self, event: &Event<T>) {
        // SAFETY: The event is valid.
        if unsafe { is_of_cgroup(event.as_raw()) } {
            self.may_be_left();
        }
    }

    /// Enables the PMU of this CPU soon if an exclusive group is on the CPU: beside it, the perf
    /// core may refuse a pinned group and leave the PMU disabled.
    ///
    /// To be called when the perf core disables the PMU.
    ///
    /// # Safety
    ///
    /// `here` must be the PMU's [context](rotation::this_context) of this CPU.
    #[inline]
    pub(in crate::perf_core) unsafe fn may_be_left_if_exclusive(
        &self,
        here: *mut bindings::perf_cpu_pmu_context,
    ) {
        // SAFETY: By this function's requirements; the field is only used on this CPU.
        if unsafe { (*here).exclusive } != 0 {
            self.may_be_left();
        }
    }

    #[cold]
    #[inline(never)]
    fn may_be_left(&self) {
        if self.pmu().internals().is_open() {
            let turn = &self.data().turn;
            turn.may_be_left.store(true, Relaxed);
            turn.queue(self.pmu().as_raw());
        }
    }
}

impl Turn {
    /// Measures the end of a turn, if a turn is being ended.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    pub(in crate::perf_core) unsafe fn after_enable<T: InternalOperations>(&self) {
        let began = self.began.load(Relaxed);
        if began == 0 {
            return;
        }
        // The timer expires as soon as interrupts are on. If something else enables the PMU before,
        // no group has waited, or another interrupt has come first: a later, regular end must not
        // be measured from here.
        self.began.store(0, Relaxed);
        // SAFETY: By the type invariant `pmu` is the PMU that contains this value: it was stored
        // before `began`.
        let pmu = unsafe { Pmu::<T>::from_raw(self.pmu.load(Relaxed)) };
        // SAFETY: The PMU is registered: before it is unregistered, `close()` is called, and then
        // all code that runs with interrupts off is waited for.
        if pmu.internals().is_open() && unsafe { rotation::is_under_way(pmu.as_raw()) } {
            let now = clock();
            self.last.store(now, Relaxed);
            self.ended.store(now, Relaxed);
            self.cost.store(now.wrapping_sub(began), Relaxed);
        }
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Waits until no turn is being ended or begun again. While there are events,
    /// [`begin_again`](Turn::begin_again) may queue the work again; the work does nothing if the
    /// PMU is not open. Process context.
    pub(in crate::perf_core) fn finish_turns(&self) {
        for state in self.data_of_cpus() {
            // SAFETY: The irq_work is initialised, and this is process context.
            unsafe { bindings::irq_work_sync(state.turn.work.get()) };
        }
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, and with the `work` of a [`Turn`] that is part of a
/// [`Pmu<T>`].
unsafe extern "C" fn turn_callback<T: InternalOperations>(work: *mut bindings::irq_work) {
    let work: *mut Opaque<bindings::irq_work> = work.cast();
    // SAFETY: By this function's requirements; the PMU waits for this function before it is freed.
    let (turn, pmu) = unsafe {
        let turn = &*kernel::container_of!(work, Turn, work);
        (turn, Pmu::<T>::from_raw(turn.pmu.load(Relaxed)))
    };
    let ends = turn.ends.swap(false, Relaxed);
    let begins_again = turn.begins_again.swap(false, Relaxed);
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if !pmu.internals().is_open() {
        return;
    }
    if turn.may_be_left.swap(false, Relaxed) {
        // SAFETY: The PMU is registered: `close_internals()` waits for this function before it is
        // unregistered.
        unsafe { rotation::enable_if_left(pmu.as_raw(), irqs) };
    }
    if begins_again {
        // SAFETY: The PMU is registered: `close_internals()` waits for this function before it is
        // unregistered. Interrupts are off, and no lock of the perf core is held on this CPU, since
        // this is an interrupt.
        unsafe { bindings::rpmu_helper_perf_pmu_resched(pmu.as_raw()) };
    }
    if ends {
        turn.began.store(clock().max(1), Relaxed);
        pmu.on_cpu(irqs).data().due.store(true, Relaxed);
        // SAFETY: The PMU is registered: it is open, and `close_internals()` waits for this
        // function before it is unregistered.
        unsafe { rotation::expire(pmu.as_raw(), irqs) };
    }
}
