// SPDX-License-Identifier: GPL-2.0

//! Decodes AMD's event selects: what PERF_CTL counts on a model.
//!
//! - Instructions, branches, loads, stores, prefetches and page walks are exact.
//! - Cycles and reference cycles are defined in [`crate::event`].
//! - Every other event of the list counts at its own rate ([`declared_rate`]).
//! - Events that the list does not have, or not for this counter, count nothing.

use super::Select;
use crate::event::amd::{
    Event,
    Meaning, //
};
use crate::event::{
    CYCLES,
    REFERENCE_CYCLES,
    WHOLE, //
};
use crate::share::{
    Share,
    Source, //
};

/// One in this many branches is mispredicted.
const MISPREDICTED: u32 = 32;
/// The denominator of declared rates.
const RATES: u32 = 1024;
/// Retired SSE and AVX FLOPs: more than a counter can add in one cycle, unless it is merged with
/// the next one (PPR, "Large Increment per Cycle Events").
const LARGE: u16 = 0x003;
/// EventSelect of the odd counter of a merged pair.
const MERGE: u16 = 0xfff;

/// Returns PERF_CTL.EventSelect.
fn event_code(value: u64) -> u16 {
    (value & 0xff) as u16 | ((value >> 24) & 0xf00) as u16
}

/// Returns whether this PERF_CTL selects an event of more increments per cycle than one counter can
/// add.
pub(crate) fn is_large(value: u64) -> bool {
    event_code(value) == LARGE
}

/// Returns whether this PERF_CTL merges its counter with the one before it.
pub(crate) fn is_merge(value: u64) -> bool {
    event_code(value) == MERGE
}

/// Returns whether this PERF_CTL selects an event of the northbridge (family 10h).
pub(crate) fn is_northbridge(value: u64) -> bool {
    event_code(value) & 0xe0 == 0xe0 && !is_merge(value)
}

/// Returns what counter `counter` counts with this PERF_CTL.
pub(crate) fn source(list: &[Event], value: u64, counter: usize) -> Source {
    let select = Select {
        event: event_code(value),
        ..Select::from_register(value)
    };
    match list.binary_search_by_key(&select.event, |line| line.event) {
        Ok(index) if (list[index].counters >> counter) & 1 != 0 => {
            select.masked(meant(select.event, select.umask, list[index].meaning))
        }
        _ => Source::Nothing,
    }
}

/// Returns what an event counts with this UnitMask, given its meaning.
fn meant(event: u16, umask: u8, meaning: Meaning) -> Source {
    let units = |mask: u8| (0..8).filter(move |unit| mask & (1 << unit) != 0);
    match meaning {
        Meaning::Cycles => CYCLES,
        Meaning::ReferenceCycles => REFERENCE_CYCLES,
        Meaning::All(kinds) => share(kinds, WHOLE, WHOLE),
        Meaning::Mispredicted(some, every) => {
            Source::Share(Share::new(some, 0, 1, MISPREDICTED).and_each(every))
        }
        Meaning::Kinds(kinds) => {
            let mut selected: Vec<usize> =
                units(umask).flat_map(|unit| kinds[unit]).copied().collect();
            selected.dedup();
            let numerator = if selected.is_empty() { 0 } else { WHOLE };
            share(&selected, numerator, WHOLE)
        }
        Meaning::Part(kinds, part) => share(kinds, part, WHOLE),
        Meaning::Parts(kinds, parts) => {
            share(kinds, units(umask).map(|unit| parts[unit]).sum(), WHOLE)
        }
        Meaning::Rate(kinds, 0) => share(kinds, declared_rate(event, 0), RATES),
        Meaning::Rate(kinds, documented) => share(
            kinds,
            units(umask & documented)
                .map(|unit| declared_rate(event, unit as u32))
                .sum(),
            RATES,
        ),
    }
}

/// Returns `numerator` events of each `denominator` occurrences of these kinds.
fn share(kinds: &[usize], numerator: u32, denominator: u32) -> Source {
    match numerator {
        0 => Source::Nothing,
        // A whole number of events per occurrence needs no remainder.
        some if some % denominator == 0 => {
            Source::Share(Share::new(kinds, 0, some / denominator, 1))
        }
        some => Source::Share(Share::new(kinds, 0, some, denominator)),
    }
}

/// Returns an arbitrary but fixed rate for a unit of an event: 1 to 63 of 1024 occurrences.
pub(crate) fn declared_rate(event: u16, unit: u32) -> u32 {
    (37 * u32::from(event) + 11 * unit) % 63 + 1
}
