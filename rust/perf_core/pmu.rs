// SPDX-License-Identifier: GPL-2.0

//! PMUs with extended callbacks, and their registration.

use super::{
    internals_of,
    rotation,
    InternalOperations,
    IntervalEnd, //
};
use crate::{
    bindings,
    perf::{
        self,
        Callbacks,
        Event,
        Groups,
        TaskDataCache, //
    },
};
use core::{
    marker::PhantomData,
    ops::Deref,
    sync::atomic::Ordering::Relaxed, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};

/// A PMU with its driver, whose callbacks this layer extends.
///
/// # Invariants
///
/// The PMU has the callbacks of [`Extended`].
pub struct ExtendedPmu<T: InternalOperations>(Arc<perf::Pmu<T>>);

impl<T: InternalOperations> ExtendedPmu<T> {
    /// Creates a PMU that is not registered yet; `ops` initialises its driver. `task_data` is the
    /// cache for [`Operations::TaskData`], if events of this PMU need such data.
    ///
    /// If `revocable` is set, the driver is not told of mappings ([`Operations::mapped`],
    /// [`Operations::unmapped`]); then open events do not keep the PMU from being unregistered, see
    /// [`perf::Registration`].
    ///
    /// Fails with `ENOMEM`, or with the driver's error. Process context.
    ///
    /// [`Operations::TaskData`]: perf::Operations::TaskData
    /// [`Operations::mapped`]: perf::Operations::mapped
    /// [`Operations::unmapped`]: perf::Operations::unmapped
    pub fn new(
        ops: impl Init<T, Error>,
        groups: Groups,
        task_data: Option<Arc<TaskDataCache<T::TaskData>>>,
        revocable: bool,
    ) -> Result<Self> {
        let callbacks = match revocable {
            true => const { &Extended::<T>::REVOCABLE },
            false => const { &Extended::<T>::PMU },
        };
        // SAFETY: The callbacks that differ call the functions that the original ones call, or are
        // both missing: without the first, the perf core does not call the second.
        let pmu = unsafe { perf::Pmu::with_callbacks(callbacks, ops, groups, task_data)? };
        // INVARIANT: The PMU was created with these callbacks.
        Ok(Self(pmu))
    }

    /// Returns a reference to the PMU.
    pub(super) fn share(&self) -> Arc<perf::Pmu<T>> {
        self.0.clone()
    }
}

impl<T: InternalOperations> Deref for ExtendedPmu<T> {
    type Target = perf::Pmu<T>;

    #[inline]
    fn deref(&self) -> &perf::Pmu<T> {
        &self.0
    }
}

/// The callbacks for a driver, some of them extended.
struct Extended<T: InternalOperations>(PhantomData<T>);

impl<T: InternalOperations> Extended<T> {
    const PMU: bindings::pmu = bindings::pmu {
        pmu_enable: Some(Self::pmu_enable_callback),
        pmu_disable: Some(Self::pmu_disable_callback),
        event_init: Some(Self::event_init_callback),
        ..Callbacks::<T>::PMU
    };

    /// The same without those for which events cannot be revoked (`perf_pmu_unregister()`,
    /// `kernel/events/core.c`).
    const REVOCABLE: bindings::pmu = bindings::pmu {
        event_mapped: None,
        event_unmapped: None,
        ..Self::PMU
    };

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that is registered.
    unsafe extern "C" fn pmu_disable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: This is the callback, which passes its argument. The closure runs only if the PMU
        // was not disabled before, and `cx` does not outlive it.
        unsafe {
            Callbacks::<T>::core_disable(pmu, |cx| {
                // SAFETY: The PMU is registered, and interrupts are off.
                let here = rotation::this_context(pmu);
                cx.may_be_left_if_exclusive(here);
                if let Some(cx) = IntervalEnd::new(cx, here) {
                    cx.pmu().ops().end_interval(&cx);
                }
            });
        }
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that it has disabled on this CPU.
    unsafe extern "C" fn pmu_enable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: This is the callback: interrupts are off, this is not an NMI, and the perf core
        // has enabled the PMU.
        unsafe {
            Callbacks::<T>::core_enable(pmu, |cx| {
                cx.data().after_enable();
                cx.pmu().internals().enable_predecessor();
            });
        }
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that is being opened and whose `pmu` is
    /// registered.
    unsafe extern "C" fn event_init_callback(event: *mut bindings::perf_event) -> c_int {
        // SAFETY: The event has a leader, which is valid. `parent` is only compared.
        let is_first_of_pinned =
            unsafe { (*event).parent.is_null() && (*(*event).group_leader).attr.pinned() != 0 };
        // SAFETY: This is the callback.
        let error = unsafe {
            Callbacks::<T>::init_event(event, |pmu, data| {
                if is_first_of_pinned && pmu.pinned_opened()? {
                    T::event_state(data).watched.store(true, Relaxed);
                }
                Ok(())
            })
        };
        if error == 0 {
            // SAFETY: In `event_init`, only the PMU uses this field of the event.
            unsafe { (*event).destroy = Some(Self::destroy_callback) };
        }
        error
    }

    /// # Safety
    ///
    /// To be called by the perf core, once, with an event whose `destroy` `event_init` has set to
    /// this function.
    unsafe extern "C" fn destroy_callback(event: *mut bindings::perf_event) {
        // SAFETY: The event is open, and its PMU lives as long as the event.
        let (pmu, state) = unsafe {
            let pmu = perf::Pmu::<T>::from_raw((*event).pmu);
            (pmu, internals_of(Event::<T>::from_raw(event)))
        };
        if state.waits.load(Relaxed) {
            pmu.forget_waiting(event);
        }
        if state.watched.load(Relaxed) {
            pmu.pinned_closed();
        }
        // SAFETY: This is the callback, and `init_event()` has succeeded.
        unsafe { Callbacks::<T>::destroy_callback(event) };
    }
}

/// A registered PMU, with the extensions of this layer active. Dropping unregisters it, see
/// [`perf::Registration`].
// Fields are dropped in the order of their declaration.
pub struct Registration<T: InternalOperations> {
    registration: perf::Registration<T>,
    _turns: Turns<T>,
}

impl<T: InternalOperations> Registration<T> {
    /// Makes `pmu` visible to users under `name` and the event type `event_type`, or under a new
    /// type if this is [`None`].
    ///
    /// Fails as [`perf::Registration::new`] does. Process context.
    pub fn new(pmu: &ExtendedPmu<T>, name: &'static CStr, event_type: Option<u32>) -> Result<Self> {
        let registration = perf::Registration::new(pmu.share(), name, event_type)?;
        pmu.internals().open();
        Ok(Self {
            registration,
            _turns: Turns(pmu.share()),
        })
    }
}

impl<T: InternalOperations> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: The PMU is registered until the field is dropped.
        unsafe { self.registration.pmu().close_internals() };
    }
}

/// The work that ends turns or begins them again, which enabling the PMU may queue until the last
/// event has gone. Dropping waits for it.
struct Turns<T: InternalOperations>(Arc<perf::Pmu<T>>);

impl<T: InternalOperations> Drop for Turns<T> {
    fn drop(&mut self) {
        self.0.finish_turns();
    }
}
