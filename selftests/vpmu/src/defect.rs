// SPDX-License-Identifier: GPL-2.0

//! What the hardware gets wrong, as far as it is modelled: each can be switched (`vpmu-defects`).

use std::ffi::CStr;

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
    pub fn usual(self) -> Self {
        Defects { tfa: false, ..self }
    }

    /// Those of a list, "none" or names with a "+" between them. The error is a text.
    pub fn listed(self, list: &str) -> Result<Self, &'static CStr> {
        let mut defects = Defects::NONE;
        if list != "none" {
            for name in list.split('+') {
                let (there, defect) = match name {
                    "ht-leak" => (self.ht_leak, &mut defects.ht_leak),
                    "tfa" => (self.tfa, &mut defects.tfa),
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

/// Is this event one that leaks ([`Defects::ht_leak`])? MEM_UOPS_RETIRED, MEM_LOAD_UOPS_RETIRED,
/// MEM_LOAD_UOPS_L3_HIT_RETIRED and MEM_LOAD_UOPS_L3_MISS_RETIRED, with any UMASK.
pub fn is_corrupting(event: u8) -> bool {
    matches!(event, 0xd0..=0xd3)
}
