// SPDX-License-Identifier: GPL-2.0

//! Groups of events that take turns on the counters of a CPU, and whose turn it is.
//!
//! The perf core offers a context's groups to a PMU one after the other. Once one was refused, it
//! offers no more of them (`group_can_go_on()`, `kernel/events/core.c:2920`), but for those that it
//! takes for software events: these always fit. So a PMU that wants a group to be offered
//! nevertheless says so of it, [`WaitingGroup::offer_always`]. That flag of the group's leader,
//! `PERF_EV_CAP_SOFTWARE` in `group_caps`, has three readers:
//!
//! - `group_can_go_on()`. What it does not look at then, exclusive groups, is looked at here when
//!   the group is added: [`may_go_on`].
//! - `perf_event_open()`, for a group whose leader really is a software event: has the group none
//!   but such (`core.c:14140`)? It would be moved from the PMU that it is on to the same one. So
//!   with such a leader the flag stays only until the group is offered, within one critical section
//!   of the scheduling CPU.
//! - `perf_group_detach()`, which leaves it to the siblings of a leader that goes (`core.c:2417`).
//!   For them it means the same.
//!
//! It is cleared by the perf core when an event joins a context or a group
//! (`list_add_event()`, `perf_group_attach()`).
//!
//! Who is refused is not on a counter, and its time goes by the perf core's clock, which stands
//! while groups are offered. So trying costs no event any time.

use super::{rotation, Event, Operations, PmuDisabled};
use crate::bindings;
use core::{marker::PhantomData, ops::Deref, ptr};
use kernel::cpu::CpuId;

/// For the groups that the perf core takes for software events.
const OFFER_ALWAYS: i32 = bindings::RUST_CONST_HELPER_PERF_EV_CAP_SOFTWARE;

/// The PMU of one CPU, while the perf core puts events on it.
///
/// # Invariants
///
/// An `add` or `commit_txn` callback is running: the perf core holds the locks of the CPU's context
/// and of its task's.
pub struct Scheduling<'a, T: Operations>(PmuDisabled<'a, T>);

impl<'a, T: Operations> Deref for Scheduling<'a, T> {
    type Target = PmuDisabled<'a, T>;

    fn deref(&self) -> &PmuDisabled<'a, T> {
        &self.0
    }
}

/// Which events of a CPU take turns with one another: those of a task, or the CPU's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContextId(usize);

impl<'a, T: Operations> Scheduling<'a, T> {
    /// # Safety
    ///
    /// To be called by the `add` and `commit_txn` callbacks; the result must not leave them.
    pub(super) unsafe fn new(cx: PmuDisabled<'a, T>) -> Self {
        // INVARIANT: By this function's requirements.
        Self(cx)
    }

    /// Which events `event` takes turns with.
    ///
    /// `event` is being added, or is on this CPU; so for the other methods.
    pub fn context(&self, event: &Event<T>) -> ContextId {
        // SAFETY: The event is valid, and its context does not change while it is locked.
        ContextId(unsafe { (*event.as_raw()).pmu_ctx }.addr())
    }

    /// Whether the event's group is to be on a counter at all times, that is, takes no turns.
    pub fn is_of_pinned_group(&self, event: &Event<T>) -> bool {
        // SAFETY: The event is valid, and so is its leader, which does not change while the context
        // is locked.
        unsafe { (*(*event.as_raw()).group_leader).attr.pinned() != 0 }
    }

    /// Whether some groups of the context are for certain control groups: [`Self::for_each_group`]
    /// does not say for which.
    pub fn has_cgroups(&self, event: &Event<T>) -> bool {
        #[cfg(CONFIG_CGROUP_PERF)]
        // SAFETY: The event is valid, and so is its context, which is locked.
        let cgroups = unsafe { (*(*event.as_raw()).ctx).nr_cgroups };
        #[cfg(not(CONFIG_CGROUP_PERF))]
        let cgroups = {
            let _ = event;
            0
        };
        cgroups != 0
    }

    /// Whether a turn is over: the CPU's timer for that, see [`rotation`](super::rotation), is why
    /// events are put on it.
    pub fn is_turn_over(&self) -> bool {
        // SAFETY: The PMU is registered, as it has events, and interrupts are off.
        unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }

    /// Calls `f` for each group that is in the event's context, on this CPU, and not on a counter yet,
    /// and that takes turns; in the order in which they were opened. That of `event`, which is being
    /// added, is among them.
    pub fn for_each_group(&self, event: &Event<T>, mut f: impl FnMut(WaitingGroup<'a, T>)) {
        // SAFETY: The event is valid, and its context does not change while it is locked.
        let (context, pmu_context, leader) = unsafe {
            let event = event.as_raw();
            ((*event).ctx, (*event).pmu_ctx, (*event).group_leader)
        };
        // SAFETY: The context of an event is valid, and locked, so that the list stays as it is.
        let head = unsafe { &raw mut (*context).event_list };
        // SAFETY: As above. New events are put in front.
        let mut node = unsafe { (*head).prev };
        while node != head {
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, event_entry) };
            // SAFETY: The events in the list of a locked context are valid and do not change.
            let (ours, takes_turns) = unsafe {
                (
                    (*it).pmu_ctx == pmu_context && (*it).group_leader == it,
                    // The perf core gives an event its state before it adds it.
                    ((*it).state == bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE
                        || it == leader)
                        && (*it).attr.pinned() == 0
                        && CpuId::from_i32((*it).cpu).is_none_or(|cpu| cpu == CpuId::current()),
                )
            };
            if ours && takes_turns {
                // INVARIANT: A leader, of a context that is locked.
                f(WaitingGroup(it, PhantomData));
            }
            // SAFETY: As for `head`.
            node = unsafe { (*node).prev };
        }
    }
}

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

impl<T: Operations> PmuDisabled<'_, T> {
    /// Whether events take turns right now: the CPU's timer for that, see
    /// [`rotation`](super::rotation), is why the PMU is disabled.
    pub fn is_rotation(&self) -> bool {
        // SAFETY: Interrupts are off, and the PMU is registered: whoever ends that has said so
        // before, and waits for all that run with interrupts off.
        self.pmu().is_open() && unsafe { rotation::is_under_way(self.pmu().as_raw()) }
    }
}

impl<T: Operations> WaitingGroup<'_, T> {
    /// Nanoseconds that the group has been on counters.
    pub fn time_running(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).total_time_running }
    }

    /// Whether the group wants to be alone.
    pub fn is_exclusive(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.0).attr.exclusive() != 0 }
    }

    /// Lets the perf core offer the group even if another was refused before, or not.
    ///
    /// It may be offered then while an exclusive group is on the CPU, or if it is exclusive while
    /// others are; the PMU refuses it without asking the driver.
    pub fn offer_always(&self, always: bool) {
        // SAFETY: By the type invariant; who changes the field holds the lock of the context.
        let flags = unsafe { &mut (*self.0).group_caps };
        match always {
            true => *flags |= OFFER_ALWAYS,
            false => *flags &= !OFFER_ALWAYS,
        }
    }

    /// Calls `f` for each event of this PMU that is counted when it is the group's turn.
    pub fn for_each_member(&self, mut f: impl FnMut(&Event<T>)) {
        // SAFETY: By the type invariant. There is one of the PMU at least, or it would not be the
        // group's; what is of the same PMU has been opened by it.
        unsafe {
            let pmu = (*(*self.0).pmu_ctx).pmu;
            let mut visit = |event: *mut bindings::perf_event| {
                let enabled = (*event).state > bindings::perf_event_state_PERF_EVENT_STATE_OFF;
                if enabled && ptr::eq((*event).pmu, pmu) {
                    f(Event::from_raw(event));
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
}

/// Whether `event` may be added as regards exclusive groups, if the perf core has not looked itself.
/// `exclusive` says whether such a group was on the CPU when the event's group was begun with.
///
/// # Safety
///
/// To be called by the `add` callback, with its event.
pub(super) unsafe fn may_go_on(event: *mut bindings::perf_event, exclusive: bool) -> bool {
    // SAFETY: The event, its leader and its context are valid, and the context is locked.
    unsafe {
        let leader = (*event).group_leader;
        if (*leader).group_caps & OFFER_ALWAYS == 0 {
            return true;
        }
        if (*leader).event_caps & OFFER_ALWAYS != 0 {
            (*leader).group_caps &= !OFFER_ALWAYS;
        }
        let context = (*leader).pmu_ctx;
        let active = match (*leader).attr.pinned() {
            0 => &raw const (*context).flexible_active,
            _ => &raw const (*context).pinned_active,
        };
        let alone = ptr::eq((*active).next, active);
        !exclusive && (alone || (*leader).attr.exclusive() == 0)
    }
}

/// Restores that an exclusive group is on this CPU, as when the transaction was opened that is being
/// cancelled.
///
/// The perf core takes the leader of the refused group away again, and forgets the exclusive group if
/// that leader is exclusive too, or if no hardware event counts (`event_sched_out()`,
/// `kernel/events/core.c:2509`). It would not have offered such a group by itself.
///
/// # Safety
///
/// To be called by the `cancel_txn` callback, with its PMU, if [`has_exclusive`] said so when the
/// transaction was opened.
pub(super) unsafe fn set_exclusive(pmu: *mut bindings::pmu) {
    // SAFETY: The PMU is registered, and interrupts are off. The perf core changes the field on this
    // CPU, with interrupts off, when it adds and removes events, which it does not do meanwhile.
    unsafe { (*rotation::this_context(pmu)).exclusive = 1 };
}

/// Whether an exclusive group is on this CPU.
///
/// # Safety
///
/// `pmu` must be registered, and interrupts be off.
pub(super) unsafe fn has_exclusive(pmu: *mut bindings::pmu) -> bool {
    // SAFETY: By this function's requirements.
    unsafe { (*rotation::this_context(pmu)).exclusive != 0 }
}
