// SPDX-License-Identifier: GPL-2.0

//! What has retired.

use crate::retired::{Retired, COUNTS};

/// What has retired, at CPL 0 and above it.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Counts below zero that wait to be balanced.
    carry: [Retired; 2],
    /// All that this thread has retired while somebody counted: what the next things are numbered by
    /// ([`crate::share::Share`]).
    pub(super) own: [Retired; 2],
    /// The same of the other thread, as far as counters with AnyThread were told.
    pub(super) of_sibling: [Retired; 2],
}

impl Totals {
    /// What has retired for good where QEMU says that this did: counts may be negative.
    pub(super) fn settle(&mut self, user: bool, counts: &Retired) -> Retired {
        let mut retired = [0; COUNTS];
        for ((carry, &count), retired) in self.carry[usize::from(user)]
            .iter_mut()
            .zip(counts)
            .zip(&mut retired)
        {
            let sum = *carry + count;
            *retired = sum.max(0);
            *carry = sum.min(0);
        }
        retired
    }
}
