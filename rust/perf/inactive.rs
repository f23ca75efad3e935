// SPDX-License-Identifier: GPL-2.0

//! Events that should count on a CPU and do not, for want of counters or of a turn.
//!
//! The perf core tells a PMU of those alone that it offers. The others are in the lists of the two
//! contexts that a CPU has at a time: its own, and that of the task that runs.
//!
//! They are looked at without their locks, in between of what the perf core does with them. That an
//! event leaves a context that is on a CPU, is done on this CPU, with interrupts off
//! (`event_function_call()`, `kernel/events/core.c:327`). That a disabled one joins, is done from
//! anywhere, but is an RCU list's addition of an event that is complete (`perf_install_in_context()`,
//! `core.c:3133`). So with interrupts off, what is found in the list of all events stays there; who is
//! a member of what is asked of the member, as a group's own list is not RCU's.

use super::{event::is_of_cgroup, rotation, Event, OnCpu, Operations};
use crate::bindings;
use core::ptr;
use kernel::cpu::CpuId;

const ERROR: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_ERROR;
const INACTIVE: bindings::perf_event_state = bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;

/// The group of an event that is on no counter.
#[derive(Clone, Copy)]
pub struct InactiveGroup {
    /// The perf core's number of the leader.
    pub number: u64,
    /// Whether the group is pinned, and so is not tried again.
    pub is_error: bool,
}

impl<T: Operations> OnCpu<'_, T> {
    /// Calls `f` for each event of the PMU that is enabled and should be on this CPU, but is on no
    /// counter; with the group that it is in. In each context the newest come first.
    ///
    /// Not for those of cgroups, of which it is not known here whether they should count.
    ///
    /// In an interrupt that has come in between callbacks, not in one of these.
    pub fn for_each_inactive(&self, mut f: impl FnMut(&Event<T>, InactiveGroup)) {
        if !self.pmu().is_open() {
            return;
        }
        // SAFETY: The PMU is registered: whoever ends that has said so before, and waits for all that
        // run with interrupts off.
        let here = unsafe { rotation::this_context(self.pmu().as_raw()) };
        // SAFETY: As above. The perf core changes the pointers on this CPU, or when the last event of
        // the CPU's own has gone, and its context stays.
        let (own, task) = unsafe {
            (
                ptr::read_volatile(&raw const (*here).epc.ctx),
                (*here).task_epc,
            )
        };
        // SAFETY: The context of a CPU is always there; that of a task is, and is the task's that runs
        // here, as long as it is linked from here. Neither is left by an event meanwhile, see above.
        unsafe {
            if !own.is_null() {
                self.for_each_in(own, &mut f);
            }
            if !task.is_null() {
                self.for_each_in((*task).ctx, &mut f);
            }
        }
    }

    /// # Safety
    ///
    /// `context` must be valid, and no event leave it meanwhile.
    unsafe fn for_each_in(
        &self,
        context: *mut bindings::perf_event_context,
        f: &mut impl FnMut(&Event<T>, InactiveGroup),
    ) {
        let pmu = self.pmu().as_raw();
        // SAFETY: By this function's requirements.
        let head = unsafe { &raw mut (*context).event_list };
        // SAFETY: As above. Others may add to the list, at its head.
        let mut node = unsafe { ptr::read_volatile(&raw const (*head).next) };
        while node != head {
            // SAFETY: `node` is not the head, so it is the `event_entry` of an event.
            let it = unsafe { kernel::container_of!(node, bindings::perf_event, event_entry) };
            // SAFETY: The event stays in its context, as does the leader of its group. What changes
            // of an event in there, changes on this CPU, with interrupts off.
            unsafe {
                let leader = (*it).group_leader;
                let (group, own) = ((*leader).state, (*it).state);
                if ptr::eq((*it).pmu, pmu)
                    && (own == INACTIVE || own == ERROR)
                    && (group == ERROR || group == INACTIVE && (*leader).attr.pinned() == 0)
                    && CpuId::from_i32((*it).cpu).is_none_or(|cpu| cpu == CpuId::current())
                    && !is_of_cgroup(it)
                {
                    let group = InactiveGroup {
                        number: (*leader).id,
                        is_error: group == ERROR,
                    };
                    f(Event::from_raw(it), group);
                }
            }
            // SAFETY: As for the first.
            node = unsafe { ptr::read_volatile(&raw const (*node).next) };
        }
    }

    /// The number of the leader of the event's group. The event is on this CPU.
    pub fn group_of(&self, event: &Event<T>) -> u64 {
        // SAFETY: The event is valid, and so is its leader, which the event leaves on this CPU alone,
        // with interrupts off.
        unsafe { (*(*event.as_raw()).group_leader).id }
    }
}
