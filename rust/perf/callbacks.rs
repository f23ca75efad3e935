// SPDX-License-Identifier: GPL-2.0

//! What the perf core calls: the function pointers of `struct pmu`.

use super::{
    event::{STOPPED, UPTODATE},
    pmu::{disabled_by, OnCpu, PmuDisabled},
    Event, NewEvent, Operations, Pmu,
};
use crate::bindings;
use core::marker::PhantomData;
use kernel::{
    error::{code::*, from_result},
    ffi::{c_int, c_uint},
    interrupt::LocalInterruptDisabled,
    sync::atomic::Relaxed,
};

/// `struct pmu` of drivers that implement `T`.
///
/// All functions but [`event_init_callback`](Self::event_init_callback) and
/// [`destroy_callback`](Self::destroy_callback) are called with interrupts off on the CPU that
/// they concern: the perf core holds the lock of a context or is in an interrupt.
pub(super) struct Callbacks<T: Operations>(PhantomData<T>);

impl<T: Operations> Callbacks<T> {
    /// The callbacks, and nothing else.
    pub(super) const PMU: bindings::pmu = bindings::pmu {
        pmu_enable: Some(Self::pmu_enable_callback),
        pmu_disable: Some(Self::pmu_disable_callback),
        event_init: Some(Self::event_init_callback),
        add: Some(Self::add_callback),
        del: Some(Self::del_callback),
        start: Some(Self::start_callback),
        stop: Some(Self::stop_callback),
        read: Some(Self::read_callback),
        start_txn: Some(Self::start_txn_callback),
        commit_txn: Some(Self::commit_txn_callback),
        cancel_txn: Some(Self::cancel_txn_callback),
        ..pin_init::zeroed()
    };

    /// Calls `f` with the PMU and its state on this CPU.
    ///
    /// # Safety
    ///
    /// `pmu` must be that of a [`Pmu<T>`] that is alive, and interrupts must be off, for the
    /// duration of the call.
    unsafe fn on_cpu<R>(
        pmu: *mut bindings::pmu,
        f: impl FnOnce(&Pmu<T>, OnCpu<'_, T>) -> R,
    ) -> Option<R> {
        // SAFETY: By this function's requirements.
        let pmu = unsafe { Pmu::from_raw(pmu) };
        // SAFETY: As above.
        let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
        Some(f(pmu, pmu.on_cpu(irqs)?))
    }

    /// Calls `f` with the PMU, the proof that it is disabled on this CPU, and an event on it.
    ///
    /// # Safety
    ///
    /// The caller must be a callback of `event` that the perf core calls with the PMU disabled.
    unsafe fn with_event<R>(
        event: *mut bindings::perf_event,
        f: impl FnOnce(&Pmu<T>, PmuDisabled<'_, T>, &Event<T>) -> R,
    ) -> Option<R> {
        // SAFETY: The perf core passes valid events of this PMU, for which `event_init` was
        // called, with interrupts off.
        unsafe {
            let pmu = (*event).pmu;
            Self::on_cpu(pmu, |pmu, cx| {
                f(pmu, PmuDisabled::new(cx), Event::from_raw(event))
            })
        }
    }

    /// Adds a reason why the PMU is disabled, and disables it if it is the first.
    fn disable(pmu: &Pmu<T>, cx: &OnCpu<'_, T>, reason: u32) {
        let disabled = &pmu.cpu_state(cx).disabled;
        let before = disabled.load(Relaxed);
        disabled.store(before | reason, Relaxed);
        if before == 0 {
            pmu.ops().disable(cx);
        }
    }

    /// Takes away a reason why the PMU is disabled, and enables it if it was the last.
    fn enable(pmu: &Pmu<T>, cx: &PmuDisabled<'_, T>, reason: u32) {
        let disabled = &pmu.cpu_state(cx).disabled;
        let left = disabled.load(Relaxed) & !reason;
        if left == 0 {
            pmu.ops().enable(cx);
        }
        disabled.store(left, Relaxed);
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `pmu_disable` of a registered [`Pmu<T>`].
    unsafe extern "C" fn pmu_disable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: The perf core passes the PMU and has interrupts off.
        unsafe { Self::on_cpu(pmu, |pmu, cx| Self::disable(pmu, &cx, disabled_by::CORE)) };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `pmu_enable` of a registered [`Pmu<T>`].
    unsafe extern "C" fn pmu_enable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: The perf core passes the PMU, has interrupts off, and has disabled the PMU.
        unsafe {
            Self::on_cpu(pmu, |pmu, cx| {
                Self::enable(pmu, &PmuDisabled::new(cx), disabled_by::CORE);
            })
        };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `event_init` of a registered [`Pmu<T>`].
    unsafe extern "C" fn event_init_callback(event: *mut bindings::perf_event) -> c_int {
        from_result(|| {
            // SAFETY: The perf core passes an event whose `pmu` it has just set to this PMU.
            let pmu = unsafe { Pmu::<T>::from_raw((*event).pmu) };
            // SAFETY: This is `event_init`, and the value does not leave it.
            let data = pmu
                .ops()
                .event_init(&unsafe { NewEvent::from_raw(event) })?;
            // SAFETY: This is `event_init`.
            unsafe { Event::<T>::attach(event, data) }?;
            // SAFETY: In `event_init`, nobody but the PMU uses these fields of the event.
            unsafe {
                (*event).destroy = Some(Self::destroy_callback);
                (*event).hw.state = STOPPED | UPTODATE;
                // No counter, for whoever looks at it (`x86_perf_rdpmc_index()`).
                (*event).hw.__bindgen_anon_1.__bindgen_anon_1.idx = -1;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `destroy` of an event of a registered [`Pmu<T>`].
    unsafe extern "C" fn destroy_callback(event: *mut bindings::perf_event) {
        // SAFETY: This is `destroy`, which is only set after `attach()` has succeeded.
        unsafe { Event::<T>::detach(event) };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `add` of a registered [`Pmu<T>`].
    unsafe extern "C" fn add_callback(event: *mut bindings::perf_event, flags: c_int) -> c_int {
        let start = flags as u32 & bindings::PERF_EF_START != 0;
        let add = |pmu: &Pmu<T>, cx: PmuDisabled<'_, T>, this: &Event<T>| {
            from_result(|| {
                let events = &pmu.cpu_state(&cx).events;
                // SAFETY: This is `add`. The entry is removed below and in `del_callback()`.
                let id = unsafe { events.insert(event) }.ok_or(EINVAL)?;
                let state = if start { 0 } else { STOPPED | UPTODATE };
                this.set_id(Some(id));
                this.state().store(state, Relaxed);
                let result = pmu.ops().add(&cx, id, this);
                if result.is_err() {
                    this.state().store(STOPPED | UPTODATE, Relaxed);
                    this.set_id(None);
                    events.remove(id);
                }
                result.map(|()| 0)
            })
        };
        // SAFETY: The perf core calls `add` with the PMU disabled.
        unsafe { Self::with_event(event, add) }.unwrap_or(EINVAL.to_errno())
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `del` of a registered [`Pmu<T>`].
    unsafe extern "C" fn del_callback(event: *mut bindings::perf_event, _flags: c_int) {
        let del = |pmu: &Pmu<T>, cx: PmuDisabled<'_, T>, event: &Event<T>| {
            let Some(id) = event.id() else { return };
            Self::stop(pmu, &cx, event);
            pmu.ops().del(&cx, id, event);
            event.set_id(None);
            pmu.cpu_state(&cx).events.remove(id);
        };
        // SAFETY: The perf core calls `del` with the PMU disabled.
        unsafe { Self::with_event(event, del) };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `start` of a registered [`Pmu<T>`].
    unsafe extern "C" fn start_callback(event: *mut bindings::perf_event, _flags: c_int) {
        // SAFETY: The perf core passes a valid event that is on this CPU, with interrupts off.
        unsafe {
            let pmu = (*event).pmu;
            let event: &Event<T> = Event::from_raw(event);
            Self::on_cpu(pmu, |pmu, cx| {
                let Some(id) = event.id() else { return };
                if event.is_stopped() {
                    event.state().store(0, Relaxed);
                    pmu.ops().start(&cx, id, event);
                }
            })
        };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `stop` of a registered [`Pmu<T>`].
    unsafe extern "C" fn stop_callback(event: *mut bindings::perf_event, _flags: c_int) {
        // SAFETY: The perf core passes a valid event that is on this CPU, with interrupts off.
        unsafe {
            let pmu = (*event).pmu;
            let event = Event::from_raw(event);
            Self::on_cpu(pmu, |pmu, cx| Self::stop(pmu, &cx, event))
        };
    }

    /// Stops `event` unless it is. Its count is up to date then, whether that was asked for
    /// (`PERF_EF_UPDATE`) or not.
    fn stop(pmu: &Pmu<T>, cx: &OnCpu<'_, T>, event: &Event<T>) {
        if event.id().is_some() && !event.is_stopped() {
            pmu.ops().stop(cx, event);
            event.state().store(STOPPED | UPTODATE, Relaxed);
        }
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `read` of a registered [`Pmu<T>`].
    unsafe extern "C" fn read_callback(event: *mut bindings::perf_event) {
        // SAFETY: The perf core passes a valid event that is on this CPU, with interrupts off.
        unsafe {
            let pmu = (*event).pmu;
            let event = Event::from_raw(event);
            Self::on_cpu(pmu, |pmu, cx| pmu.ops().read(&cx, event))
        };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `start_txn` of a registered [`Pmu<T>`].
    unsafe extern "C" fn start_txn_callback(pmu: *mut bindings::pmu, flags: c_uint) {
        // SAFETY: The perf core passes the PMU and has interrupts off. The PMU has just been
        // disabled where `PmuDisabled` says so.
        unsafe {
            Self::on_cpu(pmu, |pmu, cx| {
                pmu.cpu_state(&cx).txn.store(flags, Relaxed);
                if flags == bindings::PERF_PMU_TXN_ADD {
                    Self::disable(pmu, &cx, disabled_by::TXN);
                    pmu.ops().begin_txn(&PmuDisabled::new(cx));
                }
            })
        };
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `commit_txn` of a registered [`Pmu<T>`].
    unsafe extern "C" fn commit_txn_callback(pmu: *mut bindings::pmu) -> c_int {
        let commit = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            from_result(|| {
                let txn = &pmu.cpu_state(&cx).txn;
                if txn.load(Relaxed) == bindings::PERF_PMU_TXN_ADD {
                    // SAFETY: `start_txn_callback()` has disabled the PMU.
                    let cx = unsafe { PmuDisabled::new(cx) };
                    pmu.ops().commit_txn(&cx)?;
                    Self::enable(pmu, &cx, disabled_by::TXN);
                }
                txn.store(0, Relaxed);
                Ok(0)
            })
        };
        // SAFETY: The perf core passes the PMU and has interrupts off.
        unsafe { Self::on_cpu(pmu, commit) }.unwrap_or(EINVAL.to_errno())
    }

    /// # Safety
    ///
    /// Only for the perf core to call, as `cancel_txn` of a registered [`Pmu<T>`].
    unsafe extern "C" fn cancel_txn_callback(pmu: *mut bindings::pmu) {
        // SAFETY: The perf core passes the PMU and has interrupts off. `start_txn_callback()` has
        // disabled the PMU if the transaction is one that adds.
        unsafe {
            Self::on_cpu(pmu, |pmu, cx| {
                if pmu.cpu_state(&cx).txn.xchg(0, Relaxed) == bindings::PERF_PMU_TXN_ADD {
                    let cx = PmuDisabled::new(cx);
                    pmu.ops().cancel_txn(&cx);
                    Self::enable(pmu, &cx, disabled_by::TXN);
                }
            })
        };
    }
}
