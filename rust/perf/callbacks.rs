// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the perf core: the function pointers of `struct pmu`.

use super::{
    event::{
        STOPPED,
        UPTODATE, //
    },
    pmu::{
        disabled_by,
        OnCpu,
        PmuDisabled, //
    },
    Event,
    EventId,
    NewEvent,
    Operations,
    Placed,
    Pmu,
    Scheduling, //
};
use crate::{
    bindings,
    kern::nmi::in_nmi, //
};
use core::{
    marker::PhantomData,
    sync::atomic::Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    error::{
        code::*,
        from_result,
        Result, //
    },
    ffi::{
        c_int,
        c_uint, //
    },
    interrupt::LocalInterruptDisabled,
    mm::Mm,
    sync::rcu, //
};

/// The `struct pmu` of a driver that implements `T`.
///
/// A layer that wraps PMUs can replace some callbacks by functions of its own, which call
/// [`init_event`](Self::init_event), [`core_disable`](Self::core_disable) and
/// [`core_enable`](Self::core_enable).
///
/// The perf core calls the functions for opening, destroying, mapping and unmapping an event, and
/// for checking a period, in process context; [`event_idx_callback`](Self::event_idx_callback) in
/// any context and on any CPU. It calls all others with interrupts off, on the CPU that they
/// concern: it holds the lock of a context, or is in an interrupt.
///
/// The PMU is disabled on this CPU in the callbacks that add and remove events. It may be enabled
/// in [`start_callback`](Self::start_callback), [`stop_callback`](Self::stop_callback) and
/// [`read_callback`](Self::read_callback), which can also be called in an NMI: for example, when an
/// event samples too often, the perf core stops its whole group, in the context in which the event
/// was handled.
pub struct Callbacks<T: Operations>(PhantomData<T>);

impl<T: Operations> Callbacks<T> {
    /// The callbacks that the driver needs. All members that [`Operations`] does not determine are
    /// zero.
    pub const PMU: bindings::pmu = {
        let mut pmu = bindings::pmu {
            event_init: Some(Self::event_init_callback),
            add: Some(Self::add_callback),
            del: Some(Self::del_callback),
            start: Some(Self::start_callback),
            stop: Some(Self::stop_callback),
            read: Some(Self::read_callback),
            ..pin_init::zeroed()
        };
        // Of each set of callbacks, the perf core tests only the first for null
        // (`perf_pmu_register()`).
        if T::HAS_ENABLE || T::HAS_DISABLE {
            pmu.pmu_enable = Some(Self::pmu_enable_callback);
            pmu.pmu_disable = Some(Self::pmu_disable_callback);
        }
        if T::HAS_BEGIN_TXN || T::HAS_COMMIT_TXN || T::HAS_CANCEL_TXN {
            pmu.start_txn = Some(Self::start_txn_callback);
            pmu.commit_txn = Some(Self::commit_txn_callback);
            pmu.cancel_txn = Some(Self::cancel_txn_callback);
        }
        if T::HAS_MAPPED {
            pmu.event_mapped = Some(Self::event_mapped_callback);
        }
        if T::HAS_UNMAPPED {
            pmu.event_unmapped = Some(Self::event_unmapped_callback);
        }
        if T::HAS_HAS_USER_INDEX {
            pmu.event_idx = Some(Self::event_idx_callback);
        }
        if T::HAS_CHECK_PERIOD {
            pmu.check_period = Some(Self::check_period_callback);
        }
        if T::HAS_SERVES {
            pmu.filter = Some(Self::filter_callback);
        }
        if T::HAS_SCHED_TASK {
            pmu.sched_task = Some(Self::sched_task_callback);
        }
        if T::IS_SOFTWARE {
            pmu.task_ctx_nr = bindings::perf_event_task_context_perf_sw_context;
        }
        if !T::CAN_SAMPLE {
            // CAST: the bits are the same.
            pmu.capabilities = bindings::PERF_PMU_CAP_NO_INTERRUPT as i32;
        }
        pmu
    };

    /// Calls `f` with the PMU and its state on this CPU.
    ///
    /// # Safety
    ///
    /// During the call, `pmu` must be the `struct pmu` of a [`Pmu<T>`] that is alive, and
    /// interrupts must be off.
    unsafe fn with_pmu<R>(
        pmu: *mut bindings::pmu,
        f: impl FnOnce(&Pmu<T>, OnCpu<'_, T>) -> R,
    ) -> R {
        // SAFETY: By this function's requirements.
        let pmu = unsafe { Pmu::from_raw(pmu) };
        // SAFETY: By this function's requirements interrupts are off during the call. `f` cannot
        // keep the proof: it accepts an `OnCpu` of any lifetime.
        let irqs = unsafe { bindings::inline::assume_irqs_disabled() };
        f(pmu, pmu.on_cpu(irqs))
    }

    /// Calls `f` with the PMU, its state on this CPU, and an event on this CPU.
    ///
    /// # Safety
    ///
    /// During the call, `event` must be an event of a [`Pmu<T>`] for which `event_init` has
    /// succeeded and `destroy` was not called, and interrupts must be off.
    unsafe fn with_event<R>(
        event: *mut bindings::perf_event,
        f: impl FnOnce(&Pmu<T>, OnCpu<'_, T>, &Event<T>) -> R,
    ) -> R {
        // SAFETY: `event` is valid by this function's requirements.
        let pmu = unsafe { (*event).pmu };
        // SAFETY: By this function's requirements interrupts are off, and `event` belongs to a
        // `Pmu<T>`: `event_init` has attached its data, and `destroy` has not detached it. The PMU
        // is alive as long as it has such events.
        unsafe { Self::with_pmu(pmu, |pmu, cx| f(pmu, cx, Event::from_raw(event))) }
    }

    /// Adds a reason for which the PMU is disabled. If it is the first, disables the PMU and
    /// returns true.
    // Inline: most calls find the PMU disabled, as in each txn, and call nothing. `CORE` is mostly
    // the first reason, so `disable_now()` is inlined for it, too.
    #[inline(always)]
    fn disable(pmu: &Pmu<T>, cx: &OnCpu<'_, T>, reason: u32) -> bool {
        let disabled = &pmu.cpu_state(cx).disabled;
        let before = disabled.load(Relaxed);
        disabled.store(before | reason, Relaxed);
        if before == 0 {
            if reason == disabled_by::CORE {
                Self::disable_now(pmu, cx);
            } else {
                Self::call_disable_now(pmu, cx);
            }
        }
        before == 0
    }

    #[inline]
    fn disable_now(pmu: &Pmu<T>, cx: &OnCpu<'_, T>) {
        pmu.ops().disable(cx);
    }

    #[inline(never)]
    fn call_disable_now(pmu: &Pmu<T>, cx: &OnCpu<'_, T>) {
        Self::disable_now(pmu, cx);
    }

    /// Removes a reason for which the PMU is disabled, and enables the PMU if it was the last.
    // Inline as `disable()`.
    #[inline(always)]
    fn enable(pmu: &Pmu<T>, cx: &PmuDisabled<'_, T>, reason: u32) {
        let disabled = &pmu.cpu_state(cx).disabled;
        let left = disabled.load(Relaxed) & !reason;
        if left == 0 {
            if reason == disabled_by::CORE {
                Self::enable_now(pmu, cx);
            } else {
                Self::call_enable_now(pmu, cx);
            }
        }
        disabled.store(left, Relaxed);
    }

    #[inline]
    fn enable_now(pmu: &Pmu<T>, cx: &PmuDisabled<'_, T>) {
        pmu.ops().enable(cx);
    }

    #[inline(never)]
    fn call_enable_now(pmu: &Pmu<T>, cx: &PmuDisabled<'_, T>) {
        Self::enable_now(pmu, cx);
    }

    /// Calls `f` with the PMU disabled. It may be disabled already.
    ///
    /// Not in an NMI.
    fn while_disabled(pmu: &Pmu<T>, cx: OnCpu<'_, T>, f: impl FnOnce(&PmuDisabled<'_, T>)) {
        let was_disabled = pmu.cpu_state(&cx).disabled.load(Relaxed) != 0;
        if !was_disabled {
            Self::disable(pmu, &cx, disabled_by::CALLBACK);
        }
        // SAFETY: The PMU has just been disabled, or by a caller, which enables it on the same CPU
        // after this function has returned. This is not an NMI: all callers have checked.
        let cx = unsafe { PmuDisabled::new(cx) };
        f(&cx);
        if !was_disabled {
            Self::enable(pmu, &cx, disabled_by::CALLBACK);
        }
    }

    /// Stops `event` unless it is stopped. This always brings its count up to date, with
    /// `PERF_EF_UPDATE` and without.
    fn stop(pmu: &Pmu<T>, cx: &PmuDisabled<'_, T>, event: &Event<T>) {
        if event.id().is_some() && !event.is_stopped() {
            pmu.ops().stop(cx, event);
            event.state().store(STOPPED | UPTODATE, Relaxed);
        }
    }

    /// Disables the PMU for the perf core, and calls `then` if it was not disabled before.
    ///
    /// # Safety
    ///
    /// To be called by the `pmu_disable` callback, with its argument.
    #[inline(always)]
    pub unsafe fn core_disable(pmu: *mut bindings::pmu, then: impl FnOnce(PmuDisabled<'_, T>)) {
        let disable = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            if Self::disable(pmu, &cx, disabled_by::CORE) {
                // SAFETY: The perf core has just disabled the PMU, which it never does in an NMI.
                then(unsafe { PmuDisabled::new(cx) });
            }
        };
        // SAFETY: The PMU is alive, and the perf core has turned interrupts off.
        unsafe { Self::with_pmu(pmu, disable) };
    }

    /// Enables the PMU for the perf core, unless it is disabled for another reason, and calls
    /// `then`.
    ///
    /// # Safety
    ///
    /// To be called by the `pmu_enable` callback, with its argument.
    #[inline(always)]
    pub unsafe fn core_enable(pmu: *mut bindings::pmu, then: impl FnOnce(&OnCpu<'_, T>)) {
        let enable = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            // SAFETY: The perf core has disabled the PMU, which it never does in an NMI.
            let cx = unsafe { PmuDisabled::new(cx) };
            Self::enable(pmu, &cx, disabled_by::CORE);
            then(&cx);
        };
        // SAFETY: The PMU is alive, and the perf core has turned interrupts off.
        unsafe { Self::with_pmu(pmu, enable) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that is registered.
    unsafe extern "C" fn pmu_disable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: This is the callback, which passes its argument.
        unsafe { Self::core_disable(pmu, |_| {}) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that it has disabled on this CPU.
    unsafe extern "C" fn pmu_enable_callback(pmu: *mut bindings::pmu) {
        // SAFETY: This is the callback, which passes its argument.
        unsafe { Self::core_enable(pmu, |_| {}) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that is being opened and whose `pmu` is
    /// registered.
    unsafe extern "C" fn event_init_callback(event: *mut bindings::perf_event) -> c_int {
        // SAFETY: This is the callback, which passes its argument.
        unsafe { Self::init_event(event, |_, _| Ok(())) }
    }

    /// Initialises an event, if the driver accepts it and `then`, which gets the driver's data of
    /// the event, does not fail.
    ///
    /// # Safety
    ///
    /// To be called by the `event_init` callback, with its argument.
    pub unsafe fn init_event(
        event: *mut bindings::perf_event,
        then: impl FnOnce(&Pmu<T>, &Placed<T>) -> Result,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The PMU of the event is alive.
            let pmu = unsafe { Pmu::<T>::from_raw((*event).pmu) };
            // SAFETY: This is `event_init`, and the value does not outlive it.
            let new_event = unsafe { NewEvent::from_raw(event) };
            if !new_event.cpu().is_none_or(|cpu| pmu.serves(cpu)) {
                return Err(ENOENT);
            }
            let data = pmu.ops().event_init(&new_event)?;
            then(pmu, &data)?;
            // SAFETY: This is `event_init`.
            unsafe { Event::<T>::attach(event, data) };
            // Only when nothing in this callback can fail any more: after a failure, the perf core
            // would detach what it has not attached.
            // SAFETY: This is `event_init`, and `attach()` has been called.
            unsafe { Event::<T>::from_raw(event).set_attach_state() };
            // SAFETY: In `event_init`, only the PMU uses these fields of the event.
            unsafe {
                (*event).destroy = Some(Self::destroy_callback);
                (*event).hw.state = STOPPED | UPTODATE;
                let hw = &raw mut (*event).hw.__bindgen_anon_1.__bindgen_anon_1;
                // No counter yet, for other readers of the field.
                (*hw).idx = -1;
                if pmu.ops().user_may_read() {
                    // CAST: the bits are the same.
                    (*hw).flags |= bindings::PERF_EVENT_FLAG_USER_READ_CNT as i32;
                }
            }
            Ok(0)
        })
    }

    /// Returns whether events of the PMU cannot count on `cpu`.
    ///
    /// # Safety
    ///
    /// To be called by the perf core, with the `struct pmu` of a [`Pmu<T>`].
    unsafe extern "C" fn filter_callback(pmu: *mut bindings::pmu, cpu: c_int) -> bool {
        // SAFETY: By this function's requirements.
        let pmu = unsafe { Pmu::<T>::from_raw(pmu) };
        !CpuId::from_i32(cpu).is_some_and(|cpu| pmu.serves(cpu))
    }

    /// # Safety
    ///
    /// To be called by the perf core, once, with an event whose `destroy` `event_init` has set to
    /// this function.
    pub unsafe extern "C" fn destroy_callback(event: *mut bindings::perf_event) {
        // SAFETY: This is `destroy`, which is only set after `attach()` has succeeded.
        unsafe { Event::<T>::detach(event) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event of a PMU that is disabled on this CPU.
    unsafe extern "C" fn add_callback(event: *mut bindings::perf_event, flags: c_int) -> c_int {
        // CAST: the bits are the same.
        let start = flags as u32 & bindings::PERF_EF_START != 0;
        let add = |pmu: &Pmu<T>, cx: OnCpu<'_, T>, this: &Event<T>| {
            // SAFETY: The PMU is disabled by this function's requirements; the perf core does not
            // add events in an NMI.
            let cx = unsafe { Scheduling::add(PmuDisabled::new(cx)) };
            let events = &pmu.cpu_state(&cx).events;
            // SAFETY: This is `add`. The entry is removed below or by `del_callback()`.
            let Some(id) = (unsafe { events.insert(event) }) else {
                pmu.ops().too_many(&cx, this);
                return Err(EINVAL);
            };
            let state = if start { 0 } else { STOPPED | UPTODATE };
            this.set_id(Some(id));
            this.state().store(state, Relaxed);
            pmu.ops().add(&cx, id, this).inspect_err(|_| {
                this.state().store(STOPPED | UPTODATE, Relaxed);
                this.set_id(None);
                events.remove(id);
            })?;
            if this.wants_sched_task() {
                // SAFETY: The PMU is registered, and this is a CPU of it with interrupts off.
                // `del_callback()` decrements the count.
                unsafe { bindings::rpmu_helper_perf_sched_cb_inc(pmu.as_raw()) };
            }
            Ok(0)
        };
        // SAFETY: The event is open, and the perf core has turned interrupts off.
        from_result(|| unsafe { Self::with_event(event, add) })
    }

    /// Calls `f` if the event's user may read its counter.
    ///
    /// # Safety
    ///
    /// During the call, `event` must be an open event of a [`Pmu<T>`], and `mm` valid.
    unsafe fn with_mm(
        event: *mut bindings::perf_event,
        mm: *mut bindings::mm_struct,
        f: impl FnOnce(&T, &Event<T>, &Mm),
    ) {
        // SAFETY: By this function's requirements; the PMU of an event lives as long as the event.
        let (pmu, event, mm) = unsafe {
            let pmu = Pmu::<T>::from_raw((*event).pmu);
            (pmu, Event::<T>::from_raw(event), Mm::from_raw(mm.cast()))
        };
        if event.user_may_read() {
            f(pmu.ops(), event, mm);
        }
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that is being mapped into `mm`.
    unsafe extern "C" fn event_mapped_callback(
        event: *mut bindings::perf_event,
        mm: *mut bindings::mm_struct,
    ) {
        // SAFETY: The mapped file keeps the event alive, and the mapping keeps `mm`.
        unsafe { Self::with_mm(event, mm, T::mapped) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that was mapped into `mm`.
    unsafe extern "C" fn event_unmapped_callback(
        event: *mut bindings::perf_event,
        mm: *mut bindings::mm_struct,
    ) {
        // SAFETY: As in `event_mapped_callback()`.
        unsafe { Self::with_mm(event, mm, T::unmapped) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that is open.
    unsafe extern "C" fn event_idx_callback(event: *mut bindings::perf_event) -> c_int {
        // SAFETY: By this function's requirements; the PMU of an event lives as long as the event.
        let (pmu, event) = unsafe {
            let pmu = Pmu::<T>::from_raw((*event).pmu);
            (pmu, Event::<T>::from_raw(event))
        };
        if !event.user_may_read() || !pmu.ops().has_user_index(event) {
            return 0;
        }
        // CAST: the field in the page is unsigned.
        event.user_index() as c_int
    }

    /// Forgets `event`, which the perf core removes on another CPU than it was added on. This is a
    /// bug in the perf core, which may free the event next: no table may keep it. The event's
    /// counter stays taken until its CPU goes offline, and its id for good.
    #[cold]
    #[inline(never)]
    fn lose(pmu: &Pmu<T>, id: EventId, event: &Event<T>) {
        for state in pmu.cpu_states() {
            state.events.forget(id, event.as_raw());
        }
        event.set_counter(None);
        event.state().store(STOPPED | UPTODATE, Relaxed);
        event.set_id(None);
        if event.wants_sched_task() {
            // The PMU's context stays on the other CPU's list (`perf_sched_cb_inc()`), and
            // unregistering the PMU would free it: keep the module for good.
            // SAFETY: The PMU is valid, and the event holds the module.
            unsafe { bindings::rpmu_helper_module_get((*pmu.as_raw()).module) };
        }
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that has been added on this CPU, of a PMU that
    /// is disabled here.
    unsafe extern "C" fn del_callback(event: *mut bindings::perf_event, _flags: c_int) {
        let del = |pmu: &Pmu<T>, cx: OnCpu<'_, T>, event: &Event<T>| {
            // SAFETY: The PMU is disabled by this function's requirements; the perf core does not
            // remove events in an NMI.
            let cx = unsafe { PmuDisabled::new(cx) };
            let Some(id) = event.id() else { return };
            if !pmu.cpu_state(&cx).events.holds(id, event.as_raw()) {
                Self::lose(pmu, id, event);
                return;
            }
            pmu.ops().del(&cx, id, event);
            event.state().store(STOPPED | UPTODATE, Relaxed);
            event.set_id(None);
            pmu.cpu_state(&cx).events.remove(id);
            if event.wants_sched_task() {
                // SAFETY: As in `add_callback()`, which has run on this CPU for the event.
                unsafe { bindings::rpmu_helper_perf_sched_cb_dec(pmu.as_raw()) };
            }
        };
        // SAFETY: The event is open, and the perf core has turned interrupts off.
        unsafe { Self::with_event(event, del) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that has been added on this CPU.
    unsafe extern "C" fn start_callback(event: *mut bindings::perf_event, _flags: c_int) {
        let start = |pmu: &Pmu<T>, cx: OnCpu<'_, T>, event: &Event<T>| {
            let Some(id) = event.id() else { return };
            if !event.is_stopped() {
                return;
            }
            if in_nmi() {
                if pmu.ops().start_in_nmi(&cx, event) {
                    event.state().store(0, Relaxed);
                    // As long as the event is stopped, the page gets no index.
                    event.update_userpage();
                }
            } else {
                Self::while_disabled(pmu, cx, |cx| pmu.ops().start(cx, id, event));
            }
        };
        // SAFETY: The event is open, and the perf core has turned interrupts off, or is in an NMI.
        unsafe { Self::with_event(event, start) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that has been added on this CPU.
    unsafe extern "C" fn stop_callback(event: *mut bindings::perf_event, _flags: c_int) {
        let stop = |pmu: &Pmu<T>, cx: OnCpu<'_, T>, event: &Event<T>| {
            if event.is_stopped() {
                return;
            }
            if in_nmi() {
                if T::HAS_STOP_IN_NMI {
                    pmu.ops().stop_in_nmi(&cx, event);
                    event.state().store(STOPPED | UPTODATE, Relaxed);
                }
            } else {
                Self::while_disabled(pmu, cx, |cx| Self::stop(pmu, cx, event));
            }
        };
        // SAFETY: The event is open, and the perf core has turned interrupts off, or is in an NMI.
        unsafe { Self::with_event(event, stop) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that has been added on this CPU.
    unsafe extern "C" fn read_callback(event: *mut bindings::perf_event) {
        // SAFETY: The event is open, and the perf core has turned interrupts off, or is in an NMI.
        unsafe { Self::with_event(event, |pmu, cx, event| pmu.ops().read(&cx, event)) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with an event that is open.
    unsafe extern "C" fn check_period_callback(
        event: *mut bindings::perf_event,
        period: u64,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The PMU of an event is alive as long as the event is, and the event is open.
            let (pmu, event) = unsafe {
                (
                    Pmu::<T>::from_raw((*event).pmu),
                    Event::<T>::from_raw(event),
                )
            };
            pmu.ops().check_period(event, period)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that is registered.
    unsafe extern "C" fn start_txn_callback(pmu: *mut bindings::pmu, flags: c_uint) {
        let start_txn = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            pmu.cpu_state(&cx).txn.store(flags, Relaxed);
            if flags == bindings::PERF_PMU_TXN_ADD {
                Self::disable(pmu, &cx, disabled_by::TXN);
                // SAFETY: The PMU has just been disabled, and the perf core does not start a txn in
                // an NMI.
                pmu.ops().begin_txn(&unsafe { PmuDisabled::new(cx) });
            } else if flags == bindings::PERF_PMU_TXN_READ {
                let reads = &pmu.cpu_state(&cx).group_reads;
                reads.store(reads.load(Relaxed).wrapping_add(1), Relaxed);
            }
        };
        // SAFETY: The PMU is alive, and the perf core has turned interrupts off.
        unsafe { Self::with_pmu(pmu, start_txn) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with the context of a PMU that it has disabled on this CPU,
    /// and a task that is switched in or out on this CPU.
    unsafe extern "C" fn sched_task_callback(
        context: *mut bindings::perf_event_pmu_context,
        task: *mut bindings::task_struct,
        sched_in: bool,
    ) {
        let sched_task = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            // SAFETY: The perf core has disabled the PMU (`__perf_pmu_sched_task()`, and by
            // `perf_ctx_disable()` the callers of `perf_ctx_sched_task_cb()`), in no NMI.
            let cx = unsafe { PmuDisabled::new(cx) };
            let _guard = rcu::read_lock();
            // SAFETY: The task and the PMU are valid, and this is an RCU read-side critical
            // section. If the task has data, the data outlive the section.
            let data =
                unsafe { bindings::rpmu_helper_task_data(task, (*pmu.as_raw()).task_ctx_cache) };
            // CAST: the perf core has allocated the data from the PMU's own cache.
            // SAFETY: So the data are a `T::TaskData`, for which zero is valid. Only this callback
            // uses them, and only on the CPU that the task runs on: another CPU can run the task
            // only after this callback has returned.
            let data = unsafe { data.cast::<T::TaskData>().as_mut() };
            pmu.ops().sched_task(&cx, data, sched_in);
        };
        // SAFETY: The context has a PMU that is alive, and the perf core has turned interrupts off.
        unsafe { Self::with_pmu((*context).pmu, sched_task) };
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that has a txn open on this CPU.
    unsafe extern "C" fn commit_txn_callback(pmu: *mut bindings::pmu) -> c_int {
        let commit_txn = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            let txn = &pmu.cpu_state(&cx).txn;
            if txn.load(Relaxed) == bindings::PERF_PMU_TXN_ADD {
                // SAFETY: This is `commit_txn`, which is not called in an NMI, and
                // `start_txn_callback()` has disabled the PMU.
                let cx = unsafe { Scheduling::commit(PmuDisabled::new(cx)) };
                pmu.ops().commit_txn(&cx)?;
                Self::enable(pmu, &cx, disabled_by::TXN);
            }
            txn.store(0, Relaxed);
            Ok(0)
        };
        // SAFETY: The PMU is alive, and the perf core has turned interrupts off.
        from_result(|| unsafe { Self::with_pmu(pmu, commit_txn) })
    }

    /// # Safety
    ///
    /// To be called by the perf core, with a PMU that has a txn open on this CPU.
    unsafe extern "C" fn cancel_txn_callback(pmu: *mut bindings::pmu) {
        let cancel_txn = |pmu: &Pmu<T>, cx: OnCpu<'_, T>| {
            if pmu.cpu_state(&cx).txn.swap(0, Relaxed) == bindings::PERF_PMU_TXN_ADD {
                // SAFETY: `start_txn_callback()` has disabled the PMU, and this is not an NMI.
                let cx = unsafe { PmuDisabled::new(cx) };
                pmu.ops().cancel_txn(&cx);
                Self::enable(pmu, &cx, disabled_by::TXN);
            }
        };
        // SAFETY: The PMU is alive, and the perf core has turned interrupts off.
        unsafe { Self::with_pmu(pmu, cancel_txn) };
    }
}

impl<T: Operations> Pmu<T> {
    /// Calls `f` while the PMU is disabled on the current CPU.
    ///
    /// Any context but an NMI, and not from a callback.
    pub fn with_disabled(
        &self,
        irqs: &LocalInterruptDisabled,
        f: impl FnOnce(&PmuDisabled<'_, T>),
    ) {
        if in_nmi() {
            return;
        }
        Callbacks::<T>::while_disabled(self, self.on_cpu(irqs), f);
    }
}
