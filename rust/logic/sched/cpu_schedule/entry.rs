// SPDX-License-Identifier: GPL-2.0

//! One event of a CPU, and what is known of it.

use crate::logic::{
    regs::counter::CounterId,
    sched::{
        constraint::Constraint,
        extra_register::{Demand, ExtraRegister, Requirement},
    },
};

/// One event of a [`Roster`](super::Roster).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The driver's handle on the event.
    pub event: T,
    /// The counters that it may use.
    pub constraint: Constraint,
    /// What it needs besides a counter.
    pub(super) requirement: Option<Requirement>,
    /// The counter that it had when it was on this CPU last, if it was: a wish.
    pub(super) previous: Option<CounterId>,
    /// The counter that it is to have. `None` only within a transaction.
    pub(super) planned: Option<CounterId>,
    /// The counter that it has been programmed on.
    pub(super) placed: Option<CounterId>,
    /// The extra register that it is to have, and the one that it has been programmed for.
    pub(super) planned_register: Option<ExtraRegister>,
    pub(super) placed_register: Option<ExtraRegister>,
}

impl<T> Entry<T> {
    /// The counter that the event has on the hardware; `None` before it has been programmed.
    pub fn placed(&self) -> Option<CounterId> {
        self.placed
    }

    /// What the event needs.
    pub fn demand(&self) -> Demand {
        Demand {
            constraint: self.constraint,
            requirement: self.requirement,
        }
    }

    /// The counter that the event is to have.
    pub fn planned(&self) -> Option<CounterId> {
        self.planned
    }

    /// The extra register that the event is to have; `None` if it needs none.
    pub fn planned_register(&self) -> Option<ExtraRegister> {
        self.planned_register
    }

    /// Whether the event is where it is to be. One that gets another register has to be programmed
    /// anew, on whatever counter.
    pub(super) fn is_settled(&self) -> bool {
        self.placed == self.planned && self.placed_register == self.planned_register
    }
}
