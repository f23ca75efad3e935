// SPDX-License-Identifier: GPL-2.0

//! Events that need a register besides the counter's: which, and what it may hold.
//!
//! Such an event's `attr.config1` is the register's value. Where two events share the register,
//! they have to agree on the value. A model with two offcore response registers lets an event that
//! is about one use the other, by the event code that belongs to that one. Which it gets is decided
//! anew whenever events come: [`register_plan`](super::register_plan).

use super::constraint::Constraint;
use crate::logic::regs::event_select::EventSelect;

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

/// One line of a model's table: this event, this register, these bits of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraRegisterEvent {
    code: u64,
    register: ExtraRegister,
    valid: u64,
}

impl ExtraRegisterEvent {
    const fn new(code: u64, register: ExtraRegister, valid: u64) -> Self {
        assert!(
            code & !EventSelect::CODE == 0,
            "more than an event code and a unit mask"
        );
        Self {
            code,
            register,
            valid,
        }
    }

    /// The event `code` (event code and unit mask) needs MSR_OFFCORE_RSP_0, of which `valid` are
    /// the bits that exist.
    pub const fn offcore_response_0(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::OffcoreResponse0, valid)
    }

    /// As [`offcore_response_0`](Self::offcore_response_0), with MSR_OFFCORE_RSP_1.
    pub const fn offcore_response_1(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::OffcoreResponse1, valid)
    }

    /// The event `code` needs MSR_PEBS_LD_LAT_THRESHOLD, 16 bits everywhere.
    pub const fn load_latency(code: u64) -> Self {
        Self::new(code, ExtraRegister::LoadLatency, 0xffff)
    }

    /// As [`offcore_response_0`](Self::offcore_response_0), with MSR_PEBS_FRONTEND.
    pub const fn frontend(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::Frontend, valid)
    }

    /// The register.
    pub const fn register(&self) -> ExtraRegister {
        self.register
    }

    /// The bits of the register that may be set. `attr.config1` with another one is EINVAL
    /// (`x86_pmu_extra_regs()`, `arch/x86/events/core.c:167-190`).
    pub const fn valid(&self) -> u64 {
        self.valid
    }

    /// Whether the register takes `config1`.
    pub const fn accepts(&self, config1: u64) -> bool {
        config1 & !self.valid == 0
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

/// Why an event cannot have the register that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoExtraRegister {
    /// The register does not take the value. EINVAL.
    Value,
    /// This machine does not have the register: a hypervisor leaves it out. ENXIO.
    Absent,
}

/// A model's events that need an extra register.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::event_select::EventSelect;
/// use logic::sched::extra_register::ExtraRegister;
/// use logic::model::HASWELL;
///
/// let offcore = EventSelect::from_bits(0x41_01bb);
/// let needed = HASWELL.extra_register_events.find(offcore).unwrap();
/// assert_eq!(needed.register(), ExtraRegister::OffcoreResponse1);
/// assert!(needed.accepts(0x3f_ffc0_0001));
/// assert!(!needed.accepts(1 << 12));
///
/// // The other register would do, by its own event code.
/// let value = 0x3f_ffc0_0001;
/// let required = HASWELL.extra_register_events.requirement(offcore, value, |_| true);
/// let alternative = required.unwrap().unwrap().alternative.unwrap();
/// assert_eq!(alternative, ExtraRegister::OffcoreResponse0);
/// let select = HASWELL.extra_register_events.select_for(offcore, alternative);
/// assert_eq!(select.bits(), 0x41_01b7);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExtraRegisters(&'static [ExtraRegisterEvent]);

impl ExtraRegisters {
    /// For models without any.
    pub const NONE: Self = Self(&[]);

    /// The table, if no event is in it twice, and none of two registers that stand in for each
    /// other: one event code each. A wrong one does not compile.
    ///
    /// # Panics
    ///
    /// When the table is wrong; so call it in a constant.
    pub const fn checked(table: &'static [ExtraRegisterEvent]) -> Self {
        let mut i = 0;
        while i < table.len() {
            let mut j = 0;
            while j < i {
                assert!(table[i].code != table[j].code, "an event twice");
                assert!(
                    table[i].register.twin().is_none()
                        || table[i].register as u8 != table[j].register as u8,
                    "an offcore response register with two events"
                );
                j += 1;
            }
            i += 1;
        }
        Self(table)
    }

    /// What the event `select` needs, if anything. Event code and unit mask decide.
    pub fn find(&self, select: EventSelect) -> Option<&'static ExtraRegisterEvent> {
        self.0.iter().find(|entry| entry.code == select.code())
    }

    /// What the event `select` with the given `attr.config1` needs, if anything. `exists` says
    /// which registers this machine has.
    ///
    /// Mainline: `x86_pmu_extra_regs()`, `arch/x86/events/core.c:167`, and `intel_alt_er()`,
    /// `arch/x86/events/intel/core.c:4066`.
    ///
    /// # Errors
    ///
    /// Why the event cannot be had, the value first.
    pub fn requirement(
        &self,
        select: EventSelect,
        config1: u64,
        exists: impl Fn(ExtraRegister) -> bool,
    ) -> Result<Option<Requirement>, NoExtraRegister> {
        let Some(entry) = self.find(select) else {
            return Ok(None);
        };
        if !entry.accepts(config1) {
            return Err(NoExtraRegister::Value);
        }
        if !exists(entry.register) {
            return Err(NoExtraRegister::Absent);
        }
        let takes_it = |twin: &ExtraRegister| {
            self.event_of(*twin)
                .is_some_and(|entry| entry.accepts(config1) && exists(*twin))
        };
        Ok(Some(Requirement {
            value: config1,
            register: entry.register,
            alternative: entry.register.twin().filter(takes_it),
        }))
    }

    /// The event `select` by the event code that goes with `register`, which it
    /// [requires](Self::requirement).
    pub fn select_for(&self, select: EventSelect, register: ExtraRegister) -> EventSelect {
        let own = self.find(select).map(ExtraRegisterEvent::register);
        match self.event_of(register) {
            Some(entry) if own != Some(register) => select.with_code(entry.code),
            _ => select,
        }
    }

    /// The event that is about `register`.
    fn event_of(&self, register: ExtraRegister) -> Option<&'static ExtraRegisterEvent> {
        self.0.iter().find(|entry| entry.register == register)
    }

    /// The registers that events need, once for each of them.
    pub fn registers(&self) -> impl Iterator<Item = ExtraRegister> {
        self.0.iter().map(ExtraRegisterEvent::register)
    }

    /// Whether some event needs `register`.
    pub fn has(&self, register: ExtraRegister) -> bool {
        self.0.iter().any(|entry| entry.register == register)
    }

    /// Whether the event `code`, event code and unit mask, needs a register.
    pub fn contains(&self, code: &u64) -> bool {
        self.0.iter().any(|entry| entry.code == *code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        model::{first_match, GOLDEN_COVE, GOLDMONT, HASWELL, INTEL_MODELS, NEHALEM, WESTMERE},
        regs::counter::CounterMask,
    };

    fn select(code: u64) -> EventSelect {
        EventSelect::from_bits(code)
    }

    #[test]
    #[should_panic(expected = "an offcore response register with two events")]
    fn check_refuses_two_codes_for_one_offcore_register() {
        const TABLE: &[ExtraRegisterEvent] = &[
            ExtraRegisterEvent::offcore_response_0(0x01b7, 0x7),
            ExtraRegisterEvent::offcore_response_0(0x02b7, 0x7),
        ];
        ExtraRegisters::checked(TABLE);
    }

    #[test]
    fn requirements() {
        use ExtraRegister::{Frontend, LoadLatency, OffcoreResponse0, OffcoreResponse1};
        let all = 0x76_0005_ffbf;
        for (model, code, config1, expected) in [
            (&HASWELL, 0x00c4, u64::MAX, Ok(None)),
            (
                &HASWELL,
                0x01b7,
                1,
                Ok(Some((OffcoreResponse0, Some(OffcoreResponse1)))),
            ),
            (
                &HASWELL,
                0x01bb,
                0,
                Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
            ),
            (&HASWELL, 0x01b7, 1 << 12, Err(NoExtraRegister::Value)),
            (&HASWELL, 0x01cd, 0xffff, Ok(Some((LoadLatency, None)))),
            (&HASWELL, 0x01cd, 0x1_0000, Err(NoExtraRegister::Value)),
            (&HASWELL, 0x02b7, u64::MAX, Ok(None)),
            (&NEHALEM, 0x01b7, 1, Ok(Some((OffcoreResponse0, None)))),
            (&NEHALEM, 0x01bb, u64::MAX, Ok(None)),
            (
                &WESTMERE,
                0x01bb,
                1,
                Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
            ),
            // What the second register does not take stays on the first.
            (&GOLDMONT, 0x01b7, all, Ok(Some((OffcoreResponse0, None)))),
            (
                &GOLDMONT,
                0x02b7,
                1,
                Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
            ),
            (&GOLDEN_COVE, 0x04c2, 8, Ok(Some((Frontend, None)))),
            (&GOLDEN_COVE, 0x04c2, 7, Err(NoExtraRegister::Value)),
        ] {
            let found = model
                .extra_register_events
                .requirement(select(code), config1, |_| true)
                .map(|required| required.map(|it| (it.register, it.alternative)));
            assert_eq!(found, expected, "{} {code:#x} {config1:#x}", model.name);
        }
    }

    #[test]
    fn absent_registers() {
        use ExtraRegister::{OffcoreResponse0, OffcoreResponse1};
        let table = HASWELL.extra_register_events;
        let only = |register| move |asked| asked == register;
        let first = table.requirement(select(0x01b7), 1, only(OffcoreResponse0));
        assert_eq!(first.unwrap().unwrap().alternative, None);
        let second = table.requirement(select(0x01b7), 1, only(OffcoreResponse1));
        assert_eq!(second, Err(NoExtraRegister::Absent));
        // The value is looked at first.
        let wrong = table.requirement(select(0x01b7), 1 << 12, |_| false);
        assert_eq!(wrong, Err(NoExtraRegister::Value));
    }

    #[test]
    fn the_code_follows_the_register() {
        use ExtraRegister::{Frontend, OffcoreResponse0, OffcoreResponse1};
        for (model, code, register, expected) in [
            (&HASWELL, 0x0113_01b7, OffcoreResponse0, 0x0113_01b7),
            (&HASWELL, 0x0113_01b7, OffcoreResponse1, 0x0113_01bb),
            (&HASWELL, 0x01bb, OffcoreResponse0, 0x01b7),
            (&GOLDMONT, 0x01b7, OffcoreResponse1, 0x02b7),
            (&GOLDEN_COVE, 0x012b, OffcoreResponse0, 0x012a),
            // Several events are about this one.
            (&GOLDEN_COVE, 0x04c2, Frontend, 0x04c2),
        ] {
            let found = model
                .extra_register_events
                .select_for(select(code), register);
            assert_eq!(found.bits(), expected, "{} {code:#x}", model.name);
        }
    }

    /// So an event may change its code without being constrained anew.
    #[test]
    fn twins_have_the_same_constraint() {
        for model in INTEL_MODELS {
            let table = model.extra_register_events;
            let counters = |register| {
                let entry = table.event_of(register)?;
                let found = first_match(model.event_constraints, select(entry.code));
                Some(found.map(|entry| entry.resolve(CounterMask::first_gp(8)).counters))
            };
            if let Some(second) = counters(ExtraRegister::OffcoreResponse1) {
                let first = counters(ExtraRegister::OffcoreResponse0);
                assert_eq!(first, Some(second), "{}", model.name);
            }
        }
    }

    #[test]
    #[should_panic(expected = "an event twice")]
    fn check_refuses_an_event_twice() {
        const TABLE: &[ExtraRegisterEvent] = &[
            ExtraRegisterEvent::frontend(0x01c6, 0x7),
            ExtraRegisterEvent::load_latency(0x01cd),
            ExtraRegisterEvent::frontend(0x01c6, 0x8),
        ];
        ExtraRegisters::checked(TABLE);
    }

    #[test]
    fn numbers() {
        for (index, register) in ExtraRegister::ALL.into_iter().enumerate() {
            assert_eq!(register.index(), index);
            assert_eq!(ExtraRegister::from_index(index), Some(register));
        }
        assert_eq!(ExtraRegister::from_index(4), None);
    }
}
