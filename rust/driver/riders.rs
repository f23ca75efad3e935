// SPDX-License-Identifier: GPL-2.0

//! Equal events of a CPU on one counter, whatever contexts they belong to.
//!
//! One of them, the *head*, is in the schedule, which plans a counter for it; the others ride on
//! that counter ([`logic::sched::riders`](crate::logic::sched::riders)). The PMI serves the
//! *owner*: the sampled event, if one of them is sampled and started, otherwise any that is started
//! ([`logic::pmi::shared_count`](crate::logic::pmi::shared_count)). For the PMI, all others are
//! riders, even the head. The counter counts as long as one of the events is started. So a rider
//! that starts or stops writes no register, except that a sampled event writes the start of its
//! period to the counter.
//!
//! Only events of [`Way::Counter`](super::counter_use::Way) share counters. A counter that has
//! riders has the way [`Way::Shared`](super::counter_use::Way), by which callbacks and the PMI take
//! the steps in this file. It keeps this way when the riders leave, until the next event arrives on
//! the counter, so that switches between tasks with riders need not change it.
//!
//! At most one event of a shared counter is sampled. With two, each PMI would have to serve the
//! periods of both, and a period that ends between two PMIs would be sampled at the second one.

use super::{
    breaker::check_still,
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
        model::demand::{
            Demand,
            Unshared, //
        },
        pmi::shared_count::{
            Total,
            MAX_IDS, //
        },
        regs::{
            counter::CounterId,
            period::CounterWidth,
            shadow::Shadow, //
        },
        sched::{
            cpu_schedule::Entry,
            explanation::WouldShare,
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

/// A shared counter of this CPU.
#[derive(Clone, Copy)]
pub(super) struct SharedCounter<'a> {
    counter: CounterId,
    counts: &'a CounterUse,
    hardware: &'a Hardware,
    irqs: &'a LocalInterruptDisabled,
}

impl SharedCounter<'_> {
    fn read(self) -> u64 {
        self.hardware.read_counter(self.counter, self.irqs)
    }

    /// Returns the increment of the counter since it was last written, and its value. No PMI may
    /// write the counter meanwhile.
    ///
    /// The counter should be stopped: otherwise the occurrences until it is written are lost.
    /// (AMD's counters before PerfMonV2 run in a PMI.)
    fn since_write(self) -> (u64, u64) {
        let now = self.read();
        let width = self.hardware.limits.width;
        (width.delta(self.counts.last.get(), now), now)
    }

    /// Returns the total. Any context.
    #[inline]
    fn total(self) -> Total {
        let CounterUse {
            shared_count, last, ..
        } = self.counts;
        shared_count.total(last, self.hardware.limits.width, || self.read())
    }

    /// Brings the count of `event` up to date. Any context.
    #[inline]
    pub(super) fn update(self, event: &Event<Driver>) {
        self.update_to(event, || self.total());
    }

    #[inline]
    fn update_to(self, event: &Event<Driver>, total: impl FnMut() -> Total) {
        let ride = &event.data().ride;
        let growth = ride.base().take(total);
        if growth == 0 {
            check_still(event);
        }
        event.add_count(growth);
        if !ride.has_owner() {
            self.counts
                .publish_shared(event, self.hardware.limits.width);
        }
    }

    /// Counts down the period of `owner`, which stops being the owner. The counter is not written:
    /// it goes on for the next owner.
    ///
    /// In an NMI, or while the PMI does not handle the counter.
    fn count_down(self, owner: &Event<Driver>) {
        counting::count_down(owner, self.since_write().0);
    }

    /// Freezes the total, as the counter is about to be written or stops, and counts down the
    /// period of its `owner`; does neither if the total is frozen already. Returns the counter's
    /// value.
    ///
    /// In the PMI, or while it does not handle the counter, which should be
    /// [stopped](Self::since_write).
    pub(super) fn freeze(self, owner: Option<&Event<Driver>>) -> u64 {
        let (delta, now) = self.since_write();
        if self.counts.shared_count.freeze(delta) {
            if let Some(owner) = owner {
                counting::count_down(owner, delta);
            }
        }
        now
    }
}

impl CounterUse {
    /// Returns the shared `counter`, of which this is the use.
    pub(super) fn shared_counter<'a>(
        &'a self,
        counter: CounterId,
        hardware: &'a Hardware,
        irqs: &'a LocalInterruptDisabled,
    ) -> SharedCounter<'a> {
        SharedCounter {
            counter,
            counts: self,
            hardware,
            irqs,
        }
    }

    /// Lets the total of the shared counter, which was written, grow again. `owner` is its owner.
    pub(super) fn go_on_counting(&self, owner: &Event<Driver>, width: CounterWidth) {
        self.shared_count.thaw();
        self.publish_shared(owner, width);
    }

    /// Publishes the base value of the owner's count to its mmap page.
    fn publish_shared(&self, owner: &Event<Driver>, width: CounterWidth) {
        let base = owner.data().ride.base();
        self.shared_count
            .publish(&self.last, base, |ahead, written| {
                owner.set_previous(width.sign_extend(written).wrapping_add(ahead));
            });
    }
}

impl PmiState {
    /// Returns the owner of `counter` if the counter is active, though perhaps halted, and none of
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
        event::is_on(owner, counter).then_some((id, owner))
    }

    /// Makes a started rider of `counter` its owner, and returns it; [`None`] if there is no such
    /// rider. `former` is the owner, which stops or was stopped.
    ///
    /// Writes no register: a counter that continues overflows where the period of `former` would
    /// have ended, and is then set for the new owner. The caller activates or starts the counter
    /// for it; an NMI only [records](CounterUse::set_event) the new owner.
    fn next_owner<'a>(
        &self,
        cx: &'a OnCpu<'_, Driver>,
        (counter, former): (CounterId, &Event<Driver>),
        hardware: &Hardware,
    ) -> Option<(EventId, &'a Event<Driver>)> {
        let counts = self.uses.on(counter);
        loop {
            let id = EventId::from_index(counts.shared_count.take_any()?)?;
            let counts_here =
                |it: &&Event<Driver>| event::counter(it) == Some(counter) && !it.is_stopped();
            if let Some(next) = cx.event(id).filter(counts_here) {
                former.data().ride.set_has_owner(true);
                former.update_userpage();
                counts.publish_shared(next, hardware.limits.width);
                next.data().ride.set_has_owner(false);
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
        let demand = &event.data().demand;
        if !own.schedule.may_have_equal(demand.key) {
            return false;
        }
        let Some(head) = own.schedule.equal_event(demand) else {
            own.schedule.forget_keys();
            return false;
        };
        let head_and_counter = (head.event, head.placed());
        self.ride_on(cx, cpu, own, (id, event), head_and_counter);
        true
    }

    /// Lets `event` ride on `counter`, which is programmed for `head`. Without a `counter`, the
    /// event is placed [after its head](Self::place_arriving_riders).
    #[inline(never)]
    fn ride_on(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
        (head, counter): (EventId, Option<CounterId>),
    ) {
        own.riders.join(id.index(), head.index());
        if event.data().demand.key.samples() {
            own.schedule.set_samples(head, true);
        }
        // Another event of the group may fail, unless there is none.
        let in_txn = own.schedule.in_txn();
        if in_txn && (!cx.is_alone(event) || self.may_let_others_join(cx, own)) {
            own.riders_to_place.insert(id.index());
            return;
        }
        event.data().turn.arrive();
        if let Some(counter) = counter {
            self.place_rider_on(cx, (counter, id, event), &cpu.pmi_state, &mut own.shadow);
        }
        if !in_txn {
            self.let_others_join(cx, cpu, own, event);
        }
    }

    /// Closes the txn of a group whose events all share counters of others, and places those that
    /// are not placed yet.
    #[inline]
    pub(super) fn commit_riders(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        own.schedule.cancel();
        if !own.riders_to_place.is_empty() {
            self.commit_group_of_riders(cx, cpu, own);
        }
    }

    // A function of its own, so that its stack is free in other commits.
    #[inline(never)]
    fn commit_group_of_riders(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        let first = { own.riders_to_place }.next();
        self.place_riders_of_txn(cx, cpu, own);
        if let Some((_, event)) = first.and_then(|first| event_of(cx, first)) {
            self.let_others_join(cx, cpu, own, event);
        }
    }

    /// Places the riders of a group that has been placed.
    #[inline]
    pub(super) fn place_riders_of_txn(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        if !own.riders_to_place.is_empty() {
            self.place_riders(cx, cpu, own);
        }
    }

    #[inline(never)]
    fn place_riders(&self, cx: &OnCpu<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        for id in core::mem::take(&mut own.riders_to_place) {
            if let Some((id, event)) = event_of(cx, id) {
                self.place_rider(cx, cpu, own, (id, event));
            }
        }
    }

    /// Places the rider `event` on the counter of its head, if that is programmed. Otherwise the
    /// rider is placed [after its head](Self::place_arriving_riders).
    #[inline(never)]
    fn place_rider(
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
            self.place_rider_on(cx, (counter, id, event), &cpu.pmi_state, &mut own.shadow);
        }
    }

    /// Places the rider `event` on `counter`, which is programmed for its head.
    #[inline(always)]
    fn place_rider_on(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let counts = pmi_state.uses.on(counter);
        if !counts.is_shared() {
            Self::begin_sharing(cx, counter, pmi_state);
        }
        if event.is_stopped() {
            event.data().ride.set_has_owner(true);
            event::hold(event, counter);
            event.update_userpage();
        } else if !self.start_riding(cx, (counter, id, event), pmi_state, shadow) {
            self.call_start_on(cx, (counter, id, event), pmi_state, shadow);
        }
        trace::schedule(event, counter.index());
    }

    /// Begins the total of `counter`, which the first rider arrives on.
    #[cold]
    #[inline(never)]
    fn begin_sharing(cx: &OnCpu<'_, Self>, counter: CounterId, pmi_state: &PmiState) {
        let counts = pmi_state.uses.on(counter);
        // In this order: once the counter is marked as shared, the count of the owner follows the
        // total. The owner's count includes all up to the counter's last value, where the total
        // begins, even if a PMI changes that value before the mark is set.
        let owner = pmi_state.owner(cx, counter);
        let total = counts.shared_count.begin(owner.is_some());
        if let Some((_, owner)) = owner {
            owner.data().ride.begin(total);
        }
        counts.set_shared();
    }

    /// Places the riders whose heads arrive, after the counters are programmed.
    #[inline(never)]
    pub(super) fn place_arriving_riders(
        &self,
        cx: &OnCpu<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        for id in own.riders.all() {
            // The others have been on their counters before.
            let arrives = |(_, event): &(_, &_)| event::counter(event).is_none();
            if let Some((id, event)) = event_of(cx, id).filter(arrives) {
                self.place_rider(cx, cpu, own, (id, event));
            }
        }
    }

    /// Stops the shared counters that their heads leave, and removes all events from them.
    #[inline(never)]
    pub(super) fn vacate_shared_counters(
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
        let pmi_state = &cpu.pmi_state;
        for (head, counter) in schedule.leaving() {
            if pmi_state.uses.on(counter).is_shared() {
                self.leave_counter(cx, (counter, head), riders, pmi_state, shadow);
            }
        }
    }

    /// Removes `event` from its counter, which has been paused.
    pub(super) fn remove_from_counter(
        &self,
        cx: &OnCpu<'_, Self>,
        event: &Event<Self>,
        pmi_state: &PmiState,
    ) {
        if let Some(counter) = event::counter(event) {
            let counts = pmi_state.uses.on(counter);
            // The owner is counted already, and no longer holds the counter.
            if counts.is_shared() && !event.is_stopped() {
                counts
                    .shared_counter(counter, &self.hardware, cx.irqs())
                    .update(event);
            }
        }
        event::leave(event);
    }

    /// Stops the shared `counter`, and brings its total and its owner's count up to date. The PMU
    /// is disabled.
    pub(super) fn pause_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        counter: CounterId,
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        if !pmi_state.is_active(counter) {
            return;
        }
        // From here on, no NMI changes the owner.
        pmi_state.deactivate(counter);
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        let owner = pmi_state.last_event(counter).and_then(|id| cx.event(id));
        let owner = owner.filter(|it| event::counter(it) == Some(counter));
        let value = counts.freeze(owner);
        if let Some(owner) = owner {
            // An NMI that has stopped the owner meanwhile has found the same total.
            if !owner.is_stopped() {
                counts.update(owner);
            }
            self.stop_counter(counter, value, shadow);
            event::leave(owner);
        } else if shadow.active().contains(counter) {
            // The owner is not on this counter any more.
            shadow.stop(counter, None);
        }
    }

    /// Starts `event` as a rider and returns true, if the shared `counter` has an owner and `event`
    /// is not sampled. Otherwise, the caller makes the event [the owner](Self::become_owner).
    ///
    /// The event holds the counter once it has begun to count. Otherwise a read, as by a BPF
    /// program on the tracepoint of RDPMC, would add what the counter has counted before.
    #[inline(always)]
    pub(super) fn start_riding(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) -> bool {
        if event.is_sampling() || pmi_state.owner(cx, counter).is_none() {
            return false;
        }
        let riders = &pmi_state.uses.on(counter).shared_count;
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        let ride = &event.data().ride;
        ride.begin(counts.total());
        ride.set_has_owner(true);
        event::hold(event, counter);
        riders.insert(id.index());
        event.update_userpage();
        if event.is_stopped() {
            // By an NMI.
            self.stop_shared(cx, (counter, event), pmi_state, shadow);
            return true;
        }
        if !pmi_state.is_halted(counter) || !riders.remove(id.index()) {
            return true;
        }
        // An NMI has stopped the owner, and so the counter, before it could find this event.
        // From here on, the counter has no owner.
        Self::update_shadow(pmi_state, shadow);
        event::leave(event);
        false
    }

    /// Makes `event`, which does not [ride](Self::start_riding), the owner of the shared `counter`:
    /// takes the counter from the owner that it has. The caller starts the counter.
    // A function of its own, so that its stack is free when the counter is started.
    #[cold]
    #[inline(never)]
    pub(super) fn become_owner(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let riders = &pmi_state.uses.on(counter).shared_count;
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        let ride = &event.data().ride;
        if pmi_state.owner(cx, counter).is_some() {
            // The counter has to overflow at the end of this event's period. From here on, no NMI
            // changes the owner.
            pmi_state.deactivate(counter);
            let owner = pmi_state.last_event(counter);
            let owner = owner.and_then(|id| Some((id, cx.event(id)?)));
            let value = counts.freeze(owner.map(|(_, owner)| owner));
            self.stop_counter(counter, value, shadow);
            if let Some((owner_id, owner)) = owner.filter(|(_, owner)| !owner.is_stopped()) {
                owner.data().ride.set_has_owner(true);
                riders.insert(owner_id.index());
                if owner.is_stopped() {
                    // By an NMI, which has found it neither among the riders nor as the owner.
                    riders.remove(owner_id.index());
                }
                owner.update_userpage();
            }
            pmi_state.set_halted(counter.mask(), false);
        }
        // The page of a stopped event refers to the counter, which keeps its value until now.
        let last = pmi_state.last_event(counter).and_then(|id| cx.event(id));
        if let Some(last) = last.filter(|it| event::counter(it) == Some(counter)) {
            last.update_userpage();
        }
        ride.begin(counts.total());
        ride.set_has_owner(false);
    }

    /// Stops `event` on the shared `counter`, and brings its count up to date. The PMU is disabled.
    pub(super) fn stop_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let Some(id) = event.id() else { return };
        if !self.stop_rider(cx, (counter, id, event), pmi_state) {
            self.stop_owner(cx, (counter, event), pmi_state, shadow);
        }
    }

    /// Stops the started rider `event`, and brings its count up to date. Returns `false` if the
    /// event is no started rider.
    #[inline(always)]
    fn stop_rider(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, id, event): (CounterId, EventId, &Event<Self>),
        pmi_state: &PmiState,
    ) -> bool {
        let counts = pmi_state.uses.on(counter);
        // An NMI may make a rider the owner as long as it is recorded as started.
        if !counts.shared_count.remove(id.index()) {
            return false;
        }
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        counts.update(event);
        true
    }

    /// Stops `event`, if it is the owner of the shared `counter`, and brings its count up to date.
    #[inline(never)]
    fn stop_owner(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        let Some(id) = event.id() else { return };
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        if pmi_state
            .owner(cx, counter)
            .is_none_or(|(owner, _)| owner != id)
        {
            return;
        }
        // From here on, no NMI changes the owner.
        pmi_state.deactivate(counter);
        match pmi_state.last_event(counter) {
            Some(owner) if owner != id => {
                // An NMI has stopped the event since, and made a rider the owner. If it has stopped
                // that one, too, without a further rider, the counter is halted.
                if !pmi_state.halted().contains(counter) {
                    pmi_state.activate(counter, owner);
                }
                return;
            }
            _ => {}
        }
        counts.update(event);
        let mut former = Some(event);
        loop {
            let Some((next_id, next)) = pmi_state.next_owner(cx, (counter, event), &self.hardware)
            else {
                let value = counts.freeze(former);
                self.stop_counter(counter, value, shadow);
                return;
            };
            if let Some(former) = former.take() {
                counts.count_down(former);
            }
            pmi_state.activate(counter, next_id);
            next.update_userpage();
            // An NMI that stopped `next` before the counter was activated for it has found it
            // neither among the riders nor as the owner, so the counter needs another owner.
            if !next.is_stopped() || pmi_state.last_event(counter) != Some(next_id) {
                return;
            }
            pmi_state.deactivate(counter);
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
        if !self.del_rider(cx, cpu, own, (id, event)) {
            self.del_sharer(cx, cpu, own, (id, event));
        }
    }

    /// [Removes](Self::del_shared) `event` if it is a started rider that is not sampled. Otherwise
    /// returns `false`.
    // Inline: most events that share a counter leave so.
    #[inline(always)]
    fn del_rider(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) -> bool {
        let Some(counter) = event::counter(event).filter(|_| !event.is_stopped()) else {
            return false;
        };
        let data = event.data();
        let is_rider =
            !data.demand.key.samples() && self.stop_rider(cx, (counter, id, event), &cpu.pmi_state);
        if !is_rider {
            return false;
        }
        // From here on, no NMI records it as started: NMIs restart sampled events only.
        if own.riders.leave(id.index()).is_none() {
            // The event is the head, and a sampled one the owner.
            return false;
        }
        data.ride.set_has_owner(false);
        event::leave(event);
        event.update_userpage();
        true
    }

    #[cold]
    #[inline(never)]
    fn del_sharer(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        (id, event): (EventId, &Event<Self>),
    ) {
        let pmi_state = &cpu.pmi_state;
        let counter = event::counter(event);
        let data = event.data();
        own.riders_to_place.remove(id.index());
        if let Some(counter) = counter {
            if !event.is_stopped() {
                self.stop_shared(cx, (counter, event), pmi_state, &mut own.shadow);
            }
            // Another event may get this id next.
            pmi_state.uses.on(counter).shared_count.remove(id.index());
        }
        let head = match own.riders.leave(id.index()) {
            Some(head) => EventId::from_index(head),
            None => {
                let next = own.riders.promote(id.index());
                next.and_then(|next| event_of(cx, next))
                    .map(|(next_id, next)| {
                        // Does nothing if a search for other groups has cancelled the txn of the
                        // event: then the event is not in the schedule any more.
                        own.schedule.hand_over(id, next_id, &next.data().demand);
                        own.changed |= data.branches.is_some();
                        if let Some(counter) = event::counter(next) {
                            next.data().last_place.arrive(counter, cpu.id);
                        }
                        next_id
                    })
            }
        };
        data.ride.set_has_owner(false);
        event::leave(event);
        event.update_userpage();
        if let Some(head) = head.filter(|_| data.demand.key.samples()) {
            own.schedule.set_samples(head, false);
            self.merge(cx, cpu, own, head);
        }
    }

    /// Moves `head`, on whose counter no event is sampled, and its riders to the counter of another
    /// equal event, if there is one. Their counter becomes free. The PMU is disabled.
    #[inline(never)]
    fn merge(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut CallbackState, head: EventId) {
        let Some(other) = own.schedule.equal_to(head) else {
            return;
        };
        let former = own.schedule.remove(head);
        own.changed = true;
        if let Some(counter) = former.as_ref().and_then(Entry::placed) {
            let CallbackState { shadow, riders, .. } = &mut *own;
            self.leave_counter(cx, (counter, head), riders, &cpu.pmi_state, shadow);
        }
        for id in own.riders.join_all(head.index(), other.index()) {
            if own.riders_to_place.contains(id) {
                continue;
            }
            if let Some((id, event)) = event_of(cx, id) {
                self.place_rider(cx, cpu, own, (id, event));
            }
        }
    }

    /// Lets events ride that are equal to events with branch stacks and were placed before these.
    #[inline]
    pub(super) fn ride_on_branches(
        &self,
        cx: &PmuDisabled<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
    ) {
        while let Some(head) = own.schedule.equal_to_branches() {
            self.merge(cx, cpu, own, head);
        }
    }

    /// Stops `counter`, and takes `head` and its riders off it.
    fn leave_counter(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, head): (CounterId, EventId),
        riders: &Riders,
        pmi_state: &PmiState,
        shadow: &mut Shadow,
    ) {
        if pmi_state.uses.on(counter).is_shared() {
            self.pause_shared(cx, counter, pmi_state, shadow);
        } else {
            // No rider has been placed yet.
            self.pause(cx, counter.mask() & shadow.active(), pmi_state, shadow);
        }
        Self::for_each_sharer(cx, riders, head, |event| {
            self.remove_from_counter(cx, event, pmi_state);
        });
    }

    /// Brings the count of `event` on the shared `counter` up to date. Any context.
    ///
    /// Callbacks read the counter once for a group read, so that equal events of the group get
    /// equal counts.
    pub(super) fn read_shared(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
    ) {
        let uses = &self.cpus.this_cpu(cx.irqs()).pmi_state.uses;
        let counts = uses
            .on(counter)
            .shared_counter(counter, &self.hardware, cx.irqs());
        match cx.group_read().filter(|_| !cx.in_nmi()) {
            Some(number) => {
                let total = uses.on(counter).total_of_group(number, || counts.total());
                counts.update_to(event, || total);
            }
            None => counts.update(event),
        }
    }

    /// Stops `event` on the shared `counter`, in an NMI.
    pub(super) fn stop_shared_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
    ) {
        let Some(id) = event.id() else { return };
        let riders = &pmi_state.uses.on(counter).shared_count;
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        // Also if the interrupted callback keeps the PMI from handling the counter.
        counts.update(event);
        let is_owner = || {
            let owner = pmi_state.owner(cx, counter);
            owner.is_some_and(|(owner, _)| owner == id)
        };
        if riders.remove(id.index()) || !is_owner() {
            return;
        }
        if let Some((next_id, next)) = pmi_state.next_owner(cx, (counter, event), &self.hardware) {
            counts.count_down(event);
            pmi_state.uses.on(counter).set_event(next_id);
            next.update_userpage();
            return;
        }
        pmi_state.halt(counter);
        pmi_state.run(&self.hardware, cx.irqs());
        counts.freeze(Some(event));
        counts.update(event);
    }

    /// Restarts `event` on the shared `counter`, in the NMI that has stopped it. Returns whether it
    /// was restarted.
    pub(super) fn start_shared_in_nmi(
        &self,
        cx: &OnCpu<'_, Self>,
        (counter, event): (CounterId, &Event<Self>),
        pmi_state: &PmiState,
    ) -> bool {
        let Some(id) = event.id().filter(|_| pmi_state.is_active(counter)) else {
            return false;
        };
        let riders = &pmi_state.uses.on(counter).shared_count;
        let counts = pmi_state.uses.on(counter);
        let counts = counts.shared_counter(counter, &self.hardware, cx.irqs());
        let ride = &event.data().ride;
        let is_halted = pmi_state.is_halted(counter);
        if !is_halted && !event.is_sampling() {
            ride.begin(counts.total());
            riders.insert(id.index());
            return true;
        }
        pmi_state.halt(counter);
        pmi_state.run(&self.hardware, cx.irqs());
        let owner = pmi_state.owner(cx, counter);
        // Also if the counter is halted: `set_stuck()` halts counters without freezing their
        // totals.
        counts.freeze(owner.map(|(_, owner)| owner));
        if let Some((owner_id, owner)) = owner.filter(|_| !is_halted) {
            owner.data().ride.set_has_owner(true);
            riders.insert(owner_id.index());
            owner.update_userpage();
        }
        ride.begin(counts.total());
        ride.set_has_owner(false);
        pmi_state.uses.on(counter).set_event(id);
        pmi_state
            .uses
            .on(counter)
            .restart(event, counter, &self.hardware, cx.irqs());
        pmi_state.set_halted(counter.mask(), false);
        pmi_state.run(&self.hardware, cx.irqs());
        true
    }

    /// Returns a counter that counts the same as an event that got none, but that this event does
    /// not share. The event is `failed` or, in a txn, one of those that were collected.
    #[inline(never)]
    pub(super) fn would_share(
        cx: &OnCpu<'_, Self>,
        own: &CallbackState,
        failed: Option<&Event<Self>>,
    ) -> Option<WouldShare> {
        let find = |demand: &Demand| {
            let mut entries = own.schedule.entries();
            let (counter, entry, but) = entries.find_map(|entry| {
                // Events that were collected have no counter yet.
                let counter = entry.planned()?;
                let but = demand.why_unshared(&entry.demand())?;
                Some((counter, entry, but))
            })?;
            let mut with = None;
            Self::for_each_sharer(cx, &own.riders, entry.event, |event| {
                if with.is_none() || but == Unshared::Sampled && event.is_sampling() {
                    with = Some(event.number());
                }
            });
            Some(WouldShare {
                counter,
                with: with?,
                but,
            })
        };
        let failed = failed.and_then(|event| find(&event.data().demand));
        failed.or_else(|| own.schedule.collected().find_map(|it| find(&it.demand())))
    }

    /// Calls `f` for `head`, which is in the schedule, and for its riders.
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
