// SPDX-License-Identifier: GPL-2.0

//! The order in which the perf core offers groups to a PMU, and how a driver can change it.
//!
//! A context keeps its flexible groups in a tree, by CPU, PMU, control group and `group_index`. The
//! perf core offers them in the order of the last (`visit_groups_merge()`, `kernel/events/core.c`).
//! Once a group was refused, it offers no more of them (`group_can_go_on()`, `core.c`), but for
//! those that it takes for software events. When an interval is over, it moves one group to the end
//! (`rotate_ctx()`, `core.c`).
//!
//! A driver can move all groups that have counted, each to a place of its own ([`IntervalEnd`],
//! [`Context::requeue`]), and the perf core then leaves the order alone. And it can have groups
//! offered that are behind a refused one ([`Scheduling::offer`]): these get the flag that the perf
//! core gives groups of software events, `PERF_EV_CAP_SOFTWARE` in `group_caps`. They lose it when
//! the PMU is enabled, and those that have found a place go in front of the refused one
//! ([`Offers::take_back`](super::offers::Offers::take_back)), so the next time they come first
//! without a flag. Groups that cannot have the flag go there at once, and all groups are offered
//! again ([`Scheduling::bring_forward`]).
//!
//! # Locks
//!
//! The tree of a context, `group_index` and `group_caps` are guarded by the lock of the context.
//! Two other uses rely on more:
//!
//! - `perf_event_init_context()` walks the tree without the lock, and sets `rotate_disable` for as
//!   long, under the lock. While that is set, nothing is moved here.
//! - `perf_event_open()` reads `group_caps` of a software event that leads a group with the
//!   context's mutex   only (`core.c`), also while another CPU schedules the group. It must not
//!   find the flag: the   group would be moved from the PMU that it is on to the same one, and
//!   those of its events that were   opened disabled would be switched off
//!   (`perf_event__state_init()`). So such a group never gets the flag
//!   ([`WaitingGroup::has_software_leader`]), and waits until it is offered in the order of the
//!   tree.
//!
//! A refused group is on no counter, and its time goes by the perf core's clock, which stands still
//! while groups are offered. So no event loses time by a trial.

use super::{
    behind::Behind,
    context::{
        Context,
        WaitingGroup, //
    },
    rotation,
    time,
    InternalOperations,
    OFFER_ALWAYS, //
};
use crate::perf::{
    Event,
    PmuDisabled,
    Scheduling, //
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};

impl<'a, T: InternalOperations> Scheduling<'a, T> {
    /// Returns whether the PMU stays disabled until the perf core has offered all groups. It does,
    /// but for a CPU's own context that was empty.
    pub fn may_offer(&self) -> bool {
        // SAFETY: The PMU is registered, as it has events, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // The perf core disables the PMU around `add` alone, too (`event_sched_in()`).
        // SAFETY: The context is valid, and the count is used on this CPU alone.
        unsafe { (*here).pmu_disable_count > i32::from(self.is_add()) }
    }

    /// Returns the groups that `event` rotates with.
    ///
    /// `event` must be on this CPU or being added, here and for the other methods.
    pub fn context(&self, event: &Event<T>) -> Context<'a, T> {
        // SAFETY: The event is valid, and its context does not change while it is locked.
        // INVARIANT: It is locked by the type invariant.
        Context(unsafe { (*event.as_raw()).pmu_ctx }, PhantomData)
    }

    /// Returns the event's group.
    pub fn group(&self, event: &Event<T>) -> WaitingGroup<'a, T> {
        // SAFETY: The event is valid, and so is its leader, which does not change while the context
        // is locked.
        // INVARIANT: A leader, of a context that is locked by the type invariant.
        WaitingGroup(unsafe { (*event.as_raw()).group_leader }, PhantomData)
    }

    /// Returns whether the event's group is pinned, so that it does not rotate.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).attr.pinned() != 0 }
    }

    /// Returns whether the events are put on the CPU because an interval is over.
    pub fn is_interval_end(&self) -> bool {
        self.is_rotation()
    }

    /// Returns the groups that the perf core would offer after that of `event`, in its order, if
    /// that one were not refused.
    pub fn behind(&self, event: &Event<T>) -> Behind<'a, T> {
        // SAFETY: The group is valid, and its context locked.
        unsafe { Behind::new(self.group(event).0) }
    }

    /// Makes the perf core offer `group` although the group of `event`, which is before it, or an
    /// exclusive one between them is refused.
    ///
    /// Does nothing if `group` has a software leader. It must not be exclusive, and no exclusive
    /// group may be on the CPU: the perf core does not check that for such an offer.
    /// [`may_offer`](Self::may_offer) must have returned true.
    pub fn offer(&self, group: WaitingGroup<'_, T>, event: &Event<T>) {
        if group.has_software_leader() {
            return;
        }
        let offers = &self.data().offers;
        // SAFETY: Both are leaders of groups in one context, which is locked, `group`'s is no
        // software event, and the perf core enables the PMU before it unlocks it: in
        // `perf_event_context_sched_in()`, `ctx_resched()`, `perf_cgroup_switch()` and
        // `perf_rotate_context()`, and around each event.
        unsafe { offers.push(group.0, self.group(event).0, true) };
    }

    /// Moves `group`, which may be one that cannot be offered, in front of that of `event`, if that
    /// is refused, or else behind it, when the PMU is enabled. The perf core then offers all groups
    /// of this CPU again, if [`bind_perf_pmu_resched()`](crate::perf_core::bind_perf_pmu_resched)
    /// has succeeded.
    ///
    /// [`may_offer`](Self::may_offer) must have returned true.
    pub fn bring_forward(&self, group: WaitingGroup<'_, T>, event: &Event<T>) {
        let offers = &self.data().offers;
        // SAFETY: As for `offer()`, but the group may have a software leader: it is not to pass, so
        // it gets no flag.
        unsafe { offers.push(group.0, self.group(event).0, false) };
    }

    /// Returns whether the event's group is offered because of [`offer`](Self::offer).
    pub fn is_offered(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).group_caps & OFFER_ALWAYS != 0 }
    }
}

impl<T: InternalOperations> PmuDisabled<'_, T> {
    /// Returns whether the events are rotating: the CPU's [timer](super::rotation) for that is why
    /// the PMU is disabled.
    pub fn is_rotation(&self) -> bool {
        // SAFETY: Interrupts are off, and the PMU is registered: before that ends,
        // `close()` says so, and then waits for all that run with interrupts off.
        self.pmu().internals().is_open() && unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }

    /// Leaves groups behind the refused ones, which come first again when the context's groups are
    /// offered next, although they were [offered](Scheduling::offer) or [brought
    /// forward](Scheduling::bring_forward).
    pub fn keep_places(&self) {
        self.data().offers.keep_places();
    }

    /// Returns the number of groups that are enabled and should be on this CPU, but are not;
    /// without those of control groups. 0 if events are not [rotating](Self::is_rotation).
    pub fn waiting_groups(&self) -> u32 {
        if !self.is_rotation() {
            return 0;
        }
        // SAFETY: Interrupts are off, and `is_rotation()` has found that the PMU is registered.
        // Before that ends, `close_resched()` waits for all that run with interrupts off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; `perf_rotate_context()` has locked both.
        let (own, task) = unsafe { (&raw mut (*here).epc, (*here).task_epc) };
        let waiting = [own, task].map(|context| {
            // SAFETY: Valid while it is locked. That of a CPU is none before it has had events.
            if context.is_null() || unsafe { (*context).ctx }.is_null() {
                return 0;
            }
            // INVARIANT: It is locked.
            Context::<T>(context, PhantomData).waiting()
        });
        waiting.iter().sum()
    }
}

/// The PMU of one CPU, disabled because an interval is over, before any group is taken off.
///
/// # Invariants
///
/// `perf_rotate_context()` is disabling the PMU: it holds the locks of the CPU's context and of its
/// task's, and walks through neither's groups.
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
    /// disabled before; the result must not leave the callback.
    #[inline]
    pub(in crate::perf_core) unsafe fn new(cx: PmuDisabled<'a, T>) -> Option<Self> {
        // Between the start of the timer's function and its end the perf core disables the PMU
        // once, in `perf_rotate_context()`, with the locks taken and before it does anything else.
        // It does so elsewhere in process context, in a scheduler's hook or in another interrupt:
        // none of these comes in between, as interrupts are off. Tracepoints do, whose events stop
        // ours, but not by this callback (`perf_event_throttle()`). The timer looks as if its
        // function ran from when it is stopped, before the PMU is unregistered. Events may stay for
        // long then, if the module is forced out. SAFETY: The perf core disables a PMU while it is
        // registered, with interrupts off.
        let under_way = unsafe { rotation::is_under_way(cx.pmu().as_raw()) };
        // INVARIANT: So that is what runs.
        (under_way && cx.pmu().internals().is_open()).then_some(Self(cx))
    }

    /// Returns the perf core's clock, and the length of an interval, in nanoseconds.
    pub fn clock(&self) -> (u64, u64) {
        // SAFETY: The PMU is registered, as its timer is running, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; the interval changes as a whole.
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
                // INVARIANT: It is locked.
                f(Context(context, PhantomData));
            }
        }
    }

    /// Returns the groups of a context that are enabled and wait, in the order in which they will
    /// be offered.
    ///
    /// One that moves while others are looked at may be there again.
    pub fn in_order(&self, context: &Context<'a, T>) -> Behind<'a, T> {
        // SAFETY: By the type invariants: the context is locked, and this CPU's own or that of its
        // task.
        unsafe { Behind::all(context.0) }
    }

    /// Keeps the perf core from changing the order of the context's groups this time.
    pub fn keep_order(&self, context: &Context<'_, T>) {
        let offers = &self.data().offers;
        // SAFETY: The context is locked, and until then the perf core enables the PMU again. Code
        // that sets the field or clears it holds the lock.
        unsafe { offers.keep_order((*context.0).ctx) };
    }
}
