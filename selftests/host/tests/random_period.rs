// SPDX-License-Identifier: GPL-2.0

//! Tests random sample periods: their distribution, and that none of the event's occurrences is
//! lost or counted twice between them.

use proptest::prelude::*;
use rpmu_logic::logic::{
    regs::{
        event_select::EventSelect,
        period::{
            CounterWidth,
            PeriodLimits,
            PeriodRule, //
        },
    },
    sample::random_period::RandomPeriods, //
};

const PERIOD: u64 = 100_000;
const SAMPLES: usize = 100_000;

fn random(mask: u32, seed: u32) -> RandomPeriods {
    RandomPeriods::from_config3((u64::from(seed) << 32) | u64::from(mask))
}

/// Returns the random parts of [`SAMPLES`] periods.
fn parts(mask: u32, seed: u32) -> Vec<u64> {
    let random = random(mask, seed);
    let mut state = random.first_state(0);
    let mut part = || {
        let (period, next) = random.draw(PERIOD, state);
        state = next;
        period - PERIOD
    };
    (0..SAMPLES).map(|_| part()).collect()
}

/// Returns the probability of a distribution over the bins that is at least as uneven as this one,
/// if all bins are equally likely: Pearson's test, with the approximation of Wilson and Hilferty.
fn chance(bins: &[u32]) -> f64 {
    let items: u32 = bins.iter().sum();
    let expected = f64::from(items) / bins.len() as f64;
    let square = |seen: &u32| (f64::from(*seen) - expected).powi(2) / expected;
    let chi_square: f64 = bins.iter().map(square).sum();
    let freedom = (bins.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let normal = ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
    above(normal)
}

/// Returns the probability that a normal variable is above `x` (Abramowitz and Stegun, 26.2.17).
fn above(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let factors = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = factors
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    let tail = sum * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if x < 0.0 {
        1.0 - tail
    } else {
        tail
    }
}

fn spread(values: impl Iterator<Item = u64>, bins: usize) -> Vec<u32> {
    let mut spread = vec![0; bins];
    values.for_each(|value| spread[value as usize] += 1);
    spread
}

#[test]
fn the_test_of_chance_matches_published_tables() {
    for (x, expected) in [
        (0.0, 0.5),
        (1.0, 0.158_655),
        (2.326_348, 0.01),
        (-1.0, 0.841_345),
    ] {
        assert!((above(x) - expected).abs() < 1e-5);
    }
    // 30.578 is the bound of 1 % with 15 degrees of freedom.
    let uneven = |by: u32| {
        let mut bins = vec![10_000; 16];
        bins[0] += by;
        bins[1] -= by;
        chance(&bins)
    };
    // 2 * by^2 / 10000 = 30.578
    assert!(uneven(390) > 0.01 && uneven(393) < 0.01);
}

/// Tests the low bits, which determine the place of a sample in a loop, the high bits, and pairs of
/// neighbours.
#[test]
fn periods_are_uniform() {
    for seed in [1, 2, 0xdead_beef] {
        let parts = parts(0xfff, seed);
        let low = spread(parts.iter().map(|part| part & 0x3f), 64);
        let high = spread(parts.iter().map(|part| part >> 6), 64);
        let pairs = parts.chunks_exact(2);
        let pairs = spread(
            pairs.map(|pair| ((pair[0] >> 8) << 4) | (pair[1] & 0xf)),
            256,
        );
        for bins in [low, high, pairs] {
            let chance = chance(&bins);
            assert!(chance > 0.01, "seed {seed}: p = {chance}");
        }
    }
}

/// A bad seed would be one whose periods are too uneven or too even. Of 200 seeds, about two exceed
/// either bound of 1 %.
#[test]
fn no_seed_is_bad() {
    let chances: Vec<f64> = (1..=200)
        .map(|seed| chance(&spread(parts(0x7f, seed).into_iter(), 128)))
        .collect();
    let uneven = chances.iter().filter(|chance| **chance < 0.01).count();
    let even = chances.iter().filter(|chance| **chance > 0.99).count();
    assert!(
        uneven <= 7 && even <= 7,
        "{uneven} too uneven, {even} too even"
    );
    assert!(chances.iter().all(|chance| *chance > 1e-5));
}

/// If a loop's length divides the period, all samples are at one place without the mask, and
/// everywhere with it.
#[test]
fn no_lock_step_with_a_loop() {
    const LOOP: u64 = 125;
    let places = |mask| {
        let mut at = 0;
        let places = parts(mask, 1).into_iter().map(move |part| {
            at = (at + PERIOD + part) % LOOP;
            at
        });
        spread(places, LOOP as usize)
    };
    assert_eq!(places(0)[0], SAMPLES as u32);
    assert!(chance(&places(0xfff)) > 0.01);
}

fn rules() -> impl Strategy<Value = PeriodRule> {
    prop_oneof![
        Just(PeriodRule::NONE),
        Just(PeriodRule::NEHALEM),
        Just(PeriodRule::HASWELL),
        Just(PeriodRule::BROADWELL),
    ]
}

proptest! {
    /// The periods of the samples, except the current one, add up to the count, however late an
    /// overflow is handled, and whatever part of a period the counters can hold.
    #[test]
    fn sums_of_periods_are_the_count(
        rule in rules(),
        period in 1_000u64..100_000,
        mask in 1u32..0xffff,
        chance in any::<u64>(),
        max_period in prop_oneof![Just((1u64 << 47) - 1), 500u64..5_000],
        late in proptest::collection::vec(0i64..300, 200),
    ) {
        let random = random(mask, 0);
        prop_assume!(random.suit(period));
        let limits = PeriodLimits { width: CounterWidth::new(48).unwrap(), max_period, rule };
        let select = EventSelect::event(0xc0, 0x01);
        let (mut last, mut state) = random.draw(period, random.first_state(chance));
        let (mut left, mut count, mut sum, mut samples) = (last as i64, 0i64, 0u64, 0);
        for late in late {
            let over = PeriodLimits::is_over(left);
            let mut new = period;
            if over {
                (new, state) = random.draw(period, state);
            }
            let start = limits.start(select, new, left);
            prop_assert_eq!(start.expired, over);
            if start.expired {
                sum += last;
                samples += 1;
                last = new;
                prop_assert!((period..=period + u64::from(mask)).contains(&last));
            }
            left = start.left;
            let counted = start.previous.wrapping_neg() as i64 + late;
            left -= counted;
            count += counted;
        }
        // The period that ends now has not been added yet.
        let summed = sum as i64 + last as i64;
        prop_assert!((count - summed).abs() <= last as i64 + 500, "{count} {summed} {samples}");
        prop_assert_eq!(summed - count, left);
    }
}
