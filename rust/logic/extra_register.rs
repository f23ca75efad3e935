// SPDX-License-Identifier: GPL-2.0

//! Events that need a register besides the counter's: which, and what it may hold.
//!
//! Such an event's `attr.config1` is the register's value. Where two events share the register,
//! they have to agree on the value; a model with two offcore response registers lets an event that
//! is about one use the other.

use super::event_select::EventSelect;

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
    /// The register's address. SDM vol. 4; `arch/x86/include/asm/msr-index.h`.
    pub const fn msr(self) -> u32 {
        match self {
            Self::OffcoreResponse0 => 0x1a6,
            Self::OffcoreResponse1 => 0x1a7,
            Self::LoadLatency => 0x3f6,
            Self::Frontend => 0x3f7,
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

/// A model's events that need an extra register.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::event_select::EventSelect;
/// use logic::extra_register::ExtraRegister;
/// use logic::model::HASWELL;
///
/// let offcore = EventSelect::from_bits(0x41_01bb);
/// let needed = HASWELL.extra_register_events.find(offcore).unwrap();
/// assert_eq!(needed.register(), ExtraRegister::OffcoreResponse1);
/// assert!(needed.accepts(0x3f_ffc0_0001));
/// assert!(!needed.accepts(1 << 12));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExtraRegisters(&'static [ExtraRegisterEvent]);

impl ExtraRegisters {
    /// For models without any.
    pub const NONE: Self = Self(&[]);

    /// The table, if no event is in it twice. A wrong one does not compile.
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

    /// Whether the event `code`, event code and unit mask, needs a register.
    pub fn contains(&self, code: &u64) -> bool {
        self.0.iter().any(|entry| entry.code == *code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn registers_are_where_the_manual_has_them() {
        let offcore = ExtraRegister::OffcoreResponse0.msr()..=ExtraRegister::OffcoreResponse1.msr();
        assert_eq!(offcore, 0x1a6..=0x1a7);
        let pebs = ExtraRegister::LoadLatency.msr()..=ExtraRegister::Frontend.msr();
        assert_eq!(pebs, 0x3f6..=0x3f7);
    }
}
