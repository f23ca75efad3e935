// SPDX-License-Identifier: GPL-2.0

//! Hardware defects that are modelled. Each can be switched on and off (`vpmu-defects`).

use std::ffi::CStr;

/// The defects of a CPU, or those that its hardware can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defects {
    /// Where a core has two threads, memory events counted at retirement leak into the sibling's
    /// counter of the same number. Errata BJ122 (Sandy Bridge), BV98 (Ivy Bridge), HSD29 (Haswell).
    pub ht_leak: bool,
    /// Transactions use counter 3 unless TSX_FORCE_ABORT.RTM_FORCE_ABORT aborts them. Intel's
    /// "Performance Monitoring Impact of Intel Transactional Synchronization Extension Memory
    /// Ordering Issue", document 604224.
    pub tfa: bool,
    /// After RESET, the last general counter counts retired instructions, as if firmware had left
    /// it running.
    pub left_running: bool,
}

/// One in this many events leaks ([`Defects::ht_leak`]).
pub(crate) const LEAK: u64 = 4;

/// Instructions between two transactions ([`Defects::tfa`]).
pub(crate) const TRANSACTION: u64 = 1 << 20;
/// The counter that transactions use.
pub(crate) const TRANSACTION_COUNTER: usize = 3;
/// The value that a transaction leaves in IA32_PERFEVTSEL3: a disabled event that is in no list.
pub(crate) const TRANSACTION_SELECT: u64 = 0x5a5a;
/// The value that a transaction leaves in IA32_PMC3.
pub(crate) const TRANSACTION_COUNT: u64 = 0x5a5a_5a5a_5a5a;

impl Defects {
    /// No defect.
    pub const NONE: Self = Defects {
        ht_leak: false,
        tfa: false,
        left_running: false,
    };

    /// Returns the hardware's defects that a CPU has by default: all except TFA, which a microcode
    /// update of 2019 introduced. The default Skylake has an older microcode. Counters left running
    /// are a defect of the firmware.
    pub fn usual(self) -> Self {
        Defects {
            tfa: false,
            left_running: false,
            ..self
        }
    }

    /// Parses `list`, "none" or names joined by "+", which must be among the hardware's defects
    /// (`self`). Returns a message on error.
    pub fn listed(self, list: &str) -> Result<Self, &'static CStr> {
        let mut defects = Defects::NONE;
        if list != "none" {
            for name in list.split('+') {
                let (there, defect) = match name {
                    "ht-leak" => (self.ht_leak, &mut defects.ht_leak),
                    "tfa" => (self.tfa, &mut defects.tfa),
                    "left-running" => (true, &mut defects.left_running),
                    _ => {
                        return Err(
                            c"vpmu-defects takes \"none\", or \"ht-leak\", \"tfa\" and \"left-running\" joined by \"+\"",
                        )
                    }
                };
                if !there {
                    return Err(c"vpmu-defects names a defect that this CPU does not have");
                }
                *defect = true;
            }
        }
        Ok(defects)
    }
}

/// Returns whether events with this code leak, at any UMASK ([`Defects::ht_leak`]):
/// MEM_UOPS_RETIRED, MEM_LOAD_UOPS_RETIRED, MEM_LOAD_UOPS_L3_HIT_RETIRED and
/// MEM_LOAD_UOPS_L3_MISS_RETIRED.
pub(crate) fn is_corrupting(event: u16) -> bool {
    matches!(event, 0xd0..=0xd3)
}
