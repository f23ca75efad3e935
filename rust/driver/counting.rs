// SPDX-License-Identifier: GPL-2.0

//! Counting: the start values of counters, and the counts of their events.
//!
//! Context: the counter's CPU. Callbacks and the PMI both use these operations, and a PMI may
//! interrupt a callback in the middle of one.

use super::{
    breaker::is_credible,
    counter_use::CounterUse,
    event,
    hw::Hardware,
    Driver, //
};
use crate::{
    logic::{
        breaker::is_common,
        model::MERGE_VALUE,
        open::precise::Precise,
        regs::{
            counter::CounterId,
            metrics::{
                increase,
                Metrics, //
            },
            period::{
                CounterWidth,
                PeriodLimits,
                Start, //
            },
            register::{
                Register,
                RegisterWrite, //
            },
        },
    },
    perf::Event, //
};
use core::sync::atomic::Ordering::Relaxed;
use kernel::interrupt::LocalInterruptDisabled;

/// A period with which a counter of any model can be started: no model's shortest period is longer.
const SHORT_PERIOD: i64 = 128;

/// The least distance to its overflow at which a counter may go on from the value that it has. PMIs
/// at shorter distances would cost more than a write of the counter.
const LONG_PERIOD: i64 = 1 << 31;

impl CounterUse {
    /// Brings the count of `event` on this `counter` up to date, and returns the counter's value.
    ///
    /// On the event's CPU, in any context.
    #[inline]
    pub(super) fn update(
        &self,
        (counter, event): (CounterId, &Event<Driver>),
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) -> u64 {
        let width = hardware.limits.width;
        let read = move || hardware.read_counter(counter, irqs);
        let (previous, now) = self.last.advance(width, read);
        let delta = width.delta(previous, now);
        if !is_common(delta, width) && !is_credible(event, delta) {
            return now;
        }
        event.add_count(delta);
        self.publish(event, width);
        count_down(event, delta);
        now
    }

    /// Prepares `event` to continue where it stopped, or to begin a new period if the old one is
    /// over. Returns the value for the counter, and whether a period was over.
    ///
    /// The caller writes the counter, [remembers](Self::remember_written) the value, and only then
    /// [records](event::hold) that the event is on the counter. Register writes are traced, and a
    /// BPF program at the tracepoint may read the event. That read must not combine the new counter
    /// with the value of another counter, or of an earlier write.
    ///
    /// To be called by the PMI, or while it does not handle the event.
    #[inline]
    pub(super) fn begin(&self, event: &Event<Driver>, hardware: &Hardware) -> (u64, bool) {
        let data = event.data();
        if let Some(precise) = data.precise {
            return self.begin_precise(event, precise, hardware);
        }
        let mut period = event.sample_period();
        let left = event.period_left().load(Relaxed);
        if PeriodLimits::is_over(left) {
            period = data.periods.next(period);
        }
        record_start(
            event,
            period,
            hardware.limits.start(data.select, period, left),
        )
    }

    /// Returns the value at which to start the counter of `event`: the value that the counter has
    /// at `present`, if that is known and far enough from an overflow, so that the counter need not
    /// be written; otherwise `start`, with which the event [begins](Self::begin).
    ///
    /// Keeps the value only for a CPU's events that may share counters and are not sampled. With a
    /// task's event, user space could read by RDPMC the occurrences that the counter has counted
    /// for others.
    #[inline]
    pub(super) fn keep_value(
        &self,
        event: &Event<Driver>,
        hardware: &Hardware,
        present: impl FnOnce() -> Option<u64>,
        start: u64,
    ) -> u64 {
        if event.is_of_task() || !event.data().demand.key.counts_only() {
            return start;
        }
        let Some(present) = present() else {
            return start;
        };
        let left = hardware.limits.width.sign_extend(present).wrapping_neg();
        if left < LONG_PERIOD {
            return start;
        }
        event.period_left().store(left, Relaxed);
        present
    }

    /// [Begins](Self::begin) a precise event.
    #[cold]
    #[inline(never)]
    fn begin_precise(
        &self,
        event: &Event<Driver>,
        precise: Precise,
        hardware: &Hardware,
    ) -> (u64, bool) {
        let data = event.data();
        let mut period = event.sample_period();
        let mut left = event.period_left().load(Relaxed);
        if PeriodLimits::is_over(left) {
            if data.periods.take_owed_record() {
                left = 1;
            } else {
                period = data.periods.next(period);
            }
        }
        let reloads = self.reload() != 0;
        if reloads {
            left = data.periods.without_surplus(left, SHORT_PERIOD);
        }
        let limits = hardware.limits.for_precision(precise.level);
        let start = limits.start(data.select, period, left);
        if reloads {
            data.periods.add_surplus(start.value, start.left, hardware);
        }
        record_start(event, period, start)
    }

    /// Remembers that `value` has been written to the counter of `event`, and publishes the count's
    /// base value. If the counter is shared, lets its total grow again.
    #[inline]
    pub(super) fn remember_written(&self, event: &Event<Driver>, value: u64, hardware: &Hardware) {
        let width = hardware.limits.width;
        self.last.written(width, value);
        if self.is_shared() {
            self.go_on_counting(event, width);
        } else {
            self.publish(event, width);
        }
    }

    /// Restarts `event` on this `counter`, where it stopped or in a new period. Returns whether a
    /// period was over.
    ///
    /// Context: the PMI, another NMI that restarts a halted event, or a callback while the PMI does
    /// not handle the event. The counter should be stopped; AMD's counters before PerfMonV2 run in
    /// a PMI, and the occurrences before the write are lost.
    pub(super) fn restart(
        &self,
        event: &Event<Driver>,
        counter: CounterId,
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) -> bool {
        event::leave(event);
        let (value, expired) = self.begin(event, hardware);
        let register = Register::Counter(counter);
        hardware.write(RegisterWrite { register, value }, irqs);
        if event.data().demand.constraint.pair {
            for second in counter.mask().behind() {
                let register = Register::Counter(second);
                let value = MERGE_VALUE;
                hardware.write(RegisterWrite { register, value }, irqs);
            }
        }
        self.remember_written(event, value, hardware);
        event::hold(event, counter);
        event.update_userpage();
        expired
    }

    /// Brings the count of an event that counts with PERF_METRICS up to date. `previous` is the
    /// value up to which it was counted, and `metrics` has later values of the slots and of
    /// PERF_METRICS.
    ///
    /// On the event's CPU, in any context. The PMU should be stopped; otherwise the shares and the
    /// slots may belong to different moments.
    pub(super) fn update_share(
        &self,
        (counter, event): (CounterId, &Event<Driver>),
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
            match self.last.replace(width, previous, now) {
                Ok(()) => break delta,
                Err(changed) => previous = changed,
            }
            metrics = hardware.read_metrics(irqs);
        };
        event.add_count(delta);
        self.publish(event, width);
    }

    /// Brings the count of a precise event up to date, including `records` new records of its
    /// overflows. Returns the counter's value; [`None`] if the event is on no counter.
    ///
    /// With each record, the processor has set the counter back: to the start of a period
    /// (auto-reload), or to 0. So the value may be lower than the last one, and each reload changes
    /// the base value on the mmap page.
    ///
    /// On the event's CPU, in any context. With auto-reload, the counter must be stopped, and
    /// `records` must be all records that are not counted yet.
    ///
    /// Mainline: `intel_pmu_save_and_restart_reload()`, `arch/x86/events/intel/ds.c`.
    pub(super) fn update_precise(
        &self,
        event: &Event<Driver>,
        records: u64,
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) -> Option<u64> {
        let reload = self.reload();
        let started_anew = reload.wrapping_mul(records);
        let Some(counter) = event::counter(event) else {
            event.add_count(started_anew);
            return None;
        };
        let width = hardware.limits.width;
        let read = move || hardware.read_counter(counter, irqs);
        let (previous, now) = self.last.advance(width, read);
        let signed = width.sign_extend(now);
        let delta = signed.wrapping_sub(width.sign_extend(previous));
        // CAST: two's complement.
        event.add_count(started_anew.wrapping_add(delta as u64));
        self.publish(event, width);
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
    #[inline]
    pub(super) fn publish(&self, event: &Event<Driver>, width: CounterWidth) {
        self.last
            .publish(move |value| event.set_previous(width.sign_extend(value)));
    }
}

/// Takes `delta` occurrences from what is left of the period of `event`.
#[inline]
pub(super) fn count_down(event: &Event<Driver>, delta: u64) {
    // CAST: positive, as counters have no more than 48 bits.
    event
        .period_left()
        .fetch_add((delta as i64).wrapping_neg(), Relaxed);
}

/// Records the `start` of the counter of `event` in a period of this length. Returns the start
/// value, and whether a period was over.
#[inline]
fn record_start(event: &Event<Driver>, period: u64, start: Start) -> (u64, bool) {
    event.period_left().store(start.left, Relaxed);
    if start.expired {
        event.last_period().store(period, Relaxed);
    }
    (start.value, start.expired)
}
