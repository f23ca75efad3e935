// SPDX-License-Identifier: GPL-2.0

//! Totals of what retired.

use crate::retired::{
    Retired,
    COUNTS, //
};

/// Totals of what retired at CPL 0 and at CPL 1 to 3.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Negative counts that are still to be subtracted.
    carry: [Retired; 2],
    /// The totals that this thread retired while QEMU counted: they number the occurrences of a
    /// [`crate::share::Share`].
    pub(super) own: [Retired; 2],
    /// The totals that the sibling retired while a counter with AnyThread counted.
    pub(super) of_sibling: [Retired; 2],
}

impl Totals {
    /// Balances negative counts. Returns counts that are not negative.
    pub(super) fn balance(&mut self, user: bool, counts: &Retired) -> Retired {
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
