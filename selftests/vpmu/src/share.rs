// SPDX-License-Identifier: GPL-2.0

//! What a counter counts: a share of what retires.

use crate::retired::{self, Retired};

/// Where a count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Counts nothing.
    Nothing,
    /// What this says.
    Share(Share),
    /// The cycles in which this does not come about.
    CyclesWithout(Share),
}

/// A share of what the CPU retires. Of each `denominator` things it is `high` - `low`. Where that is a
/// part of them and `denominator` a power of two, each thing has a place in the whole, its number with
/// the bits reversed, and the share is the things at `low` to below `high`: spread evenly, and shares
/// that make up a whole add up to it, to the last thing. Else `low` is 0; `high` may exceed
/// `denominator`, several events for each thing.
///
/// Where it is a part of the things, their numbers are the CPU's, who numbers all that it retires: so
/// it does not matter how often a counter is written or which of them counts, and a counter that is
/// switched on now and then has neither more nor less of it than its time. Else a counter numbers them
/// from the write to it on, which makes less than one event of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The things: 1 for each kind that is meant.
    pub of: [u8; retired::COUNTS],
    /// First of the share.
    pub low: u32,
    /// First behind the share.
    pub high: u32,
    /// Things in a whole.
    pub denominator: u32,
    /// Things beside the share: 1 for each kind that is meant. One event for so many of them.
    pub beside: [u8; retired::COUNTS],
    /// How many.
    pub beside_each: u32,
}

/// Core cycles: a CPI of 3/2.
pub const CYCLES: Share = Share::of(&[retired::INSTRUCTIONS], 0, 3, 2);

/// 1 for each of these kinds.
const fn one_of_each(kinds: &[usize]) -> [u8; retired::COUNTS] {
    let mut of = [0; retired::COUNTS];
    let mut i = 0;
    while i < kinds.len() {
        of[kinds[i]] = 1;
        i += 1;
    }
    of
}

/// How many there are of these kinds.
fn sum_of(kinds: &[u8; retired::COUNTS], retired: &Retired) -> u64 {
    let counts = kinds.iter().zip(retired);
    counts.map(|(&of, &n)| u64::from(of) * n as u64).sum()
}

impl Share {
    /// From `low` to `high` of each `denominator` of these things.
    pub const fn of(kinds: &[usize], low: u32, high: u32, denominator: u32) -> Self {
        Share {
            of: one_of_each(kinds),
            low,
            high,
            denominator,
            beside: [0; retired::COUNTS],
            beside_each: 1,
        }
    }

    /// It, and each of these.
    pub const fn and_all(self, kinds: &[usize]) -> Self {
        Share {
            beside: one_of_each(kinds),
            ..self
        }
    }

    /// `numerator` / `denominator` of it.
    pub const fn times(self, numerator: u32, denominator: u32) -> Self {
        Share {
            low: self.low * numerator,
            high: self.high * numerator,
            denominator: self.denominator * denominator,
            beside_each: (self.beside_each * denominator).div_ceil(numerator),
            ..self
        }
    }

    /// Does it depend on nothing but the number of instructions?
    pub fn is_steady(&self) -> bool {
        self.of == CYCLES.of
    }

    /// Do its things have places?
    fn has_places(&self) -> bool {
        self.denominator.is_power_of_two() && self.denominator > 1 && self.high <= self.denominator
    }

    /// How many of the first `things` have a place below `bound`: its bits, from the highest one on,
    /// stand for ranges of places, and each of these for every so many-th thing.
    fn below(&self, bound: u32, things: u64) -> u64 {
        let unused = u32::BITS - self.denominator.trailing_zeros();
        let mut sum = 0;
        let mut start: u32 = 0;
        for bit in (0..u32::BITS).rev().filter(|bit| bound & (1 << bit) != 0) {
            let first = start.reverse_bits() >> unused;
            sum += (things + u64::from(first)) / u64::from(self.denominator >> bit);
            start |= 1 << bit;
        }
        sum
    }

    /// How many of the first `things` belong to it.
    fn among(&self, things: u64) -> u64 {
        if self.has_places() {
            self.below(self.high, things) - self.below(self.low, things)
        } else {
            things * u64::from(self.high) / u64::from(self.denominator)
        }
    }

    /// Is it a part of its things?
    fn is_part(&self) -> bool {
        self.high - self.low < self.denominator
    }

    /// The things among these.
    fn things(&self, retired: &Retired) -> u64 {
        sum_of(&self.of, retired)
    }

    /// What comes about beside the share.
    fn count_beside(&self, before: &Retired, retired: &Retired) -> u64 {
        let now = sum_of(&self.beside, retired);
        if now == 0 {
            return 0;
        }
        let (before, each) = (sum_of(&self.beside, before), u64::from(self.beside_each));
        (before + now) / each - before / each
    }

    /// The number of the next thing within its whole, after all that went `before` and what the
    /// counter has numbered by itself.
    fn next(&self, phase: u64, before: &Retired) -> u64 {
        let number = if self.is_part() {
            self.things(before)
        } else {
            phase
        };
        number % u64::from(self.denominator)
    }

    /// What comes about when this retires, after all that went `before`.
    pub(crate) fn count(&self, phase: &mut u64, before: &Retired, retired: &Retired) -> u64 {
        let next = self.next(*phase, before);
        let after = next + self.things(retired);
        *phase = after % u64::from(self.denominator);
        self.among(after) - self.among(next) + self.count_beside(before, retired)
    }

    /// The least number of instructions and page walks that may bring `events` of it about.
    pub(crate) fn least(&self, phase: u64, before: &Retired, events: u64) -> u64 {
        let (high, denominator) = (u64::from(self.high), u64::from(self.denominator));
        let before = self.next(phase, before);
        // Where that saturates, the answer is too small, but astronomic still.
        let things = if self.has_places() {
            // Any `denominator` things in a row hold exactly `width` of them.
            let width = u64::from(self.high - self.low);
            let wholes = events.saturating_sub(1) / width;
            let mut too_few = wholes.saturating_mul(denominator).min(1 << 61);
            let mut enough = too_few + denominator;
            while enough - too_few > 1 {
                let middle = (too_few + enough) / 2;
                if self.among(before + middle) - self.among(before) < events {
                    too_few = middle;
                } else {
                    enough = middle;
                }
            }
            enough
        } else {
            (events.saturating_mul(denominator) - before * high % denominator).div_ceil(high)
        };
        // A single instruction may load and store.
        let most = (self.of[retired::LOADS] + self.of[retired::STORES]).max(1);
        let least = things.div_ceil(u64::from(most));
        if self.beside == [0; retired::COUNTS] {
            least
        } else {
            // They may be all that comes.
            least.min(events)
        }
    }
}

impl Source {
    /// Does it depend on instructions and page walks alone?
    pub fn is_of_instructions(&self) -> bool {
        match self {
            Source::Nothing => true,
            Source::Share(share) | Source::CyclesWithout(share) => {
                share.of[retired::LOADS..=retired::FAR] == [0; retired::FAR - retired::LOADS + 1]
            }
        }
    }

    /// `numerator` / `denominator` events per instruction.
    pub const fn rate(numerator: u32, denominator: u32) -> Self {
        Source::Share(Share::of(
            &[retired::INSTRUCTIONS],
            0,
            numerator,
            denominator,
        ))
    }

    /// `numerator` / `denominator` of it.
    pub const fn times(self, numerator: u32, denominator: u32) -> Self {
        match self {
            Source::Share(share) => Source::Share(share.times(numerator, denominator)),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thing belongs to just one of the shares that make up a whole, and they are spread.
    #[test]
    fn shares_make_up_a_whole() {
        let bounds = [0, 5, 8, 12, 16, 20, 32, 128, 256, 4096];
        let shares = bounds
            .windows(2)
            .map(|bounds| Share::of(&[retired::INSTRUCTIONS], bounds[0], bounds[1], 4096));
        let shares: Vec<_> = shares.collect();
        for thing in 0..10_000 {
            let of = |share: &&Share| share.among(thing + 1) - share.among(thing) == 1;
            assert_eq!(shares.iter().filter(of).count(), 1, "{thing}");
        }
        for share in shares {
            let width = u64::from(share.high - share.low);
            assert_eq!(share.among(4096), width);
            assert!(share.among(2048).abs_diff(width / 2) <= 2, "{share:?}");
        }
    }
}
