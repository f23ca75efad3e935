// SPDX-License-Identifier: GPL-2.0

//! What the PMU gets wrong by order of the guest.

/// What a driver's test has this PMU get wrong for a while: a number that the guest writes
/// (`README.md`). No CPU is known to be like that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ordered(u64);

impl Ordered {
    /// A PMI comes [`LATE_BY`] instructions after the overflow.
    pub const LATE_PMI: Self = Ordered(1 << 0);
    /// A PMI that was delivered comes once more when LVTPC has been written.
    pub const SECOND_PMI: Self = Ordered(1 << 1);
    /// The last general counter keeps its value when it is written.
    pub const DEAF_GENERAL: Self = Ordered(1 << 2);
    /// The last fixed counter does.
    pub const DEAF_FIXED: Self = Ordered(1 << 3);
    /// There are but [`FEW`] counters, and CPUID says so.
    pub const FEWER: Self = Ordered(1 << 4);
    /// The same, and CPUID does not say so.
    pub const MISSING: Self = Ordered(1 << 5);
    /// CPUID says that the CPUs are of several kinds.
    pub const HYBRID: Self = Ordered(1 << 6);
    /// Overflows cannot be acknowledged: what IA32_PERF_GLOBAL_STATUS says stays.
    pub const KEEPS_STATUS: Self = Ordered(1 << 7);
    /// CPUID says that there are [`MANY`] general counters; those beyond the model's are not there.
    pub const MORE: Self = Ordered(1 << 24);
    const ALL: u64 = 0x1ff_ffff;

    /// CPUID says that this is the version of architectural performance monitoring; 0xff is none.
    pub const fn version(version: u8) -> Self {
        Ordered((version as u64) << 8)
    }

    /// CPUID says that it is this model of family 6.
    pub const fn model(model: u8) -> Self {
        Ordered((model as u64) << 16)
    }

    /// As it is written; `None`: it has bits that mean nothing.
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits & !Self::ALL == 0).then_some(Ordered(bits))
    }

    /// As it is read.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Has any of that been ordered?
    pub fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    /// Both.
    pub fn and(self, other: Self) -> Self {
        Ordered(self.0 | other.0)
    }

    /// CPUID.1:EAX, given what it is else.
    pub fn signature(self, eax: u32) -> u32 {
        match ((self.0 >> 16) as u32) & 0xff {
            0 => eax,
            model => (eax & !0xf00f0) | ((model & 0xf) << 4) | ((model >> 4) << 16),
        }
    }

    /// CPUID.0AH:EAX\[7:0\], given what it is else.
    pub fn perfmon(self, version: u32) -> u32 {
        match ((self.0 >> 8) as u32) & 0xff {
            0 => version,
            0xff => 0,
            ordered => ordered,
        }
    }
}

/// By how many instructions a PMI is late.
pub const LATE_BY: u64 = 5000;
/// How many counters there are where there are fewer: general and fixed.
pub const FEW: (usize, usize) = (2, 1);
/// How many general counters CPUID tells of where it tells of more.
pub const MANY: usize = 10;
