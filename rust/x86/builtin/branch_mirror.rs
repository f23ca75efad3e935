// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's record of how branches are recorded, on each CPU. Others go on asking it.
//!
//! `bpf_get_branch_snapshot()` stops the recording in any context, NMIs included. If `lbr_users`
//! says that events sample branches, it reads the records, keeps the kinds of `br_sel`, and starts
//! the recording again, after it has written LBR_SELECT with what `lbr_sel` points to; AMD's writes
//! that only if `lbr_select` is set (`intel_pmu_snapshot_branch_stack()`,
//! `arch/x86/events/intel/core.c`; `amd_pmu_v2_snapshot_branch_stack()`,
//! `arch/x86/events/amd/core.c`). When KVM turns SVM on or off, AMD's built-in driver does the
//! same, but reads no records, and stops nothing without `lbr_users` (`amd_pmu_reload_virt()`,
//! `:1559`).
//!
//! In the kernel proper, the functions would ask the driver that is in charge.

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

/// The built-in driver's record of a CPU's branch records.
pub struct BranchMirror {
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
}

impl BranchMirror {
    /// Says how branches are recorded: the value of LBR_SELECT, or of LBR_CTL but for the bit that
    /// starts the recording, and a set of kinds (`X86_BR_*`). [`None`]: not at all.
    ///
    /// On the CPU, which has to be online.
    pub fn set(&self, recorded: Option<(u32, u32)>, _irqs: &LocalInterruptDisabled) {
        // A snapshot in an NMI in between leaves LBR_SELECT alone. It comes on this CPU, so that
        // only the compiler must keep the order.
        self.lbr_users.store(0, Relaxed);
        compiler_fence(SeqCst);
        let (select, kinds) = recorded.unwrap_or((0, 0));
        let account = self.lbr_sel.load(Relaxed);
        // The threads of a core may share it, so the other thread may still use it. It is not read
        // without `lbr_users`.
        if !account.is_null() && recorded.is_some() {
            // SAFETY: `intel_pmu_cpu_starting()` has set the pointer to a part of the CPU's shared
            // registers (`arch/x86/events/intel/core.c`), or `amd_pmu_cpu_prepare()` to memory of
            // its own (`arch/x86/events/amd/core.c`), which are not freed before the CPU is dead.
            // Others write the member for events of the built-in driver only.
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
    /// Returns the record of `cpu`, which says nothing so far. `amd` says that the built-in driver
    /// is AMD's.
    pub fn branch_mirror(&self, cpu: CpuId, amd: bool) -> BranchMirror {
        let events = &self.layout.events;
        // SAFETY: By the type invariant `events` is a per-CPU variable of the kernel, which each
        // possible CPU has for ever. The built-in driver changes the members on their CPU, for its
        // events alone, and has none while another driver is in charge (`intel_pmu_lbr_add()`,
        // `amd_pmu_lbr_add()` and those that revert them are called with events). Others read them
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
