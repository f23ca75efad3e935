// SPDX-License-Identifier: GPL-2.0

//! Events that need a register besides the counter's: which, and what it may hold.
//!
//! Such an event's `attr.config1` is the register's value. Where two events share the register,
//! they have to agree on the value. A model with two offcore response registers lets an event that
//! is about one use the other, by the event code that belongs to that one. Which it gets is decided
//! anew whenever events come: [`register_plan`](super::register_plan).

mod table;
#[cfg(test)]
mod tests;

use super::constraint::Constraint;

pub use table::{ExtraRegisterEvent, ExtraRegisters, NoExtraRegister};

/// A register that an event can need besides the counter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraRegister {
    /// MSR_OFFCORE_RSP_0: what is asked for and who answers.
    OffcoreResponse0,
    /// MSR_OFFCORE_RSP_1.
    OffcoreResponse1,
    /// MSR_PEBS_LD_LAT_THRESHOLD: loads that take at least so many cycles.
    LoadLatency,
    /// MSR_PEBS_FRONTEND: what of the front end is counted.
    Frontend,
}

impl ExtraRegister {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::OffcoreResponse0,
        Self::OffcoreResponse1,
        Self::LoadLatency,
        Self::Frontend,
    ];

    /// The register with the given number in [`ALL`](Self::ALL).
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// Its number in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the threads of a core share it, on models where they share any: Nehalem and Westmere.
    /// SDM vol. 4, table 2-15.
    pub const fn can_be_shared(self) -> bool {
        matches!(self, Self::OffcoreResponse0 | Self::OffcoreResponse1)
    }

    /// The register that counts the same by another event code.
    const fn twin(self) -> Option<Self> {
        match self {
            Self::OffcoreResponse0 => Some(Self::OffcoreResponse1),
            Self::OffcoreResponse1 => Some(Self::OffcoreResponse0),
            Self::LoadLatency | Self::Frontend => None,
        }
    }
}

/// What an event needs besides a counter: a register that holds `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The value: `attr.config1`.
    pub value: u64,
    /// The register that the event code is about.
    pub register: ExtraRegister,
    /// The one that will do as well, if there is one and it takes the value.
    pub alternative: Option<ExtraRegister>,
}

impl Requirement {
    /// The registers that will do, the event's own first.
    pub fn registers(self) -> impl Iterator<Item = ExtraRegister> {
        [Some(self.register), self.alternative]
            .into_iter()
            .flatten()
    }
}

/// All that an event needs to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// One of these counters.
    pub constraint: Constraint,
    /// An extra register with a value in it.
    pub requirement: Option<Requirement>,
}

impl From<Constraint> for Demand {
    fn from(constraint: Constraint) -> Self {
        Self {
            constraint,
            requirement: None,
        }
    }
}
