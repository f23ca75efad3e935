// SPDX-License-Identifier: GPL-2.0

//! Events.

use super::{
    sample_type::{
        BRANCH_STACK,
        READ,
        REGS_INTR,
        REGS_USER,
        TIME, //
    },
    Attachment,
    Attr,
    EventId,
    Operations,
    Pmu,
    PmuDisabled, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ops::Deref,
    ptr,
    sync::atomic::{
        AtomicI32,
        AtomicI64,
        AtomicU32,
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::{
    alloc::{
        flags::GFP_KERNEL,
        KBox, //
    },
    cpu::CpuId,
    error::Result,
    ffi::c_void,
    mm::Mm,
    task::Task,
    types::Opaque, //
};

/// The data of an [`Event`] in `perf_event.pmu_private`.
struct Private<T: Operations> {
    data: T::EventData,
    /// The index of the [`EventId`] while the event is on a CPU, else [`NO_ID`].
    id: AtomicU32,
}

const NO_ID: u32 = u32::MAX;

/// Memory for the data of an event that is being opened.
///
/// The data is large and built field by field, so it is built in place.
pub struct Place<T: Operations>(KBox<MaybeUninit<Private<T>>>);

impl<T: Operations> Place<T> {
    /// Allocates the memory. Fails with `ENOMEM`. Process context.
    #[inline]
    pub fn new() -> Result<Self> {
        Ok(Self(KBox::new_uninit(GFP_KERNEL)?))
    }

    /// Moves the data into the memory.
    #[inline]
    pub fn fill(self, data: T::EventData) -> Placed<T> {
        Placed(KBox::write(
            self.0,
            Private {
                data,
                id: AtomicU32::new(NO_ID),
            },
        ))
    }
}

/// The data of an event that is being opened, in its place.
pub struct Placed<T: Operations>(KBox<Private<T>>);

impl<T: Operations> Deref for Placed<T> {
    type Target = T::EventData;

    #[inline]
    fn deref(&self) -> &T::EventData {
        &self.0.data
    }
}

/// `PERF_SAMPLE_BRANCH_HW_INDEX`.
const BRANCH_HW_INDEX: u64 = 1 << 17;

/// The event does not count (`hw.state`).
pub(super) const STOPPED: i32 = bindings::PERF_HES_STOPPED as i32;
/// The event's count is up to date (`hw.state`).
pub(super) const UPTODATE: i32 = bindings::PERF_HES_UPTODATE as i32;

/// An event of a PMU (`struct perf_event`).
///
/// Members that change are accessed atomically, since an NMI may interrupt an access and do the
/// same.
///
/// # Invariants
///
/// - The underlying `struct perf_event` is valid and belongs to a [`Pmu<T>`](super::Pmu).
/// - `pmu_private` comes from `KBox::into_raw` of a `Private<T>`.
#[repr(transparent)]
pub struct Event<T: Operations>(Opaque<bindings::perf_event>, PhantomData<T>);

// SAFETY: An event may be released on any CPU. `T::EventData` is `Send`.
unsafe impl<T: Operations> Send for Event<T> {}

// SAFETY: A shared reference gives access to atomics, to `T::EventData`, which is `Sync`, and to
// functions of the perf core that may be called concurrently, only.
unsafe impl<T: Operations> Sync for Event<T> {}

impl<T: Operations> Event<T> {
    /// # Safety
    ///
    /// For the lifetime `'a`, `event` must be valid and belong to a [`Pmu<T>`](super::Pmu).
    /// [`attach()`](Self::attach) must have been called for it, and [`detach()`](Self::detach) not.
    pub unsafe fn from_raw<'a>(event: *mut bindings::perf_event) -> &'a Self {
        // CAST: `Event` is a transparent wrapper of `struct perf_event`.
        // SAFETY: Valid for `'a` by this function's requirements.
        // INVARIANT: By this function's requirements, and `attach()` has set `pmu_private`.
        unsafe { &*event.cast() }
    }

    /// Returns the `struct perf_event`.
    pub fn as_raw(&self) -> *mut bindings::perf_event {
        self.0.get()
    }

    /// Attaches data to a new event.
    ///
    /// # Safety
    ///
    /// To be called by the `event_init` callback, with its event.
    pub(super) unsafe fn attach(event: *mut bindings::perf_event, data: Placed<T>) {
        // SAFETY: In `event_init`, only the PMU uses these fields of the event.
        unsafe { (*event).pmu_private = KBox::into_raw(data.0).cast() };
    }

    /// Frees the data.
    ///
    /// # Safety
    ///
    /// To be called by the `destroy` callback, with its event.
    pub(super) unsafe fn detach(event: *mut bindings::perf_event) {
        // SAFETY: In `destroy`, only the PMU still uses the event.
        let private = unsafe { ptr::replace(&raw mut (*event).pmu_private, ptr::null_mut()) };
        // SAFETY: By the type invariant the pointer comes from `KBox::into_raw` in `attach()`, and
        // `destroy` is called once for every successful `event_init`.
        drop(unsafe { KBox::from_raw(private.cast::<Private<T>>()) });
    }

    fn private(&self) -> &Private<T> {
        // SAFETY: By the type invariant the pointer is to a `Private<T>`, which lives as long as
        // `&self` can, see `from_raw()`.
        unsafe { &*(*self.as_raw()).pmu_private.cast() }
    }

    /// Sets the `PERF_ATTACH_*` flags that the driver [asks for](Operations::attachment).
    ///
    /// # Safety
    ///
    /// To be called by the `event_init` callback, with its event, after all that can fail.
    pub(super) unsafe fn set_attach_state(&self) {
        let flags = match T::attachment(self.data()) {
            Attachment::None => 0,
            Attachment::SchedTask => bindings::PERF_ATTACH_SCHED_CB,
            Attachment::TaskData => {
                bindings::PERF_ATTACH_SCHED_CB | bindings::PERF_ATTACH_TASK_DATA
            }
        };
        // SAFETY: In `event_init`, only the PMU uses the event. The perf core reads the flags after
        // the callback has returned.
        unsafe { (*self.as_raw()).attach_state |= flags };
    }

    /// Returns whether [`Operations::sched_task`] is called while the event is on a CPU.
    pub(super) fn wants_sched_task(&self) -> bool {
        T::attachment(self.data()) != Attachment::None
    }

    /// Returns the driver's data of the event, which [`Operations::event_init`] has built.
    pub fn data(&self) -> &T::EventData {
        &self.private().data
    }

    /// Returns the id of the event on its CPU; [`None`] while it is on none.
    pub fn id(&self) -> Option<EventId> {
        // CAST: `NO_ID` is out of range as a `usize`, too.
        EventId::from_index(self.private().id.load(Relaxed) as usize)
    }

    pub(super) fn set_id(&self, id: Option<EventId>) {
        // CAST: an index is below 128.
        let id = id.map_or(NO_ID, |id| id.index() as u32);
        self.private().id.store(id, Relaxed);
    }

    /// Returns `attr.type` and `attr.config` as the user has set them. Only the type of a PMU in
    /// the upper half of a hardware event's config is missing: the perf core clears it.
    pub fn attr_config(&self) -> (u32, u64) {
        // SAFETY: The event is valid, and these two do not change once it is open.
        let attr = unsafe { &raw const (*self.as_raw()).attr };
        // SAFETY: `attr` points into the event, which is valid. The perf core changes these two
        // members of open breakpoints only (`perf_event_modify_attr()`).
        unsafe { ((*attr).type_, (*attr).config) }
    }

    /// Returns `attr.config1` as the user has set it.
    pub fn attr_config1(&self) -> u64 {
        // SAFETY: The event is valid, and the attribute does not change once it is open; the
        // members of the union are `u64`.
        unsafe { (*self.as_raw()).attr.__bindgen_anon_3.config1 }
    }

    /// Returns the nanoseconds that the event had spent on counters when the perf core last brought
    /// this time up to date, as it does when the event leaves its counter or is read.
    pub fn time_running(&self) -> u64 {
        // SAFETY: The event is valid. The perf core changes the field as one word, on the CPU that
        // the event is on, or while it is on none.
        let time = unsafe { AtomicU64::from_ptr(&raw mut (*self.as_raw()).total_time_running) };
        time.load(Relaxed)
    }

    /// Returns the maximum number of branches or callers in a sample.
    pub(super) fn sample_max_stack(&self) -> u16 {
        // SAFETY: The event is valid, and the attribute does not change once it is open.
        unsafe { (*self.as_raw()).attr.sample_max_stack }
    }

    /// Returns whether a sample has the number of the latest branch
    /// (`PERF_SAMPLE_BRANCH_HW_INDEX`).
    pub fn samples_latest_branch(&self) -> bool {
        // SAFETY: The event is valid, and the attribute does not change once it is open.
        unsafe { (*self.as_raw()).attr.branch_sample_type & BRANCH_HW_INDEX != 0 }
    }

    /// Returns whether a sample has the count of the event, or the counts of its group
    /// (`PERF_SAMPLE_READ`). The perf core does not bring the event's own count up to date for it.
    pub fn samples_counts(&self) -> bool {
        self.samples(READ)
    }

    /// Returns whether a sample has a branch stack (`PERF_SAMPLE_BRANCH_STACK`).
    pub fn samples_branches(&self) -> bool {
        self.samples(BRANCH_STACK)
    }

    /// Returns whether a sample has any of `parts` (`PERF_SAMPLE_*`).
    pub(super) fn samples(&self, parts: u64) -> bool {
        // SAFETY: The event is valid, and the attribute does not change once it is open.
        unsafe { (*self.as_raw()).attr.sample_type & parts != 0 }
    }

    /// Returns whether a sample has the registers of the interrupted code or of user space.
    pub fn samples_registers(&self) -> bool {
        self.samples(REGS_INTR | REGS_USER)
    }

    /// Returns whether samples have a time by perf's own clock, not by the clock `attr.clockid`.
    pub fn samples_time(&self) -> bool {
        // SAFETY: The event is valid, and its single-bit attributes do not change.
        self.samples(TIME) && unsafe { (*self.as_raw()).attr.use_clockid() == 0 }
    }

    /// Returns whether the event samples.
    pub fn is_sampling(&self) -> bool {
        // SAFETY: The event is valid, and once it is open, the attribute never changes from or to
        // 0. The members of the union are `u64`.
        unsafe { (*self.as_raw()).attr.__bindgen_anon_1.sample_period != 0 }
    }

    /// Returns whether the event must always be on its CPU (`attr.pinned`).
    pub fn is_pinned(&self) -> bool {
        // SAFETY: The event is valid, and its single-bit attributes do not change.
        unsafe { (*self.as_raw()).attr.pinned() != 0 }
    }

    /// Returns the perf core's number of the event, which `PERF_EVENT_IOC_ID` returns to the user.
    pub fn number(&self) -> u64 {
        // SAFETY: The event is valid; the number is set when it is opened.
        unsafe { (*self.as_raw()).id }
    }

    /// Returns whether the event belongs to a task. While it is on a CPU, that task runs there.
    pub fn is_of_task(&self) -> bool {
        // SAFETY: The event is valid. Other bits of the field change, but this one is set when the
        // event is opened.
        let state = unsafe { ptr::read_volatile(&raw const (*self.as_raw()).attach_state) };
        state & bindings::PERF_ATTACH_TASK != 0
    }

    /// Returns the PMU.
    pub fn pmu(&self) -> &Pmu<T> {
        // SAFETY: By the type invariant the event belongs to a `Pmu<T>`, which lives as long as the
        // event.
        unsafe { Pmu::from_raw((*self.as_raw()).pmu) }
    }

    /// Returns the count, without the counts of inherited events.
    pub fn count(&self) -> u64 {
        // SAFETY: As in `add_count()`.
        let count = unsafe { AtomicI64::from_ptr((&raw mut (*self.as_raw()).count).cast::<i64>()) };
        // CAST: two's complement; the user reads it as `u64`.
        count.load(Relaxed) as u64
    }

    /// Adds `delta` to the count that the user reads.
    pub fn add_count(&self, delta: u64) {
        // SAFETY: The event is valid. All other code accesses `count` by local64_*() functions,
        // which are atomic on their CPU. Another CPU than the event's only stores a word
        // (`_perf_event_reset()`), and the addition below is atomic on all CPUs.
        let count = unsafe { AtomicI64::from_ptr((&raw mut (*self.as_raw()).count).cast::<i64>()) };
        // CAST: two's complement; the user reads the sum as `u64`.
        count.fetch_add(delta as i64, Relaxed);
    }

    /// Returns the number of occurrences from one overflow to the next. The perf core changes it
    /// when the user sets a period, and to keep up a frequency.
    pub fn sample_period(&self) -> u64 {
        // SAFETY: The event is valid. The perf core writes the field as one word, on the CPU that
        // the event is on or while it is on none. A child that inherits the event may read it on
        // another CPU.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.as_raw()).hw.sample_period) }.load(Relaxed)
    }

    /// Returns the occurrences left of the period: 0 or less when it is over. The perf core sets it
    /// to 0 to begin a new period.
    pub fn period_left(&self) -> &AtomicI64 {
        // SAFETY: The event is valid. The perf core accesses the field by local64_*() functions,
        // on the CPU that the event is on, or while it is on none.
        unsafe {
            let period = &raw mut (*self.as_raw()).hw.__bindgen_anon_2.__bindgen_anon_1;
            AtomicI64::from_ptr((&raw mut (*period).period_left).cast())
        }
    }

    /// Returns the length of the current period: the [`sample_period`](Self::sample_period) at its
    /// start, or a random one. When it adjusts a frequency, the perf core reads this as the length
    /// of the last period.
    pub fn last_period(&self) -> &AtomicU64 {
        // SAFETY: As in `sample_period()`.
        unsafe {
            let period = &raw mut (*self.as_raw()).hw.__bindgen_anon_2.__bindgen_anon_1;
            AtomicU64::from_ptr(&raw mut (*period).last_period)
        }
    }

    /// Returns the flags `PERF_HES_*`. The perf core reads them, too.
    pub(super) fn state(&self) -> &AtomicI32 {
        // SAFETY: The event is valid. The perf core only reads the field, as one word
        // (`perf_event_index()`, on any CPU).
        unsafe { AtomicI32::from_ptr(&raw mut (*self.as_raw()).hw.state) }
    }

    /// Returns whether the event is stopped, or on no CPU.
    pub fn is_stopped(&self) -> bool {
        self.state().load(Relaxed) & STOPPED != 0
    }

    /// Marks the event, which must be on this CPU, as counting or about to count.
    ///
    /// From then on, an NMI may [stop](Self::is_stopped) it at any moment.
    pub fn set_started(&self, _cx: &PmuDisabled<'_, T>) {
        self.state().store(0, Relaxed);
    }

    /// Stores the event's counter: its index, and its RDPMC operand. The driver, the mmap page, KVM
    /// and resctrl read these.
    pub fn set_counter(&self, counter: Option<(usize, u32)>) {
        match counter {
            Some((index, rdpmc)) => {
                // CAST: `user_index()` converts it back to a `u32`.
                self.rdpmc().store(rdpmc as i32, Relaxed);
                // CAST: an index is below 128.
                self.idx().store(index as i32, Relaxed);
            }
            None => self.idx().store(-1, Relaxed),
        }
    }

    /// Returns the index that [`set_counter`](Self::set_counter) has stored.
    #[inline]
    pub fn counter(&self) -> Option<usize> {
        // CAST: -1, without a counter, becomes `u32::MAX`.
        let index = self.idx().load(Relaxed) as u32;
        // CAST: `usize` has more bits.
        (index != u32::MAX).then_some(index as usize)
    }

    fn idx(&self) -> &AtomicI32 {
        // SAFETY: The event is valid. Only the PMU writes this field of the union, as one word.
        // Outside of the PMU, only KVM reads it (`intel_pmu_cross_mapped_check()`).
        unsafe {
            let hw = &raw mut (*self.as_raw()).hw.__bindgen_anon_1.__bindgen_anon_1;
            AtomicI32::from_ptr(&raw mut (*hw).idx)
        }
    }

    fn rdpmc(&self) -> &AtomicI32 {
        // SAFETY: As in `idx()`; resctrl reads the field (`x86_perf_rdpmc_index()`).
        unsafe {
            let hw = &raw mut (*self.as_raw()).hw.__bindgen_anon_1.__bindgen_anon_1;
            AtomicI32::from_ptr(&raw mut (*hw).event_base_rdpmc)
        }
    }

    /// Stores the counter value, sign-extended, up to which the event's count is up to date.
    ///
    /// To be called after each change of the count, before the page is updated. On the event's CPU,
    /// in any context.
    pub fn set_previous(&self, value: i64) {
        // SAFETY: The event is valid. The perf core reads the field for the mmap page, as one word.
        unsafe {
            let hw = &raw mut (*self.as_raw()).hw;
            AtomicI64::from_ptr((&raw mut (*hw).prev_count).cast::<i64>()).store(value, Relaxed);
        }
    }

    /// Returns whether the user may read the event's counter with RDPMC.
    pub(super) fn user_may_read(&self) -> bool {
        // SAFETY: The event is valid, and the flag does not change once it is open.
        // CAST: the bits are the same.
        let flags = unsafe { (*self.as_raw()).hw.__bindgen_anon_1.__bindgen_anon_1.flags as u32 };
        flags & bindings::PERF_EVENT_FLAG_USER_READ_CNT != 0
    }

    /// Returns the index for the mmap page: the RDPMC operand plus 1, or 0 without a counter.
    ///
    /// On another CPU than the event's, this may be the value before the latest change; the page is
    /// updated after each change.
    pub(super) fn user_index(&self) -> u32 {
        if self.counter().is_none() {
            return 0;
        }
        // CAST: `set_counter()` has stored a `u32`.
        (self.rdpmc().load(Relaxed) as u32).wrapping_add(1)
    }

    /// Updates the mmap page, if the user has mapped it.
    ///
    /// To be called after the event was put on a counter or removed from it, and after its counter
    /// was written. Any context.
    pub fn update_userpage(&self) {
        // If mmap() comes later, it updates the page by itself (`perf_mmap_rb()`).
        // SAFETY: The event is valid. mmap() changes the pointer as one word.
        if unsafe { ptr::read_volatile(&raw const (*self.as_raw()).rb) }.is_null() {
            return;
        }
        // SAFETY: The event is valid. The function may be called in any context.
        unsafe { bindings::perf_event_update_userpage(self.as_raw()) };
    }

    /// Updates the mmap page, on the CPU that the event is on, if any. There, no concurrent update
    /// can overwrite this one with older values.
    ///
    /// Process context.
    pub fn update_userpage_on_its_cpu(&self) {
        // SAFETY: The event is valid. The perf core writes the field as one word.
        let cpu = unsafe { ptr::read_volatile(&raw const (*self.as_raw()).oncpu) };
        // -1: the event is on no CPU. Its page has no index, and gets one when the event is put on
        // a CPU.
        if cpu >= 0 {
            // SAFETY: The function waits until the callback has returned, so the event is valid in
            // the callback. It fails if the CPU is offline: then no event is on it.
            unsafe {
                bindings::smp_call_function_single(
                    cpu,
                    Some(update_userpage_callback),
                    self.as_raw().cast(),
                    true,
                )
            };
        }
    }

    /// Returns the task that the event counts; null if it counts a CPU.
    fn task(&self) -> *const kernel::bindings::task_struct {
        // CAST: both are bindings of `struct task_struct`. SAFETY: The event is valid. The field is
        // set before `event_init` and not changed until the event is freed (`__free_event()`).
        unsafe { (*self.as_raw()).hw.target.cast_const().cast() }
    }

    /// Returns the address space of the event's task, as [`space_of`] does; 0 if it has none.
    pub fn task_space(&self) -> u64 {
        let task = self.task();
        if task.is_null() {
            return 0;
        }
        // SAFETY: The event holds a reference to the task until it is freed. exec and exit change
        // the field as one word.
        let mm = unsafe { ptr::read_volatile(&raw const (*task).mm) };
        mm.addr() as u64
    }

    /// Returns whether the event counts a task of the process of the current task.
    ///
    /// Process context.
    pub fn is_of_current_process(&self) -> bool {
        let task = self.task();
        // SAFETY: The current task is valid, and the event holds a reference to its own task. Both
        // have the field until they are freed (`same_thread_group()`).
        !task.is_null() && unsafe { (*task).signal == (*Task::current_raw()).signal }
    }
}

/// Returns a number for an address space: not 0, and unique as long as `mm` is in use.
pub fn space_of(mm: &Mm) -> u64 {
    // CAST: an address has 64 bits.
    mm.as_raw().addr() as u64
}

/// # Safety
///
/// `event` must point to a valid event.
unsafe extern "C" fn update_userpage_callback(event: *mut c_void) {
    // SAFETY: By this function's requirements. The function may be called in any context.
    unsafe { bindings::perf_event_update_userpage(event.cast()) };
}

/// An event that is being opened.
///
/// # Invariants
///
/// The pointer is the argument of an `event_init` callback that is running, and `pmu` is set.
pub struct NewEvent<'a, T: Operations>(*mut bindings::perf_event, PhantomData<&'a Event<T>>);

impl<'a, T: Operations> NewEvent<'a, T> {
    /// # Safety
    ///
    /// To be called by the `event_init` callback, with its event; `'a` must end before it returns.
    pub(super) unsafe fn from_raw(event: *mut bindings::perf_event) -> Self {
        // INVARIANT: By this function's requirements.
        Self(event, PhantomData)
    }

    /// Returns the event, for functions of the kernel. It is valid.
    pub fn as_raw(&self) -> *mut bindings::perf_event {
        self.0
    }

    /// Returns the attributes.
    pub fn attr(&self) -> Attr<'a> {
        // SAFETY: By the type invariant the event is valid, and its attributes do not change
        // while it is being opened.
        Attr::new(unsafe { &(*self.0).attr })
    }

    /// Returns whether the event has the PMU's type. The driver need not know this type, and the
    /// perf core offers it events of types without a PMU as well.
    // Drivers that serve several types compare types themselves.
    #[allow(dead_code)]
    pub fn is_of_own_type(&self) -> bool {
        self.attr().event_type() == self.own_type()
    }

    /// Returns the type under which the PMU is registered.
    pub fn own_type(&self) -> u32 {
        // SAFETY: By the type invariant the PMU of the event is set. It is registered.
        unsafe { Pmu::<T>::from_raw((*self.0).pmu) }.event_type()
    }

    /// Sets the period, and the length of the first period, which is about to begin.
    pub fn set_period(&self, period: u64, first: u64) {
        // SAFETY: By the type invariant the event is valid, and being opened: only the PMU uses
        // these fields.
        unsafe {
            let hw = &raw mut (*self.0).hw;
            (*hw).sample_period = period;
            let state = &raw mut (*hw).__bindgen_anon_2.__bindgen_anon_1;
            (*state).last_period = first;
            // CAST: two's complement; the perf core refuses periods of sampling events with the
            // sign bit set, and periods of counting events never have it.
            (&raw mut (*state).period_left)
                .cast::<i64>()
                .write(first as i64);
        }
    }

    /// Returns the CPU that the event is bound to, if any.
    pub fn cpu(&self) -> Option<CpuId> {
        // SAFETY: By the type invariant the event is valid. The CPU is set before `event_init` and
        // does not change while it runs.
        let cpu = unsafe { (*self.0).cpu };
        CpuId::from_i32(cpu)
    }

    /// Returns whether the event counts a CPU, not a task.
    pub fn counts_cpu(&self) -> bool {
        // SAFETY: By the type invariant the event is valid. The field is set before `event_init`
        // and does not change while it runs.
        unsafe { (*self.0).hw.target.is_null() }
    }

    /// Returns the parent of an inherited event. Returns [`None`] if the event is not inherited, or
    /// if its parent belongs to another PMU.
    pub fn inherited_from(&self) -> Option<&Event<T>> {
        // SAFETY: By the type invariant the event is valid. Both fields are set before `event_init`
        // and do not change while it runs.
        let (parent, pmu) = unsafe { ((*self.0).parent, (*self.0).pmu) };
        // SAFETY: A parent is valid as long as it has a child, and `inherit_event()` holds the
        // mutex of the context of the parent or of such a child.
        if parent.is_null() || unsafe { (*parent).pmu } != pmu {
            return None;
        }
        // SAFETY: The parent belongs to this PMU, and was opened. It is not destroyed before
        // `event_init` returns, which `self` does not outlive: `inherit_event()` holds the mutex of
        // the context of the parent, or of another child, which has a reference to the parent.
        Some(unsafe { Event::from_raw(parent) })
    }

    /// Returns the leader of the event's group; [`None`] if the event leads the group itself.
    fn leader(&self) -> Option<*mut bindings::perf_event> {
        // SAFETY: By the type invariant the event is valid. The leader is set before `event_init`
        // and does not change while it runs.
        let leader = unsafe { (*self.0).group_leader };
        (leader != self.0).then_some(leader)
    }

    /// Returns whether the event or its group wants to be alone on the PMU (`attr.exclusive`).
    pub fn is_of_exclusive_group(&self) -> bool {
        // SAFETY: By the type invariant the event is valid, and so is its leader, to which it holds
        // a reference. Their single-bit attributes do not change.
        let leader = unsafe { (*(*self.0).group_leader).attr.exclusive() };
        self.attr().exclusive() || leader != 0
    }

    /// Returns whether another event leads the event's group.
    pub fn is_member(&self) -> bool {
        self.leader().is_some()
    }

    /// Returns the leader of the event's group, if it is another event of this PMU and the PMU [is
    /// no software PMU](Operations::IS_SOFTWARE).
    pub fn leader_of_pmu(&self) -> Option<&Event<T>> {
        let leader = self.locked_leader()?;
        let mut found = None;
        self.visit(leader, &mut |leader: &Event<T>| {
            found = Some(leader.as_raw())
        });
        // SAFETY: `visit()` has passed a valid event of this PMU that was opened. Until
        // `event_init` returns, which `self` does not outlive, the new event holds a reference to
        // its leader, and the perf core holds the context's mutex.
        found.map(|leader| unsafe { Event::from_raw(leader) })
    }

    /// Keeps the event from counting without its leader: when the leader is closed, the event goes
    /// to the error state for good (`PERF_EV_CAP_SIBLING`).
    pub fn bind_to_leader(&self) {
        // SAFETY: By the type invariant the event is valid, and being opened: only the PMU uses the
        // field.
        unsafe { (*self.0).event_caps |= bindings::RUST_CONST_HELPER_PERF_EV_CAP_SIBLING };
    }

    /// Returns the leader of the event's group, if it is another event and the group cannot change.
    /// It can change while an event of a software PMU is opened.
    fn locked_leader(&self) -> Option<*mut bindings::perf_event> {
        self.leader().filter(|_| !T::IS_SOFTWARE)
    }

    /// Calls `f` for each event of this PMU in the group that would count together with the new
    /// event: the leader, and the enabled siblings. Calls it for none if the PMU [is a software
    /// PMU](Operations::IS_SOFTWARE).
    pub fn for_each_group_member(&self, mut f: impl FnMut(&Event<T>)) {
        let Some(leader) = self.locked_leader() else {
            return;
        };
        // SAFETY: The leader is valid, since the new event holds a reference to it. The perf core
        // holds the context's mutex while it calls `event_init` (`perf_try_init_event()`) of a PMU
        // that is no software PMU, so the siblings do not change.
        unsafe {
            for_each_member(leader, |member, enabled| {
                if enabled {
                    self.visit(member, &mut f);
                }
            });
        }
    }

    /// Returns whether `f` is true for any event of this PMU in the group, enabled or not. Returns
    /// false if the PMU [is a software PMU](Operations::IS_SOFTWARE).
    pub fn any_group_member(&self, mut f: impl FnMut(&Event<T>) -> bool) -> bool {
        let mut any = false;
        if let Some(leader) = self.locked_leader() {
            let mut visit = |member: &Event<T>| any |= f(member);
            // SAFETY: As in `for_each_group_member()`.
            unsafe { for_each_member(leader, |member, _| self.visit(member, &mut visit)) };
        }
        any
    }

    /// Calls `f` if `member`, a valid event of the new event's group, belongs to the same PMU.
    fn visit(&self, member: *mut bindings::perf_event, f: &mut impl FnMut(&Event<T>)) {
        // SAFETY: Both events are valid, see `for_each_group_member()`.
        if unsafe { (*member).pmu == (*self.0).pmu } {
            // SAFETY: The event belongs to this PMU and is in a group, so it was opened
            // successfully; it stays in the group while `event_init` runs.
            f(unsafe { Event::from_raw(member) });
        }
    }
}

/// Calls `f` for the leader of a group and for its siblings, with whether they are enabled. The
/// leader is passed as enabled: while it is disabled, no event of the group counts.
///
/// # Safety
///
/// `leader` must be valid, and its siblings must not change, for the duration of the call.
pub unsafe fn for_each_member(
    leader: *mut bindings::perf_event,
    mut f: impl FnMut(*mut bindings::perf_event, bool),
) {
    f(leader, true);
    // SAFETY: By this function's requirements.
    let head = unsafe { &raw mut (*leader).sibling_list };
    // SAFETY: By this function's requirements the leader is valid, and so is the head of its list,
    // which does not change.
    let mut node = unsafe { (*head).next };
    while node != head {
        // SAFETY: `node` is not the head, so it is the `sibling_list` of an event.
        let sibling = unsafe { kernel::container_of!(node, bindings::perf_event, sibling_list) };
        // SAFETY: An event in the list is valid. `state` may change under the context's lock; any
        // value that it has during the call will do.
        let state = unsafe { ptr::read_volatile(&raw const (*sibling).state) };
        f(
            sibling,
            state > bindings::perf_event_state_PERF_EVENT_STATE_OFF,
        );
        // SAFETY: As for `head`.
        node = unsafe { (*node).next };
    }
}
