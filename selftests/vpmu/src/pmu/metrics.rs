// SPDX-License-Identifier: GPL-2.0

//! MSR_PERF_METRICS: the shares of the slots that fixed counter 3 has counted (SDM vol. 3, 20.3.9,
//! "Performance Metrics").
//!
//! Behind each share is a counter. A read divides it by fixed counter 3; a write multiplies by
//! fixed counter 3, which therefore has to be written first. Either is meaningful only if both
//! registers started from zero together, or were restored together.

use super::registers::{
    FIXED_PMI,
    FIXED_SHIFT, //
};
use super::state::Pmu;
use crate::counter::MASK;
use crate::event::topdown::{
    shares,
    LEVEL_1,
    PARTS,
    SHARES, //
};
use crate::retired::Retired;
use crate::share::CYCLES;

/// The enable bit in IA32_PERF_GLOBAL_CTRL, and the overflow bit in IA32_PERF_GLOBAL_STATUS.
pub(super) const METRICS_BIT: usize = 48;
pub(super) const METRICS: u64 = 1 << METRICS_BIT;

/// The fixed counter of the slots.
pub(super) const SLOTS_COUNTER: usize = 3;

/// The share that is the whole. All shares of level 1 add up to it.
const WHOLE: u64 = 0xff;
/// A share's counter counts [`WHOLE`] * `UNIT` units per slot, so that a 16th of an instruction's
/// slots is a whole number of units.
const UNIT: u64 = 32;
/// A share's counter overflows here, as fixed counter 3 would.
const LIMIT: u64 = (MASK + 1) * WHOLE * UNIT;

/// The counters behind MSR_PERF_METRICS.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Slots of each share, in units of 1 / ([`WHOLE`] * [`UNIT`]).
    counters: [u64; SHARES],
}

impl Pmu {
    /// Returns the number of shares in MSR_PERF_METRICS; 0 if the register does not exist.
    pub(super) fn metrics(&self) -> usize {
        if self.existing().1 > SLOTS_COUNTER {
            self.model.metrics
        } else {
            0
        }
    }

    /// Returns the writable bits of MSR_PERF_METRICS: 8 for each share.
    pub(super) fn metrics_bits(&self) -> u64 {
        (0..self.metrics()).fold(0, |bits, index| bits | (WHOLE << (8 * index)))
    }

    /// Returns the units of a share's counter for one of the [`PARTS`] of an instruction.
    fn unit(&self) -> u64 {
        let slots = CYCLES.times(self.model.slots, 1);
        WHOLE * UNIT * u64::from(slots.high) / (u64::from(slots.denominator) * PARTS)
    }

    /// Returns MSR_PERF_METRICS. Without slots all shares are 0, by declaration.
    ///
    /// The bounds between the shares of level 1 are rounded, so that these add up to 255. A share
    /// is off by less than one.
    pub(super) fn read_metrics(&self) -> u64 {
        let slots = self.regs.fixed[SLOTS_COUNTER].value() * UNIT;
        if slots == 0 {
            return 0;
        }
        let counters = &self.regs.metrics.counters[..self.metrics()];
        let mut sum = 0;
        let mut bound = 0;
        let mut value = 0;
        for (index, counter) in counters.iter().enumerate() {
            let share = if index < LEVEL_1 {
                sum += counter;
                let next = (sum + slots / 2) / slots;
                next - std::mem::replace(&mut bound, next)
            } else {
                (counter + slots / 2) / slots
            };
            value |= share.min(WHOLE) << (8 * index);
        }
        value
    }

    /// Writes MSR_PERF_METRICS, a value without reserved bits.
    pub(super) fn write_metrics(&mut self, value: u64) {
        let slots = self.regs.fixed[SLOTS_COUNTER].value() * UNIT;
        for (index, counter) in self.regs.metrics.counters.iter_mut().enumerate() {
            *counter = ((value >> (8 * index)) & WHOLE) * slots;
        }
    }

    /// Counts the shares of what retired at CPL 0 or, if `user`, above.
    pub(super) fn count_metrics(&mut self, user: bool, retired: &Retired) {
        let (unit, metrics) = (self.unit(), self.metrics());
        let mut overflow = false;
        let counters = &mut self.regs.metrics.counters[..metrics];
        for (counter, share) in counters.iter_mut().zip(shares(user, retired)) {
            *counter += share * unit;
            overflow |= *counter >= LIMIT;
            *counter %= LIMIT;
        }
        self.overflowed(overflow, METRICS_BIT, self.metrics_interrupt());
    }

    /// Returns whether an overflow of a share's counter raises a PMI, like an overflow of fixed
    /// counter 3.
    fn metrics_interrupt(&self) -> bool {
        self.fixed_field(SLOTS_COUNTER) & FIXED_PMI != 0
    }

    /// Returns the minimum number of instructions until a share's counter overflows and raises a
    /// PMI. `active` are the counters that count.
    pub(super) fn instructions_to_metrics_overflow(&self, active: u64) -> Option<u64> {
        if active & METRICS == 0 || !self.metrics_interrupt() {
            return None;
        }
        let most = *self.regs.metrics.counters.iter().max()?;
        Some((LIMIT - most).div_ceil(PARTS * self.unit()))
    }

    /// Returns the bit of IA32_PERF_GLOBAL_CTRL if the shares are counted. `active` are the
    /// counters that count: they must include fixed counter 3.
    pub(super) fn metrics_active(&self, active: u64) -> u64 {
        let slots = active << (METRICS_BIT - (FIXED_SHIFT + SLOTS_COUNTER));
        slots & self.regs.global_ctrl & METRICS
    }
}
