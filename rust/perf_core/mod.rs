// SPDX-License-Identifier: GPL-2.0

//! Access to private parts of the perf core: structures that no driver is meant to know, and
//! functions that modules cannot link to. Also tracepoints.
//!
//! This has no place in the kernel proper, where the perf core itself would be changed.
//! [`perf`](crate::perf), which could go upstream, does not depend on it: an [`ExtendedPmu`] here
//! wraps a [`perf::Pmu`] and extends its callbacks ([`pmu`]). This layer keeps data for the PMU and
//! for each event, in fields of the driver's structures ([`HasInternals`], [`has_internals`]), and
//! for each CPU ([`CpuState`]). Methods that need this data exist only for drivers that implement
//! [`InternalOperations`].

mod behind;
mod context;
mod disable_watch;
mod event;
mod failing;
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
    EventGroup,
    Version, //
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
    ExtendedPmu,
    Registration, //
};
pub use resched::bind_perf_pmu_resched;
pub use scheduling::IntervalEnd;
pub use time::clock;
pub use turn::EndCost;
pub use users::{
    User,
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
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        Ordering, //
    },
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

/// The flag of software events, and of groups that the perf core treats as groups of software
/// events.
const SOFTWARE: i32 = bindings::RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE;
/// The same flag, in the `group_caps` of a group that the perf core is to offer even if the PMU has
/// refused an earlier one.
const OFFER_ALWAYS: i32 = SOFTWARE;

const ERROR: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ERROR;
const OFF: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_OFF;
const INACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;
const ACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE;

/// Decisions of a driver for which the perf core itself has no callbacks.
pub trait InternalOperations: Operations<CpuData = CpuState<Self>> + HasInternals {
    /// Puts the rotating groups into the order in which they will be offered.
    ///
    /// Called when an interval is over, before groups are removed from this CPU and offered anew.
    fn end_interval(&self, cx: &IntervalEnd<'_, Self>);

    /// Returns whether a group that [waits](perf::Scheduling::wait_if_pinned) would now find a
    /// place beside the CPU's pinned events. If not, the group keeps waiting.
    ///
    /// The lock of the group's context is held.
    fn has_room_for(&self, cx: &OnCpu<'_, Self>, group: &PinnedGroup<'_, Self>) -> bool;
}

/// A driver that has a field for a [`PmuState`], and one for an [`EventState`] in its data of an
/// event.
///
/// # Safety
///
/// Each method must always return the same field of its argument. [`has_internals!`] does so.
pub unsafe trait HasInternals: Operations {
    /// Returns the state of the PMU.
    fn state(&self) -> &PmuState<Self>
    where
        Self: InternalOperations;

    /// Returns the state of an event.
    fn event_state(data: &Self::EventData) -> &EventState;
}

/// Implements [`HasInternals`] for a driver, given its field, and the type of its event data with
/// the field there.
macro_rules! has_internals {
    ($driver:ident.$state:ident, $data:ident.$event_state:ident) => {
        // SAFETY: The methods return fields of their arguments: a pattern binds fields only, and
        // not those of packed types.
        unsafe impl $crate::perf_core::HasInternals for $driver {
            #[inline(always)]
            fn state(&self) -> &$crate::perf_core::PmuState<Self> {
                let $driver { $state: state, .. } = self;
                let state: *const $crate::perf_core::PmuState<Self> = &raw const *state;
                // SAFETY: The pointer is to a field of `self`.
                unsafe { &*state }
            }

            #[inline(always)]
            fn event_state(data: &$data) -> &$crate::perf_core::EventState {
                let $data {
                    $event_state: state,
                    ..
                } = data;
                let state: *const $crate::perf_core::EventState = &raw const *state;
                // SAFETY: The pointer is to a field of `data`.
                unsafe { &*state }
            }
        }
    };
}
pub(crate) use has_internals;

/// The state of a CPU of a PMU with the driver `T`.
///
/// # Invariants
///
/// `due` is set while there are offers or orders in `offers`.
pub struct CpuState<T> {
    /// The requests to the perf core that hold until the PMU is enabled.
    offers: offers::Offers,
    /// The request to schedule this CPU anew.
    resched: resched::Request,
    /// The waiting pinned groups.
    waiting: pinned::WaitingPinned,
    /// The request to end the turn, or to begin it again.
    turn: turn::Turn,
    /// Set if something is to be done once the PMU is enabled: take offers back, or measure the
    /// end of a turn.
    due: AtomicBool,
    _driver: PhantomData<fn(T)>,
}

impl<T: InternalOperations> Default for CpuState<T> {
    fn default() -> Self {
        // INVARIANT: There are no offers.
        Self {
            offers: offers::Offers::new(),
            resched: resched::Request::new(),
            waiting: pinned::WaitingPinned::new(),
            turn: turn::Turn::new::<T>(),
            due: AtomicBool::new(false),
            _driver: PhantomData,
        }
    }
}

impl<T: InternalOperations> CpuState<T> {
    /// Returns the offers, for the caller to add some until the PMU is enabled.
    fn offers_to_change(&self) -> &offers::Offers {
        // INVARIANT: Set before there are any.
        self.due.store(true, Ordering::Relaxed);
        &self.offers
    }

    /// Withdraws the requests to the perf core. If this moves waiting groups forward, makes the
    /// perf core offer all groups again. If a turn has been ended, measures its cost.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the perf core has enabled the PMU, before that callback ends.
    #[inline]
    unsafe fn after_enable(&self) {
        if self.due.load(Ordering::Relaxed) {
            // SAFETY: By this function's requirements.
            unsafe { self.do_what_is_due() };
        }
    }

    /// Does what is due, for [`after_enable`](Self::after_enable).
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(never)]
    unsafe fn do_what_is_due(&self) {
        // INVARIANT: `take_back()` leaves no offers.
        self.due.store(false, Ordering::Relaxed);
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
    /// Set once the PMU has been registered.
    was_open: Atomic<bool>,
    /// Set while waiting pinned groups are tried again: only while there is a [`DisableWatch`].
    retries_pinned: Atomic<bool>,
    /// Set once a pinned group has waited.
    has_waited: Atomic<bool>,
    /// The built-in driver's PMU that this one replaces; null if it replaces none.
    predecessor: AtomicPtr<bindings::pmu>,
    /// The code of the predecessor's `pmu_enable`; without one, a word like the code of a function
    /// to which nothing is attached.
    hook: AtomicPtr<u64>,
    /// The probes of the [`DisableWatch`].
    user_probes: Pin<KBox<UserProbes<T>>>,
}

impl<T: InternalOperations> PmuState<T> {
    /// Makes the state of a PMU that is not registered yet. Fails with `ENOMEM`. Process context.
    pub fn new() -> Result<Self> {
        Ok(Self {
            open: Atomic::new(false),
            was_open: Atomic::new(false),
            retries_pinned: Atomic::new(false),
            has_waited: Atomic::new(false),
            predecessor: AtomicPtr::new(ptr::null_mut()),
            hook: AtomicPtr::new(foreign::no_function()),
            user_probes: KBox::pin_init(UserProbes::new(), GFP_KERNEL)?,
        })
    }

    /// Marks the PMU as registered.
    fn open(&self) {
        self.was_open.store(true, Relaxed);
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

    /// Stops the rotation of events on this CPU, which is going offline while all other CPUs wait
    /// with interrupts off.
    ///
    /// Does nothing if the PMU is not registered.
    pub fn stop_rotation(&self, irqs: &LocalInterruptDisabled) {
        if self.internals().is_open() {
            // SAFETY: The PMU is registered: `close()` is called before it is unregistered.
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
