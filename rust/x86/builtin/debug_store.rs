// SPDX-License-Identifier: GPL-2.0

//! The debug stores of the CPUs, to which the built-in driver keeps pointers.

use super::Builtin;
use crate::{
    bindings,
    x86::intel::ds::DebugStore, //
};
use core::sync::atomic::{
    AtomicPtr,
    Ordering::Relaxed, //
};
use kernel::cpu::CpuId;

/// The built-in driver's pointer to a CPU's debug store: `ds`.
pub struct StoreOfCpu(&'static AtomicPtr<bindings::debug_store>);

impl StoreOfCpu {
    /// Returns the CPU's debug store with a buffer for PEBS, if it has one. Any context.
    #[inline]
    pub fn get(&self) -> Option<DebugStore<'_>> {
        // SAFETY: `x86_reserve_hardware()` has set the member to a debug store in the CPU's entry
        // area (`alloc_ds_buffer()`, `arch/x86/events/intel/ds.c`), which stays until the hardware
        // is released. Only callbacks call this: of the PMU, NMIs, hotplug and syscore. The driver
        // keeps the hardware reserved (`x86::reserve`) while any of these are registered.
        unsafe { DebugStore::new(self.0.load(Relaxed)) }
    }
}

impl Builtin {
    /// Returns the pointer to the debug store of `cpu`. The built-in driver must be Intel's.
    pub fn debug_store(&self, cpu: CpuId) -> StoreOfCpu {
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each
        // possible CPU has for ever. The kernel accesses the member as one word.
        unsafe {
            let this = bindings::rpmu_helper_per_cpu_ptr(self.events.as_ptr().cast(), cpu.as_u32());
            // CAST: it is the CPU's `struct cpu_hw_events`, and the member a pointer to a debug
            // store.
            let ds = self.layout.events.ds.of(this.cast());
            StoreOfCpu(AtomicPtr::from_ptr(ds.cast()))
        }
    }
}
