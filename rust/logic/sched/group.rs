// SPDX-License-Identifier: GPL-2.0

//! Validation of groups: a group that does not fit on an idle PMU never counts.
//!
//! A new event is validated together with its leader and the enabled siblings of its group, under
//! the limits that always hold and the setting for TSX. If they do not fit, opening the event is
//! refused. Mainline: `validate_event()` and `validate_group()`, `arch/x86/events/core.c`, which
//! ignore the limit on a thread with corrupting events and so accept groups that never count.
//!
//! The driver also checks here whether a pinned group that waits would fit beside the other pinned
//! events of its CPU, under the current limits (`has_room_for()`, `rust/driver/schedule.rs`).
//!
//! Context: any; no lock, because the result depends on the arguments only.

use super::{
    assign::{
        Policy,
        Problem, //
    },
    limits::Limits,
    register_plan, //
};
use crate::logic::{
    capabilities::Capabilities,
    model::{
        constraint::Constraint,
        demand::{
            Demand,
            Requirement, //
        },
    },
    refusal::{
        Refusal,
        Shortage, //
    },
    regs::counter::CounterMask, //
};

/// The capacity for different requirements. Events that fit have at most seven: two values for each
/// of the two offcore response events, a load latency, a front-end filter and a branch filter.
const MAX_REQUIREMENTS: usize = 8;

/// Events that are to fit together on a PMU that is otherwise idle.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::capabilities::{Capabilities, Cpuid};
/// use logic::model::constraint::Constraint;
/// use logic::sched::group::Group;
/// use logic::sched::limits::Limits;
/// # let cpuid = Cpuid::intel(3, 4, 0).with_hypervisor();
/// // Four counters, no fixed ones.
/// let capabilities = Capabilities::decode(&cpuid, None).unwrap();
///
/// let mut group = Group::new(&capabilities, &Limits::NONE);
/// for _ in 0..4 {
///     group.push(Constraint::any_of(capabilities.counters)).unwrap();
/// }
/// assert!(group.validate().is_ok());
/// assert!(group.push(Constraint::any_of(capabilities.counters)).is_err());
/// ```
pub struct Group<'a> {
    problem: Problem,
    /// The counters and metrics of the machine.
    counters: CounterMask,
    /// The number of counters less the number of events.
    room: u32,
    limits: &'a Limits,
    /// Set if one of the events is corrupting.
    corrupting: bool,
    /// The events' extra register requirements, each once.
    requirements: [Option<Requirement>; MAX_REQUIREMENTS],
}

impl<'a> Group<'a> {
    /// Returns an empty group on a PMU with these capabilities, under `limits`.
    pub const fn new(capabilities: &Capabilities, limits: &'a Limits) -> Self {
        Self {
            problem: Problem::new(limits.gp(false)),
            counters: capabilities.all(),
            room: capabilities.all().weight(),
            limits,
            corrupting: false,
            requirements: [None; MAX_REQUIREMENTS],
        }
    }

    /// Sets the policy; the default is [`Policy::Rpmu`].
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.set_policy(policy);
        self
    }

    /// Sets the policy, as [`with_policy`](Self::with_policy), in place.
    pub fn set_policy(&mut self, policy: Policy) {
        self.problem.set_policy(policy);
    }

    /// Adds an event of this PMU. The caller skips software events and events of other PMUs.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoCounter`] if no counter can count the event, [`Refusal::DoesNotFit`] if there
    /// are more events than counters, [`Refusal::ExtraRegisterTaken`] if the events have more
    /// requirements than any set of events that fits.
    pub fn push(&mut self, demand: impl Into<Demand>) -> Result<(), Refusal> {
        self.push_demand(&demand.into())
    }

    /// As [`push`](Self::push), without a copy of the demand.
    ///
    /// # Errors
    ///
    /// As for [`push`](Self::push).
    #[inline(never)]
    pub fn push_demand(&mut self, demand: &Demand) -> Result<(), Refusal> {
        let constraint = demand.constraint;
        let constraint = Constraint {
            counters: self.limits.counters(constraint),
            ..constraint
        };
        if !constraint.is_satisfiable() {
            return Err(Refusal::NoCounter);
        }
        let too_many = Shortage::more_than(self.counters);
        let room = self.room.checked_sub(1).ok_or(too_many)?;
        if self.problem.push(constraint, None).is_err() {
            return Err(too_many.into());
        }
        for requirement in demand.requirements() {
            let mut slots = self.requirements.iter_mut();
            let slot = slots.find(|slot| slot.is_none_or(|it| it == requirement));
            *slot.ok_or(Refusal::ExtraRegisterTaken)? = Some(requirement);
        }
        self.room = room;
        self.corrupting |= constraint.corrupting;
        self.problem.limit_gp(self.limits.gp(self.corrupting));
        Ok(())
    }

    /// Checks that the events fit together.
    ///
    /// # Errors
    ///
    /// [`Refusal::DoesNotFit`] with the [`Shortage`], or [`Refusal::ExtraRegisterTaken`].
    #[inline(never)]
    pub fn validate(&self) -> Result<(), Refusal> {
        let wanted = self.requirements.iter().flatten();
        register_plan::plan(wanted.map(|it| (*it, None)), self.limits.registers)?;
        self.problem.solve()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
