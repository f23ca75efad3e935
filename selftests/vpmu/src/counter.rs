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
    fn count(&self, phase: &mut u64, before: &Retired, retired: &Retired) -> u64 {
        let next = self.next(*phase, before);
        let after = next + self.things(retired);
        *phase = after % u64::from(self.denominator);
        self.among(after) - self.among(next) + self.count_beside(before, retired)
    }

    /// The least number of instructions and page walks that may bring `events` of it about.
    fn least(&self, phase: u64, before: &Retired, events: u64) -> u64 {
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

/// One counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counter {
    value: u64,
    /// How far a [`Share`] is in its whole that is no part of its things, and the cycles in theirs.
    phase: u64,
    cycles: u64,
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
            ..Counter::default()
        };
    }

    /// From now on the counter counts another source.
    pub fn change_source(&mut self) {
        self.set(self.value);
    }

    /// Counts; true if the counter overflowed. `before` and `retired` are as for
    /// [`Counter::events`].
    pub fn count(&mut self, source: Source, before: &Retired, retired: &Retired) -> bool {
        let events = self.events(source, before, retired);
        self.add(events)
    }

    /// How many events of the source came about; [`Counter::add`] counts them. `before` is all that
    /// retired earlier at the levels that the counter counts. Neither has negative counts.
    pub fn events(&mut self, source: Source, before: &Retired, retired: &Retired) -> u64 {
        match source {
            Source::Nothing => 0,
            Source::Share(share) => share.count(&mut self.phase, before, retired),
            Source::CyclesWithout(share) => {
                let cycles = CYCLES.count(&mut self.cycles, before, retired);
                cycles.saturating_sub(share.count(&mut self.phase, before, retired))
            }
        }
    }

    /// Counts so many events; true if the counter overflowed.
    pub fn add(&mut self, events: u64) -> bool {
        let sum = self.value + events;
        self.value = sum & MASK;
        sum > MASK
    }

    /// The least number of instructions and page walks after which the counter may have overflowed;
    /// `None`: never.
    pub fn instructions_to_overflow(&self, source: Source, before: &Retired) -> Option<u64> {
        let events = MASK + 1 - self.value;
        match source {
            Source::Nothing => None,
            Source::Share(share) => Some(share.least(self.phase, before, events)),
            Source::CyclesWithout(_) => Some(CYCLES.least(self.cycles, before, events)),
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

    const NOTHING: Retired = [0; retired::COUNTS];

    fn exact() -> Source {
        crate::event::INSTRUCTIONS
    }

    #[test]
    fn wraps_around_at_48_bits_and_says_so() {
        let mut counter = Counter::default();
        counter.set(MASK - 1);
        assert!(!counter.count(exact(), &NOTHING, &instructions(1)));
        assert_eq!(counter.value(), MASK);
        assert!(counter.count(exact(), &NOTHING, &instructions(5)));
        assert_eq!(counter.value(), 4);
    }

    #[test]
    fn a_rate_keeps_its_remainder() {
        let mut counter = Counter::default();
        for _ in 0..4 {
            counter.count(Source::rate(7, 4), &NOTHING, &instructions(1));
        }
        assert_eq!(counter.value(), 7);
        for before in 0..1000 {
            counter.count(
                Source::rate(1, 1000),
                &instructions(7 * before),
                &instructions(7),
            );
        }
        assert_eq!(counter.value(), 7 + 7);
    }

    #[test]
    fn a_write_drops_the_remainder() {
        let mut counter = Counter::default();
        counter.count(Source::Share(CYCLES), &NOTHING, &instructions(1));
        counter.set(0);
        counter.count(Source::Share(CYCLES), &NOTHING, &instructions(1));
        assert_eq!(counter.value(), 1);
    }

    /// Two events take turns on a counter: each gets its share of what was counted for it, wherever
    /// in the whole that begins and however often the counter is written.
    #[test]
    fn a_part_does_not_care_for_writes() {
        for share in [
            Share::of(&[retired::INSTRUCTIONS], 0, 8, 4096),
            Share::of(&[retired::INSTRUCTIONS], 8, 32, 4096),
            Share::of(&[retired::INSTRUCTIONS], 0, 5, 100),
        ] {
            let (mut value, mut all, mut counted) = (0, 0, 0);
            for turn in 0..20_000 {
                let mut counter = Counter::default();
                counter.set(value);
                let things = 300 + 7 * (turn % 50);
                counter.count(
                    Source::Share(share),
                    &instructions(all),
                    &instructions(things),
                );
                value = counter.value();
                counted += things;
                all += things + 500 + 11 * (turn % 30);
            }
            let exact =
                counted as u64 * u64::from(share.high - share.low) / u64::from(share.denominator);
            assert!(
                value.abs_diff(exact) * 100 < exact,
                "{share:?}: {value}, not {exact}"
            );
        }
    }

    /// The promise to QEMU: not a single overflow before that many instructions, and with a rate
    /// one right then.
    #[test]
    fn instructions_to_overflow_is_exact_for_rates() {
        for source in [
            Source::rate(3, 2),
            Source::rate(5, 4),
            Source::rate(7, 1024),
            Source::Share(Share::of(&[retired::INSTRUCTIONS], 12, 16, 4096)),
            exact(),
        ] {
            for left in [1, 2, 10, 1000] {
                let mut counter = Counter::default();
                counter.set(MASK + 1 - left);
                counter.phase = 5;
                let before = instructions(5);
                let needed = counter.instructions_to_overflow(source, &before).unwrap() as i64;
                assert!(!counter
                    .clone()
                    .count(source, &before, &instructions(needed - 1)));
                assert!(counter.count(source, &before, &instructions(needed)));
            }
        }
        assert_eq!(
            Counter::default().instructions_to_overflow(Source::Nothing, &NOTHING),
            None
        );
    }

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
