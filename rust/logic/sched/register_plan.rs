// SPDX-License-Identifier: GPL-2.0

//! Assignment of extra registers to events, and the values of the registers.
//!
//! Any number of events with the same value can share a register. Most events need a certain
//! register; offcore response events may have a choice of two. The problem is small enough for an
//! exact solution: a set of events that fits is never refused, whatever the order of the events.
//!
//! 1. Registers in use by the core's other thread keep their values; events with the same value
//!    share them.
//! 2. Events without a choice get their register.
//! 3. Events with a choice share a register that has their value. If there is none, they keep the
//!    register that they have, or else take a free one, preferably their own.
//!
//! The solution is exact because all events with a choice have the choice of the same two
//! registers: after step 2 only the number of values matters, not the register of each. Mainline
//! decides event by event, and takes a free register even if another one has the value: with [Y on
//! 1, Y on 0, X], it refuses X (`__intel_shared_reg_get_constraints()`,
//! `arch/x86/events/intel/core.c`).
//!
//! Context: any.

use crate::logic::{
    model::demand::Requirement,
    refusal::Refusal,
    regs::extra_register::ExtraRegister, //
};

/// The value of each extra register that is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterValues {
    /// A bit for each register in use. Mostly 0, so that one comparison is enough.
    used: u8,
    /// 0 for the free registers.
    values: [u64; ExtraRegister::ALL.len()],
}

impl RegisterValues {
    /// All registers are free.
    pub const NONE: Self = Self {
        used: 0,
        values: [0; ExtraRegister::ALL.len()],
    };

    /// Returns whether all registers are free.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.used == 0
    }

    /// Returns the value of `register`; [`None`] if it is free.
    pub fn get(&self, register: ExtraRegister) -> Option<u64> {
        let value = self.values.get(register.index()).copied();
        value.filter(|_| self.used & bit(register) != 0)
    }

    /// Returns a register with the value of `requirement`.
    pub fn find(&self, requirement: Requirement) -> Option<ExtraRegister> {
        requirement
            .registers()
            .find(|register| self.get(*register) == Some(requirement.value))
    }

    /// Sets `register` to `value` if it is free or already has that value.
    pub fn place(&mut self, register: ExtraRegister, value: u64) -> Result<(), Conflict> {
        if self.get(register).is_some_and(|held| held != value) {
            return Err(Conflict);
        }
        if let Some(slot) = self.values.get_mut(register.index()) {
            *slot = value;
            self.used |= bit(register);
        }
        Ok(())
    }

    /// Returns the values of the registers that a core's threads share on some models.
    #[must_use]
    pub const fn shared(self) -> Self {
        let mut shared = self;
        let mut i = 0;
        while i < ExtraRegister::ALL.len() {
            let register = ExtraRegister::ALL[i];
            if !register.can_be_shared() {
                shared.used &= !bit(register);
                shared.values[i] = 0;
            }
            i += 1;
        }
        shared
    }

    /// Gives the values of `other` to free registers.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        for register in ExtraRegister::ALL {
            if let (None, Some(value)) = (self.get(register), other.get(register)) {
                // A free register takes any value.
                let _ = self.place(register, value);
            }
        }
        self
    }

    /// Returns whether a register has different values here and in `other`.
    pub fn is_in_the_way_of(&self, other: &Self) -> bool {
        let differs = |register| match (self.get(register), other.get(register)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        };
        self.used & other.used != 0 && ExtraRegister::ALL.into_iter().any(differs)
    }

    /// Returns whether a register that is in use here is free in `now`, or has another value there.
    pub fn gives_way_to(&self, now: &Self) -> bool {
        let gives_way = |register| {
            let before = self.get(register);
            before.is_some() && before != now.get(register)
        };
        self.used != 0 && ExtraRegister::ALL.into_iter().any(gives_way)
    }
}

const _: () = assert!(ExtraRegister::ALL.len() <= 8);

/// Returns the bit of a register.
const fn bit(register: ExtraRegister) -> u8 {
    1 << register.index()
}

/// The error for values that do not fit in the registers together, or not beside the sibling's
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

impl From<Conflict> for Refusal {
    fn from(_: Conflict) -> Self {
        Self::ExtraRegisterTaken
    }
}

/// Plans a register for each event of `wanted`, given by its requirement and its present register.
///
/// `held` are the sibling's values in the same registers. Returns the values of all registers,
/// including the sibling's; [`RegisterValues::find`] finds an event's register in them.
///
/// # Errors
///
/// [`Conflict`] if the events do not fit.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::event_select::EventSelect;
/// use logic::regs::extra_register::ExtraRegister;
/// use logic::model::HASWELL;
/// use logic::sched::register_plan::{plan, RegisterValues};
///
/// let needs = |code, config1| {
///     let select = EventSelect::from_bits(code);
///     let required = HASWELL.extra_register_events.requirement(select, config1, |_| true);
///     (required.unwrap().unwrap(), None)
/// };
/// // Two events with one value share; a second value gets a register, and a third gets none.
/// let (a, b, c) = (needs(0x01bb, 0x10), needs(0x01b7, 0x10), needs(0x01b7, 0x20));
/// let values = plan([a, b, c].into_iter(), RegisterValues::NONE).unwrap();
/// assert_eq!(values.find(b.0), Some(ExtraRegister::OffcoreResponse1));
/// assert_eq!(values.find(c.0), Some(ExtraRegister::OffcoreResponse0));
/// let d = needs(0x01bb, 0x30);
/// assert!(plan([a, b, c, d].into_iter(), RegisterValues::NONE).is_err());
/// ```
pub fn plan(
    wanted: impl Iterator<Item = (Requirement, Option<ExtraRegister>)> + Clone,
    held: RegisterValues,
) -> Result<RegisterValues, Conflict> {
    let mut values = held;
    for (required, _) in wanted.clone() {
        if required.alternative.is_none() {
            values.place(required.register, required.value)?;
        }
    }
    // Events that have a register come before new ones.
    for new in [false, true] {
        for (required, now) in wanted.clone() {
            if now.is_none() != new || values.find(required).is_some() {
                continue;
            }
            let mut places = now.into_iter().chain(required.registers());
            let placed = places.find(|place| values.place(*place, required.value).is_ok());
            placed.ok_or(Conflict)?;
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::ExtraRegister::{
        Frontend,
        LoadLatency,
        OffcoreResponse0,
        OffcoreResponse1, //
    };
    use super::*;

    const fn offcore(register: ExtraRegister, value: u64) -> Requirement {
        Requirement {
            value,
            register,
            alternative: Some(match register {
                OffcoreResponse0 => OffcoreResponse1,
                _ => OffcoreResponse0,
            }),
        }
    }

    const fn only(register: ExtraRegister, value: u64) -> Requirement {
        Requirement {
            value,
            register,
            alternative: None,
        }
    }

    type Case = (Requirement, Option<ExtraRegister>);

    fn registers(wanted: &[Case], held: RegisterValues) -> Option<Vec<ExtraRegister>> {
        let values = plan(wanted.iter().copied(), held).ok()?;
        let found = wanted.iter().map(|(required, _)| values.find(*required));
        Some(found.map(Option::unwrap).collect())
    }

    fn holding(register: ExtraRegister, value: u64) -> RegisterValues {
        let mut values = RegisterValues::NONE;
        values.place(register, value).unwrap();
        values
    }

    #[test]
    fn an_event_gets_its_own_register_first() {
        for register in [OffcoreResponse0, OffcoreResponse1] {
            let alone = [(offcore(register, 1), None)];
            assert_eq!(
                registers(&alone, RegisterValues::NONE),
                Some(vec![register])
            );
        }
        let for_own = [
            (offcore(OffcoreResponse0, 1), None),
            (offcore(OffcoreResponse0, 2), None),
        ];
        assert_eq!(
            registers(&for_own, RegisterValues::NONE),
            Some(vec![OffcoreResponse0, OffcoreResponse1])
        );
    }

    #[test]
    fn events_stay_where_they_are() {
        let wanted = [
            (offcore(OffcoreResponse0, 3), None),
            (offcore(OffcoreResponse0, 1), Some(OffcoreResponse1)),
        ];
        let expected = Some(vec![OffcoreResponse0, OffcoreResponse1]);
        assert_eq!(registers(&wanted, RegisterValues::NONE), expected);
        // Even if an event that prefers their register comes first.
        let wanted = [
            (offcore(OffcoreResponse1, 3), None),
            (offcore(OffcoreResponse0, 1), Some(OffcoreResponse1)),
        ];
        assert_eq!(registers(&wanted, RegisterValues::NONE), expected);
    }

    #[test]
    fn an_event_moves_for_one_that_has_no_choice() {
        let wanted = [
            (offcore(OffcoreResponse0, 1), Some(OffcoreResponse0)),
            (only(OffcoreResponse0, 2), None),
        ];
        assert_eq!(
            registers(&wanted, RegisterValues::NONE),
            Some(vec![OffcoreResponse1, OffcoreResponse0])
        );
    }

    #[test]
    fn the_siblings_values_are_shared_or_left_alone() {
        let wanted = [(offcore(OffcoreResponse0, 1), Some(OffcoreResponse0))];
        let same = holding(OffcoreResponse1, 1);
        assert_eq!(registers(&wanted, same), Some(vec![OffcoreResponse1]));
        let other = holding(OffcoreResponse0, 2);
        assert_eq!(registers(&wanted, other), Some(vec![OffcoreResponse1]));
        let two = [
            (offcore(OffcoreResponse0, 1), None),
            (offcore(OffcoreResponse0, 3), None),
        ];
        assert_eq!(registers(&two, other), None);
        // Nehalem has one register.
        let one = [(only(OffcoreResponse0, 1), None)];
        assert_eq!(registers(&one, other), None);
        assert_eq!(
            registers(&one, holding(OffcoreResponse0, 1)),
            Some(vec![OffcoreResponse0])
        );
    }

    #[test]
    fn registers_of_other_kinds_do_not_mix() {
        let wanted = [
            (only(LoadLatency, 1), None),
            (only(Frontend, 2), None),
            (offcore(OffcoreResponse0, 3), None),
            (offcore(OffcoreResponse0, 4), None),
            (only(LoadLatency, 1), None),
        ];
        assert!(registers(&wanted, RegisterValues::NONE).is_some());
        let one_more = [&wanted[..], &[(only(LoadLatency, 2), None)]].concat();
        assert_eq!(registers(&one_more, RegisterValues::NONE), None);
    }

    #[test]
    fn or_fills_free_registers_only() {
        let (one, two) = (holding(OffcoreResponse0, 1), holding(OffcoreResponse1, 2));
        let both = one.or(&two);
        assert_eq!(both.get(OffcoreResponse0), Some(1));
        assert_eq!(both.get(OffcoreResponse1), Some(2));
        assert_eq!(one.or(&holding(OffcoreResponse0, 3)), one);
        assert_eq!(RegisterValues::NONE.or(&one), one);
    }

    #[test]
    fn giving_way() {
        let (one, two) = (holding(OffcoreResponse0, 1), holding(OffcoreResponse0, 2));
        assert!(one.gives_way_to(&RegisterValues::NONE));
        // Events with the new value may share it now.
        assert!(one.gives_way_to(&two));
        assert!(!one.gives_way_to(&one));
        assert!(!RegisterValues::NONE.gives_way_to(&one));
    }
}
