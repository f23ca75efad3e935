// SPDX-License-Identifier: GPL-2.0

//! An event that has passed the checks, and its first period.

use super::{
    attr::{
        Attributes,
        EventType, //
    },
    precise::Precise,
    topdown::SLOTS, //
};
use crate::logic::{
    model::{
        constraint::Constraint,
        demand::{
            Key,
            Requirement,
            Unshared, //
        },
        HardwareId, //
    },
    pmu::PmuInfo,
    regs::{
        counter::CounterId,
        event_select::EventSelect,
        global::CountsIn,
        period::PeriodLimits, //
    },
    sample::{
        lbr,
        random_period::RandomPeriods, //
    },
};

/// An event that has passed its own checks; its group is checked later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event select for `hw.config`, without the enable bit.
    pub select: EventSelect,
    /// The extra register value that the event needs.
    pub requirement: Option<Requirement>,
    /// The branches that samples contain, or that are needed to find their addresses.
    pub branches: Option<lbr::Request>,
    /// The way in which precise samples are taken.
    pub precise: Option<Precise>,
    /// The period for `hw.sample_period`, `hw.last_period` and `hw.period_left`.
    pub period: u64,
    /// The random part of its periods.
    pub random: RandomPeriods,
    /// Set if each overflow ends the turn of the groups on the CPU.
    pub switches: bool,
    /// The places where the event counts.
    pub counts_in: CountsIn,
}

impl Event {
    /// Returns the counters that may count the event on `pmu`; none if no counter is precise for
    /// it. KVM's event for the branch records of a guest gets only [`CounterId::GUEST_BRANCHES`],
    /// which stands for the records.
    pub fn constraint(&self, pmu: &PmuInfo) -> Constraint {
        if self.branches.is_some_and(|request| request.is_of_guest()) {
            return Constraint::any_of(CounterId::GUEST_BRANCHES.mask());
        }
        match self.precise {
            Some(precise) => pmu.precise_constraint(self.select, precise.level),
            None => pmu.constraint(self.select),
        }
    }

    /// Returns the key of the events that can share a counter with the event, which has this
    /// `constraint`. `samples` is set if it is sampled.
    ///
    /// An event shares no counter if it needs more than a counter, if aborted TSX transactions take
    /// its counts back, or if other cores use the counter, too.
    pub fn key(&self, constraint: Constraint, samples: bool) -> Key {
        let Constraint {
            counters,
            pair,
            northbridge,
            ..
        } = constraint;
        let key = Key::new(self.select, self.counts_in, samples);
        if self.precise.is_some() {
            return key.unshared(Unshared::Precise);
        }
        let needs_more = pair
            || counters.has_metrics()
            || counters.contains(CounterId::GUEST_BRANCHES)
            // Metrics may join the slots.
            || self.select.code() == SLOTS;
        if needs_more || northbridge || self.select.has(EventSelect::IN_TX_CHECKPOINTED) {
            return key.unshared(Unshared::Kind);
        }
        key
    }
}

/// Returns the period of an event. Counting events have the longest one.
pub(super) fn period(attr: &Attributes, limits: PeriodLimits, select: EventSelect) -> u64 {
    match (attr.sample_period != 0, attr.freq) {
        (false, _) => limits.max_period,
        (true, false) => attr.sample_period,
        (true, true) => first_period(attr, limits, select),
    }
}

/// Returns the first period of an event with a sample frequency; the perf core adjusts it later.
///
/// Based on an estimate of the event's rate on a CPU at 1 GHz that is idle half of the time.
/// Mainline: `intel_pmu_freq_start_period()`, `arch/x86/events/intel/core.c`, on Intel's PMUs only.
fn first_period(attr: &Attributes, limits: PeriodLimits, select: EventSelect) -> u64 {
    const OFTEN: u64 = 500_000_000;
    const BRANCHES: u64 = OFTEN / 4;
    const CACHES: u64 = OFTEN / 20;
    /// For events with an unknown rate. At perf's default frequency of 4000, the period is half of
    /// 127, the shortest one that Intel recommends for any event.
    const UNKNOWN: u64 = 64 * 4000;

    let rate = match attr.event_type {
        EventType::Hardware => match HardwareId::from_config(attr.config) {
            Some(HardwareId::BranchInstructions | HardwareId::BranchMisses) => BRANCHES,
            Some(HardwareId::CacheReferences | HardwareId::CacheMisses) => CACHES,
            _ => OFTEN,
        },
        EventType::HwCache => CACHES,
        EventType::Raw | EventType::Other => UNKNOWN,
    };
    let period = rate.div_ceil(attr.sample_period.max(1)) - 1;
    // With a frequency above the rate, mainline begins with a period of 0.
    let period = period.min(limits.max_period).max(1);
    // CAST: at most `OFTEN`, before and after.
    limits.rule.apply(select, period as i64) as u64
}
