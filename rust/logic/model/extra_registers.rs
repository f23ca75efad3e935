// SPDX-License-Identifier: GPL-2.0

//! Tables of events that need an extra register, checked at compile time.

use super::demand::Requirement;
use crate::logic::regs::{
    event_select::EventSelect,
    extra_register::ExtraRegister, //
};

/// An entry of a model's table: an event, its register, and the bits of it that the event may set.
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

    /// Makes an entry for the event `code` (event code and unit mask), which needs
    /// MSR_OFFCORE_RSP_0. `valid` are the existing bits of this register.
    pub const fn offcore_response_0(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::OffcoreResponse0, valid)
    }

    /// Makes an entry for the event `code`, which needs MSR_OFFCORE_RSP_1. `valid` are the existing
    /// bits of this register.
    pub const fn offcore_response_1(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::OffcoreResponse1, valid)
    }

    /// Makes an entry for the event `code`, which needs MSR_PEBS_LD_LAT_THRESHOLD. This register
    /// has 16 bits on all models.
    pub const fn load_latency(code: u64) -> Self {
        Self::new(code, ExtraRegister::LoadLatency, 0xffff)
    }

    /// Makes an entry for the event `code`, which needs MSR_PEBS_FRONTEND. `valid` are the bits of
    /// this register that this event may set.
    pub const fn frontend(code: u64, valid: u64) -> Self {
        Self::new(code, ExtraRegister::Frontend, valid)
    }

    /// Makes an entry for the event `code`, which needs MSR_SNOOP_RSP_0. The valid bits are not
    /// documented: any may be set.
    pub const fn snoop_response_0(code: u64) -> Self {
        Self::new(code, ExtraRegister::SnoopResponse0, u64::MAX)
    }

    /// Makes an entry for the event `code`, which needs MSR_SNOOP_RSP_1.
    pub const fn snoop_response_1(code: u64) -> Self {
        Self::new(code, ExtraRegister::SnoopResponse1, u64::MAX)
    }

    /// Returns the register.
    pub const fn register(&self) -> ExtraRegister {
        self.register
    }

    /// Returns the bits of the register that may be set. Other bits in `attr.config1` are refused
    /// with EINVAL (`x86_pmu_extra_regs()`, `arch/x86/events/core.c`).
    pub const fn valid(&self) -> u64 {
        self.valid
    }

    /// Returns whether the register accepts `config1`.
    pub const fn accepts(&self, config1: u64) -> bool {
        config1 & !self.valid == 0
    }
}

/// The reason why an event cannot have the register that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoExtraRegister {
    /// The register does not accept the value. EINVAL.
    Value,
    /// The machine does not have the register, because a hypervisor hides it. ENXIO.
    Absent,
}

/// A model's events that need an extra register.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::event_select::EventSelect;
/// use logic::regs::extra_register::ExtraRegister;
/// use logic::model::HASWELL;
///
/// let offcore = EventSelect::from_bits(0x41_01bb);
/// let needed = HASWELL.extra_register_events.find(offcore).unwrap();
/// assert_eq!(needed.register(), ExtraRegister::OffcoreResponse1);
/// assert!(needed.accepts(0x3f_ffc0_0001));
/// assert!(!needed.accepts(1 << 12));
///
/// // The other register can be used as well, with its own event code.
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
    /// The table of models without such events.
    pub const NONE: Self = Self(&[]);

    /// Returns the table after two checks: no event occurs twice, and each of the two offcore
    /// response registers has at most one event. A wrong table does not compile.
    ///
    /// # Panics
    ///
    /// If the table is wrong. In a constant, this is a compile error.
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

    /// Returns the entry of the event `select`, if any. Only event code and unit mask are compared.
    pub fn find(&self, select: EventSelect) -> Option<&'static ExtraRegisterEvent> {
        self.0.iter().find(|entry| entry.code == select.code())
    }

    /// Returns the requirement of the event `select` with the given `attr.config1`, if any.
    /// `exists` returns whether the machine has a register.
    ///
    /// Mainline: `x86_pmu_extra_regs()`, `arch/x86/events/core.c`, and `intel_alt_er()`,
    /// `arch/x86/events/intel/core.c`.
    ///
    /// # Errors
    ///
    /// The reason why the event cannot be counted; the value is checked first.
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

    /// Returns `select` with the event code and the unit mask for `register`, which is the register
    /// or the alternative of its [requirement](Self::requirement).
    pub fn select_for(&self, select: EventSelect, register: ExtraRegister) -> EventSelect {
        let own = self.find(select).map(ExtraRegisterEvent::register);
        match self.event_of(register) {
            Some(entry) if own != Some(register) => select.with_code(entry.code),
            _ => select,
        }
    }

    /// Returns the first event that needs `register`.
    fn event_of(&self, register: ExtraRegister) -> Option<&'static ExtraRegisterEvent> {
        self.0.iter().find(|entry| entry.register == register)
    }

    /// Returns the registers that events need, once for each event.
    pub fn registers(&self) -> impl Iterator<Item = ExtraRegister> {
        self.0.iter().map(ExtraRegisterEvent::register)
    }

    /// Returns whether some event needs `register`.
    pub fn has(&self, register: ExtraRegister) -> bool {
        self.0.iter().any(|entry| entry.register == register)
    }

    /// Returns whether the event `code` (event code and unit mask) needs a register.
    pub fn contains(&self, code: &u64) -> bool {
        self.0.iter().any(|entry| entry.code == *code)
    }
}

#[cfg(test)]
mod tests;
