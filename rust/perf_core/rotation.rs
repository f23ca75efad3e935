// SPDX-License-Identifier: GPL-2.0

//! The perf core's timers for rotation: one for each PMU and CPU.
//!
//! The perf core starts a CPU's timer when an event has to wait for a counter, and when
//! `perf_event_mux_interval_ms` is written. The timer stops by itself when it expires and no event
//! waits. `perf_pmu_unregister()` frees it even while it runs (`perf_pmu_free()`,
//! `kernel/events/core.c`, without `hrtimer_cancel()`). So it has to be stopped before.
//!
//! The timer of a CPU that goes offline moves to another CPU (`hrtimers_cpu_dying()`) and stays
//! there. When the first CPU is online again, the timer's function would run on the other CPU and
//! remove the first CPU's events from that CPU's PMU, without the first CPU's locks. So the timer
//! also has to be stopped when its CPU goes offline.

use crate::bindings;
use kernel::{
    cpu::nr_cpu_ids,
    interrupt::LocalInterruptDisabled, //
};

/// Stops the timers of `pmu`, and keeps them stopped until [`allow`] is called.
///
/// Until then, events do not rotate. Process context.
///
/// # Safety
///
/// `pmu` must be registered during the call.
pub(in crate::perf_core) unsafe fn stop(pmu: *mut bindings::pmu) {
    // SAFETY: By this function's requirements.
    unsafe { for_each_context(pmu, |context| stop_one(context)) };
}

/// Stops this CPU's timer. The perf core starts it again when the next event has to wait.
///
/// For a CPU that is going offline, while all others wait with interrupts off.
///
/// # Safety
///
/// `pmu` must be registered.
pub(in crate::perf_core) unsafe fn stop_here(
    pmu: *mut bindings::pmu,
    _irqs: &LocalInterruptDisabled,
) {
    // SAFETY: By this function's requirements, and interrupts are off.
    let context = unsafe { this_context(pmu) };
    // SAFETY: The context is valid, and has its lock and its timer set up. No CPU holds the lock,
    // or runs the timer's function: both are done with interrupts off, and the stopper threads run
    // on all CPUs. A timer that `stop()` has stopped is not queued, and stays stopped.
    unsafe {
        let lock = &raw mut (*context).hrtimer_lock;
        bindings::rpmu_helper_raw_spin_lock(lock);
        if bindings::hrtimer_try_to_cancel(&raw mut (*context).hrtimer) == 1 {
            (*context).hrtimer_active = 0;
        }
        bindings::rpmu_helper_raw_spin_unlock(lock);
    }
}

/// Allows the perf core to start the timers of `pmu` again, after [`stop`].
///
/// It starts one when the next event has to wait. Process context.
///
/// # Safety
///
/// As for [`stop`].
pub(in crate::perf_core) unsafe fn allow(pmu: *mut bindings::pmu) {
    // SAFETY: By this function's requirements; the lock guards `hrtimer_active`.
    unsafe {
        for_each_context(pmu, |context| {
            bindings::rpmu_helper_raw_spin_lock_irq(&raw mut (*context).hrtimer_lock);
            (*context).hrtimer_active = 0;
            bindings::rpmu_helper_raw_spin_unlock_irq(&raw mut (*context).hrtimer_lock);
        })
    };
}

/// Returns whether this CPU's timer has expired and its function is running. Also returns true
/// after [`stop`].
///
/// # Safety
///
/// `pmu` must be registered, and interrupts must be off.
#[inline]
pub(in crate::perf_core) unsafe fn is_under_way(pmu: *mut bindings::pmu) -> bool {
    // SAFETY: By this function's requirements.
    unsafe { is_under_way_in(this_context(pmu)) }
}

/// The same, for the PMU's context `here` of this CPU.
///
/// # Safety
///
/// `here` must be from [`this_context`], and interrupts still be off.
#[inline]
pub(in crate::perf_core) unsafe fn is_under_way_in(
    here: *mut bindings::perf_cpu_pmu_context,
) -> bool {
    // `hrtimer_active` is 1 from the start of the timer to the end of its function. During this
    // time, the timer is queued unless the function is running, which it does on this CPU only: the
    // timer is pinned to it.
    // SAFETY: The context is valid.
    unsafe { (*here).hrtimer_active != 0 && !(*here).hrtimer.is_queued }
}

/// Enables `pmu` on this CPU if the perf core has left it disabled.
///
/// In an interrupt: the perf core keeps interrupts off from `perf_pmu_disable()` to
/// `perf_pmu_enable()`.
///
/// # Safety
///
/// `pmu` must be registered.
pub(in crate::perf_core) unsafe fn enable_if_left(
    pmu: *mut bindings::pmu,
    _irqs: &LocalInterruptDisabled,
) {
    // SAFETY: By this function's requirements, and interrupts are off.
    let context = unsafe { this_context(pmu) };
    // SAFETY: The context is valid, and the count is only used on this CPU. As in
    // `perf_pmu_enable()`.
    unsafe {
        if (*context).pmu_disable_count != 0 {
            (*context).pmu_disable_count = 0;
            if let Some(enable) = (*pmu).pmu_enable {
                enable(pmu);
            }
        }
    }
}

/// Makes this CPU's timer expire now if it is started. This ends the interval, and the next one
/// begins.
///
/// Not in an NMI, which may have interrupted a holder of the lock.
///
/// # Safety
///
/// `pmu` must be registered.
pub(in crate::perf_core) unsafe fn expire(pmu: *mut bindings::pmu, _irqs: &LocalInterruptDisabled) {
    // SAFETY: By this function's requirements, and interrupts are off.
    let context = unsafe { this_context(pmu) };
    // SAFETY: The context is valid, and has its lock and its timer set up. The lock is only held
    // with interrupts off. The perf core starts the timer under this lock and on this CPU. A timer
    // that [`stop`] has stopped is not queued.
    unsafe {
        let lock = &raw mut (*context).hrtimer_lock;
        let timer = &raw mut (*context).hrtimer;
        bindings::rpmu_helper_raw_spin_lock(lock);
        if (*context).hrtimer_active != 0 && (*timer).is_queued {
            let mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD;
            bindings::hrtimer_start_range_ns(timer, 0, 0, mode);
        }
        bindings::rpmu_helper_raw_spin_unlock(lock);
    }
}

/// Returns the PMU's context of this CPU.
///
/// # Safety
///
/// `pmu` must be registered, and interrupts must be off.
#[inline]
pub(in crate::perf_core) unsafe fn this_context(
    pmu: *mut bindings::pmu,
) -> *mut bindings::perf_cpu_pmu_context {
    // SAFETY: A registered PMU has a pointer to a context for each possible CPU, in a per-CPU
    // allocation.
    unsafe {
        let contexts = (*pmu).cpu_pmu_context;
        *contexts
            .wrapping_byte_add(bindings::inline::this_cpu_offset())
            .cast()
    }
}

/// # Safety
///
/// As for [`stop`]. `f` gets valid pointers.
unsafe fn for_each_context(
    pmu: *mut bindings::pmu,
    f: impl Fn(*mut bindings::perf_cpu_pmu_context),
) {
    for cpu in 0..nr_cpu_ids() {
        // SAFETY: The helper has no requirements.
        if unsafe { bindings::rpmu_helper_cpu_possible(cpu) } {
            // SAFETY: A registered PMU has a pointer to a context for each possible CPU.
            f(unsafe {
                *bindings::rpmu_helper_per_cpu_ptr((*pmu).cpu_pmu_context.cast(), cpu).cast()
            });
        }
    }
}

/// # Safety
///
/// `context` must be valid.
unsafe fn stop_one(context: *mut bindings::perf_cpu_pmu_context) {
    // SAFETY: By this function's requirements; a context has its lock and its timer set up.
    unsafe {
        let (lock, timer) = (
            &raw mut (*context).hrtimer_lock,
            &raw mut (*context).hrtimer,
        );
        loop {
            // The perf core starts the timer only if `hrtimer_active` is 0. Only the timer's
            // function sets it to 0, and `stop_here()` if it has cancelled the timer. All of this
            // happens under the lock. So with `hrtimer_active` at 1 and the timer cancelled, the
            // timer stays stopped.
            bindings::rpmu_helper_raw_spin_lock_irq(lock);
            let stopped = (*context).hrtimer_active != 0 && !bindings::hrtimer_active(timer);
            (*context).hrtimer_active = 1;
            bindings::rpmu_helper_raw_spin_unlock_irq(lock);
            if stopped {
                break;
            }
            // If the timer's function is running, this waits for it. The function takes the lock,
            // so the lock must not be held here.
            bindings::hrtimer_cancel(timer);
        }
    }
}
