// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's state of branch recording on each CPU, which other code reads while this
//! driver is in charge.
//!
//! `bpf_get_branch_snapshot()` stops the recording in any context, NMIs included. If `lbr_users` is
//! not 0, it then reads the records, keeps the kinds in `br_sel`, writes the value behind `lbr_sel`
//! to LBR_SELECT, on AMD's only if `lbr_select` is set, and starts the recording again
//! (`intel_pmu_snapshot_branch_stack()`, `arch/x86/events/intel/core.c`;
//! `amd_pmu_v2_snapshot_branch_stack()`, `arch/x86/events/amd/core.c`). When KVM turns SVM on or
//! off, AMD's built-in driver does the same without reading records, and only if `lbr_users` is not
//! 0 (`amd_pmu_reload_virt()`).
//!
//! In the kernel proper, the functions would ask the driver in charge.

use super::Builtin;
use crate::bindings::{
    self,
    layouts::{
        er_account,
        Member, //
    },
};
use core::sync::atomic::{
    compiler_fence, AtomicI32, AtomicPtr, AtomicU64,
    Ordering::{
        Relaxed,
        SeqCst, //
    },
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled, //
};

/// The built-in driver's state of branch recording on a CPU.
pub struct BranchMirror {
    /// The number of events with branch stacks: `lbr_users`.
    lbr_users: &'static AtomicI32,
    /// Set if LBR_SELECT is to be written: `lbr_select`. AMD's only.
    selects: Option<&'static AtomicI32>,
    /// The kinds of branches that the readers keep: `br_sel`.
    kinds: &'static AtomicU64,
    /// The pointer to the account with the value for LBR_SELECT, or null: `lbr_sel`.
    lbr_sel: &'static AtomicPtr<er_account>,
    /// The place of the value in the account.
    config: Member<er_account, u64>,
}

impl BranchMirror {
    /// Publishes how branches are recorded: the value of LBR_SELECT, or of LBR_CTL without its
    /// enable bit, and a set of kinds (`X86_BR_*`). [`None`] if they are not recorded.
    ///
    /// To be called on the CPU, which has to be online.
    pub fn set(&self, recorded: Option<(u32, u32)>, _irqs: &LocalInterruptDisabled) {
        // With `lbr_users` at 0, a snapshot in an NMI that comes in between does not write
        // LBR_SELECT. It runs on this CPU, so only the compiler must keep the order.
        self.lbr_users.store(0, Relaxed);
        compiler_fence(SeqCst);
        let (select, kinds) = recorded.unwrap_or((0, 0));
        let account = self.lbr_sel.load(Relaxed);
        // The threads of a core may share the account, so the other thread may still use it.
        // Without `lbr_users` it is not read.
        if !account.is_null() && recorded.is_some() {
            // SAFETY: `intel_pmu_cpu_starting()` has set the pointer to a part of the CPU's shared
            // registers (`arch/x86/events/intel/core.c`), or `amd_pmu_cpu_prepare()` to memory of
            // its own (`arch/x86/events/amd/core.c`). Neither is freed before the CPU is dead.
            // Other code writes the member for events of the built-in driver only.
            unsafe { AtomicU64::from_ptr(self.config.of(account)) }.store(select.into(), Relaxed);
        }
        if let Some(selects) = self.selects {
            selects.store(recorded.is_some().into(), Relaxed);
        }
        self.kinds.store(kinds.into(), Relaxed);
        compiler_fence(SeqCst);
        self.lbr_users.store(recorded.is_some().into(), Relaxed);
    }
}

impl Builtin {
    /// Returns the mirror of `cpu`, which shows no recording yet. `amd` is set if the built-in
    /// driver is AMD's.
    pub fn branch_mirror(&self, cpu: CpuId, amd: bool) -> BranchMirror {
        let events = &self.layout.events;
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each
        // possible CPU has for good. The built-in driver changes the members on their CPU, for its
        // own events only, and has none while another driver is in charge (`intel_pmu_lbr_add()`,
        // `amd_pmu_lbr_add()` and their counterparts are called with events). Other code reads them
        // on their CPU. All are aligned words.
        unsafe {
            let this = bindings::rpmu_helper_per_cpu_ptr(self.events.as_ptr().cast(), cpu.as_u32());
            // CAST: it is the CPU's `struct cpu_hw_events`.
            let this = this.cast();
            BranchMirror {
                lbr_users: AtomicI32::from_ptr(events.lbr_users.of(this)),
                selects: amd.then(|| AtomicI32::from_ptr(events.lbr_select.of(this))),
                kinds: AtomicU64::from_ptr(events.br_sel.of(this)),
                // CAST: the member is a pointer to such a structure.
                lbr_sel: AtomicPtr::from_ptr(events.lbr_sel.of(this).cast()),
                config: self.layout.account.config,
            }
        }
    }
}
