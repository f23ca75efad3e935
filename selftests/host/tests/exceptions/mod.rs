// SPDX-License-Identifier: GPL-2.0

//! The known differences between the models' tables and Intel's lists or mainline's tables, with
//! reasons.
//!
//! Tests compare the tables with both, event by event. They fail on a difference that is not in
//! these lists, and on an entry of the lists without a difference.

mod intel;

use rpmu_logic::logic::model::Model;
use rpmu_logic::logic::regs::event_select::EventSelect;

pub use intel::EXCEPTIONS;

/// A source of data that the tables are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Intel's event lists: the counters with two threads per core, with one, and for precise
    /// sampling.
    IntelsList,
    /// The built-in driver's tables.
    Mainline,
}

/// Events whose counters differ from the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The reference.
    pub from: Reference,
    code: u64,
    mask: u64,
    /// Set if the exception is for precise events instead of counting ones.
    pub precise: bool,
    /// The reason.
    pub reason: &'static str,
}

impl Exception {
    /// Excepts events that match `code` under `mask` from the comparison with Intel's lists.
    pub const fn from_list(code: u64, mask: u64, reason: &'static str) -> Self {
        Self {
            from: Reference::IntelsList,
            code,
            mask,
            precise: false,
            reason,
        }
    }

    /// Excepts events that match `code` under `mask` from the comparison with the built-in driver's
    /// tables.
    pub const fn from_mainline(code: u64, mask: u64, reason: &'static str) -> Self {
        let mut this = Self::from_list(code, mask, reason);
        this.from = Reference::Mainline;
        this
    }

    /// Excepts events that match `code` under `mask` from the comparison with the built-in driver's
    /// tables, as they stay on counters 0 to 3 on a core with one thread and eight counters.
    pub const fn with_one_thread(code: u64, mask: u64) -> Self {
        Self::from_mainline(
            code,
            mask,
            "counters 0 to 3 in Intel's lists where a core has one thread; any in the built-in driver",
        )
    }

    /// Turns the exception into one for precise events.
    #[must_use]
    pub const fn precise(mut self) -> Self {
        self.precise = true;
        self
    }

    /// Returns whether the exception is for the event `select`.
    pub const fn is_about(&self, select: EventSelect, precise: bool) -> bool {
        select.bits() & self.mask == self.code && self.precise == precise
    }
}

/// Returns the exceptions of the models with the names of `model`: the models of a hybrid's cores
/// have one name in sysfs.
pub fn exceptions(model: &Model, from: Reference) -> impl Iterator<Item = &'static Exception> {
    let names = [model.pmu_name, model.name];
    EXCEPTIONS
        .iter()
        .filter(move |(name, _)| names.contains(name))
        .flat_map(|(_, list)| list.iter())
        .filter(move |exception| exception.from == from)
}
