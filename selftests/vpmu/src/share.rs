// SPDX-License-Identifier: GPL-2.0

//! The source of a counter: a share of the occurrences in the CPU.
//!
//! An occurrence is one retired instruction, load, store, branch, page walk or another item that
//! [`Retired`] counts.

use std::ops::RangeInclusive;

use crate::retired::{
    self,
    Retired,
    LOADS,
    PLAIN_LOADS,
    PLAIN_STORES,
    STORES, //
};

/// The source of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing.
    Nothing,
    /// A share of the occurrences in the CPU.
    Share(Share),
    /// The cycles in which no event of the share happens.
    CyclesWithout(Share),
}

/// A share of the occurrences in a CPU: `high` - `low` events for each `denominator` occurrences.
///
/// If the share is a part of the occurrences and `denominator` a power of two, each occurrence has
/// a position: its number modulo `denominator` with the bits reversed. The share is the occurrences
/// at `low` up to, but not including, `high`. So it is spread evenly, and shares that make up a
/// whole add up to it exactly. Otherwise `low` is 0; `high` may exceed `denominator`, which is
/// several events for each occurrence.
///
/// For a part, the CPU numbers all occurrences that it retires while QEMU counts. So it makes no
/// difference how often a counter is written or which counter counts: one that is enabled from time
/// to time gets the share of just that time. For other shares a counter numbers the occurrences
/// from the last write on, which makes a difference of less than one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// The counted kinds of occurrences: 1 for each of these kinds of [`Retired`].
    pub(crate) kinds: [u8; retired::COUNTS],
    /// Start of the share.
    pub(crate) low: u32,
    /// End of the share, exclusive.
    pub(crate) high: u32,
    /// The whole.
    pub(crate) denominator: u32,
    /// Occurrences counted in addition to the share: 1 for each of these kinds.
    pub(crate) extra: [u8; retired::COUNTS],
    /// Number of these per event.
    pub(crate) extra_each: u32,
}

/// Core cycles: 3/2 per instruction.
pub(crate) const CYCLES: Share = Share::new(&[retired::INSTRUCTIONS], 0, 3, 2);

/// Returns 1 for each of these kinds, 0 for all others.
const fn one_of_each(kinds: &[usize]) -> [u8; retired::COUNTS] {
    let mut counts = [0; retired::COUNTS];
    let mut i = 0;
    while i < kinds.len() {
        counts[kinds[i]] = 1;
        i += 1;
    }
    counts
}

/// Returns the number of occurrences of these kinds.
fn sum_of(kinds: &[u8; retired::COUNTS], retired: &Retired) -> u64 {
    let counts = kinds.iter().zip(retired);
    counts.map(|(&one, &n)| u64::from(one) * n as u64).sum()
}

impl Share {
    /// Creates the share of the occurrences of these kinds from `low` up to `high` of
    /// `denominator`.
    pub(crate) const fn new(kinds: &[usize], low: u32, high: u32, denominator: u32) -> Self {
        Share {
            kinds: one_of_each(kinds),
            low,
            high,
            denominator,
            extra: [0; retired::COUNTS],
            extra_each: 1,
        }
    }

    /// Adds every occurrence of these kinds.
    pub(crate) const fn and_each(self, kinds: &[usize]) -> Self {
        Share {
            extra: one_of_each(kinds),
            ..self
        }
    }

    /// Scales by `numerator` / `denominator`.
    pub(crate) const fn times(self, numerator: u32, denominator: u32) -> Self {
        Share {
            low: self.low * numerator,
            high: self.high * numerator,
            denominator: self.denominator * denominator,
            extra_each: (self.extra_each * denominator).div_ceil(numerator),
            ..self
        }
    }

    /// Returns whether the share depends only on the number of instructions, except for interrupts.
    pub(crate) fn is_steady(&self) -> bool {
        let mut kinds = self.kinds;
        kinds[retired::INTERRUPTS] = 0;
        kinds == CYCLES.kinds
    }

    /// Returns whether the share's occurrences have positions.
    fn has_positions(&self) -> bool {
        self.denominator.is_power_of_two() && self.denominator > 1 && self.high <= self.denominator
    }

    /// Returns how many of the first `occurrences` have a position below `bound`. Each bit of
    /// `bound` stands for a range of positions, which is every 2^n-th occurrence.
    fn below(&self, bound: u32, occurrences: u64) -> u64 {
        let unused = u32::BITS - self.denominator.trailing_zeros();
        let mut sum = 0;
        let mut start: u32 = 0;
        for bit in (0..u32::BITS).rev().filter(|bit| bound & (1 << bit) != 0) {
            let first = start.reverse_bits() >> unused;
            sum += (occurrences + u64::from(first)) / u64::from(self.denominator >> bit);
            start |= 1 << bit;
        }
        sum
    }

    /// Returns the number of events among the first `occurrences`.
    fn among(&self, occurrences: u64) -> u64 {
        if self.has_positions() {
            self.below(self.high, occurrences) - self.below(self.low, occurrences)
        } else {
            occurrences * u64::from(self.high) / u64::from(self.denominator)
        }
    }

    /// Returns whether the share is a part of the occurrences.
    fn is_part(&self) -> bool {
        self.high - self.low < self.denominator
    }

    /// Returns the number of occurrences in `retired`.
    fn occurrences(&self, retired: &Retired) -> u64 {
        sum_of(&self.kinds, retired)
    }

    /// Counts the extra events when `retired` follows `before`.
    fn count_extra(&self, before: &Retired, retired: &Retired) -> u64 {
        let now = sum_of(&self.extra, retired);
        if now == 0 {
            return 0;
        }
        let (before, each) = (sum_of(&self.extra, before), u64::from(self.extra_each));
        (before + now) / each - before / each
    }

    /// Returns the number of the next occurrence within its whole: for a part, from what retired
    /// `before`, otherwise from the counter's own `phase`.
    fn next(&self, phase: u64, before: &Retired) -> u64 {
        let number = if self.is_part() {
            self.occurrences(before)
        } else {
            phase
        };
        number % u64::from(self.denominator)
    }

    /// Counts the events when `retired` follows `before`, and advances the counter's own `phase`.
    pub(crate) fn count(&self, phase: &mut u64, before: &Retired, retired: &Retired) -> u64 {
        let next = self.next(*phase, before);
        let after = next + self.occurrences(retired);
        *phase = after % u64::from(self.denominator);
        self.among(after) - self.among(next) + self.count_extra(before, retired)
    }

    /// Returns the minimum number of instructions, page walks and interrupts that may make this
    /// many events.
    pub(crate) fn min_instructions(&self, phase: u64, before: &Retired, events: u64) -> u64 {
        let (high, denominator) = (u64::from(self.high), u64::from(self.denominator));
        let before = self.next(phase, before);
        // If this saturates, the result is too small but still astronomical.
        let occurrences = if self.has_positions() {
            // Any `denominator` occurrences in a row make exactly `width` events.
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
        // One instruction may both load and store.
        let both = [LOADS, STORES, PLAIN_LOADS, PLAIN_STORES];
        let most: u8 = both.map(|kind| self.kinds[kind]).iter().sum();
        let most = most.max(1);
        let least = occurrences.div_ceil(u64::from(most));
        if self.extra == [0; retired::COUNTS] {
            least
        } else {
            // All of the events may be extra ones.
            least.min(events)
        }
    }
}

impl Source {
    /// Returns whether the share depends only on instructions, page walks and interrupts.
    pub(crate) fn is_of_instructions(&self) -> bool {
        match self {
            Source::Nothing => true,
            Source::Share(share) | Source::CyclesWithout(share) => {
                let others =
                    |range: RangeInclusive<usize>| share.kinds[range].iter().any(|&kind| kind != 0);
                !others(LOADS..=retired::FAR) && !others(PLAIN_LOADS..=PLAIN_STORES)
            }
        }
    }

    /// Returns whether the share's occurrences include any of these kinds of [`Retired`].
    pub(crate) fn is_of(&self, kinds: &[usize]) -> bool {
        match self {
            Source::Share(share) => kinds.iter().any(|&kind| share.kinds[kind] != 0),
            Source::Nothing | Source::CyclesWithout(_) => false,
        }
    }

    /// Counts `numerator` / `denominator` events per instruction.
    pub(crate) const fn rate(numerator: u32, denominator: u32) -> Self {
        Source::Share(Share::new(
            &[retired::INSTRUCTIONS],
            0,
            numerator,
            denominator,
        ))
    }

    /// Scales by `numerator` / `denominator`.
    pub(crate) const fn times(self, numerator: u32, denominator: u32) -> Self {
        match self {
            Source::Share(share) => Source::Share(share.times(numerator, denominator)),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each occurrence belongs to exactly one of the shares that make up a whole; shares are spread
    /// evenly.
    #[test]
    fn shares_make_up_a_whole() {
        let bounds = [0, 5, 8, 12, 16, 20, 32, 128, 256, 4096];
        let shares = bounds
            .windows(2)
            .map(|bounds| Share::new(&[retired::INSTRUCTIONS], bounds[0], bounds[1], 4096));
        let shares: Vec<_> = shares.collect();
        for number in 0..10_000 {
            let of = |share: &&Share| share.among(number + 1) - share.among(number) == 1;
            assert_eq!(shares.iter().filter(of).count(), 1, "{number}");
        }
        for share in shares {
            let width = u64::from(share.high - share.low);
            assert_eq!(share.among(4096), width);
            assert!(share.among(2048).abs_diff(width / 2) <= 2, "{share:?}");
        }
    }
}
