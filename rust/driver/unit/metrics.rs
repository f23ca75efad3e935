// SPDX-License-Identifier: GPL-2.0

//! Events that do not count on a counter alone: topdown metrics and the slots that lead them. (And pairs of
//! counters, and branch records that are lent, which share the way here.)
//!
//! Fixed counter 3 and PERF_METRICS are one resource. Both start at 0 when the slots do, together, and are
//! set to 0 again each time that an event is read, so that shares are those of a short time. A stopped
//! event has its count; nothing is kept in the registers, which another group may use next. Metrics are not
//! programmed: they count while the slots of their group do, so that the bit for PERF_METRICS in
//! GLOBAL_CTRL comes and goes with these.
//!
//! # The PMI
//!
//! A PMI may interrupt all of this, and read the events of a group (`PERF_SAMPLE_READ`), or find that fixed
//! counter 3 has overflowed.
//!
//! - An event's value is compared and exchanged, and read anew if a PMI has changed it.
//! - No count grows while the registers are set to 0, from the first write until the last event knows of
//!   it: the PMU is stopped, and a value below the one that is known adds nothing.
//! - An NMI does not set the registers to 0 when it reads, only after an overflow.
//! - Metrics are never halted ([`Shared::halt`]); one that an NMI has stopped is skipped as a
//!   stopped event.

use crate::{
    driver::{
        event::{self, update, update_precise, update_share, Way},
        pmi::Shared,
        Driver,
    },
    logic::regs::{
        counter::{CounterId, MAX_METRICS},
        register::{Register, RegisterWrite},
        shadow::Shadow,
    },
    perf::{Event, EventId, OnCpu},
};

impl Driver {
    /// Programs `counter` for `event`, which counts in a [`Way`] of its own, before or instead of the usual
    /// steps. Returns whether that is all. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn start_special(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        shared: &Shared,
        shadow: &mut Shadow,
    ) -> bool {
        match event.data().way() {
            Way::Plain => return false,
            Way::Pair => {
                self.start_second(cx, counter, shadow);
                return false;
            }
            Way::Precise => {
                self.start_precise(cx, counter, event);
                return false;
            }
            Way::Slots => self.start_slots(cx, (counter, event), shared, shadow),
            Way::Metric => {
                shadow.set_virtual_active(counter, true);
                self.begin_share(cx, counter, event);
            }
            Way::GuestBranches => shadow.set_virtual_active(counter, true),
        }
        event::hold(event, counter);
        shared.activate(counter, id);
        if event.is_stopped() && !event.data().is_metric() {
            // By an NMI, since the caller has checked.
            shared.halt(counter);
        }
        event.update_userpage();
        true
    }

    /// Programs `counter` for the slots of `event`, and sets PERF_METRICS to 0 with it.
    fn start_slots(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &Shared,
        shadow: &mut Shadow,
    ) {
        let data = event.data();
        // Metrics that were not stopped with their slots.
        self.count_metrics(cx, shared, false);
        shadow.start(counter, data.select, None, data.counts_in, 0, |write| {
            self.hardware.write(write, cx.irqs());
        });
        shadow.start_metrics(data.counts_in);
        self.write_metrics(cx);
        self.know_zero(cx, shared);
        event::remember_written(event, 0, &self.hardware);
    }

    /// Lets the metric `event` count from the present value of its share on.
    fn begin_share(&self, cx: &OnCpu<'_, Self>, counter: CounterId, event: &Event<Self>) {
        let metrics = self.hardware.read_metrics(cx.irqs());
        event::remember_written(event, metrics.count(counter), &self.hardware);
    }

    /// Stops `event` on `counter`, which counts in a [`Way`] of its own and has been deactivated, and updates
    /// its count. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn stop_special(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shadow: &mut Shadow,
    ) {
        match event.data().way() {
            Way::Plain | Way::Pair => {
                let value = update(event, &self.hardware, cx.irqs());
                shadow.stop(counter, value);
                if let Some(amd) = self.hardware.amd() {
                    Self::stop_on_amd(amd, counter, shadow);
                }
            }
            Way::Precise => {
                self.stop_precise(cx, counter, event);
                let value = update_precise(event, 0, &self.hardware, cx.irqs());
                if let Some(value) = value {
                    event.data().stopped_at(value, &self.hardware);
                }
                shadow.stop(counter, value);
            }
            Way::Slots => {
                self.update_alone(cx, counter, event);
                // Not the value: the next event needs another PERF_METRICS.
                shadow.stop(counter, None);
                shadow.stop_metrics();
            }
            Way::Metric => {
                if !event.is_stopped() {
                    self.update_alone(cx, counter, event);
                }
                shadow.set_virtual_active(counter, false);
            }
            Way::GuestBranches => shadow.set_virtual_active(counter, false),
        }
    }

    /// Deactivates `counter`, that of a metric which an NMI has stopped and which leaves.
    #[cold]
    pub(in crate::driver) fn forget_metric(
        &self,
        counter: CounterId,
        shared: &Shared,
        shadow: &mut Shadow,
    ) {
        shared.deactivate(counter);
        shadow.set_virtual_active(counter, false);
    }

    /// Stops `event` on `counter`, which counts in a [`Way`] of its own, in an NMI.
    #[cold]
    pub(in crate::driver) fn stop_special_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &Shared,
    ) {
        let way = event.data().way();
        if way != Way::Metric {
            shared.halt(counter);
            shared.run(&self.hardware, cx.irqs());
        }
        match way {
            Way::Plain | Way::Pair => {
                update(event, &self.hardware, cx.irqs());
            }
            Way::Precise => self.read_precise(cx, event),
            Way::Slots | Way::Metric => self.update_alone(cx, counter, event),
            Way::GuestBranches => {}
        }
    }

    /// Restarts `event`, which counts in a [`Way`] of its own, on `counter` in an NMI that has stopped it. Returns
    /// whether it did.
    #[cold]
    pub(in crate::driver) fn restart_special_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &Shared,
    ) -> bool {
        match event.data().way() {
            Way::Plain | Way::Pair | Way::Precise => return false,
            Way::Slots => {
                if !shared.is_halted(counter) {
                    return false;
                }
                self.set_zero(cx, shared);
                event::remember_written(event, 0, &self.hardware);
                shared.set_halted(counter.mask(), false);
                shared.run(&self.hardware, cx.irqs());
            }
            Way::Metric => {
                if !shared.is_active(counter) {
                    return false;
                }
                self.begin_share(cx, counter, event);
            }
            Way::GuestBranches => {
                if !shared.is_halted(counter) {
                    return false;
                }
                shared.set_halted(counter.mask(), false);
            }
        }
        event.update_userpage();
        true
    }

    /// Brings the count of `event`, which counts in a [`Way`] of its own, up to date, and with a metric's
    /// those of its whole group. Any context.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn read_special(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        let way = event.data().way();
        if way == Way::Plain || way == Way::Pair {
            update(event, &self.hardware, cx.irqs());
            return;
        }
        if way == Way::Precise {
            self.read_precise(cx, event);
            return;
        }
        if way == Way::GuestBranches {
            return;
        }
        let in_nmi = cx.in_nmi();
        if way == Way::Metric && !in_nmi && cx.is_reading_group() {
            // The leader comes first, and has been read with all metrics.
            return;
        }
        // As in a PMI, which may come in between. 0 if the PMU is disabled.
        let shared = &self.cpus.this_cpu(cx.irqs()).shared;
        let enabled = shared.take_enabled();
        if !enabled.is_empty() {
            self.hardware.stop(cx.irqs());
        }
        self.count_metrics(cx, shared, false);
        if !in_nmi {
            self.set_zero(cx, shared);
        }
        shared.set_enabled(enabled);
        shared.run(&self.hardware, cx.irqs());
    }

    /// Handles an overflow of fixed counter 3 while it counts for metrics (`slots`), or of PERF_METRICS. In a
    /// PMI.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn metrics_overflowed(&self, cx: &OnCpu<'_, Self>, slots: bool) {
        let shared = &self.cpus.this_cpu(cx.irqs()).shared;
        self.count_metrics(cx, shared, slots);
        self.set_zero(cx, shared);
    }

    /// Calls `f` for each event on the CPU that counts with PERF_METRICS.
    fn for_each_topdown(
        &self,
        cx: &OnCpu<'_, Self>,
        shared: &Shared,
        mut f: impl FnMut(usize, CounterId, &Event<Self>),
    ) {
        for (n, counter) in shared.topdown().into_iter().enumerate() {
            let Some(event) = shared.last_event(counter).and_then(|id| cx.event(id)) else {
                continue;
            };
            let way = event.data().way();
            let counts = way == Way::Slots || way == Way::Metric;
            if counts && !event.is_stopped() && event::counter(event) == Some(counter) {
                f(n, counter, event);
            }
        }
    }

    /// Brings the counts of slots and metrics up to date. `overflowed` tells whether fixed counter 3 has
    /// overflowed since it was 0. The PMU should be stopped.
    fn count_metrics(&self, cx: &OnCpu<'_, Self>, shared: &Shared, overflowed: bool) {
        // Before the registers are read, or a change by a PMI in between would go unnoticed.
        let mut known = [0; MAX_METRICS as usize + 1];
        self.for_each_topdown(cx, shared, |n, _, event| {
            if let Some(known) = known.get_mut(n) {
                *known = event.data().previous();
            }
        });
        let mut metrics = self.hardware.read_metrics(cx.irqs());
        if overflowed {
            metrics = metrics.overflowed(self.hardware.limits.width);
        }
        self.for_each_topdown(cx, shared, |n, counter, event| {
            let known = known.get(n).copied().unwrap_or(0);
            update_share(event, counter, known, metrics, &self.hardware, cx.irqs());
        });
    }

    /// Brings the count of one such event up to date.
    fn update_alone(&self, cx: &OnCpu<'_, Self>, counter: CounterId, event: &Event<Self>) {
        if event::counter(event).is_none() {
            return;
        }
        let known = event.data().previous();
        let metrics = self.hardware.read_metrics(cx.irqs());
        update_share(event, counter, known, metrics, &self.hardware, cx.irqs());
    }

    /// Sets both registers to 0, after the counts were brought up to date.
    fn set_zero(&self, cx: &OnCpu<'_, Self>, shared: &Shared) {
        let register = Register::Counter(CounterId::SLOTS);
        let write = RegisterWrite { register, value: 0 };
        self.hardware.write(write, cx.irqs());
        self.write_metrics(cx);
        self.know_zero(cx, shared);
    }

    /// Sets PERF_METRICS to 0, after fixed counter 3.
    fn write_metrics(&self, cx: &OnCpu<'_, Self>) {
        let register = Register::Metrics;
        let write = RegisterWrite { register, value: 0 };
        self.hardware.write(write, cx.irqs());
    }

    /// Remembers that both registers are 0.
    fn know_zero(&self, cx: &OnCpu<'_, Self>, shared: &Shared) {
        self.for_each_topdown(cx, shared, |_, _, event| {
            event::remember_written(event, 0, &self.hardware);
            event.update_userpage();
        });
    }
}
