// SPDX-License-Identifier: GPL-2.0

//! Injected.

use super::state::Pmu;
use crate::order::Ordered;

impl Pmu {
    /// What is wrong by order.
    pub fn ordered(&self) -> Ordered {
        self.ordered
    }

    /// From now on this is wrong, and nothing else. Counters that are missing do not count.
    pub(super) fn order(&mut self, ordered: Ordered) {
        self.ordered = ordered;
        self.regs.global_ctrl &= self.counter_bits();
        self.regs.global_status &= self.counter_bits();
        self.regs.fixed_ctrl &= self.fixed_ctrl_bits();
    }

    /// Does the general counter `index` keep its value when it is written?
    pub(super) fn is_deaf_general(&self, index: usize) -> bool {
        self.ordered.has(Ordered::DEAF_GENERAL) && index + 1 == self.generals
    }

    /// The same of a fixed one.
    pub(super) fn is_deaf_fixed(&self, index: usize) -> bool {
        self.ordered.has(Ordered::DEAF_FIXED) && index + 1 == self.model.fixed
    }
}
