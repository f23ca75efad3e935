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
//! If events sample branches, `bpf_get_branch_snapshot()` also reads the records and starts the recording
//! again: `lbr_users` says that there are such events, `br_sel` which branches to keep, and `lbr_sel` what
//! LBR_SELECT is written with. AMD's (`amd_pmu_v2_snapshot_branch_stack()`, `arch/x86/events/amd/core.c:907`) does so
//! if `lbr_select` is set.
//!
//! If events are sampled precisely, KVM keeps their counters from running in virtual machines, where records would
//! go to addresses of the guest: `pebs_enabled`, which is also what PEBS_ENABLE has after a guest, and
//! `active_pebs_data_cfg`.
//!
//! The functions read more of `cpu_hw_events`, which is right as the built-in driver has left it, without
//! an event: `lbr_pebs_users` is 0, and
//! `fixed_ctrl_val` is what `active_fixed_ctrl_val` is since the last `__intel_pmu_enable_all()`, so that
//! FIXED_CTR_CTRL is not written.
//!
//! In the kernel proper, the functions would ask the driver that is in charge.

use super::Builtin;
use crate::{
    bindings::{
        self,
        layouts::{er_account, Member},
    },
    x86::intel::ds::DebugStore,
};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering::Relaxed};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled};

/// `INTEL_PMC_IDX_FIXED_VLBR`: in `intel_ctrl_guest_mask`, a guest has the branch records to itself
/// (`vlbr_exclude_host()`, `arch/x86/events/intel/lbr.c:710`). No counter has the bit.
const GUEST_BRANCHES: u64 = 1 << 58;

/// What the built-in driver tells of a CPU's counters.
///
/// To be changed on its CPU, in any context, before GLOBAL_CTRL is.
pub struct Mirror {
    /// The counters that run in virtual machines alone, or not at all: `intel_ctrl_guest_mask`. Bits that
    /// are not in `intel_ctrl` do not matter.
    not_in_host: &'static AtomicU64,
    /// Those that do not run in virtual machines: `intel_ctrl_host_mask`.
    not_in_guest: &'static AtomicU64,
    /// The number of events with branch stacks: `lbr_users`.
    lbr_users: &'static AtomicI32,
    /// Set if LBR_SELECT is written: `lbr_select`. AMD's only.
    selects: Option<&'static AtomicI32>,
    /// The kinds of branches that they keep: `br_sel`.
    kinds: &'static AtomicU64,
    /// The address of what LBR_SELECT is written with, or null: `lbr_sel`.
    lbr_sel: &'static AtomicPtr<er_account>,
    /// The place of the value in that.
    config: Member<er_account, u64>,
    /// The CPU's debug store, or null: `ds`.
    ds: &'static AtomicPtr<bindings::debug_store>,
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

    /// Says how branches are recorded: the value of LBR_SELECT, or of LBR_CTL but for the bit that starts the
    /// recording, and a set of kinds (`X86_BR_*`). [`None`]: not at all.
    ///
    /// On the CPU, which has to be online.
    pub fn set_branches(&self, recorded: Option<(u32, u32)>, _irqs: &LocalInterruptDisabled) {
        let (select, kinds) = recorded.unwrap_or((0, 0));
        let account = self.lbr_sel.load(Relaxed);
        if !account.is_null() {
            // SAFETY: `intel_pmu_cpu_starting()` has set the pointer to a part of the CPU's shared
            // registers (`arch/x86/events/intel/core.c:6497`), or `amd_pmu_cpu_prepare()` to memory of its own
            // (`arch/x86/events/amd/core.c:584`), which are not freed before the CPU is dead. Others write the member for events of the built-in driver only.
            unsafe { AtomicU64::from_ptr(self.config.of(account)) }.store(select.into(), Relaxed);
        }
        if let Some(selects) = self.selects {
            selects.store(recorded.is_some().into(), Relaxed);
        }
        self.kinds.store(kinds.into(), Relaxed);
        self.lbr_users.store(recorded.is_some().into(), Relaxed);
    }

    /// Says what PEBS_ENABLE and PEBS_DATA_CFG have. To be called before they are written.
    pub fn set_pebs(&self, enable: u64, data_cfg: u64) {
        self.pebs_enabled.store(enable, Relaxed);
        self.pebs_data_cfg.store(data_cfg, Relaxed);
    }

    /// Returns the CPU's debug store with a buffer for PEBS, if it has one. Any context.
    #[inline]
    pub fn debug_store(&self) -> Option<DebugStore<'_>> {
        // SAFETY: `x86_reserve_hardware()` has set the member to a debug store in the CPU's entry area
        // (`alloc_ds_buffer()`, `arch/x86/events/intel/ds.c:947`), which lasts until the hardware is released. The
        // driver holds it (`x86::reserve`) longer than it has events, and without events does not ask.
        unsafe { DebugStore::new(self.ds.load(Relaxed)) }
    }

    /// Says nothing, as the built-in driver does without an event.
    pub fn clear(&self) {
        self.not_in_host.store(0, Relaxed);
        self.not_in_guest.store(0, Relaxed);
        self.set_pebs(0, 0);
    }
}

impl Builtin {
    /// Returns the record of `cpu`, which says nothing so far. `amd` says that the built-in driver is AMD's.
    pub fn mirror(&self, cpu: CpuId, amd: bool) -> Mirror {
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
                lbr_users: AtomicI32::from_ptr(events.lbr_users.of(this)),
                selects: amd.then(|| AtomicI32::from_ptr(events.lbr_select.of(this))),
                kinds: AtomicU64::from_ptr(events.br_sel.of(this)),
                // CAST: the member is a pointer to such a structure.
                lbr_sel: AtomicPtr::from_ptr(events.lbr_sel.of(this).cast()),
                config: self.layout.account.config,
                // CAST: the member is a pointer to such a structure.
                ds: AtomicPtr::from_ptr(events.ds.of(this).cast()),
                pebs_enabled: AtomicU64::from_ptr(events.pebs_enabled.of(this)),
                pebs_data_cfg: AtomicU64::from_ptr(events.active_pebs_data_cfg.of(this)),
            }
        }
    }
}
