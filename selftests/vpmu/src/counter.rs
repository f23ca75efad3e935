// SPDX-License-Identifier: GPL-2.0

//! A 48-bit counter and what it adds up.

use crate::{retired, Retired};

/// Width of all counters in bits.
pub const WIDTH: u32 = 48;
/// The bits of a counter.
pub const MASK: u64 = (1 << WIDTH) - 1;

/// Where a count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Counts nothing.
    Nothing,
    /// Exactly these retired things, each with its factor. No instruction may add more than 1.
    Exact([i8; retired::COUNTS]),
    /// `.0` events in `.1` instructions, evenly spread.
    Rate(u32, u32),
}

impl Source {
    /// `numerator` / `denominator` events per instruction.
    pub const fn rate(numerator: u32, denominator: u32) -> Self {
        Source::Rate(numerator, denominator)
    }
}

/// One counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counter {
    value: u64,
    /// A [`Source::Rate`]'s remainder: parts of an event that came about but are not yet whole.
    remainder: u64,
}

impl Counter {
    /// The value, at most 48 bits.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Writes the counter.
    pub fn set(&mut self, value: u64) {
        *self = Counter {
            value: value & MASK,
            remainder: 0,
        };
    }

    /// From now on the counter counts another source.
    pub fn change_source(&mut self) {
        self.remainder = 0;
    }

    /// Counts; true if the counter overflowed. `retired` has no negative counts.
    pub fn count(&mut self, source: Source, retired: &Retired) -> bool {
        let events = self.events(source, retired);
        self.add(events)
    }

    /// How many events of the source came about; [`Counter::add`] counts them.
    pub fn events(&mut self, source: Source, retired: &Retired) -> u64 {
        match source {
            Source::Nothing => 0,
            Source::Exact(factors) => {
                let sum: i64 = factors
                    .iter()
                    .zip(retired)
                    .map(|(&factor, &count)| i64::from(factor) * count)
                    .sum();
                // A difference of two counts may dip below zero between two reports; it cannot
                // last.
                sum.max(0) as u64
            }
            Source::Rate(numerator, denominator) => {
                let parts =
                    retired[retired::INSTRUCTIONS] as u64 * u64::from(numerator) + self.remainder;
                self.remainder = parts % u64::from(denominator);
                parts / u64::from(denominator)
            }
        }
    }

    /// Counts so many events; true if the counter overflowed.
    pub fn add(&mut self, events: u64) -> bool {
        let sum = self.value + events;
        self.value = sum & MASK;
        sum > MASK
    }

    /// The least number of instructions after which the counter may have overflowed; `None`: never.
    pub fn instructions_to_overflow(&self, source: Source) -> Option<u64> {
        let events = MASK + 1 - self.value;
        match source {
            Source::Nothing => None,
            Source::Exact(_) => Some(events),
            Source::Rate(numerator, denominator) => Some(
                // Where that saturates, the answer is too small, but astronomic still.
                (events.saturating_mul(u64::from(denominator)) - self.remainder)
                    .div_ceil(u64::from(numerator)),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions(count: i64) -> Retired {
        let mut retired = [0; retired::COUNTS];
        retired[retired::INSTRUCTIONS] = count;
        retired
    }

    fn exact() -> Source {
        crate::event::INSTRUCTIONS
    }

    #[test]
    fn wraps_around_at_48_bits_and_says_so() {
        let mut counter = Counter::default();
        counter.set(MASK - 1);
        assert!(!counter.count(exact(), &instructions(1)));
        assert_eq!(counter.value(), MASK);
        assert!(counter.count(exact(), &instructions(5)));
        assert_eq!(counter.value(), 4);
    }

    #[test]
    fn a_rate_keeps_its_remainder() {
        let mut counter = Counter::default();
        for _ in 0..4 {
            counter.count(Source::rate(3, 4), &instructions(1));
        }
        assert_eq!(counter.value(), 3);
        for _ in 0..1000 {
            counter.count(Source::rate(1, 1000), &instructions(7));
        }
        assert_eq!(counter.value(), 3 + 7);
    }

    #[test]
    fn a_write_drops_the_remainder() {
        let mut counter = Counter::default();
        counter.count(Source::rate(1, 2), &instructions(1));
        counter.set(0);
        counter.count(Source::rate(1, 2), &instructions(1));
        assert_eq!(counter.value(), 0);
    }

    /// The promise to QEMU: not a single overflow before that many instructions, and with a rate
    /// one right then.
    #[test]
    fn instructions_to_overflow_is_exact_for_rates() {
        for source in [
            Source::rate(3, 2),
            Source::rate(5, 4),
            Source::rate(7, 1024),
            exact(),
        ] {
            for left in [1, 2, 10, 1000] {
                let mut counter = Counter::default();
                counter.set(MASK + 1 - left);
                let needed = counter.instructions_to_overflow(source).unwrap() as i64;
                assert!(!counter.clone().count(source, &instructions(needed - 1)));
                assert!(counter.count(source, &instructions(needed)));
            }
        }
        assert_eq!(
            Counter::default().instructions_to_overflow(Source::Nothing),
            None
        );
    }
}
