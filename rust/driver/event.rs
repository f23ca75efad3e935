// SPDX-License-Identifier: GPL-2.0

//! The driver's data of an event, and how the event counts.

use super::{hw::Hardware, unit::rdpmc::Page, Driver};
use crate::{
    kern::ticks::Ticks,
    logic::{
        model::{constraint::Constraint, demand::Demand, HardwareId, MERGE_VALUE},
        open::{event::Event as Configured, precise::Precise},
        regs::{
            counter::{CounterId, CounterMask},
            event_select::EventSelect,
            extra_register::ExtraRegister,
            global::CountsIn,
            metrics::{increase, Metrics},
            period::{PeriodLimits, Start},
            register::{Register, RegisterWrite},
        },
        sample::{lbr::Request, random_period::RandomPeriods},
        smt::right_of_way::Share,
    },
    perf,
    perf_core::EventState,
    x86::branches::NoTracers,
};
use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicU8, AtomicUsize, Ordering::Relaxed,
};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled};

/// Neither the index of a counter or an extra register nor a CPU's number.
const NONE: u32 = u32::MAX;

/// A period that is not shorter than those that counters of any model can be started with.
const SHORT_PERIOD: i64 = 128;

/// How an event counts.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Way {
    /// On a counter.
    Plain,
    /// On two counters.
    Pair,
    /// The slots, on a counter, with metrics in its group.
    Slots,
    /// A topdown metric: a share of the slots.
    Metric,
    /// On a counter whose overflows the processor records.
    Precise,
    /// Not at all: it lends the branch records to a guest.
    GuestBranches,
}

impl Way {
    fn of(constraint: Constraint, precise: Option<Precise>) -> Self {
        if precise.is_some() {
            Self::Precise
        } else if constraint.pair {
            Self::Pair
        } else if constraint.counters.has_metrics() {
            Self::Metric
        } else if constraint.counters.contains(CounterId::GUEST_BRANCHES) {
            Self::GuestBranches
        } else {
            Self::Plain
        }
    }
}

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
    /// The period that the processor starts anew as it records an overflow; 0 if it does not. Changes with each start.
    reload: AtomicU64,
    /// Set if it was stopped after an overflow that the processor had not recorded yet.
    owes_record: AtomicBool,
    /// The occurrences by which its periods have been too long, since counters cannot be started with any number.
    surplus: AtomicI64,
    /// Where it counts.
    pub(super) counts_in: CountsIn,
    /// The random part of its sample periods, and the state of the generator.
    pub(super) random: RandomPeriods,
    random_state: AtomicU64,
    /// Set if each overflow ends the turn of the groups on the CPU.
    pub(super) switches: bool,
    /// The readers of its mmap page.
    pub(super) page: Page,
    /// How it counts, a [`Way`].
    way: AtomicU8,
    /// The counter's value when it was last read or written, and a number of the write
    /// ([`CounterWidth::remember_written`](crate::logic::regs::period::CounterWidth::remember_written)).
    previous: AtomicU64,
    /// The index of the extra register that it is programmed with, or [`NONE`].
    register: AtomicU32,
    /// The index of the counter that it was on last, and the CPU, or [`NONE`].
    last_counter: AtomicU32,
    last_cpu: AtomicU32,
    /// The group's share of the time ([`Share::parts`]), if the threads of a core contend for counters. Kept
    /// with the group's first event.
    share: [AtomicU64; 3],
    /// The nanoseconds that the group had spent on counters when rotation last charged it.
    /// Kept as `share` is.
    charged: AtomicU64,
    /// Set if the event waits in the rotation: it has counted, or got no counter at the end of an interval.
    waits: AtomicBool,
    /// The counters that were left when the event last failed, and the generation of its context at that
    /// time.
    left: AtomicU64,
    left_at: AtomicU64,
    /// The time when it got its counter. Only its CPU uses this, with interrupts off.
    since: AtomicUsize,
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
            random: event.random,
            random_state: AtomicU64::new(random_state),
            switches: event.switches,
            page,
            precise: event.precise,
            reload: AtomicU64::new(0),
            owes_record: AtomicBool::new(false),
            surplus: AtomicI64::new(0),
            way: AtomicU8::new(Way::of(constraint, event.precise) as u8),
            previous: AtomicU64::new(0),
            register: AtomicU32::new(NONE),
            last_counter: AtomicU32::new(NONE),
            last_cpu: AtomicU32::new(NONE),
            share: Share::NONE.parts().map(AtomicU64::new),
            charged: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            left: AtomicU64::new(0),
            left_at: AtomicU64::new(0),
            since: AtomicUsize::new(0),
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
            random: self.random,
            switches: self.switches,
            counts_in: self.counts_in,
        }
    }

    /// Returns whether the event counts in another way than on a counter.
    #[inline]
    pub(super) fn is_special(&self) -> bool {
        self.way.load(Relaxed) != Way::Plain as u8
    }

    /// Returns how the event counts.
    pub(super) fn way(&self) -> Way {
        const PAIR: u8 = Way::Pair as u8;
        const SLOTS: u8 = Way::Slots as u8;
        const METRIC: u8 = Way::Metric as u8;
        const PRECISE: u8 = Way::Precise as u8;
        const GUEST_BRANCHES: u8 = Way::GuestBranches as u8;
        match self.way.load(Relaxed) {
            PAIR => Way::Pair,
            SLOTS => Way::Slots,
            METRIC => Way::Metric,
            PRECISE => Way::Precise,
            GUEST_BRANCHES => Way::GuestBranches,
            _ => Way::Plain,
        }
    }

    /// Returns whether records of the event may wait in the buffer.
    pub(super) fn can_wait(&self) -> bool {
        self.precise.is_some_and(|precise| precise.can_wait)
    }

    /// Returns the period that the processor starts anew, see [`set_reload`](Self::set_reload).
    pub(super) fn reload(&self) -> u64 {
        self.reload.load(Relaxed)
    }

    /// Records that the processor starts so long a period as it records an overflow; 0: none, but counts from 0 on.
    pub(super) fn set_reload(&self, period: u64) {
        self.reload.store(period, Relaxed);
    }

    /// Records that the counter of the event, which is precise, was stopped at `value`.
    ///
    /// The processor records an overflow with the next occurrence. If the counter is stopped before that, there is no
    /// record, and mainline begins a new period without a sample of the old one. Here the next period is as short as
    /// can be, so that there is one.
    pub(super) fn stopped_at(&self, value: u64, hardware: &Hardware) {
        let owes = hardware.limits.width.sign_extend(value) >= 0;
        self.owes_record.store(owes, Relaxed);
    }

    /// Returns how many occurrences before the next sample there are to be, of an event with so many `left`, if the
    /// processor starts its periods anew: they cannot make up for a surplus, and a start can.
    fn without_surplus(&self, left: i64, shortest: i64) -> i64 {
        let surplus = self.surplus.load(Relaxed);
        let rest = left.wrapping_sub(surplus);
        if surplus == 0 || rest < shortest {
            return left;
        }
        self.surplus.store(0, Relaxed);
        rest
    }

    /// Adds the occurrences by which a counter that starts at `value` overflows later than after `left`.
    fn add_surplus(&self, value: u64, left: i64, hardware: &Hardware) {
        let programmed = hardware.limits.width.sign_extend(value).wrapping_neg();
        self.surplus
            .fetch_add(programmed.wrapping_sub(left), Relaxed);
    }

    /// Returns whether the event is a topdown metric.
    pub(super) fn is_metric(&self) -> bool {
        self.way() == Way::Metric
    }

    /// Has the event, which counts slots, count with PERF_METRICS, as a metric has joined its group.
    ///
    /// Process context. The event may be counting on another CPU. It goes on, and starts anew
    /// before the metric counts, since the perf core then removes and adds the whole group.
    pub(super) fn lead_metrics(&self) {
        self.way.store(Way::Slots as u8, Relaxed);
    }

    /// Returns the counter's value when it was last read or written; of a metric, the slots of its share.
    pub(super) fn previous(&self) -> u64 {
        self.previous.load(Relaxed)
    }

    /// Returns whether the event counts a TSX transaction's occurrences only if that commits.
    pub(super) fn is_checkpointed(&self) -> bool {
        self.select.has(EventSelect::IN_TX_CHECKPOINTED)
    }

    /// Returns the length of the next period, of an event whose requested period is `period`.
    fn next_period(&self, period: u64) -> u64 {
        if !self.random.vary() {
            return period;
        }
        let state = self.random_state.load(Relaxed);
        let (period, state) = self.random.draw(period, state);
        self.random_state.store(state, Relaxed);
        period
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

    /// Returns whether the event waits in the rotation.
    pub(super) fn waits_for_its_turn(&self) -> bool {
        self.waits.load(Relaxed)
    }

    /// Records that the event waits in the rotation.
    pub(super) fn wait_for_turn(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Records that no waiting group could use the counters `left` when the event failed at this
    /// `generation` of its context.
    pub(super) fn set_left(&self, left: CounterMask, generation: u64) {
        self.left.store(left.bits(), Relaxed);
        self.left_at.store(generation, Relaxed);
    }

    /// Returns what [`set_left`](Self::set_left) has recorded.
    pub(super) fn left(&self) -> (CounterMask, u64) {
        let left = CounterMask::from_bits(self.left.load(Relaxed));
        (left, self.left_at.load(Relaxed))
    }

    /// Returns the share of the time of the group of which this is the first event. It has been on counters
    /// for `running` in all; both times in nanoseconds.
    pub(super) fn share(&self, now: u64, running: u64) -> u64 {
        let mut share = Share::from_parts(self.share.each_ref().map(|part| part.load(Relaxed)));
        let value = share.account(now, running);
        for (part, new) in self.share.iter().zip(share.parts()) {
            part.store(new, Relaxed);
        }
        value
    }

    /// Charges the group of which this is the first event, which has been on counters for `running` in all.
    /// Returns how long since it was charged last; both times in nanoseconds.
    pub(super) fn charge(&self, running: u64) -> u64 {
        let ran = self.uncharged(running);
        self.charged.store(running, Relaxed);
        ran
    }

    /// Returns what [`charge`](Self::charge) would return.
    pub(super) fn uncharged(&self, running: u64) -> u64 {
        running.saturating_sub(self.charged.load(Relaxed))
    }

    /// Returns the counter that the event had when it was on `cpu` last, if that was its last CPU.
    pub(super) fn last_counter(&self, cpu: CpuId) -> Option<CounterId> {
        if self.last_cpu.load(Relaxed) != cpu.as_u32() {
            return None;
        }
        // CAST: `NONE` stays out of range.
        CounterId::from_index(self.last_counter.load(Relaxed) as usize)
    }

    /// Returns the event select to program, and the extra register with its value. The event may have got
    /// another extra register than its code asks for; the event select's code is then that register's.
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

    /// Records that the event gets `counter` of `cpu`, and `register` if it needs one.
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

    /// Returns the time when the event got its counter.
    pub(super) fn since(&self) -> Ticks {
        Ticks::from_number(self.since.load(Relaxed))
    }
}

/// Returns the counter that holds the count of `event`. [`None`] if it is on no counter, or while the
/// counter's registers are being written.
///
/// This is the only record of it, in the event itself, from which the user's page gets it as well. The
/// schedule has the plan, which may differ until it is programmed, and a PMI finds the event of a counter
/// in [`Shared`](super::pmi::Shared).
#[inline]
pub(super) fn counter(event: &perf::Event<Driver>) -> Option<CounterId> {
    CounterId::from_index(event.counter()?)
}

/// Records that `event` is on `counter`, which holds the value that was [remembered](remember_written)
/// last unless the event is stopped.
#[inline]
pub(super) fn hold(event: &perf::Event<Driver>, counter: CounterId) {
    event.set_counter(Some((counter.index(), counter.rdpmc_index())));
}

/// Records that `event` has left its counter, or that the counter is about to be written. From now on,
/// reading the event gives its count up to now.
#[inline]
pub(super) fn leave(event: &perf::Event<Driver>) {
    event.set_counter(None);
}

/// Prepares `event` to count on where it stopped, or to begin a new period if the old one is over.
/// Returns the value for the counter, and whether a period was over.
///
/// The caller writes the counter, [remembers](remember_written) the value, and only then [records](hold)
/// that the event is on the counter. Register writes are traced, and a BPF program at the tracepoint may
/// read the event: it must not combine a counter with the value of another one, or of an earlier write.
///
/// The PMI must not handle the event meanwhile.
#[inline]
pub(super) fn begin(event: &perf::Event<Driver>, hardware: &Hardware) -> (u64, bool) {
    let data = event.data();
    if let Some(precise) = data.precise {
        return begin_precise(event, precise, hardware);
    }
    let mut period = event.sample_period();
    let left = event.period_left().load(Relaxed);
    if PeriodLimits::is_over(left) {
        period = data.next_period(period);
    }
    begun(
        event,
        period,
        hardware.limits.start(data.select, period, left),
    )
}

/// [Begins](begin) a precise event.
#[cold]
#[inline(never)]
fn begin_precise(
    event: &perf::Event<Driver>,
    precise: Precise,
    hardware: &Hardware,
) -> (u64, bool) {
    let data = event.data();
    let mut period = event.sample_period();
    let mut left = event.period_left().load(Relaxed);
    if PeriodLimits::is_over(left) {
        if data.owes_record.load(Relaxed) {
            data.owes_record.store(false, Relaxed);
            left = 1;
        } else {
            period = data.next_period(period);
        }
    }
    let reloads = data.reload() != 0;
    if reloads {
        left = data.without_surplus(left, SHORT_PERIOD);
    }
    let limits = hardware.limits.for_precision(precise.level);
    let start = limits.start(data.select, period, left);
    if reloads {
        data.add_surplus(start.value, start.left, hardware);
    }
    begun(event, period, start)
}

/// Records that the counter of `event` is started so in a period of this length.
#[inline]
fn begun(event: &perf::Event<Driver>, period: u64, start: Start) -> (u64, bool) {
    event.period_left().store(start.left, Relaxed);
    if start.expired {
        event.last_period().store(period, Relaxed);
    }
    (start.value, start.expired)
}

/// Remembers that `value` has been written to the counter of `event`.
pub(super) fn remember_written(event: &perf::Event<Driver>, value: u64, hardware: &Hardware) {
    let previous = &event.data().previous;
    let written = hardware
        .limits
        .width
        .remember_written(previous.load(Relaxed), value);
    previous.store(written, Relaxed);
    publish(event, hardware);
}

/// Lets `event` count on on its `counter`, or begin a new period. Returns whether a period was over.
///
/// In an NMI, while the counter does not count.
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
    if event.data().demand.constraint.pair {
        for second in counter.mask().behind() {
            let register = Register::Counter(second);
            let value = MERGE_VALUE;
            hardware.write(RegisterWrite { register, value }, irqs);
        }
    }
    remember_written(event, value, hardware);
    hold(event, counter);
    event.update_userpage();
    expired
}

/// Brings the count of an event that counts with PERF_METRICS up to date with both registers, which held
/// `metrics` after its value was `previous`.
///
/// On the event's CPU, in any context. The PMU should be stopped, or the shares may not be those of the slots.
pub(super) fn update_share(
    event: &perf::Event<Driver>,
    counter: CounterId,
    mut previous: u64,
    mut metrics: Metrics,
    hardware: &Hardware,
    irqs: &LocalInterruptDisabled,
) {
    let width = hardware.limits.width;
    let delta = loop {
        let now = metrics.count(counter);
        let delta = increase(previous & width.mask(), now);
        if delta == 0 {
            return;
        }
        // As in `update()`.
        let read = width.remember_read(previous, now);
        let known = &event.data().previous;
        match known.compare_exchange(previous, read, Relaxed, Relaxed) {
            Ok(_) => break delta,
            Err(changed) => previous = changed,
        }
        metrics = hardware.read_metrics(irqs);
    };
    event.add_count(delta);
    publish(event, hardware);
}

/// Reads the event's `counter`. Returns the value that it had when it was last read or written, and its value now,
/// which is remembered.
///
/// On the event's CPU, in any context.
#[inline(always)]
fn read(
    data: &EventData,
    counter: CounterId,
    hardware: &Hardware,
    irqs: &LocalInterruptDisabled,
) -> (u64, u64) {
    // A PMI in between may do the same, and even write the counter. The one that changes `previous`
    // adds the difference to the count. A PMI may write the same value as the time before, so `previous` has a
    // number of the write too.
    let mut previous = data.previous.load(Relaxed);
    loop {
        let now = hardware.read_counter(counter, irqs);
        let read = hardware.limits.width.remember_read(previous, now);
        match data
            .previous
            .compare_exchange(previous, read, Relaxed, Relaxed)
        {
            Ok(_) => return (previous, now),
            Err(changed) => previous = changed,
        }
    }
}

/// Brings the event's count up to date, and returns the counter's value; [`None`] if the event is on no
/// counter.
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

    let (previous, now) = read(data, counter, hardware, irqs);
    let delta = hardware.limits.width.delta(previous, now);
    event.add_count(delta);
    publish(event, hardware);
    // CAST: positive, as counters have no more than 48 bits.
    event
        .period_left()
        .fetch_add((delta as i64).wrapping_neg(), Relaxed);
    Some(now)
}

/// Brings the count of an event up to date whose overflows the processor records. It has written `records` of them that
/// are not in the count yet. Returns the counter's value; [`None`] if the event is on no counter.
///
/// With each record, the processor has set the counter back: to the start of a period, or to 0. So the value may be lower
/// than the last one, and what a reader of the mmap page has to add to it changes with each period that was started anew.
///
/// On the event's CPU, in any context. Unless no period is started anew, the counter does not count, and all records
/// have been counted.
///
/// Mainline: `intel_pmu_save_and_restart_reload()`, `arch/x86/events/intel/ds.c:2789`.
pub(super) fn update_precise(
    event: &perf::Event<Driver>,
    records: u64,
    hardware: &Hardware,
    irqs: &LocalInterruptDisabled,
) -> Option<u64> {
    let data = event.data();
    let reload = data.reload();
    let started_anew = reload.wrapping_mul(records);
    let Some(counter) = counter(event) else {
        event.add_count(started_anew);
        return None;
    };
    let (previous, now) = read(data, counter, hardware, irqs);
    let width = hardware.limits.width;
    let signed = width.sign_extend(now);
    let delta = signed.wrapping_sub(width.sign_extend(previous));
    // CAST: two's complement.
    event.add_count(started_anew.wrapping_add(delta as u64));
    publish(event, hardware);
    if started_anew != 0 {
        event.update_userpage();
    }
    let left = event.period_left();
    if reload == 0 {
        left.fetch_add(delta.wrapping_neg(), Relaxed);
    } else {
        left.store(signed.wrapping_neg(), Relaxed);
    }
    Some(now)
}

/// Publishes the count's base value to the mmap page.
///
/// On the event's CPU, in any context.
fn publish(event: &perf::Event<Driver>, hardware: &Hardware) {
    let previous = &event.data().previous;
    let mut published = previous.load(Relaxed);
    loop {
        event.set_previous(hardware.limits.width.sign_extend(published));
        // A PMI in between has published a later value, which this one may have overwritten.
        let now = previous.load(Relaxed);
        if now == published {
            break;
        }
        published = now;
    }
}
