// SPDX-License-Identifier: GPL-2.0

//! What reaches into private parts of the perf core: structures that no driver is meant to know,
//! and functions that modules cannot link to. And tracepoints.
//!
//! This has no place in the kernel proper, where the perf core itself would be changed.
//! [`perf`](crate::perf), which could go upstream, knows nothing of it: a [`Pmu`] wraps one of its
//! PMUs, whose callbacks it extends ([`pmu`]). It keeps data of its own for the PMU and for each
//! event, in fields that the driver has for that ([`HasInternals`], [`has_internals`]), and for
//! each CPU ([`CpuState`]). Methods of the perf core's objects that need this data are only there
//! for drivers that implement [`InternalOperations`].

mod behind;
mod context;
mod disable_watch;
mod event;
mod foreign;
mod ibs;
mod inactive;
mod mediated;
mod offers;
mod pinned;
mod pmu;
mod resched;
mod rotation;
mod scheduling;
mod time;
pub mod trace;
mod tree;
mod turn;
mod users;

pub use behind::Behind;
pub use context::{
    Cgroups,
    Context,
    Version,
    WaitingGroup, //
};
pub use disable_watch::DisableWatch;
pub use event::EventState;
pub use foreign::{
    BuiltinPmu,
    NotFound,
    UnregisteredPmu, //
};
pub use ibs::Ibs;
pub use mediated::NoMediatedGuests;
pub use pinned::PinnedGroup;
pub use pmu::{
    Pmu,
    Registration, //
};
pub use resched::bind_perf_pmu_resched;
pub use scheduling::IntervalEnd;
pub use turn::EndCost;
pub use users::{
    UserKind,
    Users, //
};

use crate::{
    bindings,
    perf::{
        self,
        OnCpu,
        Operations, //
    },
};
use core::{
    marker::PhantomData,
    ptr,
    sync::atomic::AtomicPtr, //
};
use disable_watch::UserProbes;
use event::internals_of;
use kernel::{
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use tree::is_of_cgroup;

/// The flag of software events, and of the groups that the perf core takes for such.
const SOFTWARE: i32 = bindings::RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE;
const OFFER_ALWAYS: i32 = SOFTWARE;

const ERROR: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ERROR;
const OFF: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_OFF;
const INACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;
const ACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE;

/// Decisions of a driver that the perf core itself does not ask for.
pub trait InternalOperations: Operations<CpuData = CpuState<Self>> + HasInternals {
    /// Puts the groups that rotate into the order in which they are to be offered.
    ///
    /// Called when an interval is over, before groups are taken off this CPU and offered anew.
    fn end_interval(&self, cx: &IntervalEnd<'_, Self>);

    /// Returns whether there would be a place, now, for a group that
    /// [waits](perf::Scheduling::wait_if_pinned), with the pinned events that are on the CPU
    /// staying there. If not, the group waits on.
    ///
    /// The lock of the group's context is held.
    fn has_room_for(&self, cx: &OnCpu<'_, Self>, group: &PinnedGroup<'_, Self>) -> bool;
}

/// A driver that has a field for a [`PmuState`], and one for an [`EventState`] in its data of an
/// event.
///
/// # Safety
///
/// Each method must return the same field of its argument each time. [`has_internals!`] implements
/// it so.
pub unsafe trait HasInternals: Operations {
    /// Returns the state of the PMU.
    fn state(&self) -> &PmuState<Self>
    where
        Self: InternalOperations;

    /// Returns the state of an event.
    fn event_state(data: &Self::EventData) -> &EventState;
}

/// Implements [`HasInternals`]: names the driver with its field, and the type of its data of an
/// event with that one's.
macro_rules! has_internals {
    ($driver:ident.$state:ident, $data:ident.$event_state:ident) => {
        // SAFETY: The methods return fields of their arguments: a pattern binds no other thing, and
        // no field of a packed type. A raw pointer is not dereferenced to one of the same type.
        unsafe impl $crate::perf_core::HasInternals for $driver {
            #[inline(always)]
            fn state(&self) -> &$crate::perf_core::PmuState<Self> {
                let $driver { $state: state, .. } = self;
                let state: *const $crate::perf_core::PmuState<Self> = &raw const *state;
                // SAFETY: A field of `self`.
                unsafe { &*state }
            }

            #[inline(always)]
            fn event_state(data: &$data) -> &$crate::perf_core::EventState {
                let $data {
                    $event_state: state,
                    ..
                } = data;
                let state: *const $crate::perf_core::EventState = &raw const *state;
                // SAFETY: A field of `data`.
                unsafe { &*state }
            }
        }
    };
}
pub(crate) use has_internals;

/// The state of a CPU of a PMU with the driver `T`.
pub struct CpuState<T> {
    /// What the perf core is asked for until the PMU is enabled.
    offers: offers::Offers,
    /// The request to schedule anew.
    resched: resched::Request,
    /// The pinned groups that wait.
    waiting: pinned::Waiting,
    /// The request that the turn end, or begin again.
    turn: turn::Turn,
    _driver: PhantomData<fn(T)>,
}

impl<T: InternalOperations> Default for CpuState<T> {
    fn default() -> Self {
        Self {
            offers: offers::Offers::new(),
            resched: resched::Request::new(),
            waiting: pinned::Waiting::new(),
            turn: turn::Turn::new::<T>(),
            _driver: PhantomData,
        }
    }
}

impl<T: InternalOperations> CpuState<T> {
    /// Takes back what the perf core was asked for, and has it offer all groups again where that
    /// changes their order.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the perf core has enabled the PMU, before that callback ends.
    #[inline]
    unsafe fn after_enable(&self) {
        // SAFETY: By this function's requirements.
        let again = unsafe { self.offers.take_back::<T>() };
        // SAFETY: By this function's requirements this is the CPU on which the perf core has
        // enabled the PMU, and that callback has not ended.
        unsafe { self.turn.after_enable::<T>() };
        if let Some(pmu) = again {
            self.turn.begin_again(pmu);
        }
    }
}

/// The state of a PMU.
pub struct PmuState<T: InternalOperations> {
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
    user_probes: Pin<KBox<UserProbes<T>>>,
}

impl<T: InternalOperations> PmuState<T> {
    /// Makes the state of a PMU that is not registered yet. Fails with `ENOMEM`. Process context.
    pub fn new() -> Result<Self> {
        Ok(Self {
            open: Atomic::new(false),
            retries_pinned: Atomic::new(false),
            has_waited: Atomic::new(false),
            predecessor: AtomicPtr::new(ptr::null_mut()),
            hook: AtomicPtr::new(foreign::no_function()),
            user_probes: KBox::pin_init(UserProbes::new(), GFP_KERNEL)?,
        })
    }

    /// Says that the PMU has been registered.
    fn open(&self) {
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

impl<T: InternalOperations> perf::Pmu<T> {
    /// Returns the state of the PMU.
    #[inline(always)]
    fn internals(&self) -> &PmuState<T> {
        self.ops().state()
    }

    /// Stops the rotation of events on this CPU, which goes off line, while all others wait with
    /// interrupts off.
    ///
    /// Does nothing if the PMU is not registered.
    pub fn stop_rotation(&self, irqs: &LocalInterruptDisabled) {
        if self.internals().is_open() {
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
    unsafe fn close_internals(&self) {
        self.close_resched();
        self.finish_turns();
        // SAFETY: By this function's requirements.
        unsafe { rotation::stop(self.as_raw()) };
    }
}
