// SPDX-License-Identifier: GPL-2.0

//! The PMI that is to come.

use crate::order::LATE_BY;

/// The PMI that is to come.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// A counter overflowed and LVTPC is to be asked at the next opportunity.
    due: bool,
    /// So many instructions later.
    after: Option<u64>,
    /// Whether the last PMI comes once more ([`crate::order::Ordered::SECOND_PMI`]).
    second: Second,
}

/// A PMI that comes once more.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Second {
    /// None does.
    #[default]
    No,
    /// One will, when LVTPC has been written.
    AfterLvtpc,
    /// It is on its way.
    IsDue,
}

impl Pending {
    /// A counter that is to raise a PMI overflowed.
    pub(super) fn request(&mut self, late: bool) {
        if late {
            self.after.get_or_insert(LATE_BY);
        } else {
            self.due = true;
        }
    }

    /// So many instructions retired.
    pub(super) fn retire(&mut self, instructions: u64) {
        if let Some(left) = self.after {
            let left = left.saturating_sub(instructions);
            self.after = (left != 0).then_some(left);
            self.due |= left == 0;
        }
    }

    /// Is a PMI due now?
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// After how many instructions a PMI is due that is late.
    pub(super) fn after(&self) -> Option<u64> {
        self.after
    }

    /// Is a PMI due, now or later?
    pub(super) fn is_any(&self) -> bool {
        self.due || self.after.is_some()
    }

    /// Takes the PMI that is due, if one is. If `again`, it comes once more when LVTPC has been
    /// written, unless it is that one.
    pub(super) fn take(&mut self, again: bool) -> bool {
        if !std::mem::take(&mut self.due) {
            return false;
        }
        self.second = match self.second {
            Second::No if again => Second::AfterLvtpc,
            _ => Second::No,
        };
        true
    }

    /// The guest wrote LVTPC.
    pub(super) fn lvtpc_write(&mut self) {
        if self.second == Second::AfterLvtpc {
            self.second = Second::IsDue;
            self.after = Some(1);
        }
    }
}
