// SPDX-License-Identifier: GPL-2.0

//! Functions of the perf core that modules cannot link to.
//!
//! Each function is looked up by name and bound to a static call (`rust/static_calls.c`). If one is
//! missing, the driver lacks the features that need it. In the kernel proper, the functions would
//! be exported.

use crate::{
    bindings,
    kern::symbols::address_of, //
};
use kernel::error::Result;

/// Binds the perf core's functions for overflows: [`Event::overflow`](super::Event::overflow) and
/// [`Stopwatch`](super::Stopwatch) need them.
///
/// Fails with `ENOMEM`, or with the error of `register_kprobe()` if they cannot be found; needs
/// `CONFIG_KPROBES`. Process context.
pub fn bind_sampling() -> Result {
    let overflow = address_of(c"perf_event_overflow")?;
    let took = address_of(c"perf_sample_event_took")?;
    // SAFETY: These are the addresses of functions that have the types of the static calls.
    unsafe {
        bindings::rpmu_helper_bind_perf_event_overflow(overflow);
        bindings::rpmu_helper_bind_perf_sample_event_took(took);
    }
    Ok(())
}

/// Binds the perf core's functions for callbacks at context switches: [`Attachment::SchedTask`]
/// needs them.
///
/// Errors and context as for [`bind_sampling`].
///
/// [`Attachment::SchedTask`]: super::Attachment::SchedTask
pub fn bind_sched_task() -> Result {
    let inc = address_of(c"perf_sched_cb_inc")?;
    let dec = address_of(c"perf_sched_cb_dec")?;
    // SAFETY: These are the addresses of functions that have the types of the static calls.
    unsafe { bindings::rpmu_helper_bind_perf_sched_cb(inc, dec) };
    Ok(())
}
