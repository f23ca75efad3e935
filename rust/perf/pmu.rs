// SPDX-License-Identifier: GPL-2.0

//! PMUs, and the operations that their drivers implement.

use super::{
    table::Table,
    task_data::TaskDataCache,
    Event,
    EventId,
    Groups,
    NewEvent,
    Placed, //
};
use crate::{
    bindings,
    kern::{
        init::copied,
        nmi::in_nmi,
        percpu::PerCpu, //
    },
};
use core::{
    ops::Deref,
    sync::atomic::{
        AtomicU32,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    mm::Mm,
    module::this_module,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc, //
    },
    types::Opaque, //
};

/// A driver of a PMU.
///
/// Methods with defaults are for PMUs whose counters interrupt on overflow, or that share counters
/// between events. `struct pmu` has no callback for a method that a driver does not implement,
/// unless the perf core needs this callback beside one that the driver implements.
///
/// Methods that get [`PmuDisabled`] are not called in NMI context, but an NMI may interrupt them.
/// Methods that get only [`OnCpu`] may be called in the middle of another callback, and all but
/// [`disable`](Self::disable) in NMI context. The former also happens without an NMI: when the
/// driver hits a tracepoint, the perf core may read or stop the group of an event on this
/// tracepoint. So [`stop`](Self::stop) and [`enable`](Self::enable) may be called in the middle of
/// another callback, too.
#[vtable]
pub trait Operations: Send + Sync + Sized + 'static {
    /// The driver's data of an event. Dropped in process context when the event is gone.
    type EventData: Send + Sync;

    /// The driver's data of a task, all zero at first. It is never dropped.
    type TaskData: Zeroable + Send + Sync;

    /// The driver's data of a CPU, see [`OnCpu::data`].
    type CpuData: Default + Send + Sync;

    /// Set for a software PMU: its events always find a place, and may be in groups of other PMUs.
    const IS_SOFTWARE: bool = false;

    /// Set if events can sample; if not, the perf core refuses sampling events.
    const CAN_SAMPLE: bool = true;

    /// Checks an event that a user wants to open, and builds its data in a [`Place`](super::Place).
    ///
    /// With `ENOENT`, the perf core offers the event to other PMUs; any other error goes to the
    /// user. Process context. If the event is to join a group, the group cannot change meanwhile,
    /// except with a [software PMU](Self::IS_SOFTWARE).
    fn event_init(&self, event: &NewEvent<'_, Self>) -> Result<Placed<Self>>;

    /// Returns whether samples can have XMM registers. Process context.
    fn samples_extended_registers(&self) -> bool {
        false
    }

    /// Returns whether the PMU serves only some CPUs, for which [`serves`](Self::serves) is true,
    /// as a core PMU of a hybrid does. Called once. Process context.
    fn serves_some_cpus(&self) -> bool {
        false
    }

    /// Returns whether events of the PMU can count on `cpu`. Called only if the PMU serves some
    /// CPUs. Any context.
    fn serves(&self, _cpu: CpuId) -> bool {
        true
    }

    /// Returns the attachment that an event needs, after [`event_init`](Self::event_init). Any
    /// context.
    fn attachment(_data: &Self::EventData) -> Attachment {
        Attachment::None
    }

    /// Called when a task has been switched in on this CPU (`sched_in`), or is about to be switched
    /// out. Gets the task's data if it has any.
    ///
    /// Called only while an event on this CPU has an [`Attachment`] other than
    /// [`None`](Attachment::None). The events of a task that was switched in have been
    /// [added](Self::add); the events of a task that is about to be switched out have not been
    /// [removed](Self::del) yet.
    fn sched_task(
        &self,
        _cx: &PmuDisabled<'_, Self>,
        _data: Option<&mut Self::TaskData>,
        _sched_in: bool,
    ) {
    }

    /// Returns whether the user of an event that is being opened may read its counter with `rdpmc`
    /// once the event is mapped. Process context.
    fn user_may_read(&self) -> bool {
        false
    }

    /// Called when the current task maps an event whose user may read its counter, or splits or
    /// moves such a mapping, which makes another one. The event is mapped into the task's `mm`,
    /// whose lock is held for writing. Process context.
    fn mapped(&self, _event: &Event<Self>, _mm: &Mm) {}

    /// Called when a mapping of such an event in `mm` has gone. Process context; the current task
    /// may be another than the one that mapped the event.
    ///
    /// The perf core cannot detach the events of a PMU with this method from their users, see
    /// [`Registration`](super::Registration).
    fn unmapped(&self, _event: &Event<Self>, _mm: &Mm) {}

    /// Returns whether the mmap page of the event, whose user may read its counter, is to show the
    /// counter's index. Any context.
    fn has_user_index(&self, _event: &Event<Self>) -> bool {
        false
    }

    /// Stops all counters of this CPU.
    fn disable(&self, _cx: &OnCpu<'_, Self>) {}

    /// Programs the hardware and lets the counters run.
    fn enable(&self, _cx: &PmuDisabled<'_, Self>) {}

    /// Finds a place for an event beside the events on the CPU.
    ///
    /// The event counts from the next [`enable`](Self::enable) on, unless it [is
    /// stopped](Event::is_stopped). Within a txn, `add` may leave the decision to
    /// [`commit_txn`](Self::commit_txn).
    fn add(&self, cx: &Scheduling<'_, Self>, id: EventId, event: &Event<Self>) -> Result;

    /// Called instead of [`add`](Self::add) if there are [`MAX_EVENTS`](super::MAX_EVENTS) events
    /// on the CPU. The event gets no place.
    fn too_many(&self, _cx: &Scheduling<'_, Self>, _event: &Event<Self>) {}

    /// Removes an event. Unless it [is stopped](Event::is_stopped), first stops it as
    /// [`stop`](Self::stop) does.
    fn del(&self, cx: &PmuDisabled<'_, Self>, id: EventId, event: &Event<Self>);

    /// Lets a stopped event count again from the next [`enable`](Self::enable) on, and
    /// [marks it](Event::set_started).
    fn start(&self, cx: &PmuDisabled<'_, Self>, id: EventId, event: &Event<Self>);

    /// Stops an event, and brings its count up to date.
    fn stop(&self, cx: &PmuDisabled<'_, Self>, event: &Event<Self>);

    /// Stops an event as [`stop`](Self::stop) does, in an NMI, which may have interrupted another
    /// callback: the PMU may be enabled.
    ///
    /// The perf core calls this when an event of the group samples too often, and when it adjusts a
    /// period. By default the event continues to count.
    fn stop_in_nmi(&self, _cx: &OnCpu<'_, Self>, _event: &Event<Self>) {}

    /// Restarts an event that [`stop_in_nmi`](Self::stop_in_nmi) has stopped in this NMI. The perf
    /// core calls this when it adjusts a period.
    ///
    /// Returns whether the event was restarted. An event that was stopped before this NMI cannot be
    /// restarted here.
    fn start_in_nmi(&self, _cx: &OnCpu<'_, Self>, _event: &Event<Self>) -> bool {
        false
    }

    /// Checks a period that the user of a sampling event wants to set.
    ///
    /// Fails with `EINVAL` if the period is not possible. Process context.
    fn check_period(&self, _event: &Event<Self>, _period: u64) -> Result {
        Ok(())
    }

    /// Brings the count of an event up to date ([`Event::add_count`]). The event may be stopped.
    fn read(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>);

    /// Begins to add a group of events. The PMU stays disabled until the txn is committed or
    /// cancelled.
    ///
    /// By default there is no txn: each event of a group finds its place by itself.
    fn begin_txn(&self, _cx: &PmuDisabled<'_, Self>) {}

    /// Finds places for all events of the group. On failure, the txn stays open until it is
    /// cancelled.
    fn commit_txn(&self, _cx: &Scheduling<'_, Self>) -> Result {
        Ok(())
    }

    /// Ends a txn whose events have been removed again, each by [`del`](Self::del).
    fn cancel_txn(&self, _cx: &PmuDisabled<'_, Self>) {}
}

/// A further attachment of an event, besides its task or CPU (`PERF_ATTACH_*`).
///
/// Only [`None`](Self::None) is allowed unless [`bind_sched_task`](super::bind_sched_task) has
/// succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// Nothing.
    None,
    /// Context switches: [`Operations::sched_task`] is called while the event is on a CPU.
    SchedTask,
    /// Context switches, and data of the tasks.
    TaskData,
}

/// The PMU of one CPU, while interrupts are off there.
pub struct OnCpu<'a, T: Operations> {
    irqs: &'a LocalInterruptDisabled,
    pmu: &'a Pmu<T>,
    cpu: &'a CpuState<T>,
}

impl<'a, T: Operations> OnCpu<'a, T> {
    /// Returns the PMU.
    pub fn pmu(&self) -> &'a Pmu<T> {
        self.pmu
    }

    /// Returns a proof that interrupts are off.
    pub fn irqs(&self) -> &'a LocalInterruptDisabled {
        self.irqs
    }

    /// Returns the driver's data of this CPU.
    pub fn data(&self) -> &'a T::CpuData {
        &self.cpu.data
    }

    /// Returns whether an NMI is being handled.
    pub fn in_nmi(&self) -> bool {
        in_nmi()
    }

    /// Returns whether the perf core is reading a group (`PERF_PMU_TXN_READ`). It reads a group
    /// from the leader on, with interrupts off.
    pub fn is_reading_group(&self) -> bool {
        self.cpu.txn.load(Relaxed) == bindings::PERF_PMU_TXN_READ
    }

    /// Returns the number of the group read that is [under way](Self::is_reading_group), if any:
    /// not 0, and unique on this CPU.
    pub fn group_read(&self) -> Option<u64> {
        self.is_reading_group()
            .then(|| self.cpu.group_reads.load(Relaxed))
    }

    /// Returns the event with the given id, if it is on this CPU.
    pub fn event(&self, id: EventId) -> Option<&Event<T>> {
        // SAFETY: `on_cpu()` has taken the state of the CPU that it ran on. Interrupts were off
        // then and have been ever since, so this is the same CPU.
        unsafe { self.cpu.events.get(id, self.irqs) }
    }
}

/// The PMU of one CPU, while it is disabled and interrupts are off there.
///
/// # Invariants
///
/// This is not NMI context, and the PMU is disabled: for a reason in [`disabled_by`], or because
/// its driver has nothing to [disable](Operations::disable).
pub struct PmuDisabled<'a, T: Operations>(OnCpu<'a, T>);

impl<'a, T: Operations> PmuDisabled<'a, T> {
    /// # Safety
    ///
    /// This must not be NMI context. The PMU of this CPU must be disabled until the result is
    /// dropped or passed to [`enable`](Operations::enable). From then on, only the [`OnCpu`] in it
    /// may be used.
    pub(super) unsafe fn new(cx: OnCpu<'a, T>) -> Self {
        // INVARIANT: By this function's requirements.
        Self(cx)
    }
}

impl<'a, T: Operations> Deref for PmuDisabled<'a, T> {
    type Target = OnCpu<'a, T>;

    fn deref(&self) -> &OnCpu<'a, T> {
        &self.0
    }
}

/// The PMU of one CPU, while the perf core puts events on it.
///
/// # Invariants
///
/// An [`add`](Operations::add) or [`commit_txn`](Operations::commit_txn) callback is running: the
/// perf core holds the locks of the contexts of the CPU and of its task.
pub struct Scheduling<'a, T: Operations> {
    cx: PmuDisabled<'a, T>,
    is_add: bool,
}

impl<'a, T: Operations> Scheduling<'a, T> {
    /// # Safety
    ///
    /// To be called by the `add` callback; the result must not outlive it.
    pub(super) unsafe fn add(cx: PmuDisabled<'a, T>) -> Self {
        // INVARIANT: By this function's requirements. See `event_sched_in()`.
        Self { cx, is_add: true }
    }

    /// # Safety
    ///
    /// To be called by the `commit_txn` callback; the result must not outlive it.
    pub(super) unsafe fn commit(cx: PmuDisabled<'a, T>) -> Self {
        // INVARIANT: By this function's requirements.
        Self { cx, is_add: false }
    }

    /// Returns whether the callback is `add`.
    pub fn is_add(&self) -> bool {
        self.is_add
    }
}

impl<'a, T: Operations> Deref for Scheduling<'a, T> {
    type Target = PmuDisabled<'a, T>;

    fn deref(&self) -> &PmuDisabled<'a, T> {
        &self.cx
    }
}

/// The reasons for which a CPU's PMU is disabled: bits of [`CpuState::disabled`].
pub(super) mod disabled_by {
    /// The perf core's `perf_pmu_disable()`.
    pub(in super::super) const CORE: u32 = 1 << 0;
    /// A txn that adds a group.
    pub(in super::super) const TXN: u32 = 1 << 1;
    /// A callback that needs the PMU disabled while the perf core has it enabled.
    pub(in super::super) const CALLBACK: u32 = 1 << 2;
}

/// The state of one CPU's PMU in this abstraction.
pub(super) struct CpuState<T: Operations> {
    pub(super) events: Table<T>,
    /// The reasons in [`disabled_by`] for which the PMU is disabled. It is enabled while there is
    /// none.
    pub(super) disabled: AtomicU32,
    /// The `PERF_PMU_TXN_*` of the open txn; 0 without one.
    pub(super) txn: AtomicU32,
    /// Number of group reads so far.
    pub(super) group_reads: AtomicU64,
    data: T::CpuData,
}

impl<T: Operations> CpuState<T> {
    /// Makes the states of all CPUs. Fails with `ENOMEM`. Process context.
    #[inline(never)]
    fn new_all() -> Result<PerCpu<Self>> {
        PerCpu::new(|_| {
            try_init!(Self {
                events: Table::new(),
                disabled: AtomicU32::new(0),
                txn: AtomicU32::new(0),
                group_reads: AtomicU64::new(0),
                data: T::CpuData::default(),
            }? Error)
        })
    }
}

/// A PMU (`struct pmu`) with the driver that serves it.
///
/// [`Registration::new`](super::Registration::new) makes it visible to users.
#[pin_data]
pub struct Pmu<T: Operations> {
    #[pin]
    raw: Opaque<bindings::pmu>,
    ops: T,
    cpus: PerCpu<CpuState<T>>,
    /// `raw` points into it.
    pub(super) groups: Groups,
    /// `raw` points to it.
    _task_data: Option<Arc<TaskDataCache<T::TaskData>>>,
    /// Set once there has been a [`Registration`](super::Registration).
    pub(super) registered: Atomic<bool>,
}

// SAFETY: `raw` is only used by functions that may be called on any CPU, the rest is `Send`.
unsafe impl<T: Operations> Send for Pmu<T> {}

// SAFETY: `raw` is only used by functions of the perf core, which synchronise, the rest is `Sync`.
unsafe impl<T: Operations> Sync for Pmu<T> {}

impl<T: Operations> Pmu<T> {
    /// Creates a PMU with the given callbacks that is not registered yet. `task_data` is the cache
    /// for [`TaskData`](Operations::TaskData), if events of this PMU need such data; PMUs whose
    /// events can be in one task have to share a cache.
    ///
    /// # Safety
    ///
    /// The callbacks must be [`Callbacks::PMU`](super::Callbacks::PMU). Functions that replace some
    /// of these must call them, or do the same.
    #[inline(never)]
    pub unsafe fn with_callbacks(
        callbacks: &bindings::pmu,
        ops: impl Init<T, Error>,
        groups: Groups,
        task_data: Option<Arc<TaskDataCache<T::TaskData>>>,
    ) -> Result<Arc<Self>> {
        let cpus = CpuState::new_all()?;
        let attr_groups = groups.as_raw();
        let raw = copied(callbacks).chain(move |raw| {
            raw.module = this_module::<T::OwnerModule>().as_ptr().cast();
            raw.attr_groups = attr_groups;
            Ok(())
        });
        let pmu = try_pin_init!(Self {
            // SAFETY: An `Opaque` has the layout of its value.
            raw <- unsafe { pin_init::cast_init::<bindings::pmu, _, _>(raw) },
            ops <- ops,
            cpus,
            groups,
            _task_data: task_data,
            registered: Atomic::new(false),
        }? Error);
        Arc::pin_init(pmu.pin_chain(Self::complete), GFP_KERNEL)
    }

    /// Sets the members of a new PMU that depend on its driver.
    fn complete(self: Pin<&mut Self>) -> Result {
        // SAFETY: Nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        let extended = match this.ops.samples_extended_registers() {
            true => bindings::PERF_PMU_CAP_EXTENDED_REGS,
            false => 0,
        };
        // SAFETY: The PMU is not registered, so that nothing else uses `raw`.
        let raw = unsafe { &mut *this.raw.get() };
        // CAST: the bits are the same.
        raw.capabilities |= extended as i32;
        if this.ops.serves_some_cpus() {
            // Users can name the PMU in the upper half of a hardware event's config.
            // CAST: the bits are the same.
            raw.capabilities |= bindings::PERF_PMU_CAP_EXTENDED_HW_TYPE as i32;
        } else {
            raw.filter = None;
        }
        if let Some(task_data) = &this._task_data {
            raw.task_ctx_cache = task_data.as_raw();
        }
        Ok(())
    }

    /// # Safety
    ///
    /// `raw` must be the `struct pmu` of a `Pmu<T>` that lives for `'a`.
    pub unsafe fn from_raw<'a>(raw: *mut bindings::pmu) -> &'a Self {
        let raw: *mut Opaque<bindings::pmu> = raw.cast();
        // SAFETY: By this function's requirements.
        unsafe { &*kernel::container_of!(raw, Self, raw) }
    }

    /// Returns the driver.
    pub fn ops(&self) -> &T {
        &self.ops
    }

    /// Returns the type under which the PMU is registered; not to be called before. Any context.
    pub(super) fn event_type(&self) -> u32 {
        // CAST: the type of a registered PMU is not negative.
        // SAFETY: `raw` is valid. `perf_pmu_register()` has set the type before users could find
        // the PMU, and it does not change.
        unsafe { (*self.raw.get()).type_ as u32 }
    }

    /// Returns whether events of the PMU can be on `cpu`. Any context.
    pub(super) fn serves(&self, cpu: CpuId) -> bool {
        // SAFETY: `raw` is valid, and this field does not change once the PMU is complete.
        let serves_all = unsafe { (*self.raw.get()).filter.is_none() };
        serves_all || self.ops.serves(cpu)
    }

    /// Returns the PMU on the current CPU.
    pub fn on_cpu<'a>(&'a self, irqs: &'a LocalInterruptDisabled) -> OnCpu<'a, T> {
        OnCpu {
            irqs,
            pmu: self,
            cpu: self.cpus.this_cpu(irqs),
        }
    }

    /// Returns the states of all CPUs.
    pub(super) fn cpu_states(&self) -> impl Iterator<Item = &CpuState<T>> {
        self.cpus.iter()
    }

    /// Returns the driver's data of `cpu`. [`None`] if there is no such CPU.
    pub fn data_of(&self, cpu: CpuId) -> Option<&T::CpuData> {
        Some(&self.cpus.get(cpu)?.data)
    }

    /// Returns the driver's data of each CPU.
    pub fn data_of_cpus(&self) -> impl Iterator<Item = &T::CpuData> {
        self.cpus.iter().map(|cpu| &cpu.data)
    }

    /// Returns the `struct pmu`.
    pub fn as_raw(&self) -> *mut bindings::pmu {
        self.raw.get()
    }

    pub(super) fn cpu_state<'a>(&self, cx: &OnCpu<'a, T>) -> &'a CpuState<T> {
        cx.cpu
    }
}
