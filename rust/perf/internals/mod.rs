// SPDX-License-Identifier: GPL-2.0

//! What reaches into private parts of the perf core: structures that no driver is meant to know, and
//! functions that modules cannot link to.
//!
//! This has no place in the kernel proper, where the perf core itself would be changed. The rest of
//! [`perf`](crate::perf) is written as if it were to go upstream. It meets this directory in six
//! places, all in this file: [`InternalOperations`], what a [`Pmu`] and each of its CPUs keep, and the calls
//! after the PMU was enabled, before that callback ends, and before the PMU is unregistered.

mod behind;
mod context;
mod disable_watch;
mod foreign;
mod ibs;
mod inactive;
mod mediated;
mod offers;
mod pinned;
mod resched;
mod rotation;
mod scheduling;
mod symbols;
mod time;
mod tree;
mod turn;
mod users;

pub use behind::Behind;
pub use context::{Context, Version, WaitingGroup};
pub use disable_watch::DisableWatch;
pub use foreign::{BuiltinPmu, NotFound, UnregisteredPmu};
pub use ibs::Ibs;
pub use mediated::NoMediatedGuests;
pub use pinned::PinnedGroup;
pub use scheduling::{IntervalEnd, Scheduling};
pub use symbols::{bind_perf_pmu_resched, bind_sampling, bind_sched_task};
pub use turn::EndCost;
pub use users::{UserKind, Users};

use super::{OnCpu, Operations, Pmu};
use crate::bindings;
use core::{ptr, sync::atomic::AtomicPtr};
use disable_watch::UserProbes;
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// The flag of software events, and of the groups that the perf core takes for such.
const SOFTWARE: i32 = bindings::RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE;
const OFFER_ALWAYS: i32 = SOFTWARE;

const ERROR: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ERROR;
const OFF: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_OFF;
const INACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;
const ACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE;

/// Decisions of a driver that the perf core itself does not ask for.
pub trait InternalOperations: Sized {
    /// Puts the groups that rotate into the order in which they are to be offered.
    ///
    /// Called when an interval is over, before groups are taken off this CPU and offered anew.
    fn end_interval(&self, cx: &IntervalEnd<'_, Self>)
    where
        Self: Operations;

    /// Returns whether there would be a place, now, for a group that [waits](OnCpu::wait_if_pinned),
    /// with the pinned events that are on the CPU staying there. If not, the group waits on.
    ///
    /// The lock of the group's context is held.
    fn has_room_for(&self, cx: &OnCpu<'_, Self>, group: &PinnedGroup<'_, Self>) -> bool
    where
        Self: Operations;
}

/// The state of a CPU.
pub(super) struct CpuState {
    /// What the perf core is asked for until the PMU is enabled.
    offers: offers::Offers,
    /// The request to schedule anew.
    resched: resched::Request,
    /// The pinned groups that wait.
    waiting: pinned::Waiting,
    /// The request that the turn end, or begin again.
    turn: turn::Turn,
}

impl CpuState {
    pub(super) fn new<T: Operations>() -> Self {
        Self {
            offers: offers::Offers::new(),
            resched: resched::Request::new(),
            waiting: pinned::Waiting::new(),
            turn: turn::Turn::new::<T>(),
        }
    }

    /// Takes back what the perf core was asked for, and has it offer all groups again where that changes their
    /// order.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    #[inline]
    pub(super) unsafe fn after_enable<T: Operations>(&self) {
        // SAFETY: By this function's requirements.
        let again = unsafe { self.offers.take_back::<T>() };
        // SAFETY: As above.
        unsafe { self.turn.after_enable::<T>() };
        if let Some(pmu) = again {
            self.turn.begin_again(pmu);
        }
    }
}

/// The state of a PMU.
#[pin_data]
pub(super) struct PmuState<T: Operations> {
    /// Set while the PMU is registered, and not about to be unregistered.
    open: Atomic<bool>,
    /// Set while pinned groups that wait are tried again: only while there is a
    /// [`DisableWatch`].
    retries_pinned: Atomic<bool>,
    /// Set once a pinned group has waited.
    has_waited: Atomic<bool>,
    /// The built-in driver's PMU that this one replaces; null if it replaces none.
    predecessor: AtomicPtr<bindings::pmu>,
    /// The code of its `pmu_enable`; or a word like that of a function that nothing is attached to.
    hook: AtomicPtr<u64>,
    /// For the [`DisableWatch`].
    #[pin]
    user_probes: UserProbes<T>,
}

impl<T: Operations> PmuState<T> {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            open: Atomic::new(false),
            retries_pinned: Atomic::new(false),
            has_waited: Atomic::new(false),
            predecessor: AtomicPtr::new(ptr::null_mut()),
            hook: AtomicPtr::new(foreign::no_function()),
            user_probes <- UserProbes::new(),
        })
    }

    /// Says that the PMU has been registered.
    pub(super) fn open(&self) {
        self.open.store(true, Relaxed);
    }

    fn close(&self) {
        self.open.store(false, Relaxed);
    }

    /// Returns whether the PMU is registered, and not about to be unregistered.
    fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }
}

impl<T: Operations> Pmu<T> {
    /// Stops the rotation of events on this CPU, which goes off line, while all others wait with interrupts off.
    ///
    /// Does nothing if the PMU is not registered.
    pub fn stop_rotation(&self, irqs: &LocalInterruptDisabled) {
        if self.internals.is_open() {
            // SAFETY: The PMU is registered: before that ends, `close()` says so.
            unsafe { rotation::stop_here(self.as_raw(), irqs) };
        }
    }

    /// Ends all use of the perf core's private parts, before the PMU is unregistered.
    ///
    /// Process context.
    ///
    /// # Safety
    ///
    /// The PMU must be registered.
    pub(super) unsafe fn close_internals(&self) {
        self.close_resched();
        self.finish_turns();
        // SAFETY: By this function's requirements.
        unsafe { rotation::stop(self.as_raw()) };
    }
}
