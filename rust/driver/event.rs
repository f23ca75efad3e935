// SPDX-License-Identifier: GPL-2.0

//! The driver's data of an event: its configuration and demand, and its state while it is on no
//! counter.
//!
//! [`counter_use`](super::counter_use) and [`counting`](super::counting) have its state on a
//! counter.

mod last_place;
mod periods;
mod ride;

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
            demand::{
                Demand,
                Key, //
            },
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
use ride::Ride;

/// The driver's data of an event.
///
/// Fields that change are atomic: the PMI on the event's CPU may change them, and system calls on
/// other CPUs change `page` and `way`.
pub(crate) struct EventData {
    /// The event select, as requested.
    pub(super) select: EventSelect,
    /// The counters that can count the event, and the extra register that it needs.
    pub(super) demand: Demand,
    /// The branches that its samples contain, or that are needed to find the sampled instruction.
    pub(super) branches: Option<Request>,
    /// Keeps Intel PT and BTS away from the branch records.
    _no_tracers: Option<NoTracers>,
    /// The precise sampling of the event; [`None`] if it is not precise.
    pub(super) precise: Option<Precise>,
    /// Host, guest or both.
    pub(super) counts_in: CountsIn,
    /// Set if each overflow of the event ends the turn of the groups on the CPU.
    pub(super) switches: bool,
    /// The readers of its mmap page.
    pub(super) page: Page,
    /// The way in which the event is to count, a [`Way`].
    way: AtomicU8,
    /// Its sample periods so far.
    pub(super) periods: Periods,
    /// The event's state in rotation.
    pub(super) turn: Turn,
    /// The counter and CPU that the event had last.
    pub(super) last_place: LastPlace,
    /// The event's part of a counter that it shares.
    pub(super) ride: Ride,
    /// The state of [`perf_core`](crate::perf_core).
    pub(super) internals: EventState,
}

impl EventData {
    pub(super) fn new(
        event: Configured,
        constraint: Constraint,
        random_state: u64,
        page: Page,
        no_tracers: Option<NoTracers>,
        key: Key,
    ) -> Self {
        Self {
            select: event.select,
            demand: Demand {
                constraint,
                requirement: event.requirement,
                lbr_select: event.branches.map(|request| request.select),
                key,
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
            ride: Ride::default(),
            internals: EventState::default(),
        }
    }

    /// Returns the event's configuration, with this `period`.
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

    /// Returns the way in which the event is to count when it next gets a counter. A counter that
    /// it already has keeps the way in its [`CounterUse`](super::counter_use::CounterUse).
    #[inline]
    pub(super) fn way(&self) -> Way {
        Way::from_number(self.way.load(Relaxed))
    }

    /// Returns whether records of the event may wait in the buffer.
    pub(super) fn records_can_wait(&self) -> bool {
        self.precise.is_some_and(|precise| precise.records_can_wait)
    }

    /// Returns whether the event is a topdown metric.
    pub(super) fn is_metric(&self) -> bool {
        self.way() == Way::Metric
    }

    /// Switches the event, which counts slots, to counting with PERF_METRICS: a metric has joined
    /// its group.
    ///
    /// Process context. The event may be counting on another CPU. There it continues as before. It
    /// restarts before the metric counts, since the perf core removes and adds the whole group for
    /// that.
    pub(super) fn lead_metrics(&self) {
        self.way.store(Way::Slots as u8, Relaxed);
    }

    /// Returns whether the event counts the occurrences in a TSX transaction only if the
    /// transaction commits.
    pub(super) fn is_checkpointed(&self) -> bool {
        self.select.has(EventSelect::IN_TX_CHECKPOINTED)
    }

    /// Returns the limits of the event's start values.
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

    /// Returns whether the event counts all branches of the host: a sample of each occurrence would
    /// be a trace of all branches, which needs BTS. False on AMD's processors.
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
/// The event itself holds the only record of its counter, which also goes to the mmap page. The
/// schedule has the plan, which may differ until it is programmed; a PMI looks up the event of a
/// counter in [`PmiState`](super::pmi::PmiState).
#[inline]
pub(super) fn counter(event: &perf::Event<Driver>) -> Option<CounterId> {
    CounterId::from_index(event.counter()?)
}

/// Returns whether `counter` [holds](counter) the count of `event`.
#[inline]
pub(super) fn is_on(event: &perf::Event<Driver>, counter: CounterId) -> bool {
    event.counter() == Some(counter.index())
}

/// Records that `event` is on `counter`. Unless the event is stopped, the counter holds the value
/// that was last [remembered](super::counter_use::CounterUse::remember_written).
#[inline]
pub(super) fn hold(event: &perf::Event<Driver>, counter: CounterId) {
    event.set_counter(Some((counter.index(), counter.rdpmc_index())));
}

/// Records that `event` has left its counter, or that the counter is about to be written. Until the
/// event holds a counter again, reading it returns its present count.
#[inline]
pub(super) fn leave(event: &perf::Event<Driver>) {
    event.set_counter(None);
}
