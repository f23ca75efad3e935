// SPDX-License-Identifier: GPL-2.0

//! The demand of an event: the counters that it may use, and the extra registers that it needs.
//!
//! An extra register's value is the event's `attr.config1`. Events with branch stacks also need
//! LBR_SELECT, whose value is from a [request](crate::logic::sample::lbr::Request). Two events can
//! share the register if they have the same value. On a model with two offcore response registers
//! an event can use either register, with the event code that belongs to it.
//! [`register_plan`](crate::logic::sched::register_plan) decides which, again whenever events are
//! added.

use super::constraint::Constraint;
use crate::logic::regs::extra_register::ExtraRegister;

/// An event's requirement of a certain value in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The value: `attr.config1`.
    pub value: u64,
    /// The register that belongs to the event code.
    pub register: ExtraRegister,
    /// Another register that can be used instead, if there is one and it accepts the value.
    pub alternative: Option<ExtraRegister>,
}

impl Requirement {
    /// Returns the registers that can be used, the event's own first.
    pub fn registers(self) -> impl Iterator<Item = ExtraRegister> {
        [Some(self.register), self.alternative]
            .into_iter()
            .flatten()
    }
}

/// The demand of an event: everything that it needs to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The counters, one of which it needs.
    pub constraint: Constraint,
    /// The extra register that its code needs, if any.
    pub requirement: Option<Requirement>,
    /// The value of [`ExtraRegister::LbrSelect`] that its samples need, if they have branch stacks.
    pub lbr_select: Option<u32>,
}

impl Demand {
    /// Returns the extra registers that the event needs.
    pub fn requirements(self) -> impl Iterator<Item = Requirement> + Clone {
        let branches = self.lbr_select.map(|value| Requirement {
            value: value.into(),
            register: ExtraRegister::LbrSelect,
            alternative: None,
        });
        [self.requirement, branches].into_iter().flatten()
    }

    /// Returns whether the event needs an extra register.
    #[inline]
    pub const fn needs_register(&self) -> bool {
        self.requirement.is_some() || self.lbr_select.is_some()
    }
}

impl From<Constraint> for Demand {
    fn from(constraint: Constraint) -> Self {
        Self {
            constraint,
            requirement: None,
            lbr_select: None,
        }
    }
}
