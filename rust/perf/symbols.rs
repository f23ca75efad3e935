// SPDX-License-Identifier: GPL-2.0

//! Functions of the perf core that modules cannot link to.
//!
//! Each is looked up by name and bound to a static call (`rust/static_calls.c`). Where one is
//! missing, the driver does without. In the kernel proper they would be exported.

use crate::{
    bindings,
    kern::symbols::address_of, //
};
use kernel::error::Result;

/// Binds what it takes to hand samples to the perf core:
/// [`Event::overflow`](super::Event::overflow) and [`Stopwatch`](super::Stopwatch).
///
/// `ENOENT` or the error of `register_kprobe()` if they cannot be found; it takes `CONFIG_KPROBES`.
/// Process context.
pub fn bind_sampling() -> Result {
    let overflow = address_of(c"perf_event_overflow")?;
    let took = address_of(c"perf_sample_event_took")?;
    // SAFETY: They are the addresses of the functions whose types the static calls have.
    unsafe {
        bindings::rpmu_helper_bind_perf_event_overflow(overflow);
        bindings::rpmu_helper_bind_perf_sample_event_took(took);
    }
    Ok(())
}

/// Binds what it takes to be told of tasks that come to a CPU and leave it:
/// [`Attachment::SchedTask`].
///
/// Errors and context as for [`bind_sampling`].
///
/// [`Attachment::SchedTask`]: super::Attachment::SchedTask
pub fn bind_sched_task() -> Result {
    let inc = address_of(c"perf_sched_cb_inc")?;
    let dec = address_of(c"perf_sched_cb_dec")?;
    // SAFETY: They are the addresses of the functions whose types the static calls have.
    unsafe { bindings::rpmu_helper_bind_perf_sched_cb(inc, dec) };
    Ok(())
}
