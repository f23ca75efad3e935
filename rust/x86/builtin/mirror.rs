// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's record of the counters that run, on each CPU. Others go on asking it.
//!
//! | Asks | When | GLOBAL_CTRL becomes |
//! |---|---|---|
//! | `bpf_get_branch_snapshot()`, by `__intel_pmu_enable_all()` | anywhere, in NMIs too | `intel_ctrl & ~intel_ctrl_guest_mask` |
//! | KVM, by `intel_guest_get_msrs()` | at VM entry, interrupts off | `intel_ctrl & ~intel_ctrl_host_mask` in the guest, the above after it |
//!
//! (`arch/x86/events/intel/core.c:2797`, `5298`; `arch/x86/kvm/vmx/vmx.c:7338`.) The built-in driver puts
//! into these masks only the counters of its events with `exclude_host` and `exclude_guest`
//! (`intel_set_masks()`, `:2993`), because it clears the event selects of all counters that are not to
//! run. A driver that leaves event selects as they are masks out all others.
//!
//! The functions read more of `cpu_hw_events`, which is right as the built-in driver has left it, without
//! an event: `pebs_enabled`, `active_pebs_data_cfg`, `lbr_users`, `lbr_pebs_users` and `br_sel` are 0, and
//! `fixed_ctrl_val` is what `active_fixed_ctrl_val` is since the last `__intel_pmu_enable_all()`, so that
//! FIXED_CTR_CTRL is not written. What starts PEBS or LBR has to add these members to [`Mirror`], and
//! stores them before it writes their registers.
//!
//! In the kernel proper, the functions would ask the driver that is in charge.

use super::Builtin;
use crate::bindings;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kernel::cpu::CpuId;

/// What the built-in driver tells of a CPU's counters.
///
/// To be changed on its CPU, in any context, before GLOBAL_CTRL is.
pub struct Mirror {
    /// The counters that run in virtual machines alone, or not at all: `intel_ctrl_guest_mask`. Bits that
    /// are not in `intel_ctrl` do not matter.
    not_in_host: &'static AtomicU64,
    /// Those that do not run in virtual machines: `intel_ctrl_host_mask`.
    not_in_guest: &'static AtomicU64,
}

impl Mirror {
    /// Says that only `counters` run outside of virtual machines, in the layout of GLOBAL_CTRL.
    #[inline]
    pub fn set_in_host(&self, counters: u64) {
        self.not_in_host.store(!counters, Relaxed);
    }

    /// Says that only `counters` run in virtual machines.
    #[inline]
    pub fn set_in_guest(&self, counters: u64) {
        self.not_in_guest.store(!counters, Relaxed);
    }

    /// Says nothing, as the built-in driver does without an event.
    pub fn clear(&self) {
        self.not_in_host.store(0, Relaxed);
        self.not_in_guest.store(0, Relaxed);
    }
}

impl Builtin {
    /// Returns the record of `cpu`, which says nothing so far.
    pub fn mirror(&self, cpu: CpuId) -> Mirror {
        let events = &self.layout.events;
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each possible
        // CPU has for ever. The built-in driver changes the masks on their CPU, for its events alone, and
        // has none while another driver is in charge (`intel_set_masks()` and `intel_clear_masks()` are
        // called with events). Others read them on their CPU. Both are aligned words.
        unsafe {
            let this = bindings::rpmu_helper_per_cpu_ptr(self.events.as_ptr().cast(), cpu.as_u32());
            // CAST: it is the CPU's `struct cpu_hw_events`.
            let this = this.cast();
            Mirror {
                not_in_host: AtomicU64::from_ptr(events.intel_ctrl_guest_mask.of(this)),
                not_in_guest: AtomicU64::from_ptr(events.intel_ctrl_host_mask.of(this)),
            }
        }
    }
}
