// SPDX-License-Identifier: GPL-2.0

//! The events on a CPU, of which equal ones share a counter.

use super::EventNumber;
use crate::logic::model::demand::Demand;
use crate::logic::pmi::shared_count::MAX_IDS;
use crate::logic::refusal::{
    Refusal,
    Shortage, //
};
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use crate::logic::sched::cpu_schedule::CpuSchedule;
use crate::logic::sched::limits::Limits;
use crate::logic::sched::riders::{
    Id,
    Riders, //
};

/// The events on a CPU, by id.
pub(super) struct OnCpu {
    events: [Option<EventNumber>; MAX_IDS],
    /// By event: its id.
    ids: Vec<Option<Id>>,
    riders: Riders,
}

impl OnCpu {
    /// Creates a CPU without events; the simulation has `events` events.
    pub(super) fn new(events: usize) -> Self {
        Self {
            events: [None; MAX_IDS],
            ids: vec![None; events],
            riders: Riders::NONE,
        }
    }

    /// Returns the events that ride on the counter of `head`.
    pub(super) fn riders_of(&self, head: EventNumber) -> impl Iterator<Item = EventNumber> + '_ {
        let id = self.ids[head].filter(|id| self.riders.involve(*id));
        let riders = id.into_iter().flat_map(|id| self.riders.of(id));
        riders.filter_map(|id| self.events[id])
    }

    /// Mirrors `add()` in `rust/driver/schedule.rs` and `ride()` in `rust/driver/riders.rs`, within
    /// a txn.
    pub(super) fn add(
        &mut self,
        schedule: &mut CpuSchedule<EventNumber>,
        event: EventNumber,
        demand: &Demand,
        previous: Option<CounterId>,
    ) -> Result<(), Refusal> {
        let Some(id) = self.events.iter().position(Option::is_none) else {
            return Err(Shortage::more_than(CounterMask::EMPTY).into());
        };
        let mut head = None;
        if schedule.may_have_equal(demand.key) {
            head = schedule.equal_event(demand).map(|entry| entry.event);
            if head.is_none() {
                schedule.forget_keys();
            }
        }
        if let Some((head, head_id)) = head.and_then(|head| Some((head, self.ids[head]?))) {
            self.riders.join(id, head_id);
            if demand.key.samples() {
                schedule.set_samples(head, true);
            }
        } else {
            schedule.add(event, *demand, previous, &Limits::NONE)?;
        }
        self.events[id] = Some(event);
        self.ids[event] = Some(id);
        Ok(())
    }

    /// Mirrors `del()` and `del_shared()` there. `demand_of` returns the demand of an event. Does
    /// nothing if the event is not on the CPU.
    pub(super) fn del(
        &mut self,
        schedule: &mut CpuSchedule<EventNumber>,
        event: EventNumber,
        demand: &Demand,
        demand_of: impl Fn(EventNumber) -> Option<Demand>,
    ) {
        let Some(id) = self.ids[event].take() else {
            return;
        };
        self.events[id] = None;
        if !self.riders.involve(id) {
            schedule.remove(event);
            return;
        }
        let head = match self.riders.leave(id) {
            Some(head) => self.events[head],
            None => {
                let next = self.riders.promote(id).and_then(|next| self.events[next]);
                if let Some((next, demand)) = next.and_then(|next| Some((next, demand_of(next)?))) {
                    // If the group was refused, its events are not in the schedule any more.
                    schedule.hand_over(event, next, &demand);
                }
                next
            }
        };
        if let Some(head) = head.filter(|_| demand.key.samples()) {
            schedule.set_samples(head, false);
        }
    }
}
