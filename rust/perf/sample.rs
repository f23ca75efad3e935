// SPDX-License-Identifier: GPL-2.0

//! Samples: what the perf core is told when a counter overflows.
//!
//! A driver begins a [`Sample`], adds what its hardware knows, and hands it over by
//! [`Event::overflow`]. The perf core adds the rest, writes the record or does what else the user has
//! asked for, and stops events that sample too often while it is being told of the overflow: see
//! [`Operations::stop_in_nmi`].

use super::{Event, OnCpu, Operations};
use crate::bindings;
use core::mem::MaybeUninit;
use kernel::{interrupt::LocalInterruptDisabled, types::Opaque};

/// The data of a sample (`struct perf_sample_data`).
///
/// # Invariants
///
/// The fields that `perf_sample_data_init()` sets are initialised, and so are those that
/// `sample_flags` names. The perf core fills in the others that the event asks for
/// (`perf_prepare_sample()`, `kernel/events/core.c`).
pub struct Sample(MaybeUninit<bindings::perf_sample_data>);

impl Sample {
    /// Begins a sample after `period` occurrences of the event. Any context.
    #[inline(always)]
    pub fn new(period: u64) -> Self {
        let mut data = MaybeUninit::<bindings::perf_sample_data>::uninit();
        let raw = data.as_mut_ptr();
        // SAFETY: The pointer is to `data`, whose fields are integers.
        unsafe {
            (&raw mut (*raw).sample_flags).write(PERIOD);
            (&raw mut (*raw).period).write(period);
            (&raw mut (*raw).dyn_size).write(0);
        }
        // INVARIANT: These are the fields of `perf_sample_data_init()`, and one of them is the period's.
        Self(data)
    }
}

const PERIOD: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_PERIOD as u64;

impl<T: Operations> Event<T> {
    /// Hands an overflow to the perf core. `regs` are the registers of the interrupted code.
    ///
    /// Nothing comes of it if the event does not sample, or if
    /// [`bind_sampling()`](super::bind_sampling) has failed.
    ///
    /// While this runs, the event and others of its group may be stopped and started
    /// ([`Operations::stop_in_nmi`], [`Operations::start_in_nmi`]) and read. A caller that changes the
    /// counters before and after must not rely on what it knows of them.
    ///
    /// In the interrupt that the overflow has raised, NMI or not, on the event's CPU.
    pub fn overflow(
        &self,
        _cx: &OnCpu<'_, T>,
        mut sample: Sample,
        regs: &Opaque<bindings::pt_regs>,
    ) {
        // SAFETY: The event is valid, and interrupts are off, which keeps it from being taken away;
        // `regs` are valid for the call, and so is the sample, by its invariant. The function returns
        // whether the event has been stopped, which our own callback knows already.
        unsafe {
            bindings::rpmu_helper_perf_event_overflow(
                self.as_raw(),
                sample.0.as_mut_ptr(),
                regs.get(),
            );
        }
    }
}

/// Measures how long the handling of an overflow takes.
///
/// If that is more of the CPU's time than `kernel.perf_cpu_time_max_percent` allows, the perf core
/// lowers the rate at which events may sample.
pub struct Stopwatch(u64);

impl Stopwatch {
    /// Starts to measure. Any context.
    pub fn start() -> Self {
        // SAFETY: The clock may be read in any context.
        Self(unsafe { bindings::sched_clock() })
    }

    /// Tells the perf core the time that has passed. In the interrupt.
    pub fn stop(self, _irqs: &LocalInterruptDisabled) {
        // SAFETY: As in `start()`. The function changes data of this CPU, which interrupts that are
        // off keep the caller on; it is meant for NMIs.
        unsafe {
            let ns = bindings::sched_clock().wrapping_sub(self.0);
            bindings::rpmu_helper_perf_sample_event_took(ns);
        }
    }
}
