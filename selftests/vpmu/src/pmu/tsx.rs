// SPDX-License-Identifier: GPL-2.0

//! Transactions that corrupt counter 3 (TFA).

use crate::defect::TRANSACTION;

/// TSX_FORCE_ABORT.RTM_FORCE_ABORT. The other bits came later, with CPUID's RTM_ALWAYS_ABORT.
pub(super) const RTM_FORCE_ABORT: u64 = 1 << 0;

/// The transactions of a CPU with [`crate::defect::Defects::tfa`].
#[derive(Debug)]
pub(super) struct Transactions {
    /// TSX_FORCE_ABORT.
    pub(super) force_abort: u64,
    /// Instructions until the next transaction.
    next: u64,
}

impl Default for Transactions {
    fn default() -> Self {
        Transactions {
            force_abort: 0,
            next: TRANSACTION,
        }
    }
}

impl Transactions {
    /// Advances by the instructions that retired. Returns whether a transaction used counter 3.
    pub(super) fn retire(&mut self, instructions: u64) -> bool {
        if instructions < self.next {
            self.next -= instructions;
            return false;
        }
        let since = (instructions - self.next) % TRANSACTION;
        self.next = TRANSACTION - since;
        self.force_abort & RTM_FORCE_ABORT == 0
    }
}
