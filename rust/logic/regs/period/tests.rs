// SPDX-License-Identifier: GPL-2.0

use super::*;

const CYCLES: EventSelect = EventSelect::event(0x3c, 0x00);
const INST_RETIRED_ALL: EventSelect = EventSelect::event(0xc0, 0x01);
const MAX: u64 = (1 << 47) - 1;

fn limits(rule: PeriodRule) -> PeriodLimits {
    PeriodLimits {
        width: CounterWidth::new(48).unwrap(),
        max_period: MAX,
        rule,
    }
}

struct Case {
    period: u64,
    left: i64,
    programmed: i64,
    new_left: i64,
    expired: bool,
}

#[test]
fn start_values() {
    #[rustfmt::skip]
    let cases = [
        Case { period: 1000, left: 1000, programmed: 1000, new_left: 1000, expired: false },
        Case { period: 1000, left: 1, programmed: 2, new_left: 1, expired: false },
        Case { period: 1000, left: 0, programmed: 1000, new_left: 1000, expired: true },
        Case { period: 1000, left: -999, programmed: 2, new_left: 1, expired: true },
        Case { period: 1000, left: -1000, programmed: 1000, new_left: 1000, expired: true },
        Case { period: 1000, left: -123_456, programmed: 1000, new_left: 1000, expired: true },
        Case { period: MAX, left: MAX as i64, programmed: MAX as i64, new_left: MAX as i64, expired: false },
        Case { period: 1 << 60, left: 1 << 60, programmed: MAX as i64, new_left: 1 << 60, expired: false },
        Case { period: 1, left: 0, programmed: 2, new_left: 1, expired: true },
    ];
    for Case {
        period,
        left,
        programmed,
        new_left,
        expired,
    } in cases
    {
        let start = limits(PeriodRule::NONE).start(CYCLES, period, left);
        let value = (programmed as u64).wrapping_neg();
        assert_eq!(start.previous, value, "period {period} left {left}");
        assert_eq!(start.value, value & 0xffff_ffff_ffff);
        assert_eq!(start.left, new_left, "period {period} left {left}");
        assert_eq!(start.expired, expired, "period {period} left {left}");
    }
}

#[test]
fn no_value_panics() {
    let extremes = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX];
    for period in extremes {
        for left in extremes {
            for rule in [
                PeriodRule::NONE,
                PeriodRule::NEHALEM,
                PeriodRule::HASWELL,
                PeriodRule::BROADWELL,
            ] {
                let _ = limits(rule).start(CYCLES, period as u64, left);
            }
        }
    }
}

#[test]
fn haswell_periods() {
    for (select, period, programmed) in [
        (CYCLES, 31, 32),
        (CYCLES, 32, 32),
        (INST_RETIRED_ALL, 127, 128),
        (INST_RETIRED_ALL, 128, 128),
        (INST_RETIRED_ALL.counting_user(true), 100, 128),
    ] {
        let limits = limits(PeriodRule::HASWELL);
        let start = limits.start(select, period, period as i64);
        assert_eq!(start.previous.wrapping_neg(), programmed);
        assert_eq!(limits.is_too_short(select, period), period < programmed);
        assert!(!super::tests::limits(PeriodRule::NONE).is_too_short(select, 1));
    }
}

#[test]
fn nehalem_periods() {
    for select in [CYCLES, INST_RETIRED_ALL] {
        for (period, programmed) in [(1, 32), (31, 32), (32, 32), (33, 33)] {
            let limits = limits(PeriodRule::NEHALEM);
            let start = limits.start(select, period, period as i64);
            assert_eq!(start.previous.wrapping_neg(), programmed);
            assert_eq!(limits.is_too_short(select, period), period < programmed);
        }
    }
}

#[test]
fn broadwell_periods() {
    for (select, period, programmed) in [
        (CYCLES, 3, 3),
        (CYCLES, 200, 200),
        (INST_RETIRED_ALL, 1, 128),
        (INST_RETIRED_ALL, 127, 128),
        (INST_RETIRED_ALL, 128, 128),
        (INST_RETIRED_ALL, 191, 128),
        (INST_RETIRED_ALL, 192, 192),
        (INST_RETIRED_ALL.counting_kernel(true), 1000, 960),
        (INST_RETIRED_ALL, MAX, MAX - 63),
    ] {
        let limits = limits(PeriodRule::BROADWELL);
        let start = limits.start(select, period, period as i64);
        assert_eq!(start.previous.wrapping_neg(), programmed);
        assert_eq!(start.left, period as i64, "what is cut off is kept");
        assert_eq!(limits.is_too_short(select, period), period < programmed);
    }
}

#[test]
fn delta_wraps_at_the_width() {
    let width = CounterWidth::new(40).unwrap();
    assert_eq!(width.mask(), 0xff_ffff_ffff);
    assert_eq!(width.delta(0xff_ffff_ffff, 0), 1);
    assert_eq!(width.delta(0, 0xff_ffff_ffff), 0xff_ffff_ffff);
    // A sign-extended earlier value, and an unsigned reading.
    assert_eq!(width.delta(u64::MAX, 4), 5);
    assert_eq!(CounterWidth::new(64).unwrap().delta(1, 0), u64::MAX);
    assert_eq!(CounterWidth::new(0), None);
    assert_eq!(CounterWidth::new(65), None);
}

#[test]
fn remembered_values() {
    for bits in [32, 40, 48, 63, 64] {
        let width = CounterWidth::new(bits).unwrap();
        let mut remembered = 0;
        for value in [0, 1, 1, width.mask(), width.mask(), u64::MAX, 0] {
            let written = width.remember_written(remembered, value);
            assert_eq!(width.delta(value, written), 0, "{bits} bits");
            assert!(bits == 64 || written != remembered, "{bits} bits");
            let read = width.remember_read(written, value.wrapping_add(7));
            assert_eq!(width.delta(written, read), 7, "{bits} bits");
            assert_eq!(read & !width.mask(), written & !width.mask());
            remembered = read;
        }
    }
}

/// Lazy programming relies on this: a counter that is stopped and started again for the same
/// counting event already holds its start value.
#[test]
fn a_stopped_counting_event_starts_where_it_stopped() {
    let limits = limits(PeriodRule::HASWELL);
    let first = limits.start(CYCLES, MAX, MAX as i64);
    let counted = 123_456_789;
    let stopped = first.value.wrapping_add(counted) & limits.width.mask();
    let left = first.left - counted as i64;
    assert_eq!(limits.start(CYCLES, MAX, left).value, stopped);
}

#[test]
fn evenly_distributed_samples_need_longer_periods() {
    let golden_cove = limits(PeriodRule::GOLDEN_COVE);
    for (level, shortest) in [(0, 2), (2, 2), (3, 128)] {
        let limits = golden_cove.for_precision(level);
        assert!(level < 3 || limits.is_too_short(CYCLES, 127));
        assert!(!limits.is_too_short(CYCLES, 128));
        let start = limits.start(CYCLES, 1000, 1);
        assert_eq!(limits.width.sign_extend(start.value), -shortest, "{level}");
    }
    assert!(!limits(PeriodRule::NONE)
        .for_precision(3)
        .is_too_short(CYCLES, 1));
}
