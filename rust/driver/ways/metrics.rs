// SPDX-License-Identifier: GPL-2.0

//! Events that do not count on a counter alone: topdown metrics and the slots that lead them.
//!
//! Fixed counter 3 and PERF_METRICS are one resource. Both are set to 0 together, so that the
//! shares describe a short time: when the slots start, when the slots or a metric are read outside
//! of an NMI (of a group, once), and after an overflow. The count of a stopped event is complete;
//! nothing is kept in the registers, which another group may use next. Metrics are not programmed:
//! they count while the slots of their group do, so the bit for PERF_METRICS in GLOBAL_CTRL is set
//! and cleared with the bit for the slots.
//!
//! # The PMI
//!
//! A PMI may interrupt all of these operations, and read the events of a group
//! (`PERF_SAMPLE_READ`), or handle an overflow of fixed counter 3.
//!
//! - An event's value is updated by compare and exchange, and read again if a PMI has changed it.
//! - No count grows while the registers are set to 0, from the first write until the last event's
//!   value is updated: the PMU is stopped, and a register value below the remembered one adds
//!   nothing.
//! - An NMI that reads an event does not set the registers to 0; an NMI that handles an overflow or
//!   restarts the slots does.
//! - Metrics are never halted ([`PmiState::halt`]); a metric that an NMI has stopped is skipped
//!   because it is a stopped event.

use crate::{
    driver::{
        counter_use::{
            CounterUse,
            Way, //
        },
        event,
        hw::Hardware,
        pmi::state::PmiState,
        Driver, //
    },
    logic::regs::{
        counter::{
            CounterId,
            MAX_METRICS, //
        },
        register::{
            Register,
            RegisterWrite, //
        },
        shadow::Shadow, //
    },
    perf::{
        Event,
        OnCpu, //
    },
};

/// The slots and metrics of this CPU.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Topdown<'a, 'c> {
    cx: &'a OnCpu<'c, Driver>,
    pmi_state: &'a PmiState,
}

impl<'a, 'c> Topdown<'a, 'c> {
    pub(in crate::driver) fn new(cx: &'a OnCpu<'c, Driver>, pmi_state: &'a PmiState) -> Self {
        Self { cx, pmi_state }
    }

    fn hardware(self) -> &'a Hardware {
        &self.cx.pmu().ops().hardware
    }

    /// Programs `counter` for the slots of `event`, and sets PERF_METRICS to 0 with it.
    pub(in crate::driver) fn start_slots(
        self,
        (counter, event): (CounterId, &Event<Driver>),
        shadow: &mut Shadow,
    ) {
        // Metrics may still count although their slots were stopped: bring their counts up to date.
        self.count_metrics(false);
        shadow.start(counter, 0, |write| {
            self.hardware().write(write, self.cx.irqs());
        });
        shadow.start_metrics();
        self.write_metrics();
        self.remember_zero();
        self.remember_written(counter, event, 0);
    }

    /// Remembers that `value` has been written to the `counter` of `event`.
    fn remember_written(self, counter: CounterId, event: &Event<Driver>, value: u64) {
        let counts = self.pmi_state.uses.on(counter);
        counts.remember_written(event, value, self.hardware());
    }

    /// Starts the metric `event` at the present value of its share.
    pub(in crate::driver) fn begin_share(self, counter: CounterId, event: &Event<Driver>) {
        let metrics = self.hardware().read_metrics(self.cx.irqs());
        self.remember_written(counter, event, metrics.count(counter));
    }

    /// Brings the counts of all slots and metrics up to date, and then sets the registers to 0 if
    /// `reset`. The counters must be stopped.
    pub(in crate::driver) fn read(self, reset: bool) {
        self.count_metrics(false);
        if reset {
            self.set_zero();
        }
    }

    /// Restarts the slots of `event`, which an NMI has stopped, from 0.
    pub(in crate::driver) fn restart_slots(self, counter: CounterId, event: &Event<Driver>) {
        self.set_zero();
        self.remember_written(counter, event, 0);
    }

    /// Handles an overflow of fixed counter 3, which counts for metrics, if `slots`; else one of
    /// PERF_METRICS. In a PMI.
    #[cold]
    #[inline(never)]
    pub(in crate::driver) fn overflowed(self, slots: bool) {
        self.count_metrics(slots);
        self.set_zero();
    }

    /// Calls `f` for each started slots or metric event on this CPU, with the place of its counter
    /// among the active topdown counters.
    fn for_each_topdown(self, mut f: impl FnMut(usize, (CounterId, &Event<Driver>), &CounterUse)) {
        for (n, counter) in self.pmi_state.topdown().into_iter().enumerate() {
            let id = self.pmi_state.last_event(counter);
            let Some(event) = id.and_then(|id| self.cx.event(id)) else {
                continue;
            };
            let its = self.pmi_state.uses.on(counter);
            let counts = matches!(its.way(), Way::Slots | Way::Metric);
            if counts && !event.is_stopped() && event::counter(event) == Some(counter) {
                f(n, (counter, event), its);
            }
        }
    }

    /// Brings the counts of slots and metrics up to date. `overflowed` is set if fixed counter 3
    /// has overflowed since it was 0. The PMU should be stopped.
    fn count_metrics(self, overflowed: bool) {
        // Read before the registers: otherwise a change by a PMI in between would go unnoticed.
        let mut known = [0; MAX_METRICS as usize + 1];
        self.for_each_topdown(|n, _, counts| {
            if let Some(known) = known.get_mut(n) {
                *known = counts.previous();
            }
        });
        let mut metrics = self.hardware().read_metrics(self.cx.irqs());
        if overflowed {
            metrics = metrics.overflowed(self.hardware().limits.width);
        }
        self.for_each_topdown(|n, on, counts| {
            let known = known.get(n).copied().unwrap_or(0);
            counts.update_share(on, known, metrics, self.hardware(), self.cx.irqs());
        });
    }

    /// Brings the count of one slots or metric `event` up to date.
    pub(in crate::driver) fn update_alone(self, counter: CounterId, event: &Event<Driver>) {
        if event::counter(event).is_none() {
            return;
        }
        let counts = self.pmi_state.uses.on(counter);
        let known = counts.previous();
        let metrics = self.hardware().read_metrics(self.cx.irqs());
        let on = (counter, event);
        counts.update_share(on, known, metrics, self.hardware(), self.cx.irqs());
    }

    /// Sets both registers to 0. The counts must be up to date.
    fn set_zero(self) {
        let register = Register::Counter(CounterId::SLOTS);
        let write = RegisterWrite { register, value: 0 };
        self.hardware().write(write, self.cx.irqs());
        self.write_metrics();
        self.remember_zero();
    }

    /// Sets PERF_METRICS to 0, after fixed counter 3.
    fn write_metrics(self) {
        let register = Register::Metrics;
        let write = RegisterWrite { register, value: 0 };
        self.hardware().write(write, self.cx.irqs());
    }

    /// Remembers that both registers are 0.
    fn remember_zero(self) {
        self.for_each_topdown(|_, (_, event), counts| {
            counts.remember_written(event, 0, self.hardware());
            event.update_userpage();
        });
    }
}
