// SPDX-License-Identifier: GPL-2.0

//! Requests to a CPU to schedule its events anew.
//!
//! The perf core retries events without a counter when their CPU schedules for another reason, or
//! when they rotate. Neither happens when another CPU frees the counter.

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

/// Binds `perf_pmu_resched()`, which [`Pmu::resched`](Pmu::resched) needs.
///
/// Fails with `ENOMEM`, or with the error of `register_kprobe()` if the function cannot be found;
/// needs `CONFIG_KPROBES`. Process context.
pub fn bind_perf_pmu_resched() -> Result {
    let address = address_of(c"perf_pmu_resched")?;
    // SAFETY: This is the address of the function that has the static call's type.
    unsafe { bindings::rpmu_helper_bind_perf_pmu_resched(address) };
    Ok(())
}

/// The request to one CPU.
///
/// # Invariants
///
/// While `pending` is set, `csd` belongs first to the code that has set it, then to the kernel.
pub(in crate::perf_core) struct Request {
    csd: Opaque<bindings::__call_single_data>,
    pending: Atomic<bool>,
}

// SAFETY: By the type invariant only one thread at a time uses `csd`.
unsafe impl Send for Request {}

// SAFETY: `pending` is atomic. By the type invariant only the code that has set it uses `csd`, and
// then the kernel.
unsafe impl Sync for Request {}

impl Request {
    pub(in crate::perf_core) fn new() -> Self {
        // INVARIANT: The request is not pending.
        Self {
            csd: Opaque::zeroed(),
            pending: Atomic::new(false),
        }
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Makes `cpu` remove all events of this PMU from its counters soon, and place them anew.
    ///
    /// On another CPU this happens in an interrupt, and the caller may hold locks of the perf core.
    /// On this CPU it happens at once, and the caller must hold none. Nothing happens if `cpu` is
    /// offline, if [`bind_perf_pmu_resched()`](crate::perf_core::bind_perf_pmu_resched) has failed,
    /// or while the PMU is not registered.
    ///
    /// Any context but an NMI.
    pub fn resched(&self, cpu: CpuId) {
        // `close_resched()` waits for callers in this section.
        let _guard = rcu::read_lock();
        if !self.internals().is_open() {
            return;
        }
        let Some(state) = self.data_of(cpu) else {
            return;
        };
        let Request { csd, pending } = &state.resched;
        if pending.cmpxchg(false, true, ordering::Full).is_err() {
            // The pending request has not run yet, and will see the caller's changes.
            return;
        }
        // SAFETY: By the type invariant `csd` belongs to this code, which has just set `pending`.
        // It stays in place as long as the PMU, which waits for requests before it is freed
        // (`finish_resched()`).
        let ret = unsafe {
            *csd.get() = bindings::__call_single_data {
                func: Some(resched_callback::<T>),
                info: (&raw const *self).cast_mut().cast(),
                ..pin_init::zeroed()
            };
            bindings::smp_call_function_single_async(cpu.as_u32() as i32, csd.get())
        };
        if ret != 0 {
            // INVARIANT: The call has failed, so the kernel does not use `csd`.
            pending.store(false, ordering::Release);
        }
    }

    /// Refuses further requests, and waits until all have been fulfilled. Process context.
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
        // The last request may still be running. It runs with interrupts off, for which this waits.
        rcu::synchronize_rcu();
    }
}

/// # Safety
///
/// For the kernel to call, with interrupts off, and with a [`Pmu<T>`] that has a pending request to
/// this CPU.
unsafe extern "C" fn resched_callback<T: InternalOperations>(pmu: *mut c_void) {
    // SAFETY: By this function's requirements. The PMU lives until `finish_resched()` has returned.
    let pmu = unsafe { &*pmu.cast_const().cast::<Pmu<T>>() };
    if let Some(state) = pmu.data_of(CpuId::current()) {
        // INVARIANT: The kernel has released `csd` before it has called this function.
        state.resched.pending.store(false, ordering::Release);
    }
    let resched = || {
        // SAFETY: The PMU is registered: requests are made only while it is, and `close_resched()`
        // waits for them before it is unregistered. Interrupts are off, and no lock of the perf
        // core is held on this CPU: such locks are held with interrupts off, so no interrupt finds
        // one held, and a caller that passes its own CPU holds none (`Pmu::resched()`).
        unsafe { bindings::rpmu_helper_perf_pmu_resched(pmu.as_raw()) };
    };
    // SAFETY: By this function's requirements.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    if !pmu.retry_pinned(irqs, resched) {
        resched();
    }
}
