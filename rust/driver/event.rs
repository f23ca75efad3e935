// SPDX-License-Identifier: GPL-2.0

//! The driver's data of an event: what it asks for, and what it keeps while it is on no counter.
//!
//! How it counts on a counter is in [`counter_use`](super::counter_use) and
//! [`counting`](super::counting).

mod last_place;
mod periods;

use super::{
    counter_use::Way,
    hw::Hardware,
    machine::rdpmc::Page,
    rotation::turn::Turn,
    Driver, //
};
use crate::{
    logic::{
        model::{
            constraint::Constraint,
            demand::Demand,
            HardwareId, //
        },
        open::{
            event::Event as Configured,
            precise::Precise, //
        },
        regs::{
            counter::CounterId,
            event_select::EventSelect,
            global::CountsIn,
            period::PeriodLimits, //
        },
        sample::lbr::Request, //
    },
    perf,
    perf_core::EventState,
    x86::branches::NoTracers, //
};
use core::sync::atomic::{
    AtomicU8,
    Ordering::Relaxed, //
};
use last_place::LastPlace;
use periods::Periods;

/// The driver's data of an event.
///
/// Fields that change are atomic: the PMI on the event's CPU changes them too.
pub(crate) struct EventData {
    /// The event select, as requested.
    pub(super) select: EventSelect,
    /// The counters and the extra register that can count it.
    pub(super) demand: Demand,
    /// The branches that its samples have, or are found with.
    pub(super) branches: Option<Request>,
    /// Keeps Intel PT and BTS away from the branch records.
    _no_tracers: Option<NoTracers>,
    /// How its samples are taken, if that is done precisely.
    pub(super) precise: Option<Precise>,
    /// Where it counts.
    pub(super) counts_in: CountsIn,
    /// Set if each overflow ends the turn of the groups on the CPU.
    pub(super) switches: bool,
    /// The readers of its mmap page.
    pub(super) page: Page,
    /// How it is to count, a [`Way`].
    way: AtomicU8,
    /// Its sample periods so far.
    pub(super) periods: Periods,
    /// Rotation's state of it.
    pub(super) turn: Turn,
    /// Where it was last.
    pub(super) last_place: LastPlace,
    /// For [`perf_core`](crate::perf_core).
    pub(super) internals: EventState,
}

impl EventData {
    pub(super) fn new(
        event: Configured,
        constraint: Constraint,
        random_state: u64,
        page: Page,
        no_tracers: Option<NoTracers>,
    ) -> Self {
        Self {
            select: event.select,
            demand: Demand {
                constraint,
                requirement: event.requirement,
                lbr_select: event.branches.map(|request| request.select),
            },
            branches: event.branches,
            _no_tracers: no_tracers,
            counts_in: event.counts_in,
            switches: event.switches,
            page,
            precise: event.precise,
            way: AtomicU8::new(Way::of(constraint, event.precise) as u8),
            periods: Periods::new(event.random, random_state),
            turn: Turn::new(),
            last_place: LastPlace::new(),
            internals: EventState::default(),
        }
    }

    /// Returns what the event was configured as, but with this `period`.
    pub(super) fn configured(&self, period: u64) -> Configured {
        Configured {
            select: self.select,
            requirement: self.demand.requirement,
            branches: self.branches,
            precise: self.precise,
            period,
            random: self.periods.random,
            switches: self.switches,
            counts_in: self.counts_in,
        }
    }

    /// Returns how the event is to count when it next gets a counter. How it counts on that one is
    /// in its [`CounterUse`](super::counter_use::CounterUse).
    #[inline]
    pub(super) fn way(&self) -> Way {
        Way::from_number(self.way.load(Relaxed))
    }

    /// Returns whether records of the event may wait in the buffer.
    pub(super) fn can_wait(&self) -> bool {
        self.precise.is_some_and(|precise| precise.can_wait)
    }

    /// Returns whether the event is a topdown metric.
    pub(super) fn is_metric(&self) -> bool {
        self.way() == Way::Metric
    }

    /// Makes the event, which counts slots, count with PERF_METRICS: a metric has joined its group.
    ///
    /// Process context. The event may be counting on another CPU. It goes on, and starts anew
    /// before the metric counts, since the perf core then removes and adds the whole group.
    pub(super) fn lead_metrics(&self) {
        self.way.store(Way::Slots as u8, Relaxed);
    }

    /// Returns whether the event counts a TSX transaction's occurrences only if that commits.
    pub(super) fn is_checkpointed(&self) -> bool {
        self.select.has(EventSelect::IN_TX_CHECKPOINTED)
    }

    /// Returns the limits of its start values.
    #[inline]
    pub(super) fn limits(&self, hardware: &Hardware) -> PeriodLimits {
        match self.precise {
            Some(precise) => hardware.limits.for_precision(precise.level),
            None => hardware.limits,
        }
    }

    /// Returns whether `period` is shorter than the CPU allows for the event.
    pub(super) fn is_too_short(&self, hardware: &Hardware, period: u64) -> bool {
        self.limits(hardware).is_too_short(self.select, period)
    }

    /// Returns whether a sample of each occurrence would be one of each branch, which takes BTS.
    pub(super) fn counts_branches(&self, hardware: &Hardware) -> bool {
        if hardware.amd().is_some() {
            return false;
        }
        let branches = hardware.pmu.hardware_event(HardwareId::BranchInstructions);
        self.counts_in.host && branches.is_some_and(|event| event.code() == self.select.code())
    }
}

/// Returns the counter that holds the count of `event`. [`None`] if it is on no counter, or while
/// the counter's registers are being written.
///
/// This is the only record of it, in the event itself, from which the user's page gets it as well.
/// The schedule has the plan, which may differ until it is programmed, and a PMI finds the event of
/// a counter in [`PmiState`](super::pmi::PmiState).
#[inline]
pub(super) fn counter(event: &perf::Event<Driver>) -> Option<CounterId> {
    CounterId::from_index(event.counter()?)
}

/// Records that `event` is on `counter`, which holds the value that was
/// [remembered](super::counter_use::CounterUse::remember_written) last unless the event is stopped.
#[inline]
pub(super) fn hold(event: &perf::Event<Driver>, counter: CounterId) {
    event.set_counter(Some((counter.index(), counter.rdpmc_index())));
}

/// Records that `event` has left its counter, or that the counter is about to be written. From now
/// on, reading the event gives its count up to now.
#[inline]
pub(super) fn leave(event: &perf::Event<Driver>) {
    event.set_counter(None);
}
