// SPDX-License-Identifier: GPL-2.0

//! The model-specific registers of the performance monitoring unit.
//!
//! A write to an arbitrary MSR can do anything: `IA32_DS_AREA` and `IA32_PEBS_ENABLE` make the
//! processor write to memory, `IA32_LSTAR` is the entry point of system calls. So safe code cannot
//! make an [`Msr`] from a number. It gets one of the constants below, or a register of a counter
//! that the processor has ([`intel::perfmon`](super::intel::perfmon),
//! [`amd::perfmon`](super::amd::perfmon)). No value of any of these makes the processor access
//! memory; check this before you add a register. (PEBS's registers can only be written through
//! [`DebugStore`](super::intel::ds::DebugStore).)
//!
//! Other files of this layer access a few more registers, by the kernel's names for them:
//! IA32_DEBUGCTL, EFER, TSX_FORCE_ABORT, PEBS_ENABLE and PEBS_DATA_CFG. All accesses use the
//! kernel's own accessors, so that paravirtualisation and the tracepoints `msr:read_msr` and
//! `msr:write_msr` work as they do for the built-in driver.
//!
//! Names and numbers: Intel SDM volume 4, table 2-2; AMD APM volume 2, appendix A.
//!
//! C header: [`arch/x86/include/asm/msr.h`](srctree/arch/x86/include/asm/msr.h)

use crate::bindings;
use kernel::{
    error::to_result,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// A register of the performance monitoring unit that may be read and written.
///
/// # Invariants
///
/// The register belongs to the performance monitoring unit alone, and no value written to it makes
/// the processor write to memory or change how code is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Msr(u32);

// INVARIANT, for all of the constants and functions: these are event selects, counters, their
// common enable and status registers, filters of events, and branch records. All of them only
// control counting and recording in registers.
impl Msr {
    /// Privilege levels and interrupts of the fixed counters, four bits each. SDM volume 3, figure
    /// 20-2.
    pub const IA32_FIXED_CTR_CTRL: Self = Self(0x38d);
    /// One enable bit per counter: general-purpose from bit 0, fixed from bit 32.
    pub const IA32_PERF_GLOBAL_CTRL: Self = Self(0x38f);
    /// Writing ones clears these bits in `IA32_PERF_GLOBAL_STATUS`. From version 4 of architectural
    /// performance monitoring on the SDM calls it `IA32_PERF_GLOBAL_STATUS_RESET`.
    pub const IA32_PERF_GLOBAL_OVF_CTRL: Self = Self(0x390);

    /// The filter of event 0xb7 umask 0x01, offcore response 0.
    pub const MSR_OFFCORE_RSP_0: Self = Self(0x1a6);
    /// The filter of event 0xbb umask 0x01, offcore response 1.
    pub const MSR_OFFCORE_RSP_1: Self = Self(0x1a7);
    /// The minimum latency, in cycles, of the loads that `MEM_TRANS_RETIRED.LOAD_LATENCY` counts.
    /// The event has to be precise; the register only selects its loads.
    pub const MSR_PEBS_LD_LAT_THRESHOLD: Self = Self(0x3f6);
    /// The filter of `FRONTEND_RETIRED`, from Skylake on.
    pub const MSR_PEBS_FRONTEND: Self = Self(0x3f7);
    /// The filters of snoop responses, event 0x27 with umask 0x01 and 0x02.
    pub const MSR_SNOOP_RSP_0: Self = Self(0x1328);
    pub const MSR_SNOOP_RSP_1: Self = Self(0x1329);

    /// The first event select, then the first general-purpose counter, the same with its full
    /// width, and the first fixed counter. [`perfmon`](super::intel::perfmon) has the others.
    pub(super) const IA32_PERFEVTSEL0: Self = Self(0x186);
    pub(super) const IA32_PMC0: Self = Self(0xc1);
    pub(super) const IA32_A_PMC0: Self = Self(0x4c1);
    pub(super) const IA32_FIXED_CTR0: Self = Self(0x309);
    /// `MSR_PERF_METRICS`: the shares of the slots in `IA32_FIXED_CTR3`, a byte each.
    ///
    /// Exists if bit 15 of `IA32_PERF_CAPABILITIES` is set; otherwise accesses fault.
    pub const MSR_PERF_METRICS: Self = Self(0x329);

    /// `MSR_LBR_SELECT`: the branches that are not recorded. Architectural LBRs have [another
    /// register](Self::IA32_LBR_CTL) for this.
    pub const MSR_LBR_SELECT: Self = Self(0x1c8);
    /// `MSR_LASTBRANCH_TOS`: the number of the latest branch.
    pub(super) const MSR_LASTBRANCH_TOS: Self = Self(0x1c9);
    /// The addresses, targets and further data of recorded branches: the first registers of each.
    pub(super) const MSR_LASTBRANCH_0_FROM_IP: Self = Self(0x680);
    pub(super) const MSR_LASTBRANCH_0_TO_IP: Self = Self(0x6c0);
    pub(super) const MSR_LBR_INFO_0: Self = Self(0xdc0);
    /// The addresses and targets on Core 2 and Silvermont: the first registers of each.
    pub(super) const MSR_CORE_LASTBRANCH_0_FROM_IP: Self = Self(0x40);
    pub(super) const MSR_CORE_LASTBRANCH_0_TO_IP: Self = Self(0x60);
    /// Starts the recording of architectural LBRs, and selects the branches.
    pub const IA32_LBR_CTL: Self = Self(0x14ce);
    /// The number of branches that architectural LBRs record. A write resets the records.
    pub(super) const IA32_LBR_DEPTH: Self = Self(0x14cf);
    /// The addresses, targets and further data of branches in architectural LBRs: the first
    /// registers of each.
    pub(super) const IA32_LBR_0_FROM_IP: Self = Self(0x1500);
    pub(super) const IA32_LBR_0_TO_IP: Self = Self(0x1600);
    pub(super) const IA32_LBR_0_INFO: Self = Self(0x1200);

    /// AMD's first event select and first counter with the core performance counter extensions,
    /// whose selects and counters alternate, and the same at the old addresses.
    /// [`amd::perfmon`](super::amd::perfmon) has the others.
    pub(super) const AMD_PERF_CTL0: Self = Self(0xc001_0200);
    pub(super) const AMD_PERF_CTR0: Self = Self(0xc001_0201);
    pub(super) const AMD_LEGACY_CTL0: Self = Self(0xc001_0000);
    pub(super) const AMD_LEGACY_CTR0: Self = Self(0xc001_0004);
    /// One enable bit per counter: PerfCntrGlobalCtl of AMD's PerfMonV2.
    pub const AMD_GLOBAL_CTL: Self = Self(0xc000_0301);
    /// Writing ones clears these bits in PerfCntrGlobalStatus.
    pub const AMD_GLOBAL_STATUS_CLR: Self = Self(0xc000_0302);

    /// The branches that AMD's processors do not record.
    pub(super) const AMD_LBR_SELECT: Self = Self(0xc000_010e);
    /// The address of AMD's latest branch. The next register has the address of its target, and
    /// older branches follow.
    pub(super) const AMD_SAMP_BR_FROM: Self = Self(0xc001_0300);

    /// Returns the register whose number is higher by `n`. This one must belong to a counter or
    /// branch, and the result to a counter or branch that the processor has, or that is being
    /// probed.
    // INVARIANT: Only `perfmon` and `lbr` of both vendors call this function, with the distances
    // between registers of counters and branches.
    #[inline]
    pub(super) const fn nth(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// Returns the register's number, for messages and for the kernel's functions.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Reads the register of this CPU.
    ///
    /// If the processor refuses (`#GP`), the kernel warns once and the value is 0.
    #[inline]
    pub fn read(self, irqs: &LocalInterruptDisabled) -> u64 {
        read(self.0, irqs)
    }

    /// Writes the register of this CPU.
    ///
    /// If the processor refuses (`#GP`), the kernel warns once and the register stays as it was.
    #[inline]
    pub fn write(self, value: u64, _irqs: &LocalInterruptDisabled) {
        // SAFETY: By the type invariant no value makes the processor write to memory or change how
        // code is executed; a fault is caught by the accessor's exception table entry.
        unsafe { bindings::rpmu_helper_wrmsrq(self.0, value) }
    }

    /// Reads the register of this CPU; `EIO` if the processor refuses.
    #[inline]
    pub fn read_safe(self, irqs: &LocalInterruptDisabled) -> Result<u64> {
        read_safe(self.0, irqs)
    }

    /// Writes the register of this CPU; `EIO` if the processor refuses.
    #[inline]
    pub fn write_safe(self, value: u64, _irqs: &LocalInterruptDisabled) -> Result {
        // SAFETY: As in `write`.
        to_result(unsafe { bindings::rpmu_helper_wrmsrq_safe(self.0, value) })
    }
}

/// A register of the performance monitoring unit that safe code can only read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOnlyMsr(u32);

impl ReadOnlyMsr {
    /// One bit per counter that has overflowed, in the layout of [`Msr::IA32_PERF_GLOBAL_CTRL`],
    /// and higher bits for conditions of other units.
    pub const IA32_PERF_GLOBAL_STATUS: Self = Self(0x38e);
    /// One bit per counter that has overflowed: PerfCntrGlobalStatus of AMD's PerfMonV2.
    pub const AMD_GLOBAL_STATUS: Self = Self(0xc000_0300);
    /// AMD's DebugExtnCfg, with the bit that starts the recording of branches. See
    /// [`amd::lbr`](super::amd::lbr).
    pub(super) const AMD_DBG_EXTN_CFG: Self = Self(0xc000_010f);
    /// See [`read_capabilities`](super::intel::perfmon::read_capabilities).
    pub(super) const IA32_PERF_CAPABILITIES: Self = Self(0x345);

    /// Returns the register's number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Reads the register of this CPU.
    ///
    /// If the processor refuses (`#GP`), the kernel warns once and the value is 0.
    #[inline]
    pub fn read(self, irqs: &LocalInterruptDisabled) -> u64 {
        read(self.0, irqs)
    }

    /// Reads the register of this CPU; `EIO` if the processor refuses.
    #[inline]
    pub fn read_safe(self, irqs: &LocalInterruptDisabled) -> Result<u64> {
        read_safe(self.0, irqs)
    }
}

#[inline]
fn read(msr: u32, _irqs: &LocalInterruptDisabled) -> u64 {
    // SAFETY: The registers of both types in this file have no side effects when read; a fault is
    // caught by the accessor's exception table entry.
    unsafe { bindings::rpmu_helper_rdmsrq(msr) }
}

#[inline]
fn read_safe(msr: u32, _irqs: &LocalInterruptDisabled) -> Result<u64> {
    let mut value = 0;
    // SAFETY: As in `read`, and `value` is valid for the write of a `u64`.
    to_result(unsafe { bindings::rpmu_helper_rdmsrq_safe(msr, &mut value) })?;
    Ok(value)
}
