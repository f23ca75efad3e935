// SPDX-License-Identifier: GPL-2.0

//! The events that can be sampled precisely (PEBS), and their counters.
//!
//! With `precise_ip`, the processor itself writes the sample. Most models support this only for
//! some events, or not on every counter that counts them. They have a table of these events, in
//! which [`PmuInfo::precise_constraint`](crate::logic::pmu::PmuInfo::precise_constraint) looks up
//! an event.
//!
//! Mainline: `intel_pebs_constraints()`, `arch/x86/events/intel/ds.c`, and the tables before it.

use super::EventConstraint;
use crate::logic::regs::{
    counter::CounterMask,
    event_select::EventSelect, //
};

/// The format of the data source field in an event's PEBS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PebsData {
    /// Nothing.
    None,
    /// The origin of a load's data, and its latency.
    LoadLatency,
    /// The target of a store's data, and its latency (Golden Cove and later, Gracemont).
    StoreLatency,
    /// The target of a store's data (Sandy Bridge, Ivy Bridge).
    Store,
    /// Nothing. The record has the address of a load (Haswell and later).
    Load,
    /// The hit or miss of a store in the first level cache. The record has the address of the store
    /// (Haswell and later).
    StoreAddress,
    /// Nothing. The record has an address, of a load or a store (Haswell and Broadwell:
    /// UOPS_RETIRED.ALL).
    Address,
}

/// An entry of a model's table: events that can be precise, and their counters.
///
/// The flags of an event select (edge, inversion, counter mask, any-thread, pin control and the
/// in_tx filters) have to be as in the entry's code, in which they are mostly 0, unless the entry
/// allows any flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PebsEvent {
    constraint: EventConstraint,
    data: PebsData,
}

impl PebsEvent {
    /// The bits of an event select, besides the code, that have to match the entry
    /// (`X86_ALL_EVENT_FLAGS`, `arch/x86/include/asm/perf_event.h`).
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

    /// Matches exactly this event: event code, unit mask, flags.
    pub const fn exact(code: u64, counters: u64) -> Self {
        Self::new(code, code, EventSelect::CODE | Self::FLAGS, counters)
    }

    /// Matches every event with this event code, without flags.
    pub const fn event(code: u8, counters: u64) -> Self {
        let code = code as u64;
        Self::new(code, code, EventSelect::EVENT | Self::FLAGS, counters)
    }

    /// Matches every event with an event code from `first` to `last`, both included, without flags.
    pub const fn events(first: u8, last: u8, counters: u64) -> Self {
        assert!(first < last, "a range of fewer than two codes");
        let mask = EventSelect::EVENT | Self::FLAGS;
        Self::new(first as u64, last as u64, mask, counters)
    }

    /// Matches every event with this event code, with any flags.
    pub const fn event_with_any_flags(code: u8, counters: u64) -> Self {
        let code = code as u64;
        Self::new(code, code, EventSelect::EVENT, counters)
    }

    /// Matches every event without flags. If such an event cannot be precise, it counts nothing, or
    /// samples with the skid of an ordinary interrupt.
    pub const fn any(counters: u64) -> Self {
        Self::new(0, 0, Self::FLAGS, counters)
    }

    /// Sets the format of the records' data source field.
    #[must_use]
    pub const fn with(mut self, data: PebsData) -> Self {
        self.data = data;
        self
    }

    /// Returns the format of the records' data source field.
    pub const fn data(&self) -> PebsData {
        self.data
    }

    /// Returns the entry's constraint.
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
    /// For models without precise events.
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

    /// Returns the table, checked for a model that can have `counters`: every entry has counters,
    /// all of them among the model's, and is not shadowed by an earlier one. A wrong table does not
    /// compile.
    ///
    /// # Panics
    ///
    /// If the table is wrong; so call it in a constant.
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

    /// Adds all events that are not in the table, on the counters that count them.
    #[must_use]
    pub const fn and_others(mut self) -> Self {
        self.and_others = true;
        self
    }

    /// Returns the first entry that matches `select`.
    pub fn find(&self, select: EventSelect) -> Option<&'static PebsEvent> {
        self.lines
            .iter()
            .find(|line| line.constraint.matches(select))
    }

    /// Returns whether an event that is not in the table can be precise.
    pub const fn has_others(&self) -> bool {
        self.and_others
    }

    /// Returns the entries.
    pub const fn lines(&self) -> &'static [PebsEvent] {
        self.lines
    }
}

/// The counters of events with a `precise_ip` of 3, whose samples are evenly distributed over
/// instructions.
///
/// Mainline: `icl_get_event_constraints()`, `glc_get_event_constraints()`,
/// `glp_get_event_constraints()`, `tnt_get_event_constraints()`, `cmt_get_event_constraints()`,
/// `arch/x86/events/intel/core.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreciseDistribution {
    /// None, or another event has it ([`CyclesAlias::has_prec_dist`]).
    ///
    /// [`CyclesAlias::has_prec_dist`]: crate::logic::model::CyclesAlias::has_prec_dist
    AsOtherPrecise,
    /// Every counter that samples precisely does so with the maximum precision (`pebs_prec_dist`
    /// without constraints of its own).
    OnEveryCounter,
    /// Instructions on fixed counter 0; other events as with lower precision.
    InstructionsOnFixed0,
    /// Instructions on fixed counter 0, all other events on counter 0, if it can count them
    /// precisely.
    Fixed0AndCounter0,
    /// All events on counter 0.
    Counter0,
    /// Instructions on fixed counter 0 or counter 0, all other events on counter 0.
    Fixed0OrCounter0,
    /// Instructions on fixed counter 0, counter 0 or counter 1, all other events on those of
    /// counters 0 and 1 that can count them precisely.
    Fixed0OrCounters0And1,
}
