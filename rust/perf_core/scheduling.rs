// SPDX-License-Identifier: GPL-2.0

//! The order in which the perf core offers groups to a PMU, and how a driver can change it.
//!
//! A context keeps its flexible groups in a tree, sorted by CPU, PMU, control group and
//! `group_index`. The perf core offers them in the order of `group_index` (`visit_groups_merge()`,
//! `kernel/events/core.c`). Once a group was refused, it offers no more of them
//! (`group_can_go_on()`, `core.c`), except groups that it treats as software events. When an
//! interval is over, it moves one group to the end (`rotate_ctx()`, `core.c`).
//!
//! A driver can move all groups that have counted, each to a place of its own ([`IntervalEnd`],
//! [`Context::requeue`]); the perf core then does not change the order. A driver can also have
//! groups offered that are behind a refused one ([`Scheduling::offer`]). These get the flag of
//! software groups, `PERF_EV_CAP_SOFTWARE` in `group_caps`, until the PMU is enabled. Then the
//! groups that have found a place move in front of the refused one
//! ([`Offers::take_back`](super::offers::Offers::take_back)), so that next time they are offered
//! first, without a flag. Groups that cannot have the flag move there without having found a place,
//! and all groups are offered again ([`Scheduling::bring_forward`]).
//!
//! # Locks
//!
//! The context's lock guards its tree, `group_index` and `group_caps`. Two uses in the perf core do
//! not take it:
//!
//! - `perf_event_init_context()` walks the tree without the lock. It sets `rotate_disable`
//!   meanwhile, under the lock, and while this is set, no group is moved here.
//! - When a software event leads a group, `perf_event_open()` reads `group_caps` under the
//!   context's mutex only, even while another CPU schedules the group. It must not find the flag:
//!   it would move the group from its PMU to the same PMU, and switch off the group's events that
//!   were opened disabled (`perf_event__state_init()`). So such a group never gets the flag
//!   ([`EventGroup::has_software_leader`]), and waits until it is offered in the order of the
//!   tree.
//!
//! A refused group has no counter. Its times are read from the perf core's context clock, which
//! stands still while groups are offered. So no event loses time by being tried.

use super::{
    behind::Behind,
    context::{
        Context,
        EventGroup, //
    },
    rotation,
    time,
    InternalOperations,
    OFFER_ALWAYS, //
};
use crate::{
    bindings,
    perf::{
        Event,
        PmuDisabled,
        Scheduling, //
    },
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};

impl<'a, T: InternalOperations> Scheduling<'a, T> {
    /// Returns whether the PMU stays disabled until the perf core has offered all groups. This is
    /// true except for a CPU's own context that was empty.
    pub fn may_offer(&self) -> bool {
        // SAFETY: The PMU is registered, as it has events, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // The perf core disables the PMU around `add` alone, too (`event_sched_in()`).
        // SAFETY: The context is valid, and the count is only used on this CPU.
        unsafe { (*here).pmu_disable_count > i32::from(self.is_add()) }
    }

    /// Returns the groups with which `event` rotates.
    ///
    /// For this and the other methods, `event` must be on this CPU or being added.
    pub fn context(&self, event: &Event<T>) -> Context<'a, T> {
        // SAFETY: The event is valid, and its context does not change while it is locked.
        // INVARIANT: By the type invariant the context is locked.
        Context(unsafe { (*event.as_raw()).pmu_ctx }, PhantomData)
    }

    /// Returns the event's group.
    pub fn group(&self, event: &Event<T>) -> EventGroup<'a, T> {
        // SAFETY: The event is valid, and so is its leader, which does not change while the context
        // is locked.
        // INVARIANT: This is a leader, in a context that is locked by the type invariant.
        EventGroup(unsafe { (*event.as_raw()).group_leader }, PhantomData)
    }

    /// Returns whether `event` is the only one of its group.
    #[inline]
    pub fn is_alone(&self, event: &Event<T>) -> bool {
        let event = event.as_raw();
        // SAFETY: The event is valid. Its group does not change while the context is locked.
        unsafe { (*event).group_leader == event && (*event).nr_siblings == 0 }
    }

    /// Returns whether the event's group is pinned, so that it does not rotate.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).attr.pinned() != 0 }
    }

    /// Returns whether events are put on the CPU because an interval is over.
    pub fn is_interval_end(&self) -> bool {
        self.is_rotation()
    }

    /// Returns the groups that the perf core would offer after the group of `event` if that group
    /// were not refused.
    pub fn behind(&self, event: &Event<T>) -> Behind<'a, T> {
        // SAFETY: The group is valid, and its context locked.
        unsafe { Behind::new(self.group(event).0) }
    }

    /// Makes the perf core offer `group` even if the group of `event` in front of it, or an
    /// exclusive group between the two, is refused.
    ///
    /// Does nothing if `group` has a software leader. `group` must not be exclusive, and no
    /// exclusive group may be on the CPU: the perf core does not check this for such an offer.
    /// [`may_offer`](Self::may_offer) must have returned true.
    pub fn offer(&self, group: EventGroup<'_, T>, event: &Event<T>) {
        if group.has_software_leader() {
            return;
        }
        let offers = self.data().offers_to_change();
        // SAFETY: Both are leaders of groups in one context, which is locked, and the leader of
        // `group` is not a software event. By the type invariant of `CpuState`, the offers are
        // taken back when the perf core enables the PMU. It does so before it unlocks the context:
        // in `perf_event_context_sched_in()`, `ctx_resched()`, `perf_cgroup_switch()` and
        // `perf_rotate_context()`, or otherwise in `event_sched_in()`.
        unsafe { offers.push(group.0, self.group(event).0, true) };
    }

    /// Moves `group` when the PMU is enabled, if it still waits then: in front of the group of
    /// `event` if that is refused, otherwise behind it. This also works for groups that cannot be
    /// offered. The perf core then offers all groups of this CPU again, if
    /// [`bind_perf_pmu_resched()`](crate::perf_core::bind_perf_pmu_resched) has succeeded.
    ///
    /// [`may_offer`](Self::may_offer) must have returned true.
    pub fn bring_forward(&self, group: EventGroup<'_, T>, event: &Event<T>) {
        let offers = self.data().offers_to_change();
        // SAFETY: As for `offer()`. The group may have a software leader, since it may not pass and
        // so gets no flag.
        unsafe { offers.push(group.0, self.group(event).0, false) };
    }

    /// Returns whether the event's group is offered because of [`offer`](Self::offer).
    pub fn is_offered(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).group_caps & OFFER_ALWAYS != 0 }
    }
}

impl<T: InternalOperations> PmuDisabled<'_, T> {
    /// Returns whether events are rotating: the PMU is disabled because the CPU's
    /// [timer](super::rotation) has expired.
    pub fn is_rotation(&self) -> bool {
        // SAFETY: Interrupts are off, and the PMU is registered: before it is unregistered,
        // `close()` is called, and then all code that runs with interrupts off is waited for.
        self.pmu().internals().is_open() && unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }

    /// Keeps groups behind the refused ones although they were [offered](Scheduling::offer) or
    /// [brought forward](Scheduling::bring_forward): the refused groups will be offered first
    /// again.
    pub fn keep_places(&self) {
        self.data().offers.keep_places();
    }

    /// Returns the number of groups that are enabled and should be on this CPU, but are not. Groups
    /// for control groups are not counted. 0 if events are not [rotating](Self::is_rotation).
    pub fn waiting_groups(&self) -> u32 {
        if !self.is_rotation() {
            return 0;
        }
        // SAFETY: Interrupts are off, and `is_rotation()` has found that the PMU is registered.
        // Before it is unregistered, `close_resched()` waits for all code that runs with interrupts
        // off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; `perf_rotate_context()` has locked both.
        let (own, task) = unsafe { (&raw mut (*here).epc, (*here).task_epc) };
        let waiting = [own, task].map(|context| {
            // SAFETY: A context is valid while it is locked. The `ctx` of a CPU's own is null until
            // it has had events.
            if context.is_null() || unsafe { (*context).ctx }.is_null() {
                return 0;
            }
            // INVARIANT: The context is locked.
            Context::<T>(context, PhantomData).waiting()
        });
        waiting.iter().sum()
    }
}

/// The PMU of one CPU, disabled because an interval is over, before any group is removed.
///
/// # Invariants
///
/// `perf_rotate_context()` is disabling the PMU: it holds the locks of the contexts of the CPU and
/// of its task, and does not walk the groups of either.
pub struct IntervalEnd<'a, T: InternalOperations>(PmuDisabled<'a, T>);

impl<'a, T: InternalOperations> Deref for IntervalEnd<'a, T> {
    type Target = PmuDisabled<'a, T>;

    fn deref(&self) -> &PmuDisabled<'a, T> {
        &self.0
    }
}

impl<'a, T: InternalOperations> IntervalEnd<'a, T> {
    /// Returns the proof that an interval is over, or [`None`] if it is not.
    ///
    /// # Safety
    ///
    /// To be called when the perf core itself (`perf_pmu_disable()`) disables a PMU that was not
    /// disabled before; the result must not outlive the callback. `here` must be the PMU's
    /// [context](rotation::this_context) of this CPU.
    #[inline]
    pub(in crate::perf_core) unsafe fn new(
        cx: PmuDisabled<'a, T>,
        here: *mut bindings::perf_cpu_pmu_context,
    ) -> Option<Self> {
        // While the timer's function runs, the perf core disables the PMU once: in
        // `perf_rotate_context()`, after taking the locks and before anything else. All its other
        // calls are in process context, in scheduler hooks or in other interrupts, none of which
        // can come in between, since interrupts are off. A tracepoint can, and its event may stop
        // events of this PMU, but not by this callback (`perf_event_throttle()`). After `stop()`,
        // before the PMU is unregistered, the timer looks as if its function were running, and
        // events may stay for long if the module is removed by force: so `is_open()` is checked,
        // too.
        // SAFETY: By this function's requirements.
        let under_way = unsafe { rotation::is_under_way_in(here) };
        // INVARIANT: By the above, `perf_rotate_context()` is running.
        (under_way && cx.pmu().internals().is_open()).then_some(Self(cx))
    }

    /// Returns the perf core's clock, and the length of an interval, in nanoseconds.
    pub fn clock(&self) -> (u64, u64) {
        // SAFETY: The PMU is registered, as its timer is running, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; the interval is read and written as one word.
        let interval = unsafe { (&raw const (*here).hrtimer_interval).read_volatile() };
        (time::clock(), u64::try_from(interval).unwrap_or(0))
    }

    /// Calls `f` for the contexts in which groups wait: the task's, then the CPU's own.
    pub fn for_each_context(&self, mut f: impl FnMut(Context<'a, T>)) {
        // SAFETY: The PMU is registered, as its timer is running, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; the perf core sets the pointer with the task's context
        // locked.
        let (own, task) = unsafe { (&raw mut (*here).epc, (*here).task_epc) };
        for context in [task, own] {
            // SAFETY: A context of this CPU is valid while it is locked, see the type invariant.
            if !context.is_null() && unsafe { (*context).rotate_necessary } != 0 {
                // INVARIANT: The context is locked.
                f(Context(context, PhantomData));
            }
        }
    }

    /// Returns the enabled and waiting groups of a context, in the order in which they will be
    /// offered.
    ///
    /// A group that is moved during the iteration may appear again.
    pub fn in_order(&self, context: &Context<'a, T>) -> Behind<'a, T> {
        // SAFETY: By the type invariants the context is locked, and belongs to this CPU or its
        // task.
        unsafe { Behind::all(context.0) }
    }

    /// Keeps the perf core from changing the order of the context's groups this time.
    pub fn keep_order(&self, context: &Context<'_, T>) {
        let offers = self.data().offers_to_change();
        // SAFETY: The context is locked, and the perf core enables the PMU again before it unlocks
        // the context. Code that sets or clears the field holds the lock.
        unsafe { offers.keep_order((*context.0).ctx) };
    }
}
