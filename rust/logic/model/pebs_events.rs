// SPDX-License-Identifier: GPL-2.0

//! The events that can be sampled precisely (PEBS), and their counters.
//!
//! With `precise_ip`, the processor itself writes the sample. Each model can do so for some events
//! only, or not on every counter that counts them. Each has a table of these events, which
//! [`Pmu::precise_constraint`](crate::logic::pmu::Pmu::precise_constraint) looks up.
//!
//! Mainline: `intel_pebs_constraints()`, `arch/x86/events/intel/ds.c`, and the tables before it.

use super::EventConstraint;
use crate::logic::regs::{
    counter::CounterMask,
    event_select::EventSelect, //
};

/// Contents of the data source field of an event's PEBS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PebsData {
    /// Nothing.
    None,
    /// Where a load's data came from and how long it took; up to Ice Lake on counter 3 or any.
    LoadLatency,
    /// The same of a store (Golden Cove).
    StoreLatency,
    /// Where a store's data went (Sandy Bridge, Ivy Bridge).
    Store,
    /// Address and data source of a load (Haswell and later).
    Load,
    /// Address of a store (Haswell and later): whether it hit the first level cache.
    StoreAddress,
    /// An address, of a load or a store (Haswell and Broadwell: UOPS_RETIRED.ALL).
    Address,
}

/// One line of a model's table: these events can be precise, on these counters.
///
/// Edge, inversion, counter mask, any-thread and the in_tx filters have to be as in the line's
/// code, in which they are 0 mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PebsEvent {
    constraint: EventConstraint,
    data: PebsData,
}

impl PebsEvent {
    /// What of an event select, besides the code, has to be as in the line (`X86_ALL_EVENT_FLAGS`,
    /// `arch/x86/include/asm/perf_event.h`).
    const FLAGS: u64 = EventSelect::EDGE
        | EventSelect::INV
        | EventSelect::CMASK
        | EventSelect::ANY
        | EventSelect::PIN_CONTROL
        | EventSelect::IN_TX
        | EventSelect::IN_TX_CHECKPOINTED;

    const fn new(first: u64, last: u64, mask: u64, counters: u64) -> Self {
        Self {
            constraint: EventConstraint::masked(first, last, mask, counters),
            data: PebsData::None,
        }
    }

    /// Exactly this event: event code, unit mask, flags.
    pub const fn exact(code: u64, counters: u64) -> Self {
        Self::new(code, code, EventSelect::CODE | Self::FLAGS, counters)
    }

    /// Every event with this event code.
    pub const fn event(code: u8, counters: u64) -> Self {
        let code = code as u64;
        Self::new(code, code, EventSelect::EVENT | Self::FLAGS, counters)
    }

    /// Every event with an event code from `first` to `last`, both included.
    pub const fn events(first: u8, last: u8, counters: u64) -> Self {
        assert!(first < last, "an empty range");
        let mask = EventSelect::EVENT | Self::FLAGS;
        Self::new(first as u64, last as u64, mask, counters)
    }

    /// Every event with this event code, with whatever flags.
    pub const fn event_with_any_flags(code: u8, counters: u64) -> Self {
        let code = code as u64;
        Self::new(code, code, EventSelect::EVENT, counters)
    }

    /// Every event without flags. An event that cannot be precise counts nothing, or is sampled
    /// with the skid of an ordinary interrupt.
    pub const fn any(counters: u64) -> Self {
        Self::new(0, 0, Self::FLAGS, counters)
    }

    /// Returns the records of the line's events have `data`.
    #[must_use]
    pub const fn with(mut self, data: PebsData) -> Self {
        self.data = data;
        self
    }

    /// Returns the contents of the records' data source field.
    pub const fn data(&self) -> PebsData {
        self.data
    }

    /// Returns the line's constraint.
    pub const fn constraint(&self) -> &EventConstraint {
        &self.constraint
    }
}

/// A model's precise events.
#[derive(Clone, Copy, Debug)]
pub struct PebsEvents {
    lines: &'static [PebsEvent],
    and_others: bool,
}

impl PebsEvents {
    /// For models without any.
    pub const NONE: Self = Self {
        lines: &[],
        and_others: false,
    };

    /// For models on which every event can be precise, on the counters that count it ("extended
    /// PEBS", `PMU_FL_PEBS_ALL`).
    pub const ALL: Self = Self {
        lines: &[],
        and_others: true,
    };

    /// Returns the table, if it is right for a model that can have `counters`: every line has
    /// counters, none that the model has not, and is shadowed by no earlier one. A wrong one does
    /// not compile.
    ///
    /// # Panics
    ///
    /// When the table is wrong; so call it in a constant.
    pub const fn checked(counters: CounterMask, lines: &'static [PebsEvent]) -> Self {
        let mut i = 0;
        while i < lines.len() {
            let line = &lines[i].constraint;
            assert!(
                line.is_within(counters),
                "a counter that the model does not have"
            );
            let mut j = 0;
            while j < i {
                assert!(
                    !lines[j].constraint.covers(line),
                    "a line that an earlier one shadows"
                );
                j += 1;
            }
            i += 1;
        }
        Self {
            lines,
            and_others: false,
        }
    }

    /// Returns the same, and every event that is not in it, on the counters that count it.
    #[must_use]
    pub const fn and_others(mut self) -> Self {
        self.and_others = true;
        self
    }

    /// Returns the first line that matches `select`.
    pub fn find(&self, select: EventSelect) -> Option<&'static PebsEvent> {
        self.lines
            .iter()
            .find(|line| line.constraint.matches(select))
    }

    /// Returns whether an event that is not in the table can be precise.
    pub const fn has_others(&self) -> bool {
        self.and_others
    }

    /// Returns the lines.
    pub const fn lines(&self) -> &'static [PebsEvent] {
        self.lines
    }
}

/// The counters of events with a `precise_ip` of 3, whose samples fall evenly on instructions.
///
/// Mainline: `icl_get_event_constraints()` and what follows, `glc_get_event_constraints()`,
/// `glp_get_event_constraints()`, `arch/x86/events/intel/core.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreciseDistribution {
    /// No counter of its own.
    AsOtherPrecise,
    /// Instructions on fixed counter 0; other events as with less precision.
    InstructionsOnFixed0,
    /// Instructions on fixed counter 0, everything else on counter 0.
    Fixed0AndCounter0,
    /// Everything on counter 0.
    Counter0,
}
