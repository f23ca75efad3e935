// SPDX-License-Identifier: GPL-2.0

//! Merged counters (PPR of family 17h, "Large Increment per Cycle Events").
//!
//! An event with more increments per cycle than a counter can add needs an even counter and the
//! next one, whose PERF_CTL selects event FFFh and is enabled. The odd counter then has bits 63:48
//! of the count.

use crate::pmu::registers::EN;
use crate::pmu::state::Pmu;
use crate::select::amd::is_merge;
use crate::share::Source;

/// The odd counter's part of a merged counter.
const HIGH: u64 = 0xffff;

impl Pmu {
    /// Returns whether this counter is the even one of a merged pair.
    pub(in crate::pmu) fn is_merged(&self, index: usize) -> bool {
        let odd = self.regs.general[..self.generals].get(index | 1);
        self.model.amd().is_some_and(|amd| amd.merge)
            && index & 1 == 0
            && odd.is_some_and(|odd| is_merge(odd.select) && odd.select & EN != 0)
    }

    /// Returns what a counter with this source counts: all of it, unless the event needs a merged
    /// pair and the counter is not the even one of such a pair. A single counter loses increments;
    /// the lost share is not documented, here it is half.
    pub(in crate::pmu) fn unless_lost(&self, index: usize, source: Source) -> Source {
        if self.regs.general[index].large && !self.is_merged(index) {
            source.times(1, 2)
        } else {
            source
        }
    }

    /// Carries the overflow of an even counter into the odd one, if the pair is merged. Returns
    /// whether the pair overflowed; true if the counter is not merged, as it has overflowed itself.
    pub(in crate::pmu) fn carry(&mut self, index: usize) -> bool {
        if !self.is_merged(index) {
            return true;
        }
        let odd = &mut self.regs.general[index | 1].counter;
        let sum = (odd.value() & HIGH) + 1;
        odd.set(sum & HIGH);
        sum > HIGH
    }
}
