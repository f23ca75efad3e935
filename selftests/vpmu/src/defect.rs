// SPDX-License-Identifier: GPL-2.0

//! What the hardware gets wrong, as far as it is modelled: each can be switched (`vpmu-defects`).

use std::ffi::CStr;

use crate::model::Model;

/// Defects of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defects {
    /// Where a core has two threads, an event of memory operations at retirement leaks into the
    /// other thread's counter of the same number. Errata BJ122 (Sandy Bridge), BV98 (Ivy Bridge),
    /// HSD29 (Haswell).
    pub ht_leak: bool,
    /// Transactions use counter 3 unless TSX_FORCE_ABORT.RTM_FORCE_ABORT makes them abort. Intel's
    /// "Performance Monitoring Impact of Intel Transactional Synchronization Extension Memory
    /// Ordering Issue", document 604224.
    pub tfa: bool,
}

/// A corrupting event loses every so many-th of what it counts to the sibling's counter.
pub const LEAK: u64 = 4;

/// Counter 3 is corrupted whenever so many more instructions have retired, as if there was a
/// transaction that often.
pub const TRANSACTION: u64 = 1 << 20;
/// The counter that transactions use.
pub const TRANSACTION_COUNTER: usize = 3;
/// What a transaction leaves in IA32_PERFEVTSEL3: an event that no list has, disabled.
pub const TRANSACTION_SELECT: u64 = 0x5a5a;
/// What a transaction leaves in IA32_PMC3.
pub const TRANSACTION_COUNT: u64 = 0x5a5a_5a5a_5a5a;

impl Defects {
    /// No defect.
    pub const NONE: Self = Defects {
        ht_leak: false,
        tfa: false,
    };

    /// Those that a CPU has unless told otherwise: all that its hardware has. TFA came with a
    /// microcode of 2019, so the usual Skylake does without it.
    pub fn usual(model: &Model) -> Self {
        Defects {
            tfa: false,
            ..model.defects
        }
    }

    /// Those of a list, "none" or names with a "+" between them. The error is a text.
    pub fn listed(model: &Model, list: &str) -> Result<Self, &'static CStr> {
        let mut defects = Defects::NONE;
        if list != "none" {
            for name in list.split('+') {
                let (there, defect) = match name {
                    "ht-leak" => (model.defects.ht_leak, &mut defects.ht_leak),
                    "tfa" => (model.defects.tfa, &mut defects.tfa),
                    _ => return Err(c"vpmu-defects takes \"none\", or \"ht-leak\" and \"tfa\" with a + between them"),
                };
                if !there {
                    return Err(c"vpmu-defects names one that this CPU does not have");
                }
                *defect = true;
            }
        }
        Ok(defects)
    }
}

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

/// Is this event one that leaks ([`Defects::ht_leak`])? MEM_UOPS_RETIRED, MEM_LOAD_UOPS_RETIRED,
/// MEM_LOAD_UOPS_L3_HIT_RETIRED and MEM_LOAD_UOPS_L3_MISS_RETIRED, with any UMASK.
pub fn is_corrupting(event: u8) -> bool {
    matches!(event, 0xd0..=0xd3)
}
