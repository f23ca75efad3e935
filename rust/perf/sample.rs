// SPDX-License-Identifier: GPL-2.0

//! Samples, which the driver hands to the perf core when a counter overflows.
//!
//! A driver begins a [`Sample`], adds the data that its hardware supplies, and hands it over by
//! [`Event::overflow`]. The perf core adds the rest, and writes the record or calls the event's
//! overflow handler. During this call it may also stop events that sample too often: see
//! [`Operations::stop_in_nmi`].

use super::{
    sample_type::{
        ADDR,
        BRANCH_STACK,
        CALLCHAIN,
        DATA_PAGE_SIZE,
        DATA_SRC,
        PERIOD,
        PHYS_ADDR,
        TIME,
        TRANSACTION,
        WEIGHT,
        WEIGHT_STRUCT, //
    },
    Event,
    OnCpu,
    Operations, //
};
use crate::{
    bindings,
    kern::{
        regs::Regs,
        symbols::Symbols, //
    },
};
use core::{
    marker::PhantomData,
    mem::{
        offset_of,
        MaybeUninit, //
    },
    ptr::{
        null_mut,
        NonNull, //
    },
};
use kernel::{
    error::Result,
    interrupt::LocalInterruptDisabled,
    types::Opaque, //
};

/// The data of a sample (`struct perf_sample_data`).
///
/// # Invariants
///
/// The fields that `perf_sample_data_init()` sets are initialised, and so are those that
/// `sample_flags` names. The perf core fills in other fields that the event asks for
/// (`perf_prepare_sample()`, `kernel/events/core.c`). The data behind the pointers live as long as
/// the sample.
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
        // INVARIANT: These are the fields that `perf_sample_data_init()` sets, and the period.
        Self(data, PhantomData)
    }

    /// Sets the word at `offset`, and marks it as present by its `bits` of `attr.sample_type`.
    fn set(&mut self, bits: u64, offset: usize, value: u64) {
        let raw = self.0.as_mut_ptr();
        // SAFETY: The pointer is to the sample, whose `sample_flags` is initialised. Callers pass
        // the offset of a member that is a word. INVARIANT: The member is initialised before
        // `sample_flags` names it.
        unsafe {
            raw.byte_add(offset).cast::<u64>().write(value);
            (*raw).sample_flags |= bits;
        }
    }

    /// Adds the time in nanoseconds of perf's clock. Any context.
    pub fn add_time(&mut self, time: u64) {
        self.set(TIME, offset_of!(bindings::perf_sample_data, time), time);
    }

    /// Adds the address of the memory that was accessed, if `event` samples that. Any context.
    pub fn add_address<T: Operations>(&mut self, event: &Event<T>, address: u64) {
        if event.samples(ADDR | PHYS_ADDR | DATA_PAGE_SIZE) {
            self.set(ADDR, offset_of!(bindings::perf_sample_data, addr), address);
        }
    }

    /// Adds the source of the data that was accessed (`union perf_mem_data_src`), if `event`
    /// samples that. Any context.
    pub fn add_data_source<T: Operations>(&mut self, event: &Event<T>, source: u64) {
        if event.samples(DATA_SRC) {
            let offset = offset_of!(bindings::perf_sample_data, data_src);
            self.set(DATA_SRC, offset, source);
        }
    }

    /// Adds the flags of a TSX transaction (`PERF_TXN_*`), if `event` samples them. Any context.
    pub fn add_transaction<T: Operations>(&mut self, event: &Event<T>, transaction: u64) {
        if event.samples(TRANSACTION) {
            let offset = offset_of!(bindings::perf_sample_data, txn);
            self.set(TRANSACTION, offset, transaction);
        }
    }

    /// Adds the weight, if `event` samples that. Any context.
    pub fn add_weight<T: Operations>(&mut self, event: &Event<T>, weight: Weight) {
        let value = if event.samples(WEIGHT) {
            weight.latency
        } else if event.samples(WEIGHT_STRUCT) {
            weight.latency & 0xffff_ffff
                | u64::from(weight.instruction) << 32
                | u64::from(weight.retirement) << 48
        } else {
            return;
        };
        let offset = offset_of!(bindings::perf_sample_data, weight);
        self.set(WEIGHT | WEIGHT_STRUCT, offset, value);
    }

    /// Adds the callers of the interrupted code, whose registers are `regs`, if `event` samples
    /// them. In the PMI.
    ///
    /// To be called if the sample's own registers are not those of the PMI: their stack cannot be
    /// unwound. Mainline: `perf_sample_save_callchain()`, `include/linux/perf_event.h`.
    ///
    /// Without `regs`, outside of the PMI, the sample gets no callers: the callers of the sampled
    /// code are not known any more.
    pub fn add_callchain<T: Operations>(&mut self, event: &Event<T>, regs: Option<&Regs>) {
        if !event.samples(CALLCHAIN) {
            return;
        }
        let callchain = match regs {
            Some(regs) => {
                // SAFETY: The event is valid, and so are the registers. The function is for NMIs,
                // too.
                unsafe { bindings::rpmu_helper_perf_callchain(event.as_raw(), regs.get()) }
            }
            None => NO_CALLERS.0.get(),
        };
        let Some(callchain) = NonNull::new(callchain) else {
            return;
        };
        // SAFETY: The function returns a call chain that stays valid in this context.
        let words = unsafe { (*callchain.as_ptr()).nr }.wrapping_add(1);
        let size = words.wrapping_mul(size_of::<u64>() as u64);
        let raw = self.0.as_mut_ptr();
        // SAFETY: The pointer is to the sample, whose `sample_flags` and `dyn_size` are
        // initialised. INVARIANT: `callchain` is initialised before `sample_flags` names it.
        unsafe {
            (&raw mut (*raw).callchain).write(callchain.as_ptr());
            (*raw).dyn_size = (*raw).dyn_size.wrapping_add(size);
            (*raw).sample_flags |= CALLCHAIN;
        }
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
        // SAFETY: The pointer is to the sample, whose `sample_flags` and `dyn_size` are
        // initialised. INVARIANT: `br_stack` and `br_stack_cntr` are initialised before
        // `sample_flags` names them, and `stack` outlives the sample.
        unsafe {
            (&raw mut (*raw).br_stack).write((&raw mut *stack).cast());
            (&raw mut (*raw).br_stack_cntr).write(null_mut());
            // CAST: less than a thousand.
            (*raw).dyn_size = (*raw).dyn_size.wrapping_add(size as u64);
            (*raw).sample_flags |= BRANCH_STACK;
        }
    }
}

/// A call chain without callers.
struct NoCallers(Opaque<bindings::perf_callchain_entry>);

// SAFETY: The perf core only reads it.
unsafe impl Sync for NoCallers {}

static NO_CALLERS: NoCallers = NoCallers(Opaque::new(pin_init::zeroed()));

/// The weight of a sample (`union perf_sample_weight`).
#[derive(Clone, Copy, Default)]
pub struct Weight {
    /// The latency of a memory access, or of a TSX transaction, in cycles.
    pub latency: u64,
    /// The latency of the instruction in cycles; 0 if not known.
    pub instruction: u16,
    /// The cycles between the retirements of the previous instruction and this one; 0 if not known.
    pub retirement: u16,
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

    /// Replaces the branches, latest first: their addresses, targets, and flags as in `struct
    /// perf_branch_entry`. `latest` is the hardware's number of the latest branch, or [`u64::MAX`]
    /// if it is unknown.
    pub fn fill(&mut self, latest: u64, branches: impl Iterator<Item = (u64, u64, u64)>) {
        self.latest = latest;
        let mut nr = 0usize;
        // The compiler makes a shorter loop of this than of one over a zip with the entries.
        branches.for_each(|(from, to, flags)| {
            if let Some(entry) = self.entries.get_mut(nr) {
                *entry = BranchEntry { from, to, flags };
                nr = nr.wrapping_add(1);
            }
        });
        // CAST: at most `MAX`.
        self.nr = nr as u64;
    }
}

/// Binds the perf core's functions for samples that are not overflows: [`Event::output`],
/// [`Event::log_lost_samples`] and [`Sample::add_callchain`] need them.
///
/// Fails if a function cannot be found. Process context.
pub fn bind_output() -> Result {
    let symbols = Symbols::new()?;
    let output = symbols.find(c"perf_event_output")?;
    let callchain = symbols.find(c"perf_callchain")?;
    let lost = symbols.find(c"perf_log_lost_samples")?;
    let account = symbols.find(c"perf_event_account_interrupt")?;
    // SAFETY: The addresses belong to functions of the types that the static calls have.
    unsafe {
        bindings::rpmu_helper_bind_pebs_samples(
            output.as_ptr(),
            callchain.as_ptr(),
            lost.as_ptr(),
            account.as_ptr(),
        )
    };
    Ok(())
}

impl<T: Operations> Event<T> {
    /// Hands an overflow to the perf core, which adds to the sample. `regs` are the registers of
    /// the interrupted code.
    ///
    /// Does nothing if the event does not sample, or if [`bind_sampling()`](super::bind_sampling)
    /// has failed.
    ///
    /// While this runs, the event and others of its group may be stopped and started
    /// ([`Operations::stop_in_nmi`], [`Operations::start_in_nmi`]) and read. A caller that changes
    /// counters before and after the call must read their state again.
    ///
    /// To be called in the interrupt that the overflow has raised, NMI or not, on the event's CPU.
    pub fn overflow(&self, _cx: &OnCpu<'_, T>, sample: &mut Sample<'_>, regs: &Regs) {
        // SAFETY: The event is valid, and cannot be removed from the CPU while interrupts are off.
        // `regs` are valid for the call, and so is the sample, by its invariant. The result,
        // whether the event was stopped, is not needed: the driver's own callback has stopped it.
        unsafe {
            bindings::rpmu_helper_perf_event_overflow(
                self.as_raw(),
                sample.0.as_mut_ptr(),
                regs.get(),
            );
        }
    }
}

impl<T: Operations> Event<T> {
    /// Writes a sample to the user's buffer without an overflow: the event is not stopped, and the
    /// perf core does nothing else. Does nothing if [`bind_output`] has failed.
    ///
    /// The perf core may [read](Operations::read) this event and others of its group. Any context,
    /// on the event's CPU.
    pub fn output(&self, _cx: &OnCpu<'_, T>, sample: &mut Sample<'_>, regs: &Regs) {
        // SAFETY: As in `overflow()`.
        unsafe {
            bindings::rpmu_helper_perf_event_output(
                self.as_raw(),
                sample.0.as_mut_ptr(),
                regs.get(),
            );
        }
    }

    /// Reports `lost` samples to the user. If a PMI has found them (`in_pmi`), they count as an
    /// overflow: the event is stopped if it overflows too often. Any context, on the event's CPU.
    pub fn log_lost_samples(&self, _cx: &OnCpu<'_, T>, lost: u64, in_pmi: bool) {
        // SAFETY: The event is valid, and cannot be removed from the CPU while interrupts are off.
        unsafe {
            bindings::rpmu_helper_perf_log_lost_samples(self.as_raw(), lost);
            if in_pmi {
                bindings::rpmu_helper_perf_event_account_interrupt(self.as_raw());
            }
        }
    }
}

/// Measures how long the handling of an overflow takes.
///
/// If it takes more of the CPU's time than `kernel.perf_cpu_time_max_percent` allows, the perf core
/// lowers the maximum sample rate.
pub struct Stopwatch(u64);

impl Stopwatch {
    /// Starts to measure. Any context.
    pub fn start() -> Self {
        // SAFETY: The clock may be read in any context.
        Self(unsafe { bindings::sched_clock() })
    }

    /// Reports the measured time to the perf core. To be called in the interrupt.
    pub fn stop(self, _irqs: &LocalInterruptDisabled) {
        // SAFETY: The clock may be read in any context. The second function changes this CPU's
        // data; interrupts are off, so the caller stays on this CPU, and the function is made for
        // NMIs.
        unsafe {
            let ns = bindings::sched_clock().wrapping_sub(self.0);
            bindings::rpmu_helper_perf_sample_event_took(ns);
        }
    }
}
