// SPDX-License-Identifier: GPL-2.0

//! Events that need more than a counter: the operations of each [`Way`]. Operations on shared
//! counters pass through this file to [`riders`](super::riders).

mod metrics;

use super::{
    counter_use::Way,
    event,
    pmi::PmiState,
    unit::pebs::{
        Here,
        Pebs, //
    },
    CorePmu,
    Driver, //
};
use crate::{
    logic::regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        shadow::Shadow, //
    },
    perf::{
        Event,
        EventId,
        OnCpu, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;
use metrics::Topdown;

impl Driver {
    /// Returns the slots and metrics of this CPU.
    pub(super) fn topdown<'a, 'c>(&'a self, cx: &'a OnCpu<'c, Self>) -> Topdown<'a, 'c> {
        let cpu = self.cpus.this_cpu(cx.irqs());
        Topdown::new(cx, &cpu.pmi_state)
    }

    /// Returns the PEBS unit and its state on this CPU.
    fn precise<'a>(&'a self, cx: &'a OnCpu<'_, Self>) -> Option<(&'a Pebs, Here<'a>)> {
        let cpu = self.cpus.this_cpu(cx.irqs());
        let pebs = self.units.pebs.as_ref()?;
        Some((pebs, cpu.units.pebs.on(&cpu.pmi_state)))
    }

    /// Programs `counter` for `event`, which counts in a [`Way`] of its own, before or instead of
    /// the usual steps. Returns whether the caller must leave out the usual steps. The PMU is
    /// disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn start_special(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) -> bool {
        match pmi_state.uses.on(counter).way() {
            Way::Counter => return false,
            Way::Pair => {
                self.start_second(cx, counter, shadow);
                return false;
            }
            Way::Precise => {
                if let Some((pebs, here)) = self.precise(cx) {
                    pebs.start_event(cx, here, counter, event);
                }
                return false;
            }
            Way::Slots => self.topdown(cx).start_slots((counter, event), shadow),
            Way::Metric => {
                shadow.set_virtual_active(counter, true);
                self.topdown(cx).begin_share(counter, event);
            }
            Way::GuestBranches => shadow.set_virtual_active(counter, true),
            Way::Shared => {
                let rides = self.start_riding(cx, (counter, id, event), pmi_state, shadow);
                if !rides {
                    self.become_owner(cx, (counter, event), pmi_state, shadow);
                }
                return rides;
            }
        }
        event::hold(event, counter);
        pmi_state.activate(counter, id);
        if event.is_stopped() && !event.data().is_metric() {
            // An NMI has stopped the event since the caller's check.
            pmi_state.halt(counter);
        }
        event.update_userpage();
        true
    }

    /// Stops `event` on `counter`, which it shares or where it counts in a [`Way`] of its own, and
    /// updates its count. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_special(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = pmi_state.uses.on(counter);
        let way = counts.way();
        if way == Way::Shared {
            self.stop_shared(cx, (counter, event), pmi_state, shadow);
            return;
        }
        pmi_state.deactivate(counter);
        match way {
            Way::Counter | Way::Pair | Way::Shared => {
                let value = counts.update((counter, event), &self.hardware, cx.irqs());
                self.stop_counter(counter, value, shadow);
            }
            Way::Precise => {
                self.stop_precise(cx, counter, event);
                let value = counts.update_precise(event, 0, &self.hardware, cx.irqs());
                if let Some(value) = value {
                    event.data().periods.stopped_at(value, &self.hardware);
                }
                shadow.stop(counter, value);
            }
            Way::Slots => {
                self.topdown(cx).update_alone(counter, event);
                // Forget the value: the next event needs another PERF_METRICS.
                shadow.stop(counter, None);
                shadow.stop_metrics();
            }
            Way::Metric => {
                if !event.is_stopped() {
                    self.topdown(cx).update_alone(counter, event);
                }
                shadow.set_virtual_active(counter, false);
            }
            Way::GuestBranches => shadow.set_virtual_active(counter, false),
        }
    }

    /// Stops recording overflows of the precise `event` on `counter`, which is being stopped or
    /// leaves the counter. The PMU is disabled.
    #[inline(always)]
    fn stop_precise(&self, cx: &OnCpu<'_, Self>, counter: CounterId, event: &Event<Self>) {
        if let Some((pebs, here)) = self.precise(cx) {
            pebs.stop_event(cx, here, counter, event);
        }
    }

    /// Removes `event`, which counts in a [`Way`] of its own and is stopped, from `counter`: takes
    /// the steps that a stop in an NMI leaves out. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_special(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        match pmi_state.uses.on(counter).way() {
            Way::Counter | Way::Pair | Way::Slots | Way::GuestBranches | Way::Shared => {}
            Way::Metric => {
                pmi_state.deactivate(counter);
                shadow.set_virtual_active(counter, false);
            }
            Way::Precise => self.stop_precise(cx, counter, event),
        }
    }

    /// Stops `event` on `counter`, which it shares or where it counts in a [`Way`] of its own, in
    /// an NMI.
    #[cold]
    pub(super) fn stop_special_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
    ) {
        let counts = pmi_state.uses.on(counter);
        let way = counts.way();
        if way == Way::Shared {
            self.stop_shared_in_nmi(cx, (counter, event), pmi_state);
            return;
        }
        if way != Way::Metric {
            pmi_state.halt(counter);
            pmi_state.run(&self.hardware, cx.irqs());
        }
        match way {
            Way::Counter | Way::Pair | Way::Shared => {
                counts.update((counter, event), &self.hardware, cx.irqs());
            }
            Way::Precise => self.read_precise(cx, (counter, event)),
            Way::Slots | Way::Metric => self.topdown(cx).update_alone(counter, event),
            Way::GuestBranches => {}
        }
    }

    /// Restarts `event`, which counts in a [`Way`] of its own, on `counter`, in the NMI that has
    /// stopped it. Returns whether it was restarted.
    #[cold]
    pub(super) fn restart_special_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
    ) -> bool {
        match pmi_state.uses.on(counter).way() {
            Way::Counter | Way::Pair | Way::Precise => return false,
            Way::Shared => return self.start_shared_in_nmi(cx, (counter, event), pmi_state),
            Way::Slots => {
                if !pmi_state.is_halted(counter) {
                    return false;
                }
                self.topdown(cx).restart_slots(counter, event);
                pmi_state.set_halted(counter.mask(), false);
                pmi_state.run(&self.hardware, cx.irqs());
            }
            Way::Metric => {
                if !pmi_state.is_active(counter) {
                    return false;
                }
                self.topdown(cx).begin_share(counter, event);
            }
            Way::GuestBranches => {
                if !pmi_state.is_halted(counter) {
                    return false;
                }
                pmi_state.set_halted(counter.mask(), false);
            }
        }
        event.update_userpage();
        true
    }

    /// Brings the count of `event`, which shares its counter or counts in a [`Way`] of its own, up
    /// to date. For slots and metrics, does so for the whole group. Any context.
    // Takes the PMU and `irqs` instead of a context, so that `read` does not build one in memory
    // for ordinary events.
    #[cold]
    #[inline(never)]
    pub(super) fn read_special(
        pmu: &CorePmu,
        irqs: &LocalInterruptDisabled,
        (counter, event): (CounterId, &Event<Self>),
    ) {
        let (driver, cx) = (pmu.ops(), &pmu.on_cpu(irqs));
        let counts = driver.cpus.this_cpu(irqs).pmi_state.uses.on(counter);
        match counts.way() {
            Way::Shared => driver.read_shared(cx, (counter, event)),
            Way::Counter | Way::Pair => {
                counts.update((counter, event), &driver.hardware, irqs);
            }
            Way::Precise => driver.read_precise(cx, (counter, event)),
            Way::GuestBranches => {}
            way @ (Way::Slots | Way::Metric) => {
                let in_nmi = cx.in_nmi();
                if way == Way::Metric && !in_nmi && cx.is_reading_group() {
                    // The leader is read first, together with all metrics.
                    return;
                }
                let enabled = driver.stop_all(cx);
                driver.topdown(cx).read(!in_nmi);
                driver.run_again(cx, enabled);
            }
        }
    }

    /// Brings the count of the precise `event` up to date. Any context.
    #[cold]
    #[inline(never)]
    fn read_precise(&self, cx: &OnCpu<'_, Self>, (counter, event): (CounterId, &Event<Self>)) {
        let Some((pebs, here)) = self.precise(cx) else {
            return;
        };
        let counts = self.cpus.this_cpu(cx.irqs()).pmi_state.uses.on(counter);
        if counts.reload() == 0 {
            counts.update_precise(event, 0, &self.hardware, cx.irqs());
            return;
        }
        let enabled = self.stop_all(cx);
        pebs.count_records(cx, here);
        counts.update_precise(event, 0, &self.hardware, cx.irqs());
        self.run_again(cx, enabled);
    }

    /// Stops the counters as a PMI does. A PMI may occur until they [run again](Self::run_again).
    /// Returns the counters to run; none if the PMU is disabled. Any context.
    // Stopping and running are functions of their own, so that their stack is free in between.
    #[inline(never)]
    fn stop_all(&self, cx: &OnCpu<'_, Self>) -> CounterMask {
        let enabled = self.cpus.this_cpu(cx.irqs()).pmi_state.take_enabled();
        if !enabled.is_empty() {
            self.hardware.stop(cx.irqs());
        }
        enabled
    }

    /// Lets the `enabled` counters, which were [stopped](Self::stop_all), run again.
    #[inline(never)]
    fn run_again(&self, cx: &OnCpu<'_, Self>, enabled: CounterMask) {
        let cpu = self.cpus.this_cpu(cx.irqs());
        cpu.pmi_state.set_enabled(enabled);
        if !enabled.is_empty() {
            // A PMI in between may have stopped the units that run with the counters, and not
            // restarted them.
            self.units.go_on(&cpu.units, self.site(cpu, cx.irqs()));
        }
        cpu.pmi_state.run(&self.hardware, cx.irqs());
    }
}
