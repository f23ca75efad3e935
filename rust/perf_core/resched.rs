// SPDX-License-Identifier: GPL-2.0

//! Requests to a CPU to schedule its events anew.
//!
//! The perf core tries events that found no counter again when their CPU schedules for another
//! reason, or when they rotate. Neither happens when another CPU has freed the counter.

use super::InternalOperations;
use crate::{
    bindings,
    kern::symbols::address_of,
    perf::Pmu, //
};
use kernel::{
    cpu::CpuId,
    error::Result,
    ffi::c_void,
    interrupt::LocalInterruptDisabled,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        rcu, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

/// Binds `perf_pmu_resched()`, for [`Pmu::resched`](Pmu::resched).
///
/// `ENOENT` or the error of `register_kprobe()` if it cannot be found; it takes `CONFIG_KPROBES`.
/// Process context.
pub fn bind_perf_pmu_resched() -> Result {
    let address = address_of(c"perf_pmu_resched")?;
    // SAFETY: It is the address of the function whose type the static call has.
    unsafe { bindings::rpmu_helper_bind_perf_pmu_resched(address) };
    Ok(())
}

/// The request to one CPU.
///
/// # Invariants
///
/// While `pending` is set, `csd` belongs to the code that has set it, and then to the kernel.
pub(in crate::perf_core) struct Request {
    csd: Opaque<bindings::__call_single_data>,
    pending: Atomic<bool>,
}

// SAFETY: By the type invariant one thread at a time uses `csd`.
unsafe impl Send for Request {}

// SAFETY: `pending` is atomic. By the type invariant only the code that has set it uses `csd`, and
// then the kernel.
unsafe impl Sync for Request {}

impl Request {
    pub(in crate::perf_core) fn new() -> Self {
        // INVARIANT: It is not pending.
        Self {
            csd: Opaque::zeroed(),
            pending: Atomic::new(false),
        }
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Makes `cpu` take all events of this PMU off its counters soon, and place them anew.
    ///
    /// On another CPU that happens in an interrupt, and the caller may hold locks of the perf core.
    /// On this one it happens at once; then the caller must hold none. Nothing happens if `cpu` is
    /// off, or if [`bind_perf_pmu_resched()`](crate::perf_core::bind_perf_pmu_resched) has failed.
    ///
    /// Nor does anything happen while the PMU is not registered. Any context but an NMI.
    pub fn resched(&self, cpu: CpuId) {
        // `close_resched()` waits for callers in here.
        let _guard = rcu::read_lock();
        if !self.internals().is_open() {
            return;
        }
        let Some(state) = self.data_of(cpu) else {
            return;
        };
        let Request { csd, pending } = &state.resched;
        if pending.cmpxchg(false, true, ordering::Full).is_err() {
            // That request is still to come, and sees the caller's changes.
            return;
        }
        // SAFETY: By the type invariant `csd` is ours: `pending` has just been set. It stays where
        // it is as long as the PMU, which waits for requests before it goes (`finish_resched()`).
        let ret = unsafe {
            *csd.get() = bindings::__call_single_data {
                func: Some(resched_callback::<T>),
                info: (&raw const *self).cast_mut().cast(),
                ..pin_init::zeroed()
            };
            bindings::smp_call_function_single_async(cpu.as_u32() as i32, csd.get())
        };
        if ret != 0 {
            // INVARIANT: The kernel has not taken it.
            pending.store(false, ordering::Release);
        }
    }

    /// Allows no more requests, and waits until all have been fulfilled. Process context.
    pub(in crate::perf_core) fn close_resched(&self) {
        self.internals().close();
        rcu::synchronize_rcu();
        self.finish_resched();
    }

    /// Waits until all requests have been fulfilled. Process context.
    pub fn finish_resched(&self) {
        for state in self.data_of_cpus() {
            while state.resched.pending.load(ordering::Acquire) {
                fsleep(Delta::from_micros(100));
            }
        }
        // The last may have begun and not ended yet. It runs with interrupts off, which this waits
        // for.
        rcu::synchronize_rcu();
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, with a [`Pmu<T>`] in whose requests there is one to
/// this CPU.
unsafe extern "C" fn resched_callback<T: InternalOperations>(pmu: *mut c_void) {
    // SAFETY: By this function's requirements. The PMU stays until `finish_resched()` has returned.
    let pmu = unsafe { &*pmu.cast_const().cast::<Pmu<T>>() };
    if let Some(state) = pmu.data_of(CpuId::current()) {
        // INVARIANT: The kernel has let go of `csd` before it called this.
        state.resched.pending.store(false, ordering::Release);
    }
    let resched = || {
        // SAFETY: The PMU is registered: requests are made while it is, and `close_resched()` waits
        // for them before it is not any more. Interrupts are off, and no lock of the perf core is
        // held on this CPU: an interrupt does not come in while one is, and a caller that asks for
        // its own CPU holds none (`Pmu::resched()`).
        unsafe { bindings::rpmu_helper_perf_pmu_resched(pmu.as_raw()) };
    };
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if !pmu.retry_pinned(irqs, resched) {
        resched();
    }
}
