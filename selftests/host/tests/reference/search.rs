// SPDX-License-Identifier: GPL-2.0

//! A complete search for a placement, for up to eight general-purpose counters and four fixed ones.
//!
//! It shares no code with `rust/logic`, and uses no standard library: the module that calls the
//! kernel's functions (`selftests/assign`) includes it, too.

use super::mainline::Want;

const GP: u32 = 8;
const FIXED: u32 = 4;

/// The counters that the search supports.
pub const COUNTERS: u64 = ((1 << GP) - 1) | (((1 << FIXED) - 1) << 32);

/// The sets of counters that the placements of the events so far use, a bit for each set.
#[derive(Clone)]
pub struct Placements([u64; 1 << (GP + FIXED - 6)]);

impl Placements {
    /// Returns the placements of no events: one, which uses no counter.
    pub fn none() -> Self {
        let mut sets = [0; 64];
        sets[0] = 1;
        Self(sets)
    }

    /// Returns the placements with one more event.
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

    /// Returns whether one placement uses at most `gp_limit` general-purpose counters.
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

/// Returns whether all of `wants` fit.
pub fn fits(wants: &[Want], gp_limit: u32) -> bool {
    let none = Placements::none();
    let all = wants.iter().fold(none, |some, want| some.and(want));
    all.within(gp_limit)
}

/// Returns whether `counters` gives each event an allowed counter of its own, within the limit.
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

/// Packs the general-purpose and the fixed counters side by side.
fn compact(counters: u64) -> u32 {
    let gp = counters as u32 & ((1 << GP) - 1);
    let fixed = (counters >> 32) as u32 & ((1 << FIXED) - 1);
    gp | (fixed << GP)
}
