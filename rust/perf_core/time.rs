// SPDX-License-Identifier: GPL-2.0

//! The time that events have spent on counters.
//!
//! The perf core brings `total_time_running` up to date when an event leaves its counter or is
//! read. For the time since then, this module reads the clock of the event's context or control
//! group (`perf_event_time_now()`, `kernel/events/core.c`).

use super::{
    InternalOperations,
    ACTIVE, //
};
use crate::{
    bindings,
    perf::Event, //
};

/// Returns the perf core's clock (`perf_clock()`), in nanoseconds.
pub fn clock() -> u64 {
    // SAFETY: The function can be called in any context.
    unsafe { bindings::local_clock() }
}

/// Returns the nanoseconds that `event` has spent on counters until `clock`. It is active on this
/// CPU, or inactive.
///
/// # Safety
///
/// `event` must be valid, and in a context that is locked.
pub(super) unsafe fn running(event: *mut bindings::perf_event, clock: u64) -> u64 {
    // SAFETY: By this function's requirements. The perf core changes the times on the event's CPU,
    // with the context locked.
    unsafe {
        if (*event).state != ACTIVE {
            return (*event).total_time_running;
        }
        let (time, guest) = times(event);
        let mut now = clock.wrapping_add((*time).offset);
        // As `__perf_event_time_ctx()`. No guest runs now, so guest time stands still.
        if (*event).attr.exclude_guest() != 0 {
            now = now.wrapping_sub((*guest).time);
        }
        let since = now.saturating_sub((*event).tstamp);
        (*event).total_time_running.saturating_add(since)
    }
}

impl<T: InternalOperations> Event<T> {
    /// Returns the nanoseconds that the event has spent on counters until now. In an NMI that has
    /// interrupted the perf core's update of this time, the latest part may be counted twice.
    ///
    /// On the event's CPU, in any context; for an inactive event, with its context locked.
    pub fn time_on_counters(&self) -> u64 {
        // SAFETY: The event is valid, and on this CPU, so its context is locked, or interrupts are
        // off: the perf core changes the times of an active event on its CPU only.
        unsafe { running(self.as_raw(), clock()) }
    }
}

/// Returns the clocks for `event`: of all time, and of guest time.
///
/// # Safety
///
/// As for [`running`].
unsafe fn times(
    event: *mut bindings::perf_event,
) -> (*mut bindings::perf_time_ctx, *mut bindings::perf_time_ctx) {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements; the event holds a reference to its control group,
    // which has a structure for each CPU.
    unsafe {
        let cgroup = (*event).cgrp;
        if !cgroup.is_null() {
            let offset = bindings::inline::this_cpu_offset();
            let info: *mut bindings::perf_cgroup_info =
                (*cgroup).info.wrapping_byte_add(offset).cast();
            return (&raw mut (*info).time, &raw mut (*info).timeguest);
        }
    }
    // SAFETY: By this function's requirements.
    unsafe {
        let context = (*event).ctx;
        (&raw mut (*context).time, &raw mut (*context).timeguest)
    }
}
