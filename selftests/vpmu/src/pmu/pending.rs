// SPDX-License-Identifier: GPL-2.0

//! The PMI to be delivered.

use crate::inject::LATE_BY;

/// The PMI to be delivered.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// A PMI is due now.
    due: bool,
    /// A PMI is due after this many instructions.
    after: Option<u64>,
    /// The repetition of the last PMI ([`crate::inject::Injected::REPEATED_PMI`]).
    repeat: Repeat,
}

/// The repetition of a PMI.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// There is none.
    #[default]
    No,
    /// It is requested once LVTPC has been written.
    AfterLvtpc,
    /// The repeated PMI is pending.
    Pending,
}

impl Pending {
    /// Requests a PMI, at once or, if `late`, after [`LATE_BY`] instructions.
    pub(super) fn request(&mut self, late: bool) {
        if late {
            self.after.get_or_insert(LATE_BY);
        } else {
            self.due = true;
        }
    }

    /// Advances by the instructions that retired.
    pub(super) fn retire(&mut self, instructions: u64) {
        if let Some(left) = self.after {
            let left = left.saturating_sub(instructions);
            self.after = (left != 0).then_some(left);
            self.due |= left == 0;
        }
    }

    /// Returns whether a PMI is due now.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// Returns after how many instructions a late PMI is due.
    pub(super) fn after(&self) -> Option<u64> {
        self.after
    }

    /// Returns whether a PMI is due now or later.
    pub(super) fn is_any(&self) -> bool {
        self.due || self.after.is_some()
    }

    /// Takes the PMI that is due; returns false if none is. If `again`, and it is not a repeated
    /// one itself, it is repeated once LVTPC has been written; if `endless`, each is.
    pub(super) fn take(&mut self, again: bool, endless: bool) -> bool {
        if !std::mem::take(&mut self.due) {
            return false;
        }
        self.repeat = match self.repeat {
            _ if endless => Repeat::AfterLvtpc,
            Repeat::No if again => Repeat::AfterLvtpc,
            _ => Repeat::No,
        };
        true
    }

    /// Requests the repeated PMI, as LVTPC has been written.
    pub(super) fn lvtpc_write(&mut self) {
        if self.repeat == Repeat::AfterLvtpc {
            self.repeat = Repeat::Pending;
            self.after = Some(1);
        }
    }
}
