// SPDX-License-Identifier: GPL-2.0

//! What the driver keeps with an event, and how the event counts.

use super::{hw::Hardware, Driver};
use crate::{
    kern::ticks::Ticks,
    logic::{
        model::HardwareId,
        open::attr,
        regs::{
            counter::{CounterId, CounterMask},
            event_select::EventSelect,
            period::Start,
            register::{Register, RegisterWrite},
        },
        sched::{
            constraint::Constraint,
            extra_register::{Demand, ExtraRegister},
        },
        smt::right_of_way::Share,
    },
    perf::{self},
};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled};

/// Neither the index of a counter or an extra register nor a CPU's number.
const NONE: u32 = u32::MAX;

/// An event as the driver sees it.
///
/// What can change is atomic: the PMI on the CPU that the event is on changes it too.
pub(crate) struct EventData {
    /// What to count, as it was asked for.
    pub(super) select: EventSelect,
    /// Where it can be counted.
    pub(super) demand: Demand,
    /// Whether it counts outside of virtual machines.
    pub(super) in_host: bool,
    /// The counter's value when it was last read or written, and which writing that was
    /// ([`CounterWidth::remember_written`](crate::logic::regs::period::CounterWidth::remember_written)).
    previous: AtomicU64,
    /// Index of the extra register that goes with it, or [`NONE`].
    register: AtomicU32,
    /// Index of the counter that it was on last, and the CPU, or [`NONE`].
    last_counter: AtomicU32,
    last_cpu: AtomicU32,
    /// The group's share of the time ([`Share::parts`]), where the threads of a core are in each other's
    /// way. Kept with the group's first event.
    share: [AtomicU64; 3],
    /// Whether the event waits for its turn: it has had one, or found no counter at the end of an
    /// interval.
    waits: AtomicBool,
    /// The counters that were left when the event was last refused, and the generation of its context
    /// at that time.
    left: AtomicU64,
    left_at: AtomicU64,
    /// When it got its counter. Only the CPU that it is on uses it, with interrupts off.
    since: AtomicUsize,
}

impl EventData {
    pub(super) fn new(event: attr::Event, constraint: Constraint) -> Self {
        Self {
            select: event.select,
            demand: Demand {
                constraint,
                requirement: event.requirement,
            },
            in_host: event.in_host,
            previous: AtomicU64::new(0),
            register: AtomicU32::new(NONE),
            last_counter: AtomicU32::new(NONE),
            last_cpu: AtomicU32::new(NONE),
            share: Share::NONE.parts().map(AtomicU64::new),
            waits: AtomicBool::new(false),
            left: AtomicU64::new(0),
            left_at: AtomicU64::new(0),
            since: AtomicUsize::new(0),
        }
    }

    /// Whether the event counts what transactions do only once they are committed.
    pub(super) fn is_checkpointed(&self) -> bool {
        self.select.has(EventSelect::IN_TX_CHECKPOINTED)
    }

    /// Whether `period` is shorter than the CPU allows for the event.
    pub(super) fn is_too_short(&self, hardware: &Hardware, period: u64) -> bool {
        hardware.limits.is_too_short(self.select, period)
    }

    /// Whether a sample of each occurrence would be a sample of each branch, which takes BTS.
    pub(super) fn counts_branches(&self, hardware: &Hardware) -> bool {
        let branches = hardware.pmu.hardware_event(HardwareId::BranchInstructions);
        self.in_host && branches.is_some_and(|event| event.code() == self.select.code())
    }

    /// Returns whether the event waits for its turn.
    pub(super) fn waits_for_its_turn(&self) -> bool {
        self.waits.load(Relaxed)
    }

    pub(super) fn wait_for_turn(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Records that, when the event was refused at this `generation` of its context, no waiting group
    /// could use the counters `left`.
    pub(super) fn set_left(&self, left: CounterMask, generation: u64) {
        self.left.store(left.bits(), Relaxed);
        self.left_at.store(generation, Relaxed);
    }

    /// Returns what [`set_left`](Self::set_left) has recorded.
    pub(super) fn left(&self) -> (CounterMask, u64) {
        let left = CounterMask::from_bits(self.left.load(Relaxed));
        (left, self.left_at.load(Relaxed))
    }

    /// The share of the time of the group of which this is the first event, which has been on counters for
    /// `running` in all; both times in nanoseconds.
    pub(super) fn share(&self, now: u64, running: u64) -> u64 {
        let mut share = Share::from_parts(self.share.each_ref().map(|part| part.load(Relaxed)));
        let value = share.account(now, running);
        for (part, new) in self.share.iter().zip(share.parts()) {
            part.store(new, Relaxed);
        }
        value
    }

    /// The counter that the event was on when it was on `cpu` last.
    pub(super) fn last_counter(&self, cpu: CpuId) -> Option<CounterId> {
        if self.last_cpu.load(Relaxed) != cpu.as_u32() {
            return None;
        }
        // CAST: `NONE` stays out of range.
        CounterId::from_index(self.last_counter.load(Relaxed) as usize)
    }

    /// What the event is to be programmed with where it is: the event select, and the extra
    /// register with what has to be in it. An event can be about another register than the one
    /// that it was asked for with; its code follows.
    pub(super) fn programming(
        &self,
        hardware: &Hardware,
    ) -> (EventSelect, Option<(ExtraRegister, u64)>) {
        // CAST: `NONE` stays out of range.
        let register = ExtraRegister::from_index(self.register.load(Relaxed) as usize);
        match (self.demand.requirement, register) {
            (Some(required), Some(register)) => {
                let table = hardware.pmu.model.extra_register_events;
                let select = table.select_for(self.select, register);
                (select, Some((register, required.value)))
            }
            _ => (self.select, None),
        }
    }

    /// Says that the event is to be on `counter` of `cpu`, with `register` if it needs one.
    pub(super) fn arrive(&self, counter: CounterId, register: Option<ExtraRegister>, cpu: CpuId) {
        // CAST: an index is below 64.
        let register = register.map_or(NONE, |register| register.index() as u32);
        self.register.store(register, Relaxed);
        self.waits.store(false, Relaxed);
        // CAST: an index is below 64.
        let index = counter.index() as u32;
        self.last_cpu.store(cpu.as_u32(), Relaxed);
        self.last_counter.store(index, Relaxed);
        self.since.store(Ticks::now().number(), Relaxed);
    }

    /// When the event got the counter that it has.
    pub(super) fn since(&self) -> Ticks {
        Ticks::from_number(self.since.load(Relaxed))
    }
}

/// Returns the counter that `event` is on, and that its count goes on in. [`None`] while the counter
/// does not hold that: its registers are being written.
///
/// The one record of it is in the event itself, where the user's page has it from as well. The schedule
/// has the plan, which may be another one until it is programmed; a PMI has
/// [`Shared`](super::pmi::Shared), which leads from a counter to its event.
#[inline]
pub(super) fn counter(event: &perf::Event<Driver>) -> Option<CounterId> {
    CounterId::from_index(event.counter()?)
}

/// Records that `event` is on `counter`, which holds the value that was [remembered](remember_written)
/// last, or that the event is stopped.
#[inline]
pub(super) fn hold(event: &perf::Event<Driver>, counter: CounterId) {
    event.set_counter(Some((counter.index(), counter.rdpmc_index())));
}

/// Records that `event` is on no counter any more, or that its counter is about to be written: from now
/// on a read gets what has been counted until now.
#[inline]
pub(super) fn leave(event: &perf::Event<Driver>) {
    event.set_counter(None);
}

/// Prepares `event` to count on where it stopped, or to begin a new period if the old one is over.
/// Returns the value that the counter must have for that, and whether a period was over.
///
/// The caller writes the counter, [remembers](remember_written) that, and only then says that the
/// event [holds](hold) the counter. Writes are traced, and what is traced may read the
/// event: it must never find a counter beside what another one, or an earlier writing, left.
///
/// The PMI must not handle the event meanwhile.
pub(super) fn begin(event: &perf::Event<Driver>, hardware: &Hardware) -> (u64, bool) {
    let data = event.data();
    let period = event.sample_period();
    let left = event.period_left().load(Relaxed);
    let Start {
        value,
        left,
        expired,
        ..
    } = hardware.limits.start(data.select, period, left);
    event.period_left().store(left, Relaxed);
    if expired {
        event.last_period().store(period, Relaxed);
    }
    (value, expired)
}

/// Remembers that the counter of `event` has been given `value`.
pub(super) fn remember_written(event: &perf::Event<Driver>, value: u64, hardware: &Hardware) {
    let previous = &event.data().previous;
    let written = hardware
        .limits
        .width
        .remember_written(previous.load(Relaxed), value);
    previous.store(written, Relaxed);
    publish(event, hardware);
}

/// Lets `event` count on on `counter`, which it is on, or begin a new period. Returns whether one was
/// over.
///
/// In an NMI. The counter does not count meanwhile.
pub(super) fn restart(
    event: &perf::Event<Driver>,
    counter: CounterId,
    hardware: &Hardware,
    irqs: &LocalInterruptDisabled,
) -> bool {
    leave(event);
    let (value, expired) = begin(event, hardware);
    let register = Register::Counter(counter);
    hardware.write(RegisterWrite { register, value }, irqs);
    remember_written(event, value, hardware);
    hold(event, counter);
    event.update_userpage();
    expired
}

/// Adds what has been counted since the last time to the event's count, and returns the counter's
/// value; [`None`] if the event is on no counter.
///
/// On the event's CPU, in any context.
#[inline]
pub(super) fn update(
    event: &perf::Event<Driver>,
    hardware: &Hardware,
    irqs: &LocalInterruptDisabled,
) -> Option<u64> {
    let data = event.data();
    let counter = counter(event)?;

    // A PMI in between may do the same, and even write the counter: whoever changes `previous`
    // is the one who accounts for what was counted since it was that. The PMI may write what it
    // wrote the time before, so the value alone does not show it.
    let width = hardware.limits.width;
    let mut previous = data.previous.load(Relaxed);
    let now = loop {
        let now = hardware.read_counter(counter, irqs);
        let read = width.remember_read(previous, now);
        match data
            .previous
            .compare_exchange(previous, read, Relaxed, Relaxed)
        {
            Ok(_) => break now,
            Err(changed) => previous = changed,
        }
    };

    let delta = width.delta(previous, now);
    event.add_count(delta);
    publish(event, hardware);
    // CAST: positive, as no counter has more than 48 bits so far.
    event
        .period_left()
        .fetch_add((delta as i64).wrapping_neg(), Relaxed);
    Some(now)
}

/// Shows who maps the event what its count is up to date with.
///
/// On the event's CPU, in any context.
fn publish(event: &perf::Event<Driver>, hardware: &Hardware) {
    let previous = &event.data().previous;
    let mut shown = previous.load(Relaxed);
    loop {
        event.set_previous(hardware.limits.width.sign_extend(shown));
        // A PMI in between has shown a later one, or is about to be overwritten.
        let now = previous.load(Relaxed);
        if now == shown {
            break;
        }
        shown = now;
    }
}
