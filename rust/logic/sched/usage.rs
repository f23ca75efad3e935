// SPDX-License-Identifier: GPL-2.0

//! The usage of counters that a hardware thread reports to its core.

use super::register_plan::RegisterValues;
use crate::logic::regs::counter::CounterMask;

/// The counters and extra registers that a thread's events use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// The counters in use.
    pub used: CounterMask,
    /// The counters in use by corrupting events.
    pub corrupting: CounterMask,
    /// The values of the extra registers.
    pub registers: RegisterValues,
}

impl ThreadUsage {
    /// Adds the counters and registers that were in use `before`: they stay in use until the plan
    /// is programmed. A register that has a value in both keeps the value in `self`, the planned
    /// one.
    ///
    /// Until then, the earlier counters hold the counts of their events. Besides, the perf core
    /// removes all events and adds them again one by one: an event that gets its counter back must
    /// not lose it to the sibling in between.
    #[must_use]
    pub fn keeping(self, before: Self) -> Self {
        Self {
            used: self.used.union(before.used),
            corrupting: self.corrupting.union(before.corrupting),
            registers: self.registers.or(&before.registers),
        }
    }

    /// Returns whether the usage consists of counters alone: no corrupting events and no extra
    /// registers.
    #[inline]
    pub fn uses_counters_only(&self) -> bool {
        self.corrupting.is_empty() && self.registers.is_none()
    }

    /// Returns the number of general-purpose counters in use.
    pub const fn gp(&self) -> u32 {
        self.used.gp().weight()
    }
}
