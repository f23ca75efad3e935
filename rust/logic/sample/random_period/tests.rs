// SPDX-License-Identifier: GPL-2.0

use super::*;

fn random(mask: u32, seed: u32) -> RandomPeriods {
    RandomPeriods::from_config3((u64::from(seed) << 32) | u64::from(mask))
}

#[test]
fn fields() {
    assert_eq!(RandomPeriods::from_config3(0), RandomPeriods::NONE);
    assert!(!random(0, 7).vary());
    assert!(random(1, 0).vary());
    assert_eq!(random(1, 7).first_state(9), 7);
    assert_eq!(random(1, 0).first_state(9), 9);
}

#[test]
fn masks_are_smaller_than_the_period() {
    for (mask, period, suits) in [
        (0, 0, true),
        (1, 1, false),
        (1, 2, true),
        (0xfff, 0xfff, false),
        (0xfff, 0x1000, true),
        (u32::MAX, u64::from(u32::MAX), false),
        (u32::MAX, 1 << 32, true),
    ] {
        assert_eq!(random(mask, 0).suit(period), suits, "{mask:#x} {period:#x}");
    }
}

/// The first numbers of the generator's reference implementation (Vigna, `splitmix64.c`) from seed
/// 1234567.
#[test]
fn the_generator_is_the_known_one() {
    let expected: [u64; 5] = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ];
    let all = random(u32::MAX, 1_234_567);
    let mut state = all.first_state(0);
    for number in expected {
        let (period, next) = all.draw(0, state);
        assert_eq!(period, number & u64::from(u32::MAX));
        state = next;
    }
}

#[test]
fn only_the_bits_of_the_mask_vary() {
    let random = random(0xf0f0, 3);
    let (mut state, mut ones, mut zeros) = (random.first_state(0), 0, 0);
    for _ in 0..1000 {
        let (period, next) = random.draw(1 << 20, state);
        let bits = period - (1 << 20);
        assert_eq!(bits & !0xf0f0, 0);
        ones |= bits;
        zeros |= !bits;
        state = next;
    }
    assert_eq!((ones, zeros & 0xf0f0), (0xf0f0, 0xf0f0));
}

#[test]
fn periods_stay_positive() {
    for period in [i64::MAX as u64, i64::MAX as u64 - 1, u64::MAX] {
        let (drawn, _) = random(u32::MAX, 1).draw(period, 1);
        assert!((1..=i64::MAX as u64).contains(&drawn));
    }
    assert_eq!(RandomPeriods::NONE.draw(5, 0).0, 5);
}
