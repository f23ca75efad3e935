// SPDX-License-Identifier: GPL-2.0

//! The state of an event's sample periods that outlives its counter. (The perf core's part of the
//! event holds the remainder of the current period.)
//!
//! Callbacks and the PMI on the event's CPU use it, so its fields are atomics.

use crate::{
    driver::hw::Hardware,
    logic::sample::random_period::RandomPeriods, //
};
use core::sync::atomic::{
    AtomicBool,
    AtomicI64,
    AtomicU64,
    Ordering::Relaxed, //
};

/// The state of an event's sample periods.
pub(in crate::driver) struct Periods {
    /// Their random part.
    pub(in crate::driver) random: RandomPeriods,
    /// The state of the random number generator.
    state: AtomicU64,
    /// Set if the event was stopped after an overflow that the processor had not recorded yet.
    owes_record: AtomicBool,
    /// The occurrences by which past periods were too long, because counters cannot be started with
    /// every value.
    surplus: AtomicI64,
}

impl Periods {
    pub(super) fn new(random: RandomPeriods, state: u64) -> Self {
        Self {
            random,
            state: AtomicU64::new(state),
            owes_record: AtomicBool::new(false),
            surplus: AtomicI64::new(0),
        }
    }

    /// Returns the length of the next period: `period` with its random part.
    pub(in crate::driver) fn next(&self, period: u64) -> u64 {
        if !self.random.vary() {
            return period;
        }
        let (period, state) = self.random.draw(period, self.state.load(Relaxed));
        self.state.store(state, Relaxed);
        period
    }

    /// Records that the counter of the event, which is precise, was stopped at `value`.
    ///
    /// The processor records an overflow with the next occurrence. If the counter is stopped before
    /// that, there is no record, and mainline begins a new period without a sample of the old one.
    /// Here the next period is as short as possible, so that the sample is taken late.
    pub(in crate::driver) fn stopped_at(&self, value: u64, hardware: &Hardware) {
        let owes = hardware.limits.width.sign_extend(value) >= 0;
        self.owes_record.store(owes, Relaxed);
    }

    /// Returns whether a record is owed ([`stopped_at`](Self::stopped_at)), and clears the debt.
    pub(in crate::driver) fn take_owed_record(&self) -> bool {
        let owes = self.owes_record.load(Relaxed);
        if owes {
            self.owes_record.store(false, Relaxed);
        }
        owes
    }

    /// Returns the occurrences until the next sample: `left`, less the surplus of earlier periods
    /// if at least `shortest` remain. For events with auto-reload: a reload cannot make up for a
    /// surplus, a start can.
    pub(in crate::driver) fn without_surplus(&self, left: i64, shortest: i64) -> i64 {
        let surplus = self.surplus.load(Relaxed);
        let rest = left.wrapping_sub(surplus);
        if surplus == 0 || rest < shortest {
            return left;
        }
        self.surplus.store(0, Relaxed);
        rest
    }

    /// Adds to the surplus the occurrences by which a counter that starts at `value` overflows
    /// later than after `left`.
    pub(in crate::driver) fn add_surplus(&self, value: u64, left: i64, hardware: &Hardware) {
        let programmed = hardware.limits.width.sign_extend(value).wrapping_neg();
        self.surplus
            .fetch_add(programmed.wrapping_sub(left), Relaxed);
    }
}
