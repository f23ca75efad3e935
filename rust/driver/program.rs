// SPDX-License-Identifier: GPL-2.0

//! Programming of counters: for the events of a plan, and for events that start, stop and pause.
//!
//! Context: interrupts off, PMU disabled.

use super::{
    cpu::{
        CallbackState,
        Cpu, //
    },
    event,
    hw::Amd,
    pmi::PmiState,
    unit::hooks::PlanAndShadow,
    Driver, //
};
use crate::{
    logic::{
        model::{
            MERGE,
            MERGE_VALUE, //
        },
        regs::{
            counter::{
                CounterId,
                CounterMask, //
            },
            shadow::Shadow, //
        },
    },
    perf::{
        Event,
        EventId,
        OnCpu,
        PmuDisabled, //
    },
    perf_core::trace::{
        self,
        Rotation, //
    },
};
use kernel::cpu::CpuId;

impl Driver {
    /// Programs the plan, except for GLOBAL_CTRL.
    #[inline]
    pub(super) fn program(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        let CallbackState {
            schedule,
            shadow,
            units,
            dirty,
            ..
        } = &mut *own;
        let site = self.site(cpu, cx.irqs());
        self.units
            .take(units, site, PlanAndShadow { schedule, shadow });
        self.common
            .user_read
            .mark_dirty(dirty, schedule.occupied(), shadow, cx.irqs());

        // If events were only removed, no event has to move.
        if schedule.has_unprogrammed() {
            self.move_events(cx, cpu, own);
        }
        trace::rotate(|| {
            cx.is_rotation().then(|| Rotation {
                // CAST: no more than there are counters.
                counting: own.schedule.len() as u32,
                wait: match self.common.orders_groups {
                    true => cx.waiting_groups(),
                    false => 0,
                },
            })
        });
    }

    /// Stops events on counters that the plan no longer gives them, and starts events on the
    /// counters that they get.
    #[inline(never)]
    fn move_events(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        let pmi_state = &cpu.pmi_state;
        if !own.riders.is_empty() {
            self.vacate_shared_counters(cx, cpu, own);
        }
        let CallbackState {
            schedule, shadow, ..
        } = own;
        // All events leave before one arrives, since they may swap counters.
        for (id, counter) in schedule.leaving() {
            if let Some(event) = cx.event(id) {
                if shadow.active().contains(counter) {
                    self.stop_on(cx, (counter, event), pmi_state, shadow);
                } else if pmi_state.uses.on(counter).is_special() {
                    // The event is stopped. If an NMI has done so, steps of its way are left.
                    self.leave_special(cx, (counter, event), pmi_state, shadow);
                }
                event::leave(event);
            }
        }
        let registers = self.hardware.pmu.model.extra_register_events;
        for (entry, counter) in schedule.arriving_entries() {
            let id = entry.event;
            if let Some(event) = cx.event(id) {
                let data = event.data();
                shadow.plan(
                    counter,
                    entry.programming(data.select, data.counts_in, registers),
                );
                pmi_state.uses.on(counter).arrive(data.way());
                data.turn.arrive();
                data.last_place.arrive(counter, cpu.id);
                // The event may have been a rider before.
                data.ride.set_has_owner(false);
                if event.is_stopped() {
                    event::hold(event, counter);
                    // Clears the index on the event's page: a stopped event has none, and the
                    // counter that it has left is another event's now.
                    event.update_userpage();
                } else {
                    self.start_on(cx, (counter, id, event), pmi_state, shadow);
                }
                trace::schedule(event, counter.index());
            }
        }
        schedule.mark_programmed();
        if !own.riders.is_empty() {
            self.place_arriving_riders(cx, cpu, own);
        }
    }

    /// Resets the PMU after overflows that could not be acknowledged. The PMU is disabled, and all
    /// active counters are halted.
    ///
    /// Mainline: `intel_pmu_reset()`, `arch/x86/events/intel/core.c`. There, events count again
    /// only when they are next put on a counter; here, at once.
    #[cold]
    #[inline(never)]
    pub(super) fn recover(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        let pmi_state = &cpu.pmi_state;
        kernel::pr_warn_once!(
            "CPU {}: overflows came without end; the PMU is reset\n",
            CpuId::current().as_u32()
        );
        let counting = own.shadow.active();
        self.pause(cx, counting, pmi_state, &mut own.shadow);
        Self::update_shadow(pmi_state, &mut own.shadow);
        self.reset(cpu, own, cx.irqs());
        self.was_reset(cpu, cx.irqs());
        self.go_on(cx, counting, pmi_state, &mut own.shadow);
    }

    /// Stops the events on `counters`, all of them active, and updates their counts, so that the
    /// registers can be overwritten. Until the events [go on](Self::go_on), reading them returns
    /// these counts. The PMU is disabled.
    pub(super) fn pause(
        &self,
        cx: &OnCpu<'_, Self>,
        counters: CounterMask,
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        for counter in counters {
            if pmi_state.uses.on(counter).is_shared() {
                self.pause_shared(cx, counter, pmi_state, shadow);
                continue;
            }
            let event = pmi_state.last_event(counter).and_then(|id| cx.event(id));
            if let Some(event) = event {
                self.stop_on(cx, (counter, event), pmi_state, shadow);
                event::leave(event);
            }
        }
    }

    /// Restarts the events that were [paused](Self::pause) on `counters`. An event that an NMI has
    /// stopped meanwhile gets its counter back, and stays stopped.
    pub(super) fn go_on(
        &self,
        cx: &OnCpu<'_, Self>,
        counters: CounterMask,
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        for counter in counters {
            let id = pmi_state.last_event(counter);
            if let Some((id, event)) = id.and_then(|id| Some((id, cx.event(id)?))) {
                self.call_start_on(cx, (counter, id, event), pmi_state, shadow);
            }
        }
    }

    /// Programs `counter` for the event `id`, which counts from the next time that the PMU is
    /// enabled.
    ///
    /// The event [holds](event::hold) no counter until its registers are written.
    // Inlined for `move_events()`, which starts each event after a switch.
    #[inline(always)]
    fn start_on(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = pmi_state.uses.on(counter);
        if counts.is_special() && self.start_special(cx, (counter, id, event), pmi_state, shadow) {
            return;
        }
        let clears = !self.hardware.pmu.model.clearing_events.is_empty();
        if clears && shadow.needs_clearing(counter) {
            self.clear(cx, pmi_state, shadow);
        }
        let (value, _) = counts.begin(event, &self.hardware);
        let present = || shadow.value(counter);
        let value = counts.keep_value(event, &self.hardware, present, value);
        shadow.start(counter, value, |write| {
            self.hardware.write(write, cx.irqs());
        });
        counts.remember_written(event, value, &self.hardware);
        event::hold(event, counter);
        pmi_state.activate(counter, id);
        if event.is_stopped() {
            // An NMI has stopped the event since the caller's check.
            if counts.is_shared() {
                self.stop_shared(cx, (counter, event), pmi_state, shadow);
            } else {
                pmi_state.halt(counter);
            }
        }
        event.update_userpage();
    }

    /// [Programs](Self::start_on) `counter` for the event `id`.
    #[inline(never)]
    pub(super) fn call_start_on(
        &self,
        cx: &OnCpu<'_, Self>,
        counter_and_event: (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        self.start_on(cx, counter_and_event, pmi_state, shadow);
    }

    /// Clears the monitoring hardware before event selects are programmed, as errata of some models
    /// demand ([`Shadow::clear`]). The PMU is disabled.
    #[cold]
    #[inline(never)]
    fn clear(&self, cx: &OnCpu<'_, Self>, pmi_state: &PmiState, shadow: &mut Shadow) {
        let active = shadow.active().gp();
        self.pause(cx, active, pmi_state, shadow);
        let cpu = self.cpus.this_cpu(cx.irqs());
        self.units.suspend(&cpu.units, self.site(cpu, cx.irqs()));
        shadow.clear(self.hardware.pmu.model.clearing_events, |write| {
            self.hardware.write(write, cx.irqs());
        });
        self.go_on(cx, active, pmi_state, shadow);
    }

    /// Programs the counter that follows `counter` as the upper half of the pair.
    #[cold]
    #[inline(never)]
    pub(super) fn start_second(
        &self,
        cx: &OnCpu<'_, Self>,
        counter: CounterId,
        shadow: &mut Shadow,
    ) {
        for second in counter.mask().behind() {
            shadow.start_second(second, MERGE, MERGE_VALUE, |write| {
                self.hardware.write(write, cx.irqs());
            });
        }
    }

    /// Stops `event` on `counter`, and updates its count. The PMU is disabled.
    // Inlined, so that `cx` is not built in memory for the rare special events.
    #[inline(always)]
    pub(super) fn stop_on(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = pmi_state.uses.on(counter);
        if counts.is_special() {
            self.stop_special(cx, (counter, event), pmi_state, shadow);
            return;
        }
        pmi_state.deactivate(counter);
        let value = counts.update((counter, event), &self.hardware, cx.irqs());
        self.stop_counter(counter, value, shadow);
    }

    /// Updates the shadow of a counter that has just been stopped, with its `value`.
    #[inline(always)]
    pub(super) fn stop_counter(&self, counter: CounterId, value: u64, shadow: &mut Shadow) {
        shadow.stop(counter, Some(value));
        if let Some(amd) = self.hardware.amd() {
            Self::stop_on_amd(amd, counter, shadow);
        }
    }

    /// Updates the shadow of a counter that has just been stopped on an AMD PMU: forgets the value
    /// if the PMU does not keep it, and stops the second counter of a pair.
    #[cold]
    #[inline(never)]
    fn stop_on_amd(amd: &Amd, counter: CounterId, shadow: &mut Shadow) {
        if !amd.keeps_values() {
            shadow.forget_value(counter);
        }
        shadow.stop_second_of(counter);
    }

    /// Brings the shadow up to date with counters that an NMI stopped. The PMU is disabled.
    #[inline]
    pub(super) fn update_shadow(pmi_state: &PmiState, shadow: &mut Shadow) {
        if pmi_state.has_halted() {
            Self::shadow_halted(pmi_state.halted(), pmi_state, shadow);
        }
    }

    #[cold]
    fn shadow_halted(halted: CounterMask, pmi_state: &PmiState, shadow: &mut Shadow) {
        for counter in halted & shadow.active() {
            pmi_state.deactivate(counter);
            shadow.stop(counter, None);
            shadow.stop_second_of(counter);
            if counter == CounterId::SLOTS {
                shadow.stop_metrics();
            }
        }
        pmi_state.set_halted(halted, false);
    }
}
