// SPDX-License-Identifier: GPL-2.0

//! Errors that the guest can inject into the PMU, to test how a driver copes with them. No modelled
//! CPU has them.

/// The injected errors, as the guest writes them to an MSR (`README.md`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Injected(u64);

impl Injected {
    /// PMIs are delivered [`LATE_BY`] instructions after the overflow, or after the first of
    /// several.
    pub const LATE_PMI: Self = Injected(1 << 0);
    /// A delivered PMI is repeated once LVTPC has been written.
    pub const REPEATED_PMI: Self = Injected(1 << 1);
    /// The last general counter ignores writes.
    pub const STUCK_GENERAL: Self = Injected(1 << 2);
    /// The last fixed counter ignores writes.
    pub const STUCK_FIXED: Self = Injected(1 << 3);
    /// Only [`FEW`] counters exist, and CPUID reports that.
    pub const FEWER: Self = Injected(1 << 4);
    /// Only [`FEW`] counters exist, and CPUID reports all of the model's.
    pub const MISSING: Self = Injected(1 << 5);
    /// CPUID reports a hybrid processor.
    pub const HYBRID: Self = Injected(1 << 6);
    /// Software cannot clear any bit of IA32_PERF_GLOBAL_STATUS.
    pub const STUCK_STATUS: Self = Injected(1 << 7);
    /// CPUID reports [`MANY`] general counters. Those beyond the model's do not exist.
    pub const MORE: Self = Injected(1 << 24);
    /// The contents of PEBS records, and the index of the buffer after them, are often arbitrary.
    pub const WRONG_RECORDS: Self = Injected(1 << 25);
    /// IA32_DEBUGCTL has no FREEZE_WHILE_SMM.
    pub const NO_SMM_FREEZE: Self = Injected(1 << 26);
    /// A reserved bit of AMD's PerfCntrGlobalStatus is set, and software cannot clear it.
    pub const RESERVED_STATUS: Self = Injected(1 << 27);
    /// A delivered PMI is repeated whenever LVTPC has been written.
    pub const ENDLESS_PMI: Self = Injected(1 << 28);
    /// No counter counts.
    pub const STILL: Self = Injected(1 << 29);
    /// Counters run backwards.
    pub const BACKWARDS: Self = Injected(1 << 30);
    /// Reads of the event select of the last general counter fault.
    pub const FAULTING: Self = Injected(1 << 31);
    /// The branch records are lost once, when this is injected.
    pub const LOST_RECORDS: Self = Injected(1 << 32);
    /// Software cannot clear the bit of the last general counter in IA32_PERF_GLOBAL_CTRL.
    pub const STUCK_CTRL: Self = Injected(1 << 33);
    const ALL: u64 = 0x3_ffff_ffff;

    /// CPUID reports this version of architectural performance monitoring; 0xff stands for none.
    pub const fn version(version: u8) -> Self {
        Injected((version as u64) << 8)
    }

    /// CPUID reports this model of family 6.
    pub const fn model(model: u8) -> Self {
        Injected((model as u64) << 16)
    }

    /// Decodes the MSR's value. Returns `None` if a reserved bit is set.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits & !Self::ALL == 0).then_some(Injected(bits))
    }

    /// Returns the MSR's value.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns whether any of the errors in `what` is injected.
    pub(crate) fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    /// Combines two sets of errors.
    pub(crate) fn and(self, other: Self) -> Self {
        Injected(self.0 | other.0)
    }

    /// Returns CPUID.1:EAX, given its true value.
    pub(crate) fn signature(self, eax: u32) -> u32 {
        match ((self.0 >> 16) as u32) & 0xff {
            0 => eax,
            model => (eax & !0xf00f0) | ((model & 0xf) << 4) | ((model >> 4) << 16),
        }
    }

    /// Returns CPUID.0AH:EAX\[7:0\], given its true value.
    pub(crate) fn perfmon(self, version: u32) -> u32 {
        match ((self.0 >> 8) as u32) & 0xff {
            0 => version,
            0xff => 0,
            injected => injected,
        }
    }
}

/// Delay of a PMI with [`Injected::LATE_PMI`], in instructions.
pub const LATE_BY: u64 = 5000;
/// General and fixed counters with [`Injected::FEWER`] and [`Injected::MISSING`].
pub(crate) const FEW: (usize, usize) = (2, 1);
/// General counters that CPUID reports with [`Injected::MORE`].
pub(crate) const MANY: usize = 10;
