// SPDX-License-Identifier: GPL-2.0

//! The order in which the perf core offers groups to a PMU, and what a driver can do about it.
//!
//! A context keeps its flexible groups in a tree, by CPU, PMU, control group and `group_index`. The perf
//! core offers them in the order of the last (`visit_groups_merge()`, `kernel/events/core.c:4018`).
//! Once a group was refused, it offers no more of them (`group_can_go_on()`, `core.c:2920`), but for
//! those that it takes for software events. When an interval is over, it moves one group to the end
//! (`rotate_ctx()`, `core.c:4541`).
//!
//! A driver can do that with all groups that have counted, each to a place of its own
//! ([`IntervalEnd`], [`Context::requeue`]), and the perf core then leaves the order alone. And it can
//! have groups offered that are behind one that it refuses ([`Scheduling::offer`]): these get the flag
//! that the perf core gives groups of software events, `PERF_EV_CAP_SOFTWARE` in `group_caps`. They
//! lose it when the PMU is enabled, and those that have found a place go in front of the one that was
//! refused ([`Offers::settle`]). So the next time they come first without a flag.
//!
//! # Locks
//!
//! The tree of a context, `group_index` and `group_caps` are guarded by the lock of the context. Two
//! other uses rely on more:
//!
//! - `perf_event_init_context()` walks the tree without the lock, and sets `rotate_disable` for as
//!   long, under the lock. While that is set, nothing is moved here.
//! - `perf_event_open()` reads `group_caps` of a software event with the context's mutex only
//!   (`core.c:14140`). It must not find the flag: the event would be moved from the PMU that it is on
//!   to the same one, and be switched off by that. So the flag does not outlive the section with
//!   interrupts off and the context locked in which it is set. `perf_event_open()` can run meanwhile on
//!   another CPU, for a task that is not its own; with the flag it would see what it sees of a
//!   group of software events, and the leader is switched off if it was enabled before.
//!
//! A group that is refused is not on a counter, and its time goes by the perf core's clock, which stands
//! while groups are offered. So trying costs no event any time.

use super::rotation;
use crate::{
    bindings,
    perf::{Event, Operations, PmuDisabled},
};
use core::{
    cmp::Ordering,
    marker::PhantomData,
    ops::Deref,
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};
use kernel::cpu::CpuId;

/// For the groups that the perf core takes for software events.
const OFFER_ALWAYS: i32 = bindings::RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE;

const OFF: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_OFF;
const INACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;
const ACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE;

/// The PMU of one CPU, while the perf core puts events on it.
///
/// # Invariants
///
/// An `add` or `commit_txn` callback is running: the perf core holds the locks of the CPU's context
/// and of its task's.
pub struct Scheduling<'a, T: Operations> {
    cx: PmuDisabled<'a, T>,
    /// How often the perf core disables the PMU around the callback alone.
    disabled_for_this: i32,
}

impl<'a, T: Operations> Deref for Scheduling<'a, T> {
    type Target = PmuDisabled<'a, T>;

    fn deref(&self) -> &PmuDisabled<'a, T> {
        &self.cx
    }
}

impl<'a, T: Operations> Scheduling<'a, T> {
    /// # Safety
    ///
    /// To be called by the `add` callback; the result must not leave it.
    pub(in crate::perf) unsafe fn add(cx: PmuDisabled<'a, T>) -> Self {
        // INVARIANT: By this function's requirements. See `event_sched_in()`.
        Self {
            cx,
            disabled_for_this: 1,
        }
    }

    /// # Safety
    ///
    /// To be called by the `commit_txn` callback; the result must not leave it.
    pub(in crate::perf) unsafe fn commit(cx: PmuDisabled<'a, T>) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            cx,
            disabled_for_this: 0,
        }
    }

    /// Whether the PMU stays disabled until the perf core has offered all groups. It should be, but for a
    /// context of a CPU that was empty.
    pub fn may_offer(&self) -> bool {
        // SAFETY: The PMU is registered, as it has events, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid, and the count is used on this CPU alone.
        unsafe { (*here).pmu_disable_count > self.disabled_for_this }
    }

    /// The groups that `event` takes turns with.
    ///
    /// `event` is being added, or is on this CPU; so for the other methods.
    pub fn context(&self, event: &Event<T>) -> Context<'a, T> {
        // SAFETY: The event is valid, and its context does not change while it is locked.
        // INVARIANT: It is locked by the type invariant.
        Context(unsafe { (*event.as_raw()).pmu_ctx }, PhantomData)
    }

    /// The event's group.
    pub fn group(&self, event: &Event<T>) -> WaitingGroup<'a, T> {
        // SAFETY: The event is valid, and so is its leader, which does not change while the context
        // is locked.
        // INVARIANT: A leader, of a context that is locked by the type invariant.
        WaitingGroup(unsafe { (*event.as_raw()).group_leader }, PhantomData)
    }

    /// Whether the event's group is to be on a counter at all times, that is, takes no turns.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).attr.pinned() != 0 }
    }

    /// Whether the events are put on the CPU because an interval is over.
    pub fn is_interval_end(&self) -> bool {
        // SAFETY: The PMU is registered, as it has events, and interrupts are off.
        unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }

    /// The groups that the perf core would offer after that of `event`, in its order, were that not
    /// refused.
    pub fn behind(&self, event: &Event<T>) -> Behind<'a, T> {
        // SAFETY: The group is valid, and its context locked.
        unsafe { Behind::new(self.group(event).0) }
    }

    /// Has the perf core offer `group` although it refuses that of `event`, which is before it.
    ///
    /// `group` does not want to be alone, and no group that does is on the CPU: the perf core does not
    /// look at that then. [`may_offer`](Self::may_offer) must have said so.
    pub fn offer(&self, group: WaitingGroup<'_, T>, event: &Event<T>) {
        let offers = &self.pmu().cpu_state(self).internals.offers;
        // SAFETY: Both are leaders of groups in one context, which is locked, and the perf core
        // enables the PMU before it unlocks it: in `perf_event_context_sched_in()`, `ctx_resched()`,
        // `perf_cgroup_switch()` and `perf_rotate_context()`, and around each event.
        unsafe { offers.push(group.0, self.group(event).0) };
    }

    /// Whether the event's group is offered because of [`offer`](Self::offer).
    pub fn is_offered(&self, event: &Event<T>) -> bool {
        // SAFETY: By the type invariant of the group.
        unsafe { (*self.group(event).0).group_caps & OFFER_ALWAYS != 0 }
    }
}

impl<T: Operations> PmuDisabled<'_, T> {
    /// Whether events take turns right now: the CPU's timer for that, see
    /// [`rotation`](super::rotation), is why the PMU is disabled.
    pub fn is_rotation(&self) -> bool {
        // SAFETY: Interrupts are off, and the PMU is registered: whoever ends that has said so
        // before, and waits for all that run with interrupts off.
        self.pmu().internals.is_open() && unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }

    /// Leaves groups that were [offered](Scheduling::offer) behind those that they were offered in spite
    /// of: these come first again when the context's groups are offered next.
    pub fn keep_places(&self) {
        self.pmu().cpu_state(self).internals.offers.keep_places();
    }

    /// How many groups are enabled and not on this CPU, on which they should be; not those of control
    /// groups. 0 if events do not [take turns](Self::is_rotation) right now.
    pub fn waiting_groups(&self) -> u32 {
        if !self.is_rotation() {
            return 0;
        }
        // SAFETY: As above.
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

/// The PMU of one CPU, disabled because an interval is over: no group was taken off yet.
///
/// # Invariants
///
/// `perf_rotate_context()` is disabling the PMU: it holds the locks of the CPU's context and of its
/// task's, and walks through neither's groups.
pub struct IntervalEnd<'a, T: Operations>(PmuDisabled<'a, T>);

impl<'a, T: Operations> Deref for IntervalEnd<'a, T> {
    type Target = PmuDisabled<'a, T>;

    fn deref(&self) -> &PmuDisabled<'a, T> {
        &self.0
    }
}

impl<'a, T: Operations> IntervalEnd<'a, T> {
    /// Returns it if an interval is over.
    ///
    /// # Safety
    ///
    /// To be called when the perf core itself (`perf_pmu_disable()`) disables a PMU that was not
    /// disabled before; the result must not leave the callback.
    #[inline]
    pub(in crate::perf) unsafe fn new(cx: PmuDisabled<'a, T>) -> Option<Self> {
        // Between the start of the timer's function and its end the perf core disables the PMU once, in
        // `perf_rotate_context()`, with the locks taken and before it does anything else. It does so
        // elsewhere in process context, in a scheduler's hook or in another interrupt: none of these
        // comes in between, as interrupts are off. Tracepoints do, whose events stop ours, but not
        // by this callback (`perf_event_throttle()`).
        // SAFETY: The perf core disables a PMU while it is registered, with interrupts off.
        let is_over = unsafe { rotation::is_under_way(cx.pmu().as_raw()) };
        // INVARIANT: So that is what runs.
        is_over.then_some(Self(cx))
    }

    /// Calls `f` for the contexts in which groups wait: the task's, and the CPU's own.
    pub fn for_each_context(&self, mut f: impl FnMut(Context<'a, T>)) {
        // SAFETY: The PMU is registered, as its timer is running, and interrupts are off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: The context is valid; the perf core sets the pointer with the task's context locked.
        let (own, task) = unsafe { (&raw mut (*here).epc, (*here).task_epc) };
        for context in [task, own] {
            // SAFETY: A context of this CPU is valid while it is locked, see the type invariant.
            if !context.is_null() && unsafe { (*context).rotate_necessary } != 0 {
                // INVARIANT: It is locked.
                f(Context(context, PhantomData));
            }
        }
    }

    /// Has the perf core leave the order of the context's groups as it is this time.
    pub fn keep_order(&self, context: &Context<'_, T>) {
        let offers = &self.pmu().cpu_state(self).internals.offers;
        // SAFETY: The context is locked, and until then the perf core enables the PMU again. Who sets
        // the field or clears it holds the lock.
        unsafe { offers.keep_order((*context.0).ctx) };
    }
}

/// Which groups of a context there were when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    context: usize,
    /// Counts the events that have come and gone.
    generation: u64,
    /// The perf core's numbers of the events that came last and first.
    newest: u64,
    oldest: u64,
}

impl Version {
    /// Whether both are of the same context.
    pub fn is_of_same_context(&self, other: &Self) -> bool {
        self.context == other.context && self.oldest == other.oldest
    }

    /// Counts the changes.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

/// The groups of a PMU that take turns with one another: those of a task, or a CPU's own.
///
/// # Invariants
///
/// The pointer is valid, and so is that to the perf core's context in there, which is locked for `'a`.
pub struct Context<'a, T: Operations>(
    *mut bindings::perf_event_pmu_context,
    PhantomData<&'a Event<T>>,
);

impl<T: Operations> PartialEq for Context<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl<'a, T: Operations> Context<'a, T> {
    fn context(&self) -> *mut bindings::perf_event_context {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).ctx }
    }

    /// Which groups there are.
    pub fn version(&self) -> Version {
        let context = self.context();
        // SAFETY: By the type invariant.
        let (generation, head) = unsafe { ((*context).generation, &raw mut (*context).event_list) };
        let number = |node: *mut bindings::list_head| {
            if node == head {
                return 0;
            }
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event in the list of a
            // locked context.
            unsafe { (*kernel::container_of!(node, bindings::perf_event, event_entry)).id }
        };
        // SAFETY: By the type invariant.
        let (newest, oldest) = unsafe { (number((*head).next), number((*head).prev)) };
        Version {
            context: self.0.addr(),
            generation,
            newest,
            oldest,
        }
    }

    /// Calls `f` for the groups that take turns and have come since `version`, or for all; once for
    /// each of their events. Groups of other CPUs and of all control groups are among them. Returns
    /// whether no event has gone meanwhile.
    pub fn for_each_since(
        &self,
        version: Option<&Version>,
        mut f: impl FnMut(WaitingGroup<'a, T>, IsLeader),
    ) -> bool {
        let context = self.context();
        // SAFETY: By the type invariant.
        let (generation, head) = unsafe { ((*context).generation, &raw mut (*context).event_list) };
        let changes = version.map(|it| generation.wrapping_sub(it.generation));
        let mut seen = 0;
        // SAFETY: As above. New events are put in front.
        let mut node = unsafe { (*head).next };
        while node != head && changes.is_none_or(|most| seen < most) {
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, event_entry) };
            // SAFETY: The events in the list of a locked context are valid and do not change.
            unsafe {
                if version.is_some_and(|version| version.newest == (*it).id) {
                    break;
                }
                if ptr::eq((*it).pmu_ctx, self.0) && (*(*it).group_leader).attr.pinned() == 0 {
                    // INVARIANT: A leader, of a context that is locked.
                    let group = WaitingGroup((*it).group_leader, PhantomData);
                    f(group, IsLeader(ptr::eq(group.0, it)));
                }
                node = (*node).next;
            }
            seen = seen.wrapping_add(1);
        }
        changes.is_none_or(|most| seen == most)
    }

    /// Calls `f` for the groups that take turns and are on the CPU, in the order in which they were
    /// put there.
    pub fn for_each_active(&self, mut f: impl FnMut(WaitingGroup<'a, T>)) {
        // SAFETY: By the type invariant; the list is guarded by the context's lock.
        let head = unsafe { &raw mut (*self.0).flexible_active };
        // SAFETY: As above.
        let mut node = unsafe { (*head).next };
        while node != head {
            // SAFETY: `node` is not the head, so it is the `active_list` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, active_list) };
            // SAFETY: As for `head`.
            node = unsafe { (*node).next };
            // INVARIANT: Leaders are in that list, see `merge_sched_in()`.
            f(WaitingGroup(it, PhantomData));
        }
    }

    /// How many groups are enabled and not on this CPU, on which they should be; not those of control
    /// groups.
    pub fn waiting(&self) -> u32 {
        let mut waiting = 0u32;
        let _ = self.for_each_since(None, |group, is_leader| {
            // SAFETY: By the type invariant of the group.
            let (state, cpu) = unsafe { ((*group.0).state, (*group.0).cpu) };
            let here = CpuId::from_i32(cpu).is_none_or(|cpu| cpu == CpuId::current());
            // SAFETY: As above.
            let of_cgroup = unsafe { cgroup_of(group.0) }.is_some();
            if is_leader.0 && state == INACTIVE && here && !of_cgroup {
                waiting = waiting.saturating_add(1);
            }
        });
        waiting
    }

    /// The last place of the order.
    pub fn latest(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { (*self.context()).flexible_groups.index }
    }

    /// Whether groups may be moved.
    pub fn may_be_ordered(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.context()).rotate_disable == 0 }
    }

    /// Puts `group`, which is one of the context's, to `place` in the order: behind those that are
    /// there already, but for groups that come later.
    ///
    /// [`may_be_ordered`](Self::may_be_ordered) must have said so.
    pub fn requeue(&self, group: WaitingGroup<'a, T>, place: u64) {
        group.set_place(place, place);
        // SAFETY: The context is locked by the type invariant, and nobody walks its tree: where
        // `Self` is from, the perf core is not at it.
        unsafe { move_to(group.0, place) };
    }
}

/// Whether an event is the leader of its group.
pub struct IsLeader(pub bool);

/// A group that takes turns: its leader, of this PMU or a software event, and siblings.
///
/// # Invariants
///
/// The pointer is that of a group's leader, which is valid, as are the siblings, and whose context
/// is locked for `'a`.
pub struct WaitingGroup<'a, T: Operations>(*mut bindings::perf_event, PhantomData<&'a Event<T>>);

impl<T: Operations> Clone for WaitingGroup<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Operations> Copy for WaitingGroup<'_, T> {}

impl<T: Operations> WaitingGroup<'_, T> {
    /// Whether the group wants to be alone.
    pub fn is_exclusive(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).attr.exclusive() != 0 }
    }

    /// Calls `f` for each event of this PMU, and says whether it is counted when the group is.
    pub fn for_each_event(&self, mut f: impl FnMut(&Event<T>, bool)) {
        // SAFETY: By the type invariant. What is of the same PMU has been opened by it.
        unsafe {
            let pmu = (*(*self.0).pmu_ctx).pmu;
            let mut visit = |event: *mut bindings::perf_event| {
                if ptr::eq((*event).pmu, pmu) {
                    f(Event::from_raw(event), (*event).state > OFF);
                }
            };
            visit(self.0);
            let head = &raw mut (*self.0).sibling_list;
            let mut node = (*head).next;
            while node != head {
                visit(kernel::container_of!(
                    node,
                    bindings::perf_event,
                    sibling_list
                ));
                node = (*node).next;
            }
        }
    }

    /// Calls `f` for each event of this PMU that is counted when it is the group's turn.
    pub fn for_each_member(&self, mut f: impl FnMut(&Event<T>)) {
        self.for_each_event(|event, enabled| {
            if enabled {
                f(event);
            }
        });
    }

    /// Calls `f` with the event that the group's place is kept with, if there is such a one.
    fn with_first<R>(&self, f: impl FnOnce(&Event<T>) -> R) -> Option<R> {
        let (mut f, mut result) = (Some(f), None);
        self.for_each_event(|event, _| {
            if let Some(f) = f.take() {
                result = Some(f(event));
            }
        });
        result
    }

    fn set_place(&self, runtime: u64, place: u64) {
        self.with_first(|event| event.set_turn_place(runtime, place));
    }

    /// The group's place in the order by what it has had; that is where it is unless it was put in
    /// front of others.
    pub fn runtime_place(&self) -> u64 {
        // SAFETY: By the type invariant.
        let place = unsafe { (*self.0).group_index };
        let kept = self.with_first(|event| event.turn_place());
        match kept {
            Some((runtime, kept)) if kept == place => runtime,
            _ => place,
        }
    }
}

/// The id of the control group that an event is for, by which the tree is ordered.
///
/// # Safety
///
/// `event` must be valid, and in a context that is locked.
unsafe fn cgroup_of(event: *mut bindings::perf_event) -> Option<u64> {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: The event holds a reference to its control group as long as it is in a context
    // (`perf_detach_cgroup()` comes later).
    return unsafe {
        let cgroup = (*event).cgrp;
        (!cgroup.is_null()).then(|| (*(*(*cgroup).css.cgroup).kn).id)
    };
    #[cfg(not(CONFIG_CGROUP_PERF))]
    return {
        let _ = event;
        None
    };
}

/// Which subtree a group is in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subtree {
    cpu: i32,
    pmu: *mut bindings::pmu,
    cgroup: Option<u64>,
}

impl Subtree {
    /// # Safety
    ///
    /// `leader` must be valid, and in a context that is locked.
    unsafe fn of(leader: *mut bindings::perf_event) -> Self {
        // SAFETY: By this function's requirements.
        unsafe {
            Self {
                cpu: (*leader).cpu,
                pmu: (*(*leader).pmu_ctx).pmu,
                cgroup: cgroup_of(leader),
            }
        }
    }

    /// `perf_event_groups_cmp()` with the leader of a group.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn compare(&self, place: u64, leader: *mut bindings::perf_event) -> Ordering {
        // SAFETY: By this function's requirements.
        unsafe {
            let cpu = self.cpu.cmp(&(*leader).cpu);
            let pmu = || self.pmu.addr().cmp(&(*(*leader).pmu_ctx).pmu.addr());
            // None comes before all of them, as there.
            let cgroup = || self.cgroup.cmp(&cgroup_of(leader));
            let place = || place.cmp(&(*leader).group_index);
            cpu.then_with(pmu).then_with(cgroup).then_with(place)
        }
    }
}

/// # Safety
///
/// `node` must be the `group_node` of an event.
unsafe fn leader_at(node: *mut bindings::rb_node) -> *mut bindings::perf_event {
    // SAFETY: By this function's requirements.
    unsafe { kernel::container_of!(node, bindings::perf_event, group_node) }
}

/// Moves a group in its tree: behind all in its subtree whose place is as far or less.
/// `perf_event_groups_delete()` and `perf_event_groups_insert()`, but for the place.
///
/// # Safety
///
/// `leader` must be that of a flexible group in a context that is locked and whose `rotate_disable`
/// is not set, and no iterator of the perf core may be at it.
unsafe fn move_to(leader: *mut bindings::perf_event, place: u64) {
    // SAFETY: By this function's requirements, the tree is ours to change, and the leader in it. The
    // order of the tree is `perf_event_groups_cmp()`'s, before and after.
    unsafe {
        let groups = &raw mut (*(*leader).ctx).flexible_groups;
        let tree = &raw mut (*groups).tree;
        let node = &raw mut (*leader).group_node;
        bindings::rb_erase(node, tree);
        (*leader).group_index = place;
        if (*groups).index < place {
            (*groups).index = place;
        }
        let subtree = Subtree::of(leader);
        let mut parent: *mut bindings::rb_node = ptr::null_mut();
        let mut link = &raw mut (*tree).rb_node;
        while !(*link).is_null() {
            parent = *link;
            link = match subtree.compare(place, leader_at(parent)) {
                Ordering::Less => &raw mut (*parent).rb_left,
                _ => &raw mut (*parent).rb_right,
            };
        }
        // `rb_link_node()`.
        (*node).__rb_parent_color = parent.expose_provenance();
        (*node).rb_left = ptr::null_mut();
        (*node).rb_right = ptr::null_mut();
        *link = node;
        bindings::rb_insert_color(node, tree);
    }
}

/// How many subtrees are looked at. A control group deeper than that has the others wait.
const SUBTREES: usize = 8;

/// The groups that the perf core offers behind a certain one, in its order: those that are enabled,
/// and neither on a CPU nor offered anyway.
///
/// # Invariants
///
/// The first `len` pointers are those of leaders, in the tree of a context that is locked for `'a`.
pub struct Behind<'a, T: Operations> {
    /// The next of each subtree.
    next: [*mut bindings::perf_event; SUBTREES],
    len: usize,
    _groups: PhantomData<&'a Event<T>>,
}

impl<T: Operations> Clone for Behind<'_, T> {
    fn clone(&self) -> Self {
        Self {
            next: self.next,
            len: self.len,
            _groups: PhantomData,
        }
    }
}

impl<T: Operations> Behind<'_, T> {
    /// # Safety
    ///
    /// `leader` must be that of a flexible group in a context that is locked for the lifetime, and
    /// being scheduled on this CPU.
    unsafe fn new(leader: *mut bindings::perf_event) -> Self {
        let mut next = [ptr::null_mut(); SUBTREES];
        let mut len = 0;
        let mut push = |leader: *mut bindings::perf_event| {
            if let Some(slot) = next.get_mut(len).filter(|_| !leader.is_null()) {
                *slot = leader;
                len = len.wrapping_add(1);
            }
        };
        // SAFETY: By this function's requirements.
        unsafe {
            let own = Subtree::of(leader);
            push(following(leader));
            let place = (*leader).group_index;
            let mut others = |subtree: Subtree| {
                if subtree != own {
                    push(first_from((*leader).ctx, subtree, place));
                }
            };
            // CAST: a CPU's number.
            let here = CpuId::current().as_u32() as i32;
            if !(*(*leader).ctx).task.is_null() {
                others(Subtree { cpu: -1, ..own });
                others(Subtree { cpu: here, ..own });
            } else {
                let none = Subtree {
                    cgroup: None,
                    ..own
                };
                others(none);
                for_each_current_cgroup((*leader).ctx, |cgroup| {
                    others(Subtree {
                        cgroup: Some(cgroup),
                        ..own
                    });
                });
            }
        }
        // INVARIANT: From the tree.
        Self {
            next,
            len,
            _groups: PhantomData,
        }
    }
}

impl<'a, T: Operations> Iterator for Behind<'a, T> {
    type Item = WaitingGroup<'a, T>;

    fn next(&mut self) -> Option<WaitingGroup<'a, T>> {
        loop {
            // SAFETY: By the type invariant.
            let place = |slot: &&mut *mut bindings::perf_event| unsafe { (***slot).group_index };
            let last = self.len.checked_sub(1)?;
            let last_leader = *self.next.get(last)?;
            let mut slots = self.next.iter_mut().take(self.len);
            let slot = match last {
                0 => slots.next()?,
                _ => slots.min_by_key(place)?,
            };
            let leader = *slot;
            // SAFETY: By the type invariant.
            // INVARIANT: From the tree, or the last pointer takes the place of the one that goes.
            let (state, caps) = unsafe {
                *slot = following(leader);
                if slot.is_null() {
                    *slot = last_leader;
                    self.len = last;
                }
                ((*leader).state, (*leader).group_caps)
            };
            if state == INACTIVE && caps & OFFER_ALWAYS == 0 {
                // INVARIANT: By the type invariant.
                return Some(WaitingGroup(leader, PhantomData));
            }
        }
    }
}

/// The next leader in the subtree, or null.
///
/// # Safety
///
/// `leader` must be in the tree of a context that is locked.
unsafe fn following(leader: *mut bindings::perf_event) -> *mut bindings::perf_event {
    // SAFETY: By this function's requirements, and so is the next.
    unsafe {
        let node = bindings::rb_next(&raw const (*leader).group_node);
        if node.is_null() {
            return ptr::null_mut();
        }
        let next = leader_at(node);
        let same = (*next).cpu == (*leader).cpu
            && ptr::eq((*next).pmu_ctx, (*leader).pmu_ctx)
            && is_of_same_cgroup(next, leader);
        if same {
            next
        } else {
            ptr::null_mut()
        }
    }
}

/// # Safety
///
/// Both must be valid.
unsafe fn is_of_same_cgroup(a: *mut bindings::perf_event, b: *mut bindings::perf_event) -> bool {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements; a control group has one such structure.
    return unsafe { ptr::eq((*a).cgrp, (*b).cgrp) };
    #[cfg(not(CONFIG_CGROUP_PERF))]
    return {
        let _ = (a, b);
        true
    };
}

/// The first leader of a subtree from `place` on, or null.
///
/// # Safety
///
/// `context` must be valid and locked.
unsafe fn first_from(
    context: *mut bindings::perf_event_context,
    subtree: Subtree,
    place: u64,
) -> *mut bindings::perf_event {
    let mut first = ptr::null_mut();
    // SAFETY: By this function's requirements.
    unsafe {
        let mut node = (*context).flexible_groups.tree.rb_node;
        while !node.is_null() {
            let leader = leader_at(node);
            if subtree.compare(place, leader) == Ordering::Greater {
                node = (*node).rb_right;
            } else {
                first = leader;
                node = (*node).rb_left;
            }
        }
        if !first.is_null() && Subtree::of(first) != subtree {
            first = ptr::null_mut();
        }
    }
    first
}

/// Calls `f` with the ids of the control groups that the task on this CPU is in.
///
/// # Safety
///
/// `context` must be this CPU's own, and locked.
unsafe fn for_each_current_cgroup(context: *mut bindings::perf_event_context, f: impl FnMut(u64)) {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements; a CPU's own context is in its `perf_cpu_context`, in
    // which the control group is guarded by the context's lock. It and its parents stay while there are
    // events for it, and tasks in it.
    unsafe {
        let mut f = f;
        let cpu = kernel::container_of!(context, bindings::perf_cpu_context, ctx);
        let cgroup = (*cpu).cgrp;
        if cgroup.is_null() {
            return;
        }
        let mut css = &raw mut (*cgroup).css;
        while !css.is_null() {
            f((*(*(*css).cgroup).kn).id);
            css = (*css).parent;
        }
    }
    #[cfg(not(CONFIG_CGROUP_PERF))]
    let _ = (context, f);
}

/// How many groups can be offered at a time.
const OFFERS: usize = 32;

/// What has been asked of the perf core on a CPU and has to be taken back when the PMU is enabled.
///
/// # Invariants
///
/// Non-null pointers are those of leaders, and of contexts, that are locked on this CPU; both leaders
/// of an entry are in one context. Only callbacks on this CPU look at it, not in an NMI.
pub(in crate::perf) struct Offers {
    /// The groups with the flag, and those that they are to be in front of from now on, if any.
    groups: [[AtomicPtr<bindings::perf_event>; 2]; OFFERS],
    /// The contexts whose order is kept.
    kept: [AtomicPtr<bindings::perf_event_context>; 2],
}

impl Offers {
    pub(in crate::perf) fn new() -> Self {
        // INVARIANT: There is none.
        Self {
            groups: [const { [const { AtomicPtr::new(ptr::null_mut()) }; 2] }; OFFERS],
            kept: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
        }
    }

    /// # Safety
    ///
    /// Both must be leaders of groups in one context that is locked on this CPU until the PMU has been
    /// enabled.
    unsafe fn push(&self, leader: *mut bindings::perf_event, before: *mut bindings::perf_event) {
        let free = |entry: &&[AtomicPtr<bindings::perf_event>; 2]| entry[0].load(Relaxed).is_null();
        if let Some([group, refused]) = self.groups.iter().find(free) {
            // INVARIANT: By this function's requirements.
            group.store(leader, Relaxed);
            refused.store(before, Relaxed);
            // SAFETY: By this function's requirements.
            unsafe { (*leader).group_caps |= OFFER_ALWAYS };
        }
    }

    /// # Safety
    ///
    /// `context` must be locked on this CPU until the PMU has been enabled.
    unsafe fn keep_order(&self, context: *mut bindings::perf_event_context) {
        let free = |entry: &&AtomicPtr<bindings::perf_event_context>| entry.load(Relaxed).is_null();
        // SAFETY: By this function's requirements.
        let is_kept = unsafe { (*context).rotate_disable } != 0;
        if let Some(slot) = self.kept.iter().find(free).filter(|_| !is_kept) {
            // INVARIANT: By this function's requirements.
            slot.store(context, Relaxed);
            // SAFETY: By this function's requirements.
            unsafe { (*context).rotate_disable = 1 };
        }
    }

    /// Leaves the groups where they are in their order.
    fn keep_places(&self) {
        for [_, refused] in &self.groups {
            // INVARIANT: A null pointer.
            refused.store(ptr::null_mut(), Relaxed);
        }
    }

    /// Takes everything back, and has the groups that have found a place come first from now on.
    ///
    /// # Safety
    ///
    /// To be called on the CPU when the PMU has been enabled, before that callback ends.
    #[inline]
    pub(in crate::perf) unsafe fn settle<T: Operations>(&self) {
        let [kept, _] = &self.kept;
        let [[group, _], ..] = &self.groups;
        if !kept.load(Relaxed).is_null() || !group.load(Relaxed).is_null() {
            // SAFETY: By this function's requirements.
            unsafe { self.take_back::<T>() };
        }
    }

    /// # Safety
    ///
    /// As for [`settle`](Self::settle).
    #[inline(never)]
    unsafe fn take_back<T: Operations>(&self) {
        for slot in &self.kept {
            let context = slot.load(Relaxed);
            if context.is_null() {
                break;
            }
            // INVARIANT: No pointer is left.
            slot.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context is still locked.
            unsafe { (*context).rotate_disable = 0 };
        }
        for [group, refused] in &self.groups {
            let (leader, before) = (group.load(Relaxed), refused.load(Relaxed));
            if leader.is_null() {
                break;
            }
            // INVARIANT: No pointer is left.
            group.store(ptr::null_mut(), Relaxed);
            refused.store(ptr::null_mut(), Relaxed);
            // SAFETY: By the type invariant the context of both is still locked. The perf core has
            // offered all its groups and walks its tree no more: it has kept the PMU disabled for
            // as long (`Scheduling::may_offer()`).
            unsafe {
                (*leader).group_caps &= !OFFER_ALWAYS;
                let is_placed = (*leader).state == ACTIVE;
                if is_placed && !before.is_null() && (*(*leader).ctx).rotate_disable == 0 {
                    // INVARIANT: A leader, of a context that is locked.
                    let waiting = WaitingGroup::<T>(leader, PhantomData);
                    let place = (*before).group_index.saturating_sub(1);
                    waiting.set_place(waiting.runtime_place(), place);
                    move_to(leader, place);
                }
            }
        }
    }
}
