// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::cores::CoreType;
use crate::logic::regs::counter::CounterMask;
use crate::logic::regs::event_select::EventSelect;

#[test]
fn no_processor_has_two_models() {
    for vendor in [Vendor::Intel, Vendor::Amd, Vendor::Hygon] {
        for family in 0..=0x20 {
            for number in 0..=0xff {
                let [only, small, big] =
                    [CoreType::Only, CoreType::Small, CoreType::Big].map(|it| {
                        let is_it = |model: &&&Model| model.is_for(vendor, family, number, it);
                        models().filter(is_it).count()
                    });
                let found = (only, small, big);
                assert!(
                    matches!(found, (0 | 1, 0, 0) | (0, 1, 1)),
                    "{vendor:?} {family:#x} {number:#x}: {found:?}"
                );
            }
        }
    }
    for model in models() {
        assert!(!model.cpus.is_empty(), "{}", model.name);
    }
}

/// Returns the event selects that distinguish the entries of `table`: all codes, AMD's codes with
/// one of the upper four bits, and the entries' own codes, with unit masks of several bits and with
/// a counter mask.
fn selects(table: &[EventConstraint]) -> impl Iterator<Item = EventSelect> + '_ {
    let amds = (0..=0xff).map(|code| code | (1 << 32));
    let own = table.iter().map(EventConstraint::code);
    let own = own.flat_map(|code| [code, code | 0x0300, code | 0x1100, code | (1 << 24)]);
    let all = (0..=0xffff).chain(amds).chain(own);
    all.map(EventSelect::from_bits)
}

/// The compile-time check compares entries in pairs. This test finds earlier entries that shadow a
/// later one together.
#[test]
fn every_entry_is_the_first_match_of_some_event() {
    for model in models().chain([&&GENERIC, &&GENERIC_V5]) {
        for (i, entry) in model.event_constraints.iter().enumerate() {
            let reached = selects(core::slice::from_ref(entry)).any(|select| {
                first_match(model.event_constraints, select)
                    .is_some_and(|found| core::ptr::eq(found, entry))
            });
            assert!(reached, "{} entry {i}", model.name);
        }
    }
}

#[test]
fn the_index_leaves_out_no_match() {
    for model in models().chain([&&GENERIC, &&GENERIC_V5]) {
        let table = model.event_constraints;
        let index = EventIndex::of(table);
        let mut ends = [(usize::MAX, 0); 256];
        for select in selects(table) {
            let (first, end) = &mut ends[(select.bits() & EventSelect::EVENT) as usize];
            for (i, _) in table
                .iter()
                .enumerate()
                .filter(|(_, it)| it.matches(select))
            {
                (*first, *end) = ((*first).min(i), (*end).max(i + 1));
            }
        }
        for (code, (first, end)) in (0..=0xff).zip(ends) {
            let range = index.range(EventSelect::event(code, 0));
            assert_eq!(range, first.min(end)..end, "{} {code:#x}", model.name);
        }
    }
}

#[test]
fn corrupting_events_come_with_an_erratum() {
    for model in models() {
        let corrupting = (0..=0xff).any(|code| {
            first_match(model.event_constraints, EventSelect::from_bits(code))
                .is_some_and(|entry| entry.resolve(CounterMask::first_gp(8)).corrupting)
        });
        assert_eq!(model.ht_erratum.is_some(), corrupting, "{}", model.name);
    }
}
