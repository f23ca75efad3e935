// SPDX-License-Identifier: GPL-2.0

//! What the events of a thread have of what the threads of a core share.

use crate::logic::{regs::counter::CounterMask, sched::register_plan::RegisterValues};

/// What a thread's events have of what the threads of a core share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The counters in use.
    pub used: CounterMask,
    /// Those that are in use by exclusive events.
    pub exclusive: CounterMask,
    /// What the extra registers are to hold.
    pub registers: RegisterValues,
}

impl Claim {
    /// The same, and what was claimed before and is not planned for something else by now. It stays
    /// claimed until the plan is programmed.
    ///
    /// Until then the counters hold what their events have counted. Besides, perf core takes all
    /// events off and adds them again one by one: who has something, and only wants it again, must
    /// not lose it to the sibling in between.
    #[must_use]
    pub fn keeping(self, before: Self) -> Self {
        Self {
            used: self.used.union(before.used),
            exclusive: self.exclusive.union(before.exclusive),
            registers: self.registers.or(&before.registers),
        }
    }

    /// Returns whether only counters are claimed, and the sibling may use them as well.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.exclusive.is_empty() && self.registers.is_none()
    }

    /// The number of general-purpose counters in use.
    pub(super) const fn gp(&self) -> u32 {
        self.used.gp().weight()
    }
}
