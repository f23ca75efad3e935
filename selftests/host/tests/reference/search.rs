// SPDX-License-Identifier: GPL-2.0

//! A complete search for a placement, for up to eight general-purpose counters and four fixed ones.
//!
//! It shares nothing with `rust/logic`. No standard library: the module that calls the kernel's own
//! functions includes it, too (`selftests/assign`).

use super::mainline::Want;

const GP: u32 = 8;
const FIXED: u32 = 4;

/// The counters that can be searched.
pub const COUNTERS: u64 = ((1 << GP) - 1) | (((1 << FIXED) - 1) << 32);

/// Every set of counters that some placement of the events so far uses: a bit for each set.
#[derive(Clone)]
pub struct Placements([u64; 1 << (GP + FIXED - 6)]);

impl Placements {
    /// Those of no events: one, that uses no counter.
    pub fn none() -> Self {
        let mut sets = [0; 64];
        sets[0] = 1;
        Self(sets)
    }

    /// With one event more.
    pub fn and(&self, want: &Want) -> Self {
        let mut next = [0; 64];
        for used in self.sets() {
            let mut left = compact(want.counters);
            while left != 0 {
                let bit = left & left.wrapping_neg();
                left &= !bit;
                let takes = if want.pair { bit | (bit << 1) } else { bit };
                if used & takes == 0 {
                    let with = used | takes;
                    next[(with / 64) as usize & 63] |= 1 << (with % 64);
                }
            }
        }
        Self(next)
    }

    /// Whether one of them uses at most so many general-purpose counters.
    pub fn within(&self, gp_limit: u32) -> bool {
        self.sets()
            .any(|used| (used & ((1 << GP) - 1)).count_ones() <= gp_limit)
    }

    fn sets(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.0).flat_map(|(number, word)| {
            let mut left = *word;
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(number * 64 + bit)
            })
        })
    }
}

/// Whether there is a counter for every one of `wants`.
pub fn fits(wants: &[Want], gp_limit: u32) -> bool {
    let none = Placements::none();
    let all = wants.iter().fold(none, |some, want| some.and(want));
    all.within(gp_limit)
}

/// Every event on counters of its own that will do, and not too many general-purpose ones.
pub fn is_valid(wants: &[Want], gp_limit: u32, counters: &[u8]) -> bool {
    let mut used = 0u64;
    wants.len() <= counters.len()
        && wants.iter().zip(counters).all(|(want, counter)| {
            let bit = 1u64 << (counter & 63);
            let takes = if want.pair { bit | (bit << 1) } else { bit };
            let valid = want.counters & bit != 0 && used & takes == 0;
            used |= takes;
            valid
        })
        && (used as u32).count_ones() <= gp_limit
}

/// The general-purpose counters and the fixed ones side by side.
fn compact(counters: u64) -> u32 {
    let gp = counters as u32 & ((1 << GP) - 1);
    let fixed = (counters >> 32) as u32 & ((1 << FIXED) - 1);
    gp | (fixed << GP)
}
