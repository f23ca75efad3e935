// SPDX-License-Identifier: GPL-2.0

//! The topdown metrics: PERF_METRICS, whose bytes are shares of the slots that fixed counter 3 has
//! counted.
//!
//! Both registers start at 0 together, and the shares hold for all slots since then. So a metric's
//! count is the product of share and slots, and grows by the difference to the previous product.
//! Since shares are rounded, a product can fall; the count then stays until the product has passed
//! its old value.
//!
//! Source: SDM volume 3, section 20.3.9; mainline: `icl_update_topdown_event()`,
//! `arch/x86/events/intel/core.c`.
//!
//! Any context, NMI included.

use super::{
    counter::{
        CounterId,
        CounterKind,
        CounterMask, //
    },
    period::CounterWidth, //
};

/// The share that stands for all slots.
const WHOLE: u64 = 0xff;

/// The counters of the slots and of the metrics.
pub const TOPDOWN: CounterMask = CounterId::SLOTS.mask().union(CounterMask::ALL.metrics());

/// The values of both registers. They belong to the same moment only if neither counts while they
/// are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The slots counted since both registers were 0.
    pub slots: u64,
    /// PERF_METRICS: a byte per metric.
    pub shares: u64,
}

impl Metrics {
    /// Adds the slots of one overflow of fixed counter 3, which has this `width`.
    #[must_use]
    pub const fn overflowed(self, width: CounterWidth) -> Self {
        Self {
            slots: self.slots.wrapping_add(width.mask()).wrapping_add(1),
            ..self
        }
    }

    /// Returns the slots of `counter`: for a metric its share of them, rounded down, otherwise all.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::{counter::CounterId, metrics::Metrics};
    ///
    /// let metrics = Metrics { slots: 1000, shares: 0x33_99 };
    /// assert_eq!(metrics.count(CounterId::SLOTS), 1000);
    /// assert_eq!(metrics.count(CounterId::metric(0).unwrap()), 600);
    /// assert_eq!(metrics.count(CounterId::metric(1).unwrap()), 200);
    /// ```
    pub const fn count(self, counter: CounterId) -> u64 {
        match counter.kind() {
            CounterKind::Metric(n) => {
                let share = self.shares.wrapping_shr(8 * n as u32) & WHOLE;
                // At most 49 bits times 8 bits.
                self.slots.wrapping_mul(share) / WHOLE
            }
            _ => self.slots,
        }
    }
}

/// Returns the increase of a count from `before` to `now`; 0 if it has fallen.
pub const fn increase(before: u64, now: u64) -> u64 {
    now.saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_slots() {
        let all = Metrics {
            slots: (1 << 49) - 1,
            shares: 0xff01_8000_00ff_7f02,
        };
        let counts: Vec<u64> = (0..8)
            .map(|n| all.count(CounterId::metric(n).unwrap()))
            .collect();
        let share = |share: u128| (u128::from(all.slots) * share / 255) as u64;
        let expected = [2, 0x7f, 0xff, 0, 0, 0x80, 1, 0xff].map(share);
        assert_eq!(counts, expected);
        assert_eq!(all.count(CounterId::SLOTS), all.slots);
    }

    #[test]
    fn a_counter_that_overflows_has_counted_its_range() {
        let width = CounterWidth::new(48).unwrap();
        let metrics = Metrics {
            slots: 5,
            shares: 0xff,
        };
        assert_eq!(metrics.overflowed(width).slots, (1 << 48) + 5);
    }

    #[test]
    fn a_falling_share_loses_and_repeats_no_count() {
        let metric = CounterId::metric(0).unwrap();
        let (mut count, mut before) = (0, 0);
        for (slots, share) in [(1000, 10), (1010, 9), (1020, 10), (1030, 9), (1040, 10)] {
            let now = Metrics {
                slots,
                shares: share,
            }
            .count(metric);
            let new = increase(before, now);
            count += new;
            if new != 0 {
                before = now;
            }
        }
        assert_eq!(count, 1040 * 10 / 255);
    }
}
