// SPDX-License-Identifier: GPL-2.0

//! The counters.

use crate::retired::Retired;
use crate::share::{
    Source,
    CYCLES, //
};

/// Width of most models' counters, in bits.
pub(crate) const WIDTH: u32 = 48;
/// Mask of the bits of such a counter.
pub(crate) const MASK: u64 = (1 << WIDTH) - 1;

/// A counter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    /// Mask of its bits.
    mask: u64,
    value: u64,
    /// Occurrences since the last whole, if the source's share is not a part of the occurrences
    /// ([`Share`](crate::share::Share)).
    phase: u64,
    /// The same for the cycles of [`Source::CyclesWithout`].
    cycles: u64,
}

impl Counter {
    /// Returns a counter with this mask of its bits.
    pub(crate) fn new(mask: u64) -> Self {
        Counter {
            mask,
            value: 0,
            phase: 0,
            cycles: 0,
        }
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// Writes the counter.
    pub(crate) fn set(&mut self, value: u64) {
        *self = Counter {
            value: value & self.mask,
            ..Counter::new(self.mask)
        };
    }

    /// Starts counting another source from the current value.
    pub(crate) fn change_source(&mut self) {
        self.set(self.value);
    }

    /// Returns the number of events of `source` in `retired`, to be added with [`Counter::add`].
    /// `before` is the total that retired earlier at the privilege levels and on the threads that
    /// the counter counts. Neither has negative counts.
    pub(crate) fn events(&mut self, source: Source, before: &Retired, retired: &Retired) -> u64 {
        match source {
            Source::Nothing => 0,
            Source::Share(share) => share.count(&mut self.phase, before, retired),
            Source::CyclesWithout(share) => {
                let cycles = CYCLES.count(&mut self.cycles, before, retired);
                cycles.saturating_sub(share.count(&mut self.phase, before, retired))
            }
        }
    }

    /// Adds events. Returns whether the counter overflowed.
    pub(crate) fn add(&mut self, events: u64) -> bool {
        let sum = self.value + events;
        self.value = sum & self.mask;
        sum > self.mask
    }

    /// Subtracts events, as no real counter does.
    pub(crate) fn subtract(&mut self, events: u64) {
        self.value = self.value.wrapping_sub(events) & MASK;
    }

    /// Returns the minimum number of instructions, page walks and interrupts until the counter may
    /// overflow, or `None` if it cannot.
    pub(crate) fn instructions_to_overflow(&self, source: Source, before: &Retired) -> Option<u64> {
        self.instructions_to(self.mask + 1 - self.value, source, before)
    }

    /// Returns the minimum number of instructions, page walks and interrupts until this many events
    /// may have happened, or `None` if the source has no events.
    pub(crate) fn instructions_to(
        &self,
        events: u64,
        source: Source,
        before: &Retired,
    ) -> Option<u64> {
        match source {
            Source::Nothing => None,
            Source::Share(share) => Some(share.min_instructions(self.phase, before, events)),
            Source::CyclesWithout(_) => Some(CYCLES.min_instructions(self.cycles, before, events)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retired;
    use crate::share::Share;

    impl Default for Counter {
        fn default() -> Self {
            Counter::new(MASK)
        }
    }

    impl Counter {
        /// Counts the events of `source` in `retired`. Returns whether the counter overflowed.
        pub(crate) fn count(
            &mut self,
            source: Source,
            before: &Retired,
            retired: &Retired,
        ) -> bool {
            let events = self.events(source, before, retired);
            self.add(events)
        }
    }

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

    /// An event that shares its counter with another one gets its share of the time that it
    /// counted, regardless of the start of that time and of the number of writes to the counter.
    #[test]
    fn a_part_is_independent_of_writes() {
        for share in [
            Share::new(&[retired::INSTRUCTIONS], 0, 8, 4096),
            Share::new(&[retired::INSTRUCTIONS], 8, 32, 4096),
            Share::new(&[retired::INSTRUCTIONS], 0, 5, 100),
        ] {
            let (mut value, mut all, mut counted) = (0, 0, 0);
            for turn in 0..20_000 {
                let mut counter = Counter::default();
                counter.set(value);
                let occurrences = 300 + 7 * (turn % 50);
                counter.count(
                    Source::Share(share),
                    &instructions(all),
                    &instructions(occurrences),
                );
                value = counter.value();
                counted += occurrences;
                all += occurrences + 500 + 11 * (turn % 30);
            }
            let exact =
                counted as u64 * u64::from(share.high - share.low) / u64::from(share.denominator);
            assert!(
                value.abs_diff(exact) * 100 < exact,
                "{share:?}: {value}, not {exact}"
            );
        }
    }

    /// QEMU relies on this: a counter never overflows before this many instructions, and a rate
    /// overflows exactly then.
    #[test]
    fn instructions_to_overflow_is_exact_for_rates() {
        for source in [
            Source::rate(3, 2),
            Source::rate(5, 4),
            Source::rate(7, 1024),
            Source::Share(Share::new(&[retired::INSTRUCTIONS], 12, 16, 4096)),
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
}
