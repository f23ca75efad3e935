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

    /// Counts; true if the counter overflowed. `retired` has no negative counts.
    pub fn count(&mut self, source: Source, retired: &Retired) -> bool {
        let events = match source {
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
        };
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
                (events * u64::from(denominator) - self.remainder).div_ceil(u64::from(numerator)),
            ),
        }
    }
}
