// SPDX-License-Identifier: GPL-2.0

//! Samples: what the perf core is told when a counter overflows.
//!
//! A driver begins a [`Sample`], adds what its hardware knows, and hands it over by
//! [`Event::overflow`]. The perf core adds the rest, writes the record or does what else the user has
//! asked for, and stops events that sample too often while it is being told of the overflow: see
//! [`Operations::stop_in_nmi`].

use super::{Event, OnCpu, Operations};
use crate::bindings;
use core::{marker::PhantomData, mem::MaybeUninit, ptr::null_mut};
use kernel::{interrupt::LocalInterruptDisabled, types::Opaque};

/// The data of a sample (`struct perf_sample_data`).
///
/// # Invariants
///
/// The fields that `perf_sample_data_init()` sets are initialised, and so are those that
/// `sample_flags` names. The perf core fills in the others that the event asks for
/// (`perf_prepare_sample()`, `kernel/events/core.c`). What its pointers name lives as long as the sample.
pub struct Sample<'a>(
    MaybeUninit<bindings::perf_sample_data>,
    PhantomData<&'a mut BranchStack>,
);

impl<'a> Sample<'a> {
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
        Self(data, PhantomData)
    }

    /// Adds the branches of `stack`, if `event` samples branches. To be called once. Any context.
    ///
    /// Mainline: `perf_sample_save_brstack()`, `include/linux/perf_event.h`.
    pub fn add_branches<T: Operations>(&mut self, event: &Event<T>, stack: &'a mut BranchStack) {
        if !event.samples_branches() {
            return;
        }
        stack.nr = stack.nr.min(event.sample_max_stack().into());
        let mut size = size_of_val(&stack.nr);
        if event.samples_latest_branch() {
            size = size.wrapping_add(size_of_val(&stack.latest));
        }
        // CAST: at most `MAX`.
        let entries = (stack.nr as usize).wrapping_mul(size_of::<BranchEntry>());
        size = size.wrapping_add(entries);
        let raw = self.0.as_mut_ptr();
        // SAFETY: The pointer is to the sample, whose `sample_flags` and `dyn_size` are initialised.
        // INVARIANT: `br_stack` and `br_stack_cntr` are initialised before `sample_flags` names them, and
        // `stack` outlives the sample.
        unsafe {
            (&raw mut (*raw).br_stack).write((&raw mut *stack).cast());
            (&raw mut (*raw).br_stack_cntr).write(null_mut());
            // CAST: less than a thousand.
            (*raw).dyn_size = (*raw).dyn_size.wrapping_add(size as u64);
            (*raw).sample_flags |= BRANCH_STACK;
        }
    }
}

/// A branch of a [`BranchStack`] (`struct perf_branch_entry`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BranchEntry {
    from: u64,
    to: u64,
    flags: u64,
}

const _: () = assert!(size_of::<BranchEntry>() == size_of::<bindings::perf_branch_entry>());

/// The branches of a sample (`struct perf_branch_stack`).
#[repr(C)]
pub struct BranchStack {
    nr: u64,
    latest: u64,
    entries: [BranchEntry; Self::MAX],
}

impl BranchStack {
    /// The largest number of branches.
    const MAX: usize = 32;

    /// No branches.
    pub const EMPTY: Self = Self {
        nr: 0,
        latest: 0,
        entries: [BranchEntry {
            from: 0,
            to: 0,
            flags: 0,
        }; Self::MAX],
    };

    /// Replaces the branches: their addresses, targets and flags, in the bits of `struct perf_branch_entry`. The
    /// first is the latest, and `latest` the number that the hardware gives it, or [`u64::MAX`].
    pub fn fill(&mut self, latest: u64, branches: impl Iterator<Item = (u64, u64, u64)>) {
        self.latest = latest;
        self.nr = 0;
        for (entry, (from, to, flags)) in self.entries.iter_mut().zip(branches) {
            *entry = BranchEntry { from, to, flags };
            self.nr = self.nr.wrapping_add(1);
        }
    }
}

const BRANCH_STACK: u64 = bindings::perf_event_sample_format_PERF_SAMPLE_BRANCH_STACK as u64;
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
        mut sample: Sample<'_>,
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
