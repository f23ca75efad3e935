// SPDX-License-Identifier: GPL-2.0

//! The state of running counters on each CPU in Intel's built-in driver, which other code reads
//! while this driver is in charge.
//!
//! | Reader | When | Value that it writes to GLOBAL_CTRL |
//! |---|---|---|
//! | `bpf_get_branch_snapshot()`, by `__intel_pmu_enable_all()` | anywhere, in NMIs too | `intel_ctrl & ~intel_ctrl_guest_mask` |
//! | KVM, by `intel_guest_get_msrs()` | at VM entry, interrupts off | `intel_ctrl & ~intel_ctrl_host_mask` in the guest, the above after it |
//!
//! (`intel_pmu_snapshot_branch_stack()`, `intel_guest_get_msrs()`, `arch/x86/events/intel/core.c`;
//! `arch/x86/kvm/vmx/vmx.c`.) The built-in driver puts only the counters of events with
//! `exclude_host` and `exclude_guest` into these masks (`intel_set_masks()`), because it clears the
//! event selects of all counters that are not to run. This driver does not clear event selects, so
//! it masks out all counters that are not to run.
//!
//! KVM keeps counters of precise events from running in virtual machines, where records would go to
//! guest addresses. It reads `pebs_enabled`, which it also writes to PEBS_ENABLE after a guest, as
//! `bpf_get_branch_snapshot()` does after a snapshot (`intel_pmu_enable_all()`), and
//! `active_pebs_data_cfg`. The built-in driver itself writes PEBS_DATA_CFG only if
//! `active_pebs_data_cfg` differs from the wanted value, and skips records whose length does not
//! match the last value that it wrote (`intel_pmu_pebs_enable()`, `intel_pmu_drain_pebs_icl()`,
//! `arch/x86/events/intel/ds.c`). So this driver restores PEBS_DATA_CFG and `active_pebs_data_cfg`
//! before the built-in driver is in charge again.
//!
//! The other members of `cpu_hw_events` that the functions read need no change, since the built-in
//! driver has left them as they are without events: `lbr_pebs_users` is 0, and `fixed_ctrl_val` has
//! equalled `active_fixed_ctrl_val` since the last `__intel_pmu_enable_all()`, so that
//! FIXED_CTR_CTRL is not written.
//!
//! AMD's built-in driver has no such state: its functions let all counters run.
//!
//! In the kernel proper, the functions would ask the driver that is in charge.

use super::Builtin;
use crate::bindings;
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};
use kernel::cpu::CpuId;

/// `INTEL_PMC_IDX_FIXED_VLBR`: set in `intel_ctrl_guest_mask` while a guest owns the branch records
/// (`vlbr_exclude_host()`, `arch/x86/events/intel/lbr.c`). No counter has this bit.
const GUEST_BRANCHES: u64 = 1 << 58;

/// The built-in driver's state of a CPU's counters.
///
/// To be changed on its CPU, in any context, before GLOBAL_CTRL is written.
pub struct Mirror {
    /// The counters that run only in virtual machines, or not at all: `intel_ctrl_guest_mask`. Bits
    /// that are not in `intel_ctrl` have no effect.
    not_in_host: &'static AtomicU64,
    /// The counters that do not run in virtual machines: `intel_ctrl_host_mask`.
    not_in_guest: &'static AtomicU64,
    /// The value of PEBS_ENABLE outside of virtual machines: `pebs_enabled`.
    pebs_enabled: &'static AtomicU64,
    /// The value of PEBS_DATA_CFG: `active_pebs_data_cfg`.
    pebs_data_cfg: &'static AtomicU64,
}

impl Mirror {
    /// Publishes the counters that run outside of virtual machines, in the layout of GLOBAL_CTRL.
    #[inline]
    pub fn set_in_host(&self, counters: u64) {
        self.not_in_host
            .store(!(counters | GUEST_BRANCHES), Relaxed);
    }

    /// Publishes the counters that run in virtual machines.
    #[inline]
    pub fn set_in_guest(&self, counters: u64) {
        self.not_in_guest.store(!counters, Relaxed);
    }

    /// Publishes the values of PEBS_ENABLE and PEBS_DATA_CFG. To be called before these are
    /// written.
    pub fn set_pebs(&self, enable: u64, data_cfg: u64) {
        self.pebs_enabled.store(enable, Relaxed);
        self.pebs_data_cfg.store(data_cfg, Relaxed);
    }

    /// Returns the published value of PEBS_DATA_CFG: the built-in driver's own until
    /// [`set_pebs`](Self::set_pebs) is called.
    pub fn pebs_data_cfg(&self) -> u64 {
        self.pebs_data_cfg.load(Relaxed)
    }

    /// Clears the masks of counters, as the built-in driver leaves them without an event.
    pub fn clear(&self) {
        self.not_in_host.store(0, Relaxed);
        self.not_in_guest.store(0, Relaxed);
    }
}

impl Builtin {
    /// Returns the mirror of `cpu`, as the built-in driver has left it. The built-in driver must be
    /// Intel's.
    pub fn mirror(&self, cpu: CpuId) -> Mirror {
        let events = &self.layout.events;
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each
        // possible CPU has for ever. The built-in driver changes the members on their CPU, for its
        // own events only, and has none while another driver is in charge (`intel_set_masks()` and
        // `intel_clear_masks()` are called with events). Other code reads them on their CPU. All
        // are aligned words.
        unsafe {
            let this = bindings::rpmu_helper_per_cpu_ptr(self.events.as_ptr().cast(), cpu.as_u32());
            // CAST: it is the CPU's `struct cpu_hw_events`.
            let this = this.cast();
            Mirror {
                not_in_host: AtomicU64::from_ptr(events.intel_ctrl_guest_mask.of(this)),
                not_in_guest: AtomicU64::from_ptr(events.intel_ctrl_host_mask.of(this)),
                pebs_enabled: AtomicU64::from_ptr(events.pebs_enabled.of(this)),
                pebs_data_cfg: AtomicU64::from_ptr(events.active_pebs_data_cfg.of(this)),
            }
        }
    }
}
