// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: `rpmu:schedule`, `rpmu:place_failed`, `rpmu:refused` and `rpmu:rotate`.
//!
//! `include/rpmu_trace.h` describes them. A disabled tracepoint is one no-op instruction: its
//! arguments are not computed. `kernel::declare_trace!` would do the same, but supports the
//! kernel's own tracepoints only.
//!
//! Any context. A probe of a tracepoint may read events and stop them, see
//! [`Operations`](super::Operations).
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

#![cfg_attr(not(CONFIG_TRACEPOINTS), allow(unused_variables))]

use crate::bindings;
use crate::perf::{
    Event,
    NewEvent,
    Operations, //
};
use core::fmt::{
    Display,
    Write, //
};
use kernel::{
    current,
    error::Error,
    str::NullTerminatedFormatter, //
};

/// The room for a reason in the tracepoints, in bytes with the NUL. Longer reasons are cut off.
const REASON: usize = bindings::RPMU_TRACE_REASON as usize;

/// Returns whether the tracepoint is enabled.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! is_on {
    ($tracepoint:ident) => {
        // SAFETY: rust/trace.c defines the tracepoint; its key is only read.
        unsafe {
            kernel::jump_label::static_branch_unlikely!(
                bindings::$tracepoint,
                bindings::tracepoint,
                key
            )
        }
    };
}

#[cfg(not(CONFIG_TRACEPOINTS))]
macro_rules! is_on {
    ($tracepoint:ident) => {
        false
    };
}

/// The outcome of a rotation.
pub struct Rotation {
    /// Events on counters.
    pub counting: u32,
    /// Groups that wait for their turn, if the driver decides about turns.
    pub wait: u32,
}

/// Traces that an event is put on a counter, possibly the one that it had before. Fixed counters
/// are numbered from 32.
#[inline]
pub fn schedule<T: Operations>(event: &Event<T>, counter: usize) {
    if is_on!(__tracepoint_schedule) {
        // CAST: below 64.
        trace_schedule(event, counter as u32);
    }
}

#[cold]
fn trace_schedule<T: Operations>(event: &Event<T>, counter: u32) {
    let (event_type, config) = event.attr_config();
    #[cfg(CONFIG_TRACEPOINTS)]
    // SAFETY: The tracepoint accepts any values, in any context.
    unsafe {
        bindings::rust_do_trace_schedule(
            event.number(),
            event_type,
            config,
            task_of(event),
            event.is_pinned(),
            counter,
        );
    }
}

/// Traces that `event` got no counter, or that the `members` events of a group, of which `event` is
/// the first, did not fit together. `counters` are the counters that any of them may use.
#[inline]
pub fn place_failed<T: Operations>(
    event: &Event<T>,
    members: u32,
    counters: u64,
    reason: &impl Display,
) {
    if is_on!(__tracepoint_place_failed) {
        trace_place_failed(event, members, counters, reason);
    }
}

#[cold]
fn trace_place_failed<T: Operations>(
    event: &Event<T>,
    members: u32,
    counters: u64,
    reason: &impl Display,
) {
    let (event_type, config) = event.attr_config();
    let text = Text::new(reason);
    #[cfg(CONFIG_TRACEPOINTS)]
    // SAFETY: The tracepoint accepts any values, in any context. It copies the text, which ends
    // with a NUL.
    unsafe {
        bindings::rust_do_trace_place_failed(
            event.number(),
            event_type,
            config,
            task_of(event),
            event.is_pinned(),
            members,
            counters,
            text.0.as_ptr().cast(),
        );
    }
}

/// Traces that an event is refused while `group` events of its group are open.
#[inline]
pub fn refused<T: Operations>(
    event: &NewEvent<'_, T>,
    group: u32,
    error: Error,
    reason: &impl Display,
) {
    if is_on!(__tracepoint_refused) {
        trace_refused(event, group, error, reason);
    }
}

#[cold]
fn trace_refused<T: Operations>(
    event: &NewEvent<'_, T>,
    group: u32,
    error: Error,
    reason: &impl Display,
) {
    let attr = event.attr();
    let text = Text::new(reason);
    // CAST: a CPU's number is an `int`.
    let cpu = event.cpu().map_or(-1, |cpu| cpu.as_u32() as i32);
    #[cfg(CONFIG_TRACEPOINTS)]
    // SAFETY: The tracepoint accepts any values, in any context. It copies the text, which ends
    // with a NUL.
    unsafe {
        bindings::rust_do_trace_refused(
            attr.event_type(),
            attr.config(),
            attr.config1(),
            cpu,
            group,
            error.to_errno(),
            text.0.as_ptr().cast(),
        );
    }
}

/// Traces a rotation; `rotation` is called only if the tracepoint is enabled.
#[inline]
pub fn rotate(rotation: impl FnOnce() -> Option<Rotation>) {
    if is_on!(__tracepoint_rotate) {
        if let Some(rotation) = rotation() {
            trace_rotate(&rotation);
        }
    }
}

#[cold]
fn trace_rotate(rotation: &Rotation) {
    let Rotation { counting, wait } = *rotation;
    #[cfg(CONFIG_TRACEPOINTS)]
    // SAFETY: The tracepoint accepts any values, in any context.
    unsafe {
        bindings::rust_do_trace_rotate(counting, wait);
    }
}

/// Returns the id of the event's task, which runs on this CPU; -1 for an event of a CPU.
fn task_of<T: Operations>(event: &Event<T>) -> i32 {
    if event.is_of_task() {
        current!().pid()
    } else {
        -1
    }
}

/// A text with a NUL at its end.
struct Text([u8; REASON]);

impl Text {
    fn new(what: &impl Display) -> Self {
        let mut text = [0; REASON];
        if let Some(mut formatter) = NullTerminatedFormatter::new(&mut text) {
            // A text that does not fit is cut off.
            let _ = write!(formatter, "{what}");
        }
        Self(text)
    }
}
