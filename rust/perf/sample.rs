// SPDX-License-Identifier: GPL-2.0

//! Samples: what becomes of a counter's overflow.
//!
//! The perf core writes the record, or whatever the user wants instead; it stops events that sample
//! too often, and tells the driver so while it is being told of the overflow: see
//! [`Operations::stop_in_nmi`].

use super::{Event, OnCpu, Operations};
use crate::bindings;
use kernel::{interrupt::LocalInterruptDisabled, types::Opaque};

impl<T: Operations> Event<T> {
    /// Hands an overflow to the perf core: `period` occurrences have come about since the last one,
    /// and `regs` are the registers of what was interrupted.
    ///
    /// Nothing comes of it if the event does not sample, or if
    /// [`bind_sampling()`](super::bind_sampling) has failed.
    ///
    /// While this runs, the event and others of its group may be stopped and started
    /// ([`Operations::stop_in_nmi`], [`Operations::start_in_nmi`]) and read. Whoever changes the
    /// counters before and after must not rely on what it knows of them.
    ///
    /// In the interrupt that the overflow has raised, NMI or not, on the event's CPU.
    pub fn overflow(&self, _cx: &OnCpu<'_, T>, period: u64, regs: &Opaque<bindings::pt_regs>) {
        // SAFETY: The event is valid, and interrupts are off, which keeps it from being taken away;
        // `regs` are valid for the call. What the function returns says that the event has been
        // stopped, which our own callback knows already.
        unsafe {
            bindings::rpmu_helper_perf_event_overflow(self.as_raw(), period, regs.get());
        }
    }
}

/// Measures how long the handling of an overflow takes.
///
/// If that is more of the CPU's time than `kernel.perf_cpu_time_max_percent` allows, the perf core
/// lowers the rate at which anybody may sample.
pub struct Stopwatch(u64);

impl Stopwatch {
    /// Starts to measure. Any context.
    pub fn start() -> Self {
        // SAFETY: The clock may be read in any context.
        Self(unsafe { bindings::sched_clock() })
    }

    /// Tells the perf core how long it was. In the interrupt.
    pub fn stop(self, _irqs: &LocalInterruptDisabled) {
        // SAFETY: As in `start()`. The function changes data of this CPU, which interrupts that are
        // off keep the caller on; it is meant for NMIs.
        unsafe {
            let ns = bindings::sched_clock().wrapping_sub(self.0);
            bindings::rpmu_helper_perf_sample_event_took(ns);
        }
    }
}
