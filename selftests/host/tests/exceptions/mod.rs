// SPDX-License-Identifier: GPL-2.0

//! The known differences of the models' tables from Intel's lists and mainline's tables, with
//! reasons.
//!
//! The tables are compared with both, event by event. A difference that is not in these lists makes
//! a test fail, and so does an entry of the lists without a difference.

mod intel;

use rpmu_logic::logic::model::Model;
use rpmu_logic::logic::regs::event_select::EventSelect;

pub use intel::EXCEPTIONS;

/// A source that tables are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Intel's event lists: the counters where a core has two threads and where it has one, and
    /// those for precise sampling.
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
    /// Whether it is for precise events, and not for counting ones.
    pub precise: bool,
    /// The reason.
    pub reason: &'static str,
}

impl Exception {
    /// Events that match `code` under `mask` differ from Intel's lists.
    pub const fn from_list(code: u64, mask: u64, reason: &'static str) -> Self {
        Self {
            from: Reference::IntelsList,
            code,
            mask,
            precise: false,
            reason,
        }
    }

    /// Events that match `code` under `mask` differ from the built-in driver's tables.
    pub const fn from_mainline(code: u64, mask: u64, reason: &'static str) -> Self {
        let mut this = Self::from_list(code, mask, reason);
        this.from = Reference::Mainline;
        this
    }

    /// Events that match `code` under `mask` stay on counters 0 to 3 where a core has one thread,
    /// and so eight.
    pub const fn with_one_thread(code: u64, mask: u64) -> Self {
        Self::from_mainline(
            code,
            mask,
            "counters 0 to 3 in Intel's lists where a core has one thread; any in the built-in driver",
        )
    }

    /// Makes the exception one for events that are sampled precisely.
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

/// Returns the exceptions of the models with the name of `model`.
pub fn exceptions(model: &Model, from: Reference) -> impl Iterator<Item = &'static Exception> {
    let name = model.pmu_name;
    EXCEPTIONS
        .iter()
        .filter(move |(model, _)| *model == name)
        .flat_map(|(_, list)| list.iter())
        .filter(move |exception| exception.from == from)
}
