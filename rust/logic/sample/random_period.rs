// SPDX-License-Identifier: GPL-2.0

//! Randomised sample periods: each is the requested one plus a random number under a mask.
//!
//! With a fixed period that is a multiple of a loop's length, all samples of the loop fall on one
//! instruction. The generator is SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom
//! Number Generators", 2014): one word of state, which may have any value, and no lock.
//!
//! Any context, NMI included: the module only contains integer arithmetic that cannot panic.

/// The random part of an event's sample periods: `rand_mask` and `rand_seed` of attr.config3.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sample::random_period::RandomPeriods;
///
/// let random = RandomPeriods::from_config3((7 << 32) | 0xfff);
/// let state = random.first_state(0);
/// let (first, state) = random.draw(100_000, state);
/// let (second, _) = random.draw(100_000, state);
/// assert!((100_000..=104_095).contains(&first));
/// assert_ne!(first, second);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomPeriods {
    /// The bits that vary; 0 if periods are fixed.
    mask: u32,
    /// The seed; 0 for a random one.
    seed: u32,
}

impl RandomPeriods {
    /// No randomisation.
    pub const NONE: Self = Self { mask: 0, seed: 0 };

    /// Decodes attr.config3.
    pub const fn from_config3(config3: u64) -> Self {
        Self {
            // CAST: mask and seed are the two halves.
            mask: config3 as u32,
            seed: (config3 >> 32) as u32,
        }
    }

    /// Returns whether periods vary.
    #[inline]
    pub const fn vary(self) -> bool {
        self.mask != 0
    }

    /// Returns whether periods of at least `period` may vary under the mask. The mask has to be
    /// smaller than the period, so that no period is twice as long as another.
    pub const fn suit(self, period: u64) -> bool {
        !self.vary() || (self.mask as u64) < period
    }

    /// Returns the generator's first state: from the seed, or without one from the random number
    /// `chance`.
    pub const fn first_state(self, chance: u64) -> u64 {
        if self.seed != 0 {
            self.seed as u64
        } else {
            chance
        }
    }

    /// Returns a period, at most `i64::MAX`, for an event whose requested period is `period`, and
    /// the generator's next state.
    #[must_use]
    pub const fn draw(self, period: u64, state: u64) -> (u64, u64) {
        const LONGEST: u64 = i64::MAX as u64;
        const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

        let state = state.wrapping_add(INCREMENT);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let drawn = period.saturating_add(bits & self.mask as u64);
        (if drawn < LONGEST { drawn } else { LONGEST }, state)
    }
}

#[cfg(test)]
mod tests;
