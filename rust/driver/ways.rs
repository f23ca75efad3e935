// SPDX-License-Identifier: GPL-2.0

//! Events that do not count on a counter alone: the unit that counts each [`Way`] is called here.

use super::{
    event::{self, update, update_precise, Way},
    pmi::Shared,
    Driver,
};
use crate::{
    logic::regs::{counter::CounterId, shadow::Shadow},
    perf::{Event, EventId, OnCpu},
};

impl Driver {
    /// Programs `counter` for `event`, which counts in a [`Way`] of its own, before or instead of the usual
    /// steps. Returns whether that is all. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn start_special(
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

    /// Stops `event` on `counter`, which counts in a [`Way`] of its own and has been deactivated, and updates
    /// its count. The PMU is disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_special(
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
    pub(super) fn forget_metric(&self, counter: CounterId, shared: &Shared, shadow: &mut Shadow) {
        shared.deactivate(counter);
        shadow.set_virtual_active(counter, false);
    }

    /// Stops `event` on `counter`, which counts in a [`Way`] of its own, in an NMI.
    #[cold]
    pub(super) fn stop_special_in_nmi(
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
    pub(super) fn restart_special_in_nmi(
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
    pub(super) fn read_special(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
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
}
