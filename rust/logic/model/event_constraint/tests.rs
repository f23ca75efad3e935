// SPDX-License-Identifier: GPL-2.0

use super::*;

const HASWELL_HT: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

fn select(bits: u64) -> EventSelect {
    EventSelect::from_bits(bits)
}

#[test]
fn ranges_include_both_ends_and_nothing_below() {
    let entry = EventConstraint::events(0x48, 0x56, 0xf);
    for (config, matches) in [
        (0x47, false),
        (0x48, true),
        (0xff50, true),
        (0x56, true),
        (0x57, false),
        (0x00, false),
    ] {
        assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
    }
}

#[test]
fn fixed_counter_is_ruled_out_by_every_filter() {
    let entry = EventConstraint::fixed(0x00c0, 0);
    for bit in 0..64 {
        let filter = 1u64 << bit;
        let harmless = EventSelect::USR
            | EventSelect::OS
            | EventSelect::INT
            | EventSelect::ANY
            | EventSelect::ENABLE
            | EventSelect::PIN_CONTROL
            | !((1 << 34) - 1);
        assert_eq!(
            entry.matches(select(0x00c0 ^ filter)),
            harmless & filter != 0,
            "bit {bit}"
        );
    }
}

#[test]
fn fixed_events_without_a_pseudo_code_may_use_gp_counters() {
    let cycles = EventConstraint::fixed(0x003c, 1).resolve(HASWELL_HT);
    assert_eq!(cycles.counters.bits(), 0x2_0000_000f);
    let reference = EventConstraint::fixed(0x0300, 2).resolve(HASWELL_HT);
    assert_eq!(reference.counters.bits(), 0x4_0000_0000);
}

#[test]
fn absent_counters_are_cut_off() {
    let no_fixed = CounterMask::first_gp(4);
    assert_eq!(
        EventConstraint::fixed(0x003c, 1).resolve(no_fixed).counters,
        no_fixed
    );
    let reference = EventConstraint::fixed(0x0300, 2).resolve(no_fixed);
    assert!(!reference.is_satisfiable());
    let eight = EventConstraint::event(0xa3, 0xff).resolve(no_fixed);
    assert_eq!(eight.counters.bits(), 0xf);
}

#[test]
fn flags_survive_resolving() {
    let entry = EventConstraint::corrupting_event(0xd0, 0xf).overlapping();
    let constraint = entry.resolve(HASWELL_HT);
    assert!(constraint.corrupting && constraint.overlap);
    assert!(
        !EventConstraint::event(0xd0, 0xf)
            .resolve(HASWELL_HT)
            .corrupting
    );
}

const EIGHT: CounterMask = CounterMask::first_gp(8);

#[test]
fn check_accepts_crossing_counters_with_the_flag() {
    checked(
        EIGHT,
        &[
            EventConstraint::event(0x01, 0x9).overlapping(),
            EventConstraint::event(0x02, 0x7),
        ],
    );
}

#[test]
#[should_panic(expected = "wrong overlap flag")]
fn check_refuses_crossing_counters_without_the_flag() {
    checked(
        EIGHT,
        &[
            EventConstraint::event(0x01, 0x9),
            EventConstraint::event(0x02, 0x7),
        ],
    );
}

#[test]
#[should_panic(expected = "wrong overlap flag")]
fn check_refuses_a_needless_overlap_flag() {
    checked(EIGHT, &[EventConstraint::event(0x01, 0x9).overlapping()]);
}

#[test]
#[should_panic(expected = "wrong overlap flag")]
fn check_refuses_a_flag_where_the_lowest_counter_is_the_right_one() {
    checked(
        EIGHT,
        &[
            EventConstraint::event(0x01, 0x0f).overlapping(),
            EventConstraint::event(0x02, 0xfe),
        ],
    );
}

#[test]
fn check_wants_the_flag_only_where_a_shared_counter_could_come_first() {
    for (own, other, misled) in [
        (0x0f, 0xfe, false),
        (0x09, 0x07, true),
        (0x09, 0x38, false),
        (0x1e, 0x2d, true), // 1, 2, 3, 4 against 0, 2, 3, 5
        (0x03, 0x0f, false),
        (0x03, 0x0c, false),
        (0xfe, 0x0f, false),
    ] {
        let [own, other] = [own, other].map(CounterMask::from_bits);
        assert_eq!(can_mislead(own, other), misled, "{own:?} {other:?}");
    }
}

#[test]
fn umask_bits() {
    let entry = EventConstraint::event_and_umask_bit(0x08a3, 0x4);
    for (config, matches) in [
        (0x08a3, true),
        (0x0ca3, true),
        (0xffa3, true),
        (0x04a3, false),
        (0x08a2, false),
    ] {
        assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
    }
}

#[test]
fn counter_mask_and_inversion() {
    let entry = EventConstraint::event_and_cmask(0x0180_010e, 0xf);
    for (config, matches) in [
        (0x0180_010e, true),
        (0x01a4_010e, true), // edge, any-thread
        (0x01b7_010e, true), // and the privilege levels
        (0x0000_010e, false),
        (0x0100_010e, false),
        (0x0080_010e, false),
        (0x0280_010e, false),
        (0x0180_020e, false),
    ] {
        assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
    }
    // Narrower than the event, so it comes first.
    checked(EIGHT, &[entry, EventConstraint::event(0x0e, 0xff)]);
}

#[test]
#[should_panic(expected = "shadows")]
fn check_refuses_filters_behind_the_whole_event() {
    checked(
        EIGHT,
        &[
            EventConstraint::event_and_umask(0x010e, 0xff),
            EventConstraint::event_and_cmask(0x0180_010e, 0xf),
        ],
    );
}

#[test]
#[should_panic(expected = "not one unit mask bit")]
fn check_refuses_several_unit_mask_bits() {
    EventConstraint::event_and_umask_bit(0x0ca3, 0x4);
}

#[test]
fn metrics_are_counters_of_their_own() {
    let entry = EventConstraint::metric(0x8200, 2);
    assert!(entry.is_metric() && entry.matches(select(0x8200)));
    assert!(!entry.resolve(HASWELL_HT).is_satisfiable());
    assert_eq!(entry.resolve(CounterMask::ALL).counters.bits(), 1 << 50);
    checked(EIGHT.union(CounterMask::first_metrics(3)), &[entry]);
}

#[test]
#[should_panic(expected = "does not have")]
fn check_refuses_a_metric_beyond_the_model() {
    let metrics = CounterMask::first_metrics(2);
    checked(EIGHT.union(metrics), &[EventConstraint::metric(0x8200, 2)]);
}

#[test]
fn entries_can_restrict_the_unit_mask() {
    for (umask, bits, matches) in [
        (UnitMask::Any, 0x00, true),
        (UnitMask::AtMostOneBit, 0x00, true),
        (UnitMask::AtMostOneBit, 0x80, true),
        (UnitMask::AtMostOneBit, 0x81, false),
        (UnitMask::SeveralBits, 0x81, true),
        (UnitMask::SeveralBits, 0x10, false),
        (UnitMask::BothHalves, 0x81, true),
        (UnitMask::BothHalves, 0x03, false),
        (UnitMask::BothHalves, 0x30, false),
    ] {
        let line = EventConstraint::amd_event(0x031, 0x7).with_umask(umask);
        let event = EventSelect::amd_event(0x031, bits);
        assert_eq!(line.matches(event), matches, "{umask:?} {bits:#x}");
    }
}

#[test]
#[should_panic(expected = "shadows")]
fn check_refuses_a_repeated_line() {
    checked(
        EIGHT,
        &[
            EventConstraint::event_and_umask(0x04a3, 0xf),
            EventConstraint::event_and_umask(0x04a3, 0x4),
        ],
    );
}

#[test]
#[should_panic(expected = "shadows")]
fn check_refuses_a_line_inside_a_range() {
    checked(
        EIGHT,
        &[
            EventConstraint::events(0x90, 0xfe, 0xff),
            EventConstraint::events(0xd0, 0xdf, 0xf),
        ],
    );
}

#[test]
fn check_accepts_a_range_that_only_touches_an_earlier_line() {
    checked(
        EIGHT,
        &[
            EventConstraint::events(0xd0, 0xdf, 0xf),
            EventConstraint::events(0x90, 0xfe, 0xff),
        ],
    );
}

#[test]
#[should_panic(expected = "does not have")]
fn check_refuses_a_counter_beyond_the_model() {
    checked(EIGHT, &[EventConstraint::event(0x01, 0x100)]);
}

#[test]
#[should_panic(expected = "without a counter")]
fn check_refuses_an_entry_without_a_counter() {
    checked(EIGHT, &[EventConstraint::event(0x01, 0)]);
}
