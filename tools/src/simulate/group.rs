// SPDX-License-Identifier: GPL-2.0

//! Groups of events, in the form that scheduling needs.

use super::EventNumber;
use crate::logic::model::demand::Demand;
use crate::logic::regs::counter::CounterId;
use crate::logic::rotation::{
    GroupWants,
    Waiting, //
};

/// A group.
pub(super) struct Group {
    pub(super) events: Vec<(EventNumber, Demand)>,
    pub(super) exclusive: bool,
    /// Set if its leader needs no counter.
    pub(super) led_by_software: bool,
}

impl Group {
    pub(super) fn wants(&self) -> GroupWants {
        let mut wants = GroupWants::default();
        self.events
            .iter()
            .for_each(|(_, demand)| wants.add(demand.constraint));
        wants
    }

    /// Returns whether it may be placed although a group before it was refused.
    pub(super) fn may_pass(&self) -> bool {
        !self.exclusive && !self.led_by_software
    }

    /// Returns whether `event` is a member of the group.
    pub(super) fn has(&self, event: EventNumber) -> bool {
        self.events.iter().any(|(it, _)| *it == event)
    }
}

/// A waiting group.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) group: &'a Group,
    pub(super) number: usize,
    /// The previous counter of each event.
    pub(super) previous: &'a [Option<CounterId>],
    /// The distance by runtime from the last place.
    pub(super) lag: u64,
}

impl Waiting for Candidate<'_> {
    type Event = EventNumber;

    fn for_each_event(&self, mut f: impl FnMut(EventNumber, Demand, Option<CounterId>)) {
        for (event, demand) in &self.group.events {
            f(*event, *demand, self.previous[*event]);
        }
    }

    fn is_exclusive(&self) -> bool {
        self.group.exclusive
    }

    fn may_pass(&self) -> bool {
        self.group.may_pass()
    }

    fn lag(&self) -> u64 {
        self.lag
    }
}
