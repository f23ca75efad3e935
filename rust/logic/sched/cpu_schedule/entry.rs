// SPDX-License-Identifier: GPL-2.0

//! The entry of an event in a CPU's schedule.

use super::slots::{
    SlotSet,
    SLOT_COUNT, //
};
use crate::logic::{
    model::{
        constraint::Constraint,
        demand::{
            Demand,
            Key,
            Requirement, //
        },
        extra_registers::ExtraRegisters, //
    },
    regs::{
        counter::CounterId,
        event_select::EventSelect,
        extra_register::ExtraRegister,
        global::CountsIn,
        shadow::Programming, //
    },
};

/// An event of a [`CpuSchedule`](super::CpuSchedule), on whose counter [equal
/// events](super::CpuSchedule::equal_event) may ride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The driver's handle of the event.
    pub event: T,
    /// The counters that the event may use.
    pub constraint: Constraint,
    /// The extra register that the event's code needs, if any.
    pub(super) requirement: Option<Requirement>,
    /// The filter of branch records that the event needs, if any.
    pub(super) lbr_select: Option<u32>,
    /// The key of events that can ride on the counter, with the mark of a sampled event if this
    /// event or a rider is sampled.
    pub(super) key: Key,
    /// The event's counter when it was last on this CPU: a preference.
    pub(super) previous: Option<CounterId>,
    /// The planned counter. [`None`] only within a txn.
    pub(super) planned: Option<CounterId>,
    /// The programmed counter.
    pub(super) placed: Option<CounterId>,
    /// The planned extra register, and below it the programmed one.
    pub(super) planned_register: Option<ExtraRegister>,
    pub(super) placed_register: Option<ExtraRegister>,
}

impl<T> Entry<T> {
    /// Returns the programmed counter; [`None`] before the event is programmed.
    pub fn placed(&self) -> Option<CounterId> {
        self.placed
    }

    /// Returns the event's demand.
    pub fn demand(&self) -> Demand {
        Demand {
            constraint: self.constraint,
            requirement: self.requirement,
            lbr_select: self.lbr_select,
            key: self.key,
        }
    }

    /// Returns the planned counter.
    pub fn planned(&self) -> Option<CounterId> {
        self.planned
    }

    /// Returns the planned extra register; [`None`] if the event needs none.
    pub fn planned_register(&self) -> Option<ExtraRegister> {
        self.planned_register
    }

    /// Returns the settings of the planned counter for an event with this `select` and `counts_in`.
    /// If the plan gives the event another extra register than its own, the event select gets that
    /// register's event code from `registers`.
    #[inline]
    pub fn programming(
        &self,
        select: EventSelect,
        counts_in: CountsIn,
        registers: ExtraRegisters,
    ) -> Programming {
        let mut programming = Programming {
            select,
            extra: None,
            counts_in,
        };
        if let (Some(required), Some(register)) = (self.requirement, self.planned_register) {
            programming.select = registers.select_for(select, register);
            programming.extra = Some((register, required.value));
        }
        programming
    }

    /// Returns whether the plan is programmed. An event that gets another extra register has to be
    /// programmed again even on the same counter.
    pub(super) fn is_programmed(&self) -> bool {
        self.placed == self.planned && self.placed_register == self.planned_register
    }
}

/// Events of a [`CpuSchedule`](super::CpuSchedule), in the order in which they were added.
// A named type keeps function names short: some tracing tools fail on long ones.
#[derive(Clone)]
pub struct Entries<'a, T> {
    pub(super) entries: &'a [Option<Entry<T>>; SLOT_COUNT],
    pub(super) slots: SlotSet,
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = &'a Entry<T>;

    #[inline]
    fn next(&mut self) -> Option<&'a Entry<T>> {
        let entries = self.entries;
        // The mask only avoids a bounds check.
        self.slots
            .find_map(|slot| entries[slot & (SLOT_COUNT - 1)].as_ref())
    }
}
