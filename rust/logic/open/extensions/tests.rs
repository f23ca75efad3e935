// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::open::attr::EventType;

const MASK: u64 = 0xfff;
const SEED: u64 = 5 << 32;

/// A sampling event with fields of attr.config3.
fn sampling(config3: u64) -> Attributes {
    Attributes {
        config3,
        sample_period: 100_000,
        ..Attributes::counting(EventType::Raw, 0xc0)
    }
}

#[test]
fn leaders_that_sample_may_switch() {
    let switching = Attributes {
        config4: SWITCH,
        ..sampling(0)
    };
    assert_eq!(switches(&sampling(0)), Ok(false));
    assert_eq!(switches(&switching), Ok(true));
    let frequency = Attributes {
        freq: true,
        ..switching
    };
    assert_eq!(switches(&frequency), Ok(true));
    let member = Attributes {
        is_member: true,
        ..switching
    };
    let counting = Attributes {
        sample_period: 0,
        ..switching
    };
    let pinned = Attributes {
        pinned: true,
        ..switching
    };
    assert_eq!(switches(&member), Err(Refusal::SwitchOfMember));
    assert_eq!(switches(&counting), Err(Refusal::SwitchCounting));
    assert_eq!(switches(&pinned), Err(Refusal::SwitchPinned));
    assert_eq!(Extensions::of(&pinned), Err(Refusal::SwitchPinned));
    assert!(switching.has_extensions() && !sampling(0).has_extensions());
}

#[test]
fn bits_without_a_meaning_are_refused() {
    let of = |config4| {
        Extensions::of(&Attributes {
            config4,
            ..sampling(0)
        })
    };
    assert!(of(0).is_ok() && of(SWITCH).is_ok());
    for bit in 1..64 {
        for config4 in [1 << bit, (1 << bit) | SWITCH] {
            assert_eq!(of(config4), Err(Refusal::FieldAbsent), "bit {bit}");
        }
    }
}

#[test]
fn random_periods_need_a_sample_period() {
    assert_eq!(random_periods(&sampling(0)), Ok(RandomPeriods::NONE));
    for config3 in [MASK, SEED | MASK] {
        let random = random_periods(&sampling(config3));
        assert_eq!(random, Ok(RandomPeriods::from_config3(config3)));
    }
    let counting = Attributes {
        sample_period: 0,
        ..sampling(MASK)
    };
    let frequency = Attributes {
        freq: true,
        ..sampling(MASK)
    };
    let precise = Attributes {
        precise_ip: 1,
        ..sampling(MASK)
    };
    let short = Attributes {
        sample_period: MASK,
        ..sampling(MASK)
    };
    for (attr, refusal) in [
        (sampling(SEED), Refusal::RandomSeedAlone),
        (counting, Refusal::RandomCounting),
        (frequency, Refusal::RandomFrequency),
        (precise, Refusal::RandomPrecise),
        (short, Refusal::RandomMaskTooWide),
    ] {
        assert_eq!(random_periods(&attr), Err(refusal));
        let fixed = Attributes { config3: 0, ..attr };
        assert_eq!(random_periods(&fixed), Ok(RandomPeriods::NONE));
    }
}
