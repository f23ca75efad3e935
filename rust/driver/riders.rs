// SPDX-License-Identifier: GPL-2.0

//! Equal events of a CPU on one counter, whatever contexts they belong to.
//!
//! One of them, the *head*, is in the schedule, which plans a counter for it; the others ride on
//! that counter ([`logic::sched::riders`](crate::logic::sched::riders)). The PMI serves the
//! *owner*: the sampled event, if one of them is sampled and started, otherwise any that is started
//! ([`logic::pmi::shared_count`](crate::logic::pmi::shared_count)). The counter counts as long as
//! one of the events is started. So a rider that starts or stops writes no register, except that a
//! sampled event writes the start of its period to the counter.
//!
//! Only events of [`Way::Counter`](super::counter_use::Way) share counters. The use of a counter
//! that has riders is marked as shared, which makes callbacks and the PMI take the steps in
//! this file.
//!
//! Two sampled events have a counter each: if the periods of both were served by one counter, each
//! PMI would have to look at both, and a period in which the other's PMI falls would be sampled
//! late by the time from PMI to PMI.

use super::{
    counter_use::CounterUse,
    counting,
    cpu::{
        CallbackState,
        Cpu, //
    },
    event,
    hw::Hardware,
    pmi::PmiState,
    Driver, //
};
use crate::{
    logic::{
        pmi::shared_count::MAX_IDS,
        regs::{
            counter::CounterId,
            shadow::Shadow, //
        },
        sched::{
            cpu_schedule::Entry,
            riders::{
                Id,
                Riders, //
            },
        },
    },
    perf::{
        Event,
        EventId,
        OnCpu,
        PmuDisabled,
        Scheduling,
        MAX_EVENTS, //
    },
    perf_core::trace, //
};
use kernel::interrupt::LocalInterruptDisabled;

const _: () = assert!(MAX_EVENTS == MAX_IDS);

impl CounterUse {
    /// Brings the count of `event` up to date with the sum of the shared counter.
    fn settle(&self, event: &Event<Driver>) {
        event.add_count(event.data().shared.take(&self.shared));
    }

    /// Takes `event` off the shared `counter`, which has been paused.
    pub(super) fn get_off(&self, counter: CounterId, event: &Event<Driver>) {
        // The owner is counted already, and no longer holds the counter.
        if event::counter(event) == Some(counter) && !event.is_stopped() {
            self.settle(event);
        }
        event::leave(event);
    }

    /// Brings the counts of the shared `counter` and of its `owner` up to date, and returns the
    /// counter's value.
    ///
    /// On the counter's CPU, in any context.
    pub(super) fn update_shared(
        &self,
        (counter, owner): (CounterId, &Event<Driver>),
        hardware: &Hardware,
        irqs: &LocalInterruptDisabled,
    ) -> u64 {
        let (delta, now) = self.advance(counter, hardware, irqs);
        self.shared.add(delta);
        // An NMI may have stopped the owner since the caller has looked it up.
        if !owner.is_stopped() {
            self.settle(owner);
        }
        self.publish(owner, hardware.limits.width);
        counting::count_down(owner, delta);
        now
    }
}

impl PmiState {
    /// Returns the owner of `counter` if it counts there now: the counter is active, and none of
    /// its registers is being written.
    fn owner<'a>(
        &self,
        cx: &'a OnCpu<'_, Driver>,
        counter: CounterId,
    ) -> Option<(EventId, &'a Event<Driver>)> {
        let id = self
            .last_event(counter)
            .filter(|_| self.is_active(counter))?;
        let owner = cx.event(id)?;
        (event::counter(owner) == Some(counter)).then_some((id, owner))
    }

    /// Makes a started rider of `counter` its owner, and returns it; [`None`] if there is no such
    /// rider. `former` is the owner, which stops.
    ///
    /// The counter continues: it overflows where the period of `former` would have ended, and is
    /// then set for the new owner. The caller activates the counter for it.
    fn next_owner<'a>(
        &self,
        cx: &'a OnCpu<'_, Driver>,
        (counter, former): (CounterId, &Event<Driver>),
        hardware: &Hardware,
    ) -> Option<(EventId, &'a Event<Driver>)> {
        let counts = self.uses.on(counter);
        loop {
            let id = EventId::from_index(counts.shared.take_any()?)?;
            let counts_here =
                |it: &&Event<Driver>| event::counter(it) == Some(counter) && !it.is_stopped();
            if let Some(next) = cx.event(id).filter(counts_here) {
                former.data().shared.set_has_owner(true);
                former.update_userpage();
                counts.settle(next);
                counts.publish(next, hardware.limits.width);
                next.data().shared.set_has_owner(false);
                return Some((id, next));
            }
        }
    }
}

/// Returns the event with this id, if it is on the CPU.
fn event_of<'a>(cx: &'a OnCpu<'_, Driver>, id: Id) -> Option<(EventId, &'a Event<Driver>)> {
    let id = EventId::from_index(id)?;
    Some((id, cx.event(id)?))
}

impl Driver {
    /// Lets `event`, which is being added, ride on the counter of an equal event. Returns whether
    /// there is one.
    #[inline]
    pub(super) fn ride(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) -> bool {
        own.schedule.may_have_equal(event.data().demand.key)
            && self.ride_on_equal(cx, cpu, own, (id, event))
    }

    #[inline(never)]
    fn ride_on_equal(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) -> bool {
        let demand = &event.data().demand;
        let Some(head) = own.schedule.equal_event(demand) else {
            return false;
        };
        own.riders.join(id.index(), head.index());
        if demand.key.samples() {
            own.schedule.set_samples(head, true);
        }
        if own.schedule.in_txn() {
            own.boarding.insert(id.index());
        } else {
            self.board(cx, cpu, own, (id, event));
        }
        true
    }

    /// Lets the riders of a group that has been placed get on their counters.
    #[inline]
    pub(super) fn board_group(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        if !own.boarding.is_empty() {
            self.board_all(cx, cpu, own);
        }
    }

    #[inline(never)]
    fn board_all(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        for id in core::mem::take(&mut own.boarding) {
            if let Some((id, event)) = event_of(cx, id) {
                self.board(cx, cpu, own, (id, event));
            }
        }
    }

    /// Lets the rider `event` get on the counter of its head, if that is programmed. Otherwise it
    /// gets on [when its head does](Self::board_arriving).
    fn board(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) {
        event.data().turn.arrive();
        let head = own.riders.head_of(id.index()).and_then(EventId::from_index);
        let entry = head.and_then(|head| own.schedule.get(head));
        if let Some(counter) = entry.and_then(Entry::placed) {
            self.board_on(cx, (counter, id, event), &cpu.shared, &mut own.shadow);
        }
    }

    /// Lets the rider `event` get on `counter`, which is programmed for its head.
    fn board_on(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = shared.uses.on(counter);
        if !counts.is_shared() {
            // In this order: from the mark on, the owner counts by the sum.
            if let Some((_, owner)) = shared.owner(cx, counter) {
                counts.update((counter, owner), &self.hardware, cx.irqs());
                owner.data().shared.begin(&counts.shared);
            }
            counts.shared.clear();
            counts.set_shared(true);
        }
        event.data().shared.set_has_owner(true);
        event::hold(event, counter);
        if event.is_stopped() {
            event.update_userpage();
        } else {
            self.start_shared(cx, (counter, id, event), shared, shadow);
        }
        trace::schedule(event, counter.index());
    }

    /// Lets the riders whose heads arrive get on the counters, after these are programmed.
    #[inline(never)]
    pub(super) fn board_arriving(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        for id in own.riders.all() {
            // The others have been on their counters before.
            let arrives = |(_, event): &(_, &_)| event::counter(event).is_none();
            if let Some((id, event)) = event_of(cx, id).filter(arrives) {
                self.board(cx, cpu, own, (id, event));
            }
        }
    }

    /// Stops the shared counters that their heads leave, and takes all events off them.
    #[inline(never)]
    pub(super) fn leave_shared(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        let CallbackState {
            schedule,
            shadow,
            riders,
            ..
        } = own;
        let shared = &cpu.shared;
        for (head, counter) in schedule.leaving() {
            let counts = shared.uses.on(counter);
            if !counts.is_shared() {
                continue;
            }
            self.pause_shared(cx, counter, shared, shadow);
            Self::for_each_sharer(cx, riders, head, |event| counts.get_off(counter, event));
            counts.shared.clear();
            counts.set_shared(false);
        }
    }

    /// Stops the shared `counter`, and brings its sum and its owner's count up to date. The PMU is
    /// disabled.
    pub(super) fn pause_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        counter: CounterId,
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        if !shared.is_active(counter) {
            return;
        }
        // From here on, no NMI changes the owner.
        shared.deactivate(counter);
        let counts = shared.uses.on(counter);
        let owner = shared.last_event(counter).and_then(|id| cx.event(id));
        if let Some(owner) = owner.filter(|it| event::counter(it) == Some(counter)) {
            let value = counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            self.stop_counter(counter, value, shadow);
            event::leave(owner);
        } else if shadow.active().contains(counter) {
            // The perf core has lost the owner.
            shadow.stop(counter, None);
        }
    }

    /// Starts the shared `counter` that was [paused](Self::pause_shared). If an NMI has stopped its
    /// owner meanwhile, a rider becomes the owner.
    pub(super) fn go_on_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, owner): (CounterId, EventId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        let mut next = None;
        if owner.is_stopped() {
            next = shared.next_owner(cx, (counter, owner), &self.hardware);
            event::hold(owner, counter);
        }
        let (id, owner) = next.unwrap_or((id, owner));
        self.start_on(cx, (counter, id, owner), shared, shadow);
    }

    /// Starts `event` on the shared `counter`. The PMU is disabled.
    pub(super) fn start_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        if !self.start_riding(cx, (counter, id, event), shared, shadow) {
            self.start_on(cx, (counter, id, event), shared, shadow);
        }
    }

    /// Starts `event` on the shared `counter` if it rides on an owner. If it does not, makes it the
    /// owner: the caller [starts](Self::start_on) the counter for it.
    // A function of its own, so that its stack is free when the counter is started.
    #[inline(never)]
    fn start_riding(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) -> bool {
        let counts = shared.uses.on(counter);
        let ride = &event.data().shared;
        let Some((_, owner)) = shared.owner(cx, counter) else {
            ride.begin(&counts.shared);
            ride.set_has_owner(false);
            return false;
        };
        if !event.is_sampling() {
            counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            ride.begin(&counts.shared);
            ride.set_has_owner(true);
            event::hold(event, counter);
            counts.shared.insert(id.index());
            event.update_userpage();
            self.check_started(cx, (counter, id, event), shared, shadow);
            return true;
        }
        // The counter has to overflow at the end of this event's period. From here on, no NMI
        // changes the owner.
        shared.deactivate(counter);
        let owner = shared.last_event(counter);
        if let Some((owner_id, owner)) = owner.and_then(|id| Some((id, cx.event(id)?))) {
            let value = counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            self.stop_counter(counter, value, shadow);
            if !owner.is_stopped() {
                owner.data().shared.set_has_owner(true);
                counts.shared.insert(owner_id.index());
                owner.update_userpage();
            }
        }
        shared.set_halted(counter.mask(), false);
        ride.begin(&counts.shared);
        ride.set_has_owner(false);
        false
    }

    /// Stops `event` on the shared `counter`, and brings its count up to date. The PMU is disabled.
    pub(super) fn stop_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        let Some(id) = event.id() else { return };
        let counts = shared.uses.on(counter);
        // An NMI may make a rider the owner as long as it is recorded as started.
        if counts.shared.remove(id.index()) {
            if let Some((_, owner)) = shared.owner(cx, counter) {
                counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            }
            counts.settle(event);
            return;
        }
        if shared
            .owner(cx, counter)
            .is_none_or(|(owner, _)| owner != id)
        {
            return;
        }
        // From here on, no NMI changes the owner.
        shared.deactivate(counter);
        match shared.last_event(counter) {
            Some(owner) if owner != id => {
                // An NMI has stopped the event since.
                shared.activate(counter, owner);
                return;
            }
            _ => {}
        }
        let value = counts.update_shared((counter, event), &self.hardware, cx.irqs());
        loop {
            let Some((next_id, next)) = shared.next_owner(cx, (counter, event), &self.hardware)
            else {
                self.stop_counter(counter, value, shadow);
                return;
            };
            shared.activate(counter, next_id);
            next.update_userpage();
            // An NMI that has stopped the event before may not have found it.
            if !next.is_stopped() || shared.last_event(counter) != Some(next_id) {
                return;
            }
            shared.deactivate(counter);
        }
    }

    /// Checks that the rider `event`, which has just been started on `counter`, counts, since NMIs
    /// may have stopped the event, or the owner and so the counter.
    fn check_started(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        shared: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = shared.uses.on(counter);
        if event.is_stopped() {
            self.stop_shared(cx, (counter, event), shared, shadow);
        } else if shared.is_halted(counter) && counts.shared.remove(id.index()) {
            // The PMI does not serve a halted counter.
            counts.set_event(id);
            event.data().shared.set_has_owner(false);
            counts.publish(event, self.hardware.limits.width);
            shared.set_halted(counter.mask(), false);
            event.update_userpage();
            if event.is_stopped() {
                self.stop_shared(cx, (counter, event), shared, shadow);
            }
        }
    }

    /// Removes `event`, which shares a counter or is to share one, from the CPU. The PMU is
    /// disabled.
    #[inline(never)]
    pub(super) fn del_shared(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) {
        let shared = &cpu.shared;
        let counter = event::counter(event);
        let data = event.data();
        own.boarding.remove(id.index());
        if let Some(counter) = counter {
            if !event.is_stopped() {
                self.stop_shared(cx, (counter, event), shared, &mut own.shadow);
            }
            // The id may be another event's next.
            shared.uses.on(counter).shared.remove(id.index());
        }
        let head = match own.riders.leave(id.index()) {
            Some(head) => EventId::from_index(head),
            None => {
                let next = own.riders.promote(id.index());
                next.and_then(|next| event_of(cx, next))
                    .map(|(next_id, next)| {
                        // A search for other groups may have cancelled the txn of the event.
                        own.schedule.hand_over(id, next_id, &next.data().demand);
                        own.changed |= data.branches.is_some();
                        next_id
                    })
            }
        };
        if let Some(head) = head {
            if data.demand.key.samples() {
                own.schedule.set_samples(head, false);
            }
            if let Some(counter) = counter.filter(|_| !own.riders.involve(head.index())) {
                self.end_sharing(cx, (counter, head), shared);
            }
        }
        data.shared.set_has_owner(false);
        event::leave(event);
        event.update_userpage();
    }

    /// Ends the sharing of `counter`, on which only `last` is left.
    fn end_sharing(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, last): (CounterId, EventId),
        shared: &PmiState,
    ) {
        let counts = shared.uses.on(counter);
        let Some(event) = cx.event(last) else { return };
        // Up to date with the sum, which does not grow from the mark on.
        if let Some((_, owner)) = shared.owner(cx, counter) {
            counts.update_shared((counter, owner), &self.hardware, cx.irqs());
        }
        counts.set_shared(false);
        event.data().shared.set_has_owner(false);
        event.update_userpage();
    }

    /// Brings the count of `event` on the shared `counter` up to date. Any context.
    ///
    /// For a group, the counter is read once, so that equal events of the group are equal.
    pub(super) fn read_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
    ) {
        let shared = &self.cpus.this_cpu(cx.irqs()).shared;
        let counts = shared.uses.on(counter);
        let group = cx.group_read().filter(|_| !cx.in_nmi());
        if group.is_none_or(|number| counts.begin_group_read(number)) {
            if let Some((_, owner)) = shared.owner(cx, counter) {
                counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            }
        }
        counts.settle(event);
    }

    /// Stops `event` on the shared `counter`, in an NMI.
    pub(super) fn stop_shared_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &PmiState,
    ) {
        let Some(id) = event.id() else { return };
        let counts = shared.uses.on(counter);
        if counts.shared.remove(id.index()) {
            self.read_shared(cx, (counter, event));
            return;
        }
        if shared
            .owner(cx, counter)
            .is_none_or(|(owner, _)| owner != id)
        {
            return;
        }
        counts.update_shared((counter, event), &self.hardware, cx.irqs());
        if let Some((next_id, next)) = shared.next_owner(cx, (counter, event), &self.hardware) {
            counts.set_event(next_id);
            next.update_userpage();
            return;
        }
        shared.halt(counter);
        shared.run(&self.hardware, cx.irqs());
        counts.update_shared((counter, event), &self.hardware, cx.irqs());
    }

    /// Restarts `event` on the shared `counter`, in the NMI that has stopped it. Returns whether it
    /// was restarted.
    pub(super) fn start_shared_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        shared: &PmiState,
    ) -> bool {
        let Some(id) = event.id().filter(|_| shared.is_active(counter)) else {
            return false;
        };
        let counts = shared.uses.on(counter);
        let ride = &event.data().shared;
        let is_halted = shared.is_halted(counter);
        if !is_halted && !event.is_sampling() {
            if let Some((_, owner)) = shared.owner(cx, counter) {
                counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            }
            ride.begin(&counts.shared);
            counts.shared.insert(id.index());
            return true;
        }
        shared.halt(counter);
        shared.run(&self.hardware, cx.irqs());
        if let Some((owner_id, owner)) = shared.owner(cx, counter).filter(|_| !is_halted) {
            counts.update_shared((counter, owner), &self.hardware, cx.irqs());
            owner.data().shared.set_has_owner(true);
            counts.shared.insert(owner_id.index());
            owner.update_userpage();
        }
        ride.begin(&counts.shared);
        ride.set_has_owner(false);
        counts.set_event(id);
        counts.restart(event, counter, &self.hardware, cx.irqs());
        shared.set_halted(counter.mask(), false);
        shared.run(&self.hardware, cx.irqs());
        true
    }

    /// Calls `f` for each event that counts on the counter of `head`, which is in the schedule: for
    /// `head` and its riders.
    pub(super) fn for_each_sharer(
        cx: &OnCpu<'_, Self>,
        riders: &Riders,
        head: EventId,
        mut f: impl FnMut(&Event<Self>),
    ) {
        if let Some(event) = cx.event(head) {
            f(event);
        }
        if riders.involve(head.index()) {
            for id in riders.of(head.index()) {
                if let Some((_, event)) = event_of(cx, id) {
                    f(event);
                }
            }
        }
    }
}
