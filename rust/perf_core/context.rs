// SPDX-License-Identifier: GPL-2.0

//! The groups of a context.

use super::{
    internals_of,
    time,
    tree::{
        cgroup_of,
        for_each_current_cgroup,
        for_each_subtree,
        last_of,
        move_to, //
    },
    InternalOperations,
    INACTIVE,
    OFF,
    SOFTWARE, //
};
use crate::{
    bindings,
    perf::Event, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::cpu::CpuId;

/// The set of groups in a context at some time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    context: usize,
    /// Counts the events that were added and removed.
    generation: u64,
    /// The perf core's numbers of the events that were added last and first.
    newest: u64,
    oldest: u64,
}

impl Version {
    /// Returns whether both versions are of the same context.
    pub fn is_of_same_context(&self, other: &Self) -> bool {
        self.context == other.context && self.oldest == other.oldest
    }

    /// Returns the number of changes.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

/// A PMU's groups that rotate with one another: the groups of a task, or of a CPU.
///
/// # Invariants
///
/// The pointer is valid, and so is its `ctx`, the perf core's context, which is locked for `'a`.
pub struct Context<'a, T: InternalOperations>(
    pub(super) *mut bindings::perf_event_pmu_context,
    pub(super) PhantomData<&'a Event<T>>,
);

impl<T: InternalOperations> PartialEq for Context<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl<'a, T: InternalOperations> Context<'a, T> {
    fn context(&self) -> *mut bindings::perf_event_context {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).ctx }
    }

    /// Returns the set of groups.
    pub fn version(&self) -> Version {
        let context = self.context();
        // SAFETY: By the type invariant.
        let (generation, head) = unsafe { ((*context).generation, &raw mut (*context).event_list) };
        let number = |node: *mut bindings::list_head| {
            if node == head {
                return 0;
            }
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event in the list of
            // a locked context.
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

    /// Calls `f` for each event that has joined the context since `version`, or for all events if
    /// there is no `version`, provided that its group rotates: with the group, and whether the
    /// event leads it. Groups of other CPUs and of all control groups are included. Returns whether
    /// no event has left the context since `version`.
    pub fn for_each_since(
        &self,
        version: Option<&Version>,
        mut f: impl FnMut(EventGroup<'a, T>, IsLeader),
    ) -> bool {
        let context = self.context();
        // SAFETY: By the type invariant.
        let (generation, head) = unsafe { ((*context).generation, &raw mut (*context).event_list) };
        let changes = version.map(|it| generation.wrapping_sub(it.generation));
        let mut seen = 0;
        // SAFETY: By the type invariant the context is valid, and locked, so its list does not
        // change. `list_add_event()` puts new events in front.
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
                    let group = EventGroup((*it).group_leader, PhantomData);
                    f(group, IsLeader(ptr::eq(group.0, it)));
                }
                node = (*node).next;
            }
            seen = seen.wrapping_add(1);
        }
        changes.is_none_or(|most| seen == most)
    }

    /// Returns the groups that rotate and are on the CPU, in the order in which they were put
    /// there.
    pub fn active(&self) -> Active<'a, T> {
        // SAFETY: By the type invariant; the list is guarded by the context's lock.
        let head = unsafe { &raw mut (*self.0).flexible_active };
        Active {
            head,
            // SAFETY: By the type invariant `head` is valid, and the context's lock is held.
            // INVARIANT: The first node of the list.
            next: unsafe { (*head).next },
            _groups: PhantomData,
        }
    }

    /// Returns the control groups of the task on this CPU; none if the context belongs to a task,
    /// or no events here are for control groups.
    pub fn cgroups(&self) -> Cgroups {
        let mut ids = [None; CGROUPS];
        let context = self.context();
        let mut slots = ids.iter_mut();
        // SAFETY: By the type invariant; a context without a task belongs to this CPU.
        unsafe {
            if (*context).task.is_null() {
                for_each_current_cgroup(context, |id| {
                    if let Some(slot) = slots.next() {
                        *slot = Some(id);
                    }
                });
            }
        }
        Cgroups { ids }
    }

    /// Returns the number of groups that are enabled and should be on this CPU, but are not. Groups
    /// for control groups are not counted.
    pub fn waiting(&self) -> u32 {
        let mut waiting = 0u32;
        let _ = self.for_each_since(None, |group, is_leader| {
            // SAFETY: By the type invariant of the group.
            let (state, cpu) = unsafe { ((*group.0).state, (*group.0).cpu) };
            let here = CpuId::from_i32(cpu).is_none_or(|cpu| cpu == CpuId::current());
            // SAFETY: By the type invariant of the group, its leader is valid, and in a context
            // that is locked.
            let of_cgroup = unsafe { cgroup_of(group.0) }.is_some();
            if is_leader.0 && state == INACTIVE && here && !of_cgroup {
                waiting = waiting.saturating_add(1);
            }
        });
        waiting
    }

    /// Returns whether `event`, which is on this CPU, rotates with the context's groups: it is in
    /// the context, and not in a pinned group.
    pub fn rotates(&self, event: &Event<T>) -> bool {
        let event = event.as_raw();
        // SAFETY: The event is valid, and so is its leader. Wherever there is a `Context`, the
        // contexts of active events are locked, and an event's leader does not change while its
        // context is locked.
        unsafe { ptr::eq((*event).pmu_ctx, self.0) && (*(*event).group_leader).attr.pinned() == 0 }
    }

    /// Returns the last place of the order.
    pub fn latest(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { (*self.context()).flexible_groups.index }
    }

    /// Returns whether groups may be moved.
    pub fn may_be_ordered(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.context()).rotate_disable == 0 }
    }

    /// Moves `group`, which is in the context, to `place` in the order, behind groups that are
    /// already there.
    ///
    /// [`may_be_ordered`](Self::may_be_ordered) must have returned true.
    pub fn requeue(&self, group: EventGroup<'a, T>, place: u64) {
        group.set_place(place, place);
        // SAFETY: The context is locked by the type invariant, and the perf core does not iterate
        // over its tree wherever there is a `Context`.
        unsafe { move_to(group.0, place) };
    }
}

/// The groups of a context that are on the CPU.
///
/// # Invariants
///
/// `head` is that of the list of active groups of a context that is locked for `'a`, and `next` the
/// head or one of its nodes.
pub struct Active<'a, T: InternalOperations> {
    head: *mut bindings::list_head,
    next: *mut bindings::list_head,
    _groups: PhantomData<&'a Event<T>>,
}

impl<'a, T: InternalOperations> Iterator for Active<'a, T> {
    type Item = EventGroup<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<EventGroup<'a, T>> {
        let node = self.next;
        if node == self.head {
            return None;
        }
        // SAFETY: `node` is not the head, so by the type invariant it is the `active_list` of an
        // event.
        let it = unsafe { kernel::container_of!(node, bindings::perf_event, active_list) };
        // SAFETY: By the type invariant the node is valid, and the context's lock, which guards the
        // list, is held.
        // INVARIANT: The next node of the list, or the head.
        self.next = unsafe { (*node).next };
        // INVARIANT: The list contains leaders, see `merge_sched_in()`.
        Some(EventGroup(it, PhantomData))
    }
}

/// The control groups of a CPU's current task.
pub struct Cgroups {
    /// The task's control group, and then its ancestors, the closest first.
    ids: [Option<u64>; CGROUPS],
}

/// The maximum number of a task's control groups that are looked at, from the innermost outwards.
const CGROUPS: usize = 8;

impl Cgroups {
    /// Returns the id of the task's control group.
    pub fn id(&self) -> Option<u64> {
        let [id, ..] = self.ids;
        id
    }

    /// Returns whether `group` is for one of these control groups, or for none.
    pub fn have<T: InternalOperations>(&self, group: EventGroup<'_, T>) -> bool {
        // SAFETY: By the type invariant of the group.
        let cgroup = unsafe { cgroup_of(group.0) };
        cgroup.is_none() || self.ids.contains(&cgroup)
    }
}

/// True for the leader of a group.
pub struct IsLeader(pub bool);

/// A group in a locked context: its leader, which is an event of this PMU or a software event, and
/// its siblings.
///
/// # Invariants
///
/// The pointer is to a group's leader. Leader and siblings are valid, and their context is locked
/// for `'a`.
pub struct EventGroup<'a, T: InternalOperations>(
    pub(super) *mut bindings::perf_event,
    pub(super) PhantomData<&'a Event<T>>,
);

impl<T: InternalOperations> Clone for EventGroup<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: InternalOperations> Copy for EventGroup<'_, T> {}

/// A group's events of its PMU.
///
/// # Invariants
///
/// `next` is the leader or a member of `group`; null at the end.
struct Events<'a, T: InternalOperations> {
    group: EventGroup<'a, T>,
    next: *mut bindings::perf_event,
}

impl<'a, T: InternalOperations> Iterator for Events<'a, T> {
    type Item = (&'a Event<T>, bool);

    #[inline]
    fn next(&mut self) -> Option<(&'a Event<T>, bool)> {
        let leader = self.group.0;
        loop {
            let event = self.next;
            if event.is_null() {
                return None;
            }
            // SAFETY: By the type invariants the group's list does not change, and the event is in
            // it. An event with this PMU was opened by this PMU.
            unsafe {
                let head = &raw mut (*leader).sibling_list;
                let node = match event == leader {
                    true => (*head).next,
                    false => (*event).sibling_list.next,
                };
                // INVARIANT: The next node of the list.
                self.next = match node == head {
                    true => ptr::null_mut(),
                    false => kernel::container_of!(node, bindings::perf_event, sibling_list),
                };
                if ptr::eq((*event).pmu, (*(*leader).pmu_ctx).pmu) {
                    return Some((Event::from_raw(event), (*event).state > OFF));
                }
            }
        }
    }
}

impl<'a, T: InternalOperations> EventGroup<'a, T> {
    /// Returns the first enabled event of this PMU: the one that the perf core adds first.
    pub fn first_enabled(&self) -> Option<&'a Event<T>> {
        let group = *self;
        let mut events = Events {
            group,
            next: group.0,
        };
        events.find_map(|(event, enabled)| enabled.then_some(event))
    }
}

impl<T: InternalOperations> EventGroup<'_, T> {
    /// Returns whether the group is exclusive (`attr.exclusive`).
    pub fn is_exclusive(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).attr.exclusive() != 0 }
    }

    /// Returns whether the group's leader is a software event.
    pub fn has_software_leader(&self) -> bool {
        // SAFETY: By the type invariant; `event_caps` does not change once the event is open.
        unsafe { (*self.0).event_caps & SOFTWARE != 0 }
    }

    /// Returns the events of this PMU, each with whether it is enabled.
    fn events(&self) -> Events<'_, T> {
        Events {
            group: *self,
            next: self.0,
        }
    }

    /// Calls `f` for each event of this PMU, with whether it is enabled.
    #[inline]
    pub fn for_each_event(&self, mut f: impl FnMut(&Event<T>, bool)) {
        for (event, enabled) in self.events() {
            f(event, enabled);
        }
    }

    /// Calls `f` for each enabled event of this PMU.
    #[inline]
    pub fn for_each_member(&self, mut f: impl FnMut(&Event<T>)) {
        for (event, enabled) in self.events() {
            if enabled {
                f(event);
            }
        }
    }

    /// Calls `f` with the first event of this PMU, if there is one. The driver's data of the group
    /// is in the data of this event.
    pub fn with_first<R>(&self, f: impl FnOnce(&Event<T>) -> R) -> Option<R> {
        self.events().next().map(|(event, _)| f(event))
    }

    pub(super) fn set_place(&self, runtime: u64, place: u64) {
        self.with_first(|event| internals_of(event).set_place(runtime, place));
    }

    /// Calls `f` with the group's first enabled event of this PMU, and with the nanoseconds that
    /// this event has spent on counters until `clock`
    /// ([`IntervalEnd::clock`](super::IntervalEnd::clock)). The group waits or is on this CPU.
    pub fn with_first_enabled<R>(
        &self,
        clock: u64,
        f: impl FnOnce(&Event<T>, u64) -> R,
    ) -> Option<R> {
        let event = self.first_enabled()?;
        // SAFETY: By the type invariant; the event is a member of the group.
        let running = unsafe { time::running(event.as_raw(), clock) };
        Some(f(event, running))
    }

    /// Returns the group's place in the order by runtime. It is at this place unless it was put in
    /// front of other groups.
    pub fn runtime_place(&self) -> u64 {
        // SAFETY: By the type invariant.
        let place = unsafe { (*self.0).group_index };
        let kept = self.with_first(|event| internals_of(event).place());
        match kept {
            Some((runtime, kept)) if kept == place => runtime,
            _ => place,
        }
    }

    /// Returns the distance of the group's place by runtime from the last place in the order. If a
    /// CPU has events for control groups, only the groups that are offered now count: the places of
    /// other control groups advance while these do not run.
    pub fn lag(&self) -> u64 {
        // SAFETY: By the type invariant.
        let (context, pmu) = unsafe { ((*self.0).ctx, (*(*self.0).pmu_ctx).pmu) };
        let (mut latest, mut for_cgroups) = (0, false);
        // SAFETY: By the type invariant the context is valid and locked. Groups are only looked at
        // on their context's CPU, so a context without a task belongs to this CPU.
        unsafe {
            if (*context).task.is_null() {
                for_each_current_cgroup(context, |_| for_cgroups = true);
            }
            if for_cgroups {
                for_each_subtree(context, pmu, |subtree| {
                    let last = last_of(context, subtree);
                    if !last.is_null() {
                        latest = latest.max((*last).group_index);
                    }
                });
            } else {
                latest = (*context).flexible_groups.index;
            }
        }
        latest.saturating_sub(self.runtime_place())
    }
}
