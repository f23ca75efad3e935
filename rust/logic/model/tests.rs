// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::regs::event_select::EventSelect;

#[test]
fn no_processor_has_two_models() {
    for vendor in [Vendor::Intel, Vendor::Amd, Vendor::Hygon] {
        for family in 0..=0x20 {
            for number in 0..=0xff {
                let is_it = |model: &&&Model| model.is_for(vendor, family, number);
                let count = models().filter(is_it).count();
                assert!(count <= 1, "{vendor:?} {family:#x} {number:#x}");
            }
        }
    }
    for model in models() {
        assert!(!model.cpus.is_empty(), "{}", model.name);
    }
}

/// The compile-time check compares entries in pairs. This one sees several earlier entries
/// that shadow a later one together.
#[test]
fn every_entry_is_the_first_match_of_some_event() {
    for model in models().chain([&&GENERIC, &&GENERIC_V5]) {
        for (i, entry) in model.event_constraints.iter().enumerate() {
            let with_counter_mask = entry.code() | (1 << 24);
            // AMD's codes with one of the upper four bits, and unit masks that its tables tell
            // apart.
            let amds = (0..=0xff).map(|code| code | (1 << 32));
            let umasks = [0x0300, 0x1100].map(|umask| entry.code() | umask);
            let codes = (0..=0xffff).chain(amds).chain(umasks);
            let codes = codes.chain([entry.code(), with_counter_mask]);
            let reached = codes.into_iter().any(|code| {
                first_match(model.event_constraints, EventSelect::from_bits(code))
                    .is_some_and(|found| core::ptr::eq(found, entry))
            });
            assert!(reached, "{} entry {i}", model.name);
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
