// SPDX-License-Identifier: GPL-2.0

//! Intel's built-in driver's record of the counters that run, on each CPU. Others go on asking it.
//!
//! | Asks | When | GLOBAL_CTRL becomes |
//! |---|---|---|
//! | `bpf_get_branch_snapshot()`, by `__intel_pmu_enable_all()` | anywhere, in NMIs too | `intel_ctrl & ~intel_ctrl_guest_mask` |
//! | KVM, by `intel_guest_get_msrs()` | at VM entry, interrupts off | `intel_ctrl & ~intel_ctrl_host_mask` in the guest, the above after it |
//!
//! (`intel_pmu_snapshot_branch_stack()`, `intel_guest_get_msrs()`, `arch/x86/events/intel/core.c`;
//! `arch/x86/kvm/vmx/vmx.c`.) The built-in driver puts into these masks only the counters of its
//! events with `exclude_host` and `exclude_guest` (`intel_set_masks()`, `:2993`), because it clears
//! the event selects of all counters that are not to run. A driver that leaves event selects as
//! they are masks out all others.
//!
//! If events are sampled precisely, KVM keeps their counters from running in virtual machines,
//! where records would go to addresses of the guest: `pebs_enabled`, which is also what PEBS_ENABLE
//! has after a guest, and `active_pebs_data_cfg`. The built-in driver itself writes PEBS_DATA_CFG
//! only where that differs from what it wants, and skips records that are not as long as the last
//! value it wrote makes them (`intel_pmu_pebs_enable()`, `intel_pmu_drain_pebs_icl()`,
//! `arch/x86/events/intel/ds.c`). So both are restored before it is back in charge.
//!
//! The functions read more of `cpu_hw_events`, which is right as the built-in driver has left it,
//! without an event: `lbr_pebs_users` is 0, and `fixed_ctrl_val` is what `active_fixed_ctrl_val` is
//! since the last `__intel_pmu_enable_all()`, so that FIXED_CTR_CTRL is not written.
//!
//! AMD's has none: its functions let all counters run.
//!
//! In the kernel proper, the functions would ask the driver that is in charge.

use super::Builtin;
use crate::bindings;
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};
use kernel::cpu::CpuId;

/// `INTEL_PMC_IDX_FIXED_VLBR`: in `intel_ctrl_guest_mask`, a guest has the branch records to itself
/// (`vlbr_exclude_host()`, `arch/x86/events/intel/lbr.c`). No counter has the bit.
const GUEST_BRANCHES: u64 = 1 << 58;

/// What the built-in driver tells of a CPU's counters.
///
/// To be changed on its CPU, in any context, before GLOBAL_CTRL is.
pub struct Mirror {
    /// The counters that run in virtual machines alone, or not at all: `intel_ctrl_guest_mask`.
    /// Bits that are not in `intel_ctrl` do not matter.
    not_in_host: &'static AtomicU64,
    /// Those that do not run in virtual machines: `intel_ctrl_host_mask`.
    not_in_guest: &'static AtomicU64,
    /// The value of PEBS_ENABLE outside of virtual machines: `pebs_enabled`.
    pebs_enabled: &'static AtomicU64,
    /// The value of PEBS_DATA_CFG: `active_pebs_data_cfg`.
    pebs_data_cfg: &'static AtomicU64,
}

impl Mirror {
    /// Says that only `counters` run outside of virtual machines, in the layout of GLOBAL_CTRL.
    #[inline]
    pub fn set_in_host(&self, counters: u64) {
        self.not_in_host
            .store(!(counters | GUEST_BRANCHES), Relaxed);
    }

    /// Says that only `counters` run in virtual machines.
    #[inline]
    pub fn set_in_guest(&self, counters: u64) {
        self.not_in_guest.store(!counters, Relaxed);
    }

    /// Says what PEBS_ENABLE and PEBS_DATA_CFG have. To be called before they are written.
    pub fn set_pebs(&self, enable: u64, data_cfg: u64) {
        self.pebs_enabled.store(enable, Relaxed);
        self.pebs_data_cfg.store(data_cfg, Relaxed);
    }

    /// Returns the value that PEBS_DATA_CFG is said to have: the built-in driver's own until
    /// [`set_pebs`](Self::set_pebs) is called.
    pub fn pebs_data_cfg(&self) -> u64 {
        self.pebs_data_cfg.load(Relaxed)
    }

    /// Says nothing about counters, like the built-in driver without an event.
    pub fn clear(&self) {
        self.not_in_host.store(0, Relaxed);
        self.not_in_guest.store(0, Relaxed);
    }
}

impl Builtin {
    /// Returns the record of `cpu`, which says nothing so far. The built-in driver is Intel's.
    pub fn mirror(&self, cpu: CpuId) -> Mirror {
        let events = &self.layout.events;
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each
        // possible CPU has for ever. The built-in driver changes the masks on their CPU, for its
        // events alone, and has none while another driver is in charge (`intel_set_masks()` and
        // `intel_clear_masks()` are called with events). Others read them on their CPU. Both are
        // aligned words.
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
