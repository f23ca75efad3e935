// SPDX-License-Identifier: GPL-2.0

//! The callbacks of the perf core: placing events on counters, and counting.
//!
//! Adding an event only changes the schedule, unless the event [rides](super::riders) on a counter
//! that is programmed; removing one also stops it. The registers follow when the PMU is enabled,
//! and only where they have to change ([`program`](super::program)). Starting an event programs its
//! counter at once, and stopping one reads it; this, too, happens with the PMU disabled. For events
//! that an NMI has stopped, [`Driver::own`] and `disable()` update the shadow afterwards.

use super::{
    counter_use::Way,
    cpu::{
        CallbackState,
        Cpu, //
    },
    event::{
        self,
        EventData, //
    },
    event_init::{
        check_period,
        event_init, //
    },
    unit::{
        self,
        hooks::PlanAndShadow, //
    },
    Driver, //
};
use crate::{
    kern::percpu::CpuCellGuard,
    logic::{
        model::constraint::Constraint,
        refusal::Refusal,
        regs::counter::CounterMask,
        sched::{
            cpu_schedule::{
                CpuSchedule,
                Entry, //
            },
            explanation::Reason,
            group::Group,
            limits::Limits,
            riders::{
                Ids,
                Riders, //
            },
        },
        smt::protocol::CountersOnly, //
    },
    perf::{
        Attachment,
        Event,
        EventId,
        NewEvent,
        OnCpu,
        Operations,
        Placed,
        PmuDisabled,
        Scheduling, //
    },
    perf_core::{
        trace,
        CpuState,
        InternalOperations,
        IntervalEnd,
        PinnedGroup, //
    },
};
use kernel::{
    cpu::CpuId,
    mm::Mm,
    prelude::*, //
};

impl Driver {
    /// Returns the state of this CPU, for callbacks outside of NMIs, and brings the shadow up to
    /// date with counters that an NMI stopped.
    ///
    /// [`None`] if a callback is running already. The perf core does not nest callbacks. But if a
    /// callback hits a tracepoint whose event leads a group with events of this driver, the perf
    /// core may stop the group. Also [`None`] when the CPU has been [given
    /// back](super::hotplug::give_back), and always on a CPU with another PMU.
    #[inline]
    fn own<'a>(
        &'a self,
        cx: &'a PmuDisabled<'_, Self>,
    ) -> Option<(&'a Cpu, CpuCellGuard<'a, CallbackState>)> {
        let cpu = self.cpus.this_cpu(cx.irqs());
        let mut own = cpu.own.borrow(cx.irqs())?;
        Self::update_shadow(&cpu.pmi_state, &mut own.shadow);
        Some((cpu, own))
    }

    /// Returns the error for an `event` that is added while this CPU is closed. If that is because
    /// the PMU does not work, has the event put into the error state.
    #[cold]
    #[inline(never)]
    fn no_cpu(&self, event: &Event<Self>) -> Error {
        if self.common.breaker.has_tripped() && event.can_fail() {
            self.common.breaker.request();
        }
        EAGAIN
    }

    /// Records that `event` could not be placed, or a group whose first event it is. `members` is
    /// the number of events that were tried together; `constraint` is the sum of their constraints
    /// without those of riders. `failed` is the event of them that has not been collected, if any.
    ///
    /// If this driver orders the groups, a failure of an event that rotates is not recorded at the
    /// end of an interval, but marks the event as waiting. Nor is it recorded as long as the event
    /// waits.
    #[inline(never)]
    fn place_failed(
        &self,
        cx: &Scheduling<'_, Self>,
        own: &mut CallbackState,
        (event, failed): (&Event<Self>, Option<&Event<Self>>),
        members: u32,
        (refusal, constraint): (Refusal, Constraint),
    ) {
        let is_pinned = cx.is_of_pinned_group(event);
        if is_pinned {
            cx.pinned_refused(event);
        }
        if self.common.orders_groups && !is_pinned {
            if cx.is_interval_end() {
                event.data().turn.wait();
            }
            if event.data().turn.waits() {
                return;
            }
        }
        let reason = Reason {
            explanation: own.smt.explain(refusal, constraint),
            would_share: Self::would_share(cx, own, failed),
        };
        trace::place_failed(event, members, constraint.counters.bits(), &reason);
        own.failures.push(event, members, reason);
    }

    /// [Records](Self::place_failed) that the group of the event `any` could not be placed.
    /// `failed` is the event of the group that could not be collected, if any.
    #[inline(never)]
    fn group_failed(
        &self,
        cx: &Scheduling<'_, Self>,
        own: &mut CallbackState,
        (any, failed): (&Event<Self>, Option<&Event<Self>>),
        refusal: Refusal,
    ) {
        let none = Constraint::any_of(CounterMask::EMPTY);
        let all = failed.map_or(none, |event| event.data().demand.constraint);
        let collected = own.schedule.collected();
        let all = collected.clone().fold(all, |all, it| all.or(it.constraint));
        // CAST: no more than there are counters.
        let members = (collected.count() as u32)
            .wrapping_add(failed.is_some().into())
            .wrapping_add(own.riders_to_place.len());
        // The first event may be a rider, which is not collected.
        let first = cx.group(any).first_enabled().unwrap_or(any);
        self.place_failed(cx, own, (first, failed), members, (refusal, all));
    }

    /// Returns whether `entry` stays on the CPU while flexible groups rotate: its event or a rider
    /// is pinned.
    #[inline(never)]
    fn stays(cx: &OnCpu<'_, Self>, riders: &Riders, entry: &Entry<EventId>) -> bool {
        let mut stays = false;
        Self::for_each_sharer(cx, riders, entry.event, |event| {
            stays |= cx.is_of_pinned_group(event);
        });
        stays
    }

    /// Adds the demand of the events that [stay](Self::stays) to `group`. Returns a bit for each of
    /// them, in the order of the schedule's entries. Fails if there are too many.
    #[inline(never)]
    fn push_lasting(
        cx: &OnCpu<'_, Self>,
        (schedule, riders): (&CpuSchedule<EventId>, &Riders),
        group: &mut Group<'_>,
    ) -> Result<u64, Refusal> {
        let mut lasting = 0;
        let mut bit = 1u64;
        for entry in schedule.entries() {
            if Self::stays(cx, riders, entry) {
                group.push_demand(&entry.demand())?;
                lasting |= bit;
            }
            bit = bit.wrapping_shl(1);
        }
        Ok(lasting)
    }

    /// Returns whether the `waiting` group fits beside the pinned events of `schedule`, within
    /// `limits`.
    #[inline(never)]
    fn has_room_within(
        &self,
        cx: &OnCpu<'_, Self>,
        (schedule, riders): (&CpuSchedule<EventId>, &Riders),
        waiting: &PinnedGroup<'_, Self>,
        limits: &Limits,
    ) -> bool {
        let mut group = Group::new(&self.hardware.pmu.capabilities, limits);
        let Ok(lasting) = Self::push_lasting(cx, (schedule, riders), &mut group) else {
            return false;
        };
        let mut among_sampled = lasting;
        let mut verdict = Ok(());
        waiting.for_each_event(|event| {
            let demand = &event.data().demand;
            if verdict.is_ok() && !schedule.could_ride(demand, lasting, &mut among_sampled) {
                verdict = group.push_demand(demand);
            }
        });
        verdict.is_ok() && group.validate().is_ok()
    }

    /// Records that `event` could not be collected with its group, as there would be more events
    /// than counters. Then looks for groups behind it that fit.
    #[cold]
    #[inline(never)]
    fn no_room(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
        refusal: Refusal,
    ) {
        own.smt.set_refused_under(Limits::NONE);
        self.group_failed(cx, own, (event, Some(event)), refusal);
        self.let_others_pass(cx, cpu, own, event);
    }

    /// Records that the group of the event `id`, which was collected, does not fit. Then looks for
    /// groups behind it that fit.
    // A function of its own, so that its stack is free when events are moved.
    #[cold]
    #[inline(never)]
    fn commit_failed(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        id: EventId,
        refusal: Refusal,
    ) {
        let Some(event) = cx.event(id) else {
            return;
        };
        if refusal.is_for_the_moment() {
            cx.wait_if_pinned(id);
        }
        if cx.is_pinned(id) {
            Self::note_pinned_refused(own);
        } else {
            Self::note_refused(own, event);
        }
        self.group_failed(cx, own, (event, None), refusal);
        self.let_others_pass(cx, cpu, own, event);
    }

    /// Releases unused counters to TSX and to the core's other thread, after the plan is
    /// programmed.
    #[inline(never)]
    fn release_unused(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        let CallbackState {
            schedule,
            shadow,
            units,
            ..
        } = &mut *own;
        let site = self.site(cpu, cx.irqs());
        self.units
            .release(units, site, PlanAndShadow { schedule, shadow });
        self.release(cx, cpu, own);
    }
}

impl InternalOperations for Driver {
    fn end_interval(&self, cx: &IntervalEnd<'_, Self>) {
        if self.common.orders_groups {
            self.line_up(cx);
        }
    }

    fn has_room_for(&self, cx: &OnCpu<'_, Self>, waiting: &PinnedGroup<'_, Self>) -> bool {
        // The PMU may run, so the shadow is not brought up to date with counters that an NMI
        // stopped.
        let cpu = self.cpus.this_cpu(cx.irqs());
        let Some(own) = cpu.own.borrow(cx.irqs()) else {
            return false;
        };
        self.try_within_limits(cx, cpu, |limits| {
            self.has_room_within(cx, (&own.schedule, &own.riders), waiting, &limits)
        })
    }
}

#[vtable]
impl Operations for Driver {
    type EventData = EventData;
    type TaskData = unit::TaskData;
    type CpuData = CpuState<Self>;

    fn event_init(&self, event: &NewEvent<'_, Self>) -> Result<Placed<Self>> {
        event_init(self, event)
    }

    #[inline(always)]
    fn disable(&self, cx: &OnCpu<'_, Self>) {
        let cpu = self.cpus.this_cpu(cx.irqs());
        cpu.pmi_state.set_enabled(CounterMask::EMPTY);
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            // A callback is running (see `own()`), or the CPU was given back or has another PMU, as
            // the perf core disables the PMUs of all of a task's events. In the first case counters
            // may count, and the caller relies on their being stopped.
            if !cpu.own.is_closed() {
                cpu.pmi_state.hypervisors.announce_stop();
                self.hardware.stop(cx.irqs());
            }
            return;
        };
        cpu.pmi_state.hypervisors.announce_stop();
        if cpu.pmi_state.was_unknown() {
            self.reset(cpu, &mut own, cx.irqs());
        } else {
            if own.shadow.suspend() || self.hardware.others_run_counters() {
                self.hardware.suspend(|| cpu.pmi_state.handled(), cx.irqs());
            }
            self.units.stop(&mut own.units, self.site(cpu, cx.irqs()));
            if cpu.pmi_state.was_stuck() {
                self.recover(cx, cpu, &mut own);
            }
            Self::update_shadow(&cpu.pmi_state, &mut own.shadow);
        }
    }

    #[inline(always)]
    fn enable(&self, cx: &PmuDisabled<'_, Self>) {
        let Some((cpu, mut own)) = self.own(cx) else {
            return;
        };
        let own = &mut *own;
        let pmi_state = &cpu.pmi_state;
        let site = self.site(cpu, cx.irqs());
        // Starting or stopping an event leaves the plan unchanged; a switch between clones of a
        // context changes nothing.
        let changed = core::mem::take(&mut own.changed);
        if changed {
            self.program(cx, cpu, own);
        }
        let touched = changed || own.shadow.is_touched();
        if touched {
            let (units, schedule) = (&mut own.units, &own.schedule);
            self.units
                .prepare(units, &cpu.units, cx, site, schedule, changed);
        }
        let running = own
            .shadow
            .resume(|write| self.hardware.write(write, cx.irqs()));
        if touched {
            pmi_state.set_in_guest(own.shadow.in_guest());
        }
        if let Some(counters) = running {
            // From here on, a PMI restarts the units and switches the counters on, too. So all
            // registers that `start()` and `run()` do not write are written before.
            pmi_state.set_enabled(counters);
            self.units.start(&mut own.units, &cpu.units, site);
            pmi_state.run(&self.hardware, cx.irqs());
        }
        if changed {
            self.release_unused(cx, cpu, own);
        }
    }

    #[inline]
    fn add(&self, cx: &Scheduling<'_, Self>, id: EventId, event: &Event<Self>) -> Result {
        let (cpu, mut own) = self.own(cx).ok_or_else(|| self.no_cpu(event))?;
        if self.ride(cx, cpu, &mut own, (id, event)) {
            return Ok(());
        }
        own.changed = true;
        if self.waits_for_its_kind(cx, cpu, &mut own, event) {
            event.data().turn.wait();
            self.let_others_pass(cx, cpu, &mut own, event);
            return Err(EAGAIN);
        }
        let data = event.data();
        let wish = data.last_place.counter_on(cpu.id);
        if own.schedule.in_txn() {
            // The event is only collected for the txn: nothing is planned yet, so nothing is
            // reported to the processor's core.
            return Ok(own
                .schedule
                .add_demand(id, &data.demand, wish, &Limits::NONE)
                .inspect_err(|refusal| self.no_room(cx, cpu, &mut own, event, *refusal))?);
        }
        let planned = self.plan(
            cx,
            cpu,
            &mut own,
            CountersOnly::No,
            Some(id),
            |schedule, limits| schedule.add_demand(id, &data.demand, wish, limits),
        );
        let Err(refusal) = planned else {
            self.ride_on_branches(cx, cpu, &mut own);
            Self::note_placed(&mut own, || Some(event));
            self.let_others_join(cx, cpu, &mut own, event);
            return Ok(());
        };
        Self::note_refused(&mut own, event);
        let reason = (refusal, data.demand.constraint);
        self.place_failed(cx, &mut own, (event, Some(event)), 1, reason);
        self.let_others_pass(cx, cpu, &mut own, event);
        Err(refusal.into())
    }

    #[cold]
    fn too_many(&self, cx: &Scheduling<'_, Self>, event: &Event<Self>) {
        if let Some((_, mut own)) = self.own(cx) {
            // No limits were involved.
            own.smt.set_refused_under(Limits::NONE);
            let reason = (Refusal::TooManyEvents, event.data().demand.constraint);
            self.place_failed(cx, &mut own, (event, None), 1, reason);
        }
    }

    #[inline]
    fn del(&self, cx: &PmuDisabled<'_, Self>, id: EventId, event: &Event<Self>) {
        let Some((cpu, mut own)) = self.own(cx) else {
            return;
        };
        if own.riders.involve(id.index()) {
            self.del_shared(cx, cpu, &mut own, (id, event));
            return;
        }
        let pmi_state = &cpu.pmi_state;
        own.changed = true;
        if let Some(counter) = event::counter(event) {
            if !event.is_stopped() {
                self.stop_on(cx, (counter, event), pmi_state, &mut own.shadow);
            } else if pmi_state.uses.on(counter).is_special() {
                self.leave_special(cx, (counter, event), pmi_state, &mut own.shadow);
            }
        }
        own.schedule.remove(id);
        event::leave(event);
        event.update_userpage();
    }

    #[inline]
    fn start(&self, cx: &PmuDisabled<'_, Self>, id: EventId, event: &Event<Self>) {
        let Some((Cpu { pmi_state, .. }, mut own)) = self.own(cx) else {
            return;
        };
        let counter = event::counter(event);
        // In this order: from `leave()` on, readers find no counter; from `set_started()` on, an
        // NMI can stop the event again.
        event::leave(event);
        event.set_started(cx);
        if let Some(counter) = counter {
            self.call_start_on(cx, (counter, id, event), pmi_state, &mut own.shadow);
        }
    }

    #[inline]
    fn stop(&self, cx: &PmuDisabled<'_, Self>, event: &Event<Self>) {
        let Some((Cpu { pmi_state, .. }, mut own)) = self.own(cx) else {
            self.stop_in_nmi(cx, event);
            return;
        };
        if let Some(counter) = event::counter(event) {
            self.stop_on(cx, (counter, event), pmi_state, &mut own.shadow);
        }
    }

    fn stop_in_nmi(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        let Some(counter) = event::counter(event) else {
            return;
        };
        let pmi_state = &self.cpus.this_cpu(cx.irqs()).pmi_state;
        if pmi_state.uses.on(counter).is_special() {
            self.stop_special_in_nmi(cx, (counter, event), pmi_state);
            return;
        }
        pmi_state.halt(counter);
        pmi_state.run(&self.hardware, cx.irqs());
        let counts = pmi_state.uses.on(counter);
        counts.update((counter, event), &self.hardware, cx.irqs());
    }

    fn start_in_nmi(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) -> bool {
        let Some(counter) = event::counter(event) else {
            return false;
        };
        let pmi_state = &self.cpus.this_cpu(cx.irqs()).pmi_state;
        let counts = pmi_state.uses.on(counter);
        if !matches!(counts.way(), Way::Counter | Way::Pair | Way::Precise) {
            return self.restart_special_in_nmi(cx, (counter, event), pmi_state);
        }
        if !pmi_state.is_halted(counter) {
            return false;
        }
        // The event is halted: it does not count, no PMI handles it, and the shadow still has it
        // running.
        counts.restart(event, counter, &self.hardware, cx.irqs());
        pmi_state.set_halted(counter.mask(), false);
        pmi_state.run(&self.hardware, cx.irqs());
        true
    }

    fn check_period(&self, event: &Event<Self>, period: u64) -> Result {
        Ok(check_period(self, event, period)?)
    }

    #[inline]
    fn read(&self, cx: &OnCpu<'_, Self>, event: &Event<Self>) {
        // The count of a stopped event is up to date. Its counter may differ from the one on which
        // it stopped, and hold another event's value.
        if event.is_stopped() {
            return;
        }
        let Some(counter) = event::counter(event) else {
            return;
        };
        let counts = self.cpus.this_cpu(cx.irqs()).pmi_state.uses.on(counter);
        if counts.is_special() {
            Self::read_special(cx.pmu(), cx.irqs(), (counter, event));
        } else {
            counts.update((counter, event), &self.hardware, cx.irqs());
        }
    }

    fn serves_some_cpus(&self) -> bool {
        !self.common.cpus.are_alike()
    }

    fn serves(&self, cpu: CpuId) -> bool {
        self.common.cpus.index_of(cpu) == self.identity.index
    }

    fn samples_extended_registers(&self) -> bool {
        self.hardware.pmu.has_extended_registers()
    }

    fn attachment(data: &EventData) -> Attachment {
        match data.branches {
            Some(request) if request.call_stack => Attachment::TaskData,
            Some(_) => Attachment::SchedTask,
            None if data.records_can_wait() => Attachment::SchedTask,
            None => Attachment::None,
        }
    }

    fn sched_task(
        &self,
        cx: &PmuDisabled<'_, Self>,
        data: Option<&mut unit::TaskData>,
        sched_in: bool,
    ) {
        if let Some((cpu, mut own)) = self.own(cx) {
            let site = self.site(cpu, cx.irqs());
            let own = &mut *own;
            let (state, schedule) = ((&mut own.units, &cpu.units), &own.schedule);
            self.units.switch(state, cx, site, schedule, data, sched_in);
        }
    }

    fn user_may_read(&self) -> bool {
        self.common.user_read.is_possible()
    }

    fn mapped(&self, event: &Event<Self>, mm: &Mm) {
        self.common.user_read.mapped(event, mm);
    }

    fn unmapped(&self, event: &Event<Self>, mm: &Mm) {
        self.common.user_read.unmapped(event, mm);
    }

    fn has_user_index(&self, event: &Event<Self>) -> bool {
        // The count includes records that wait in the PEBS buffer, which a reader of the counter
        // does not see.
        let data = event.data();
        !data.records_can_wait()
            && data.way() != Way::GuestBranches
            && !data.ride.has_owner()
            && data.page.has_index(event)
    }

    #[inline]
    fn begin_txn(&self, cx: &PmuDisabled<'_, Self>) {
        if let Some((_, mut own)) = self.own(cx) {
            own.schedule.begin();
        }
    }

    #[inline]
    fn commit_txn(&self, cx: &Scheduling<'_, Self>) -> Result {
        let (cpu, mut own) = self.own(cx).ok_or(EAGAIN)?;
        let own = &mut *own;
        let Some(id) = own.schedule.collected().next().map(|entry| entry.event) else {
            self.commit_riders(cx, cpu, own);
            return Ok(());
        };
        let counters_only = CountersOnly::of(&own.schedule);
        let planned = self.plan(cx, cpu, own, counters_only, Some(id), CpuSchedule::commit);
        let Err(refusal) = planned else {
            self.place_riders_of_txn(cx, cpu, own);
            self.ride_on_branches(cx, cpu, own);
            Self::note_placed(own, || cx.event(id));
            if let Some(leader) = cx.event(id) {
                self.let_others_join(cx, cpu, own, leader);
            }
            return Ok(());
        };
        self.commit_failed(cx, cpu, own, id, refusal);
        Err(refusal.into())
    }

    fn cancel_txn(&self, cx: &PmuDisabled<'_, Self>) {
        if let Some((_, mut own)) = self.own(cx) {
            own.schedule.cancel();
            own.riders_to_place = Ids::NONE;
        }
    }
}
