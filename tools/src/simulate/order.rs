// SPDX-License-Identifier: GPL-2.0

//! The order in which perf core offers the flexible groups of a context, and what the driver's decisions
//! about it get to see.

use super::group::{Candidate, Group};
use super::EventNumber;
use crate::logic::regs::counter::{CounterId, CounterMask};
use crate::logic::rotation::{Found, Offer, Wants};
use crate::logic::sched::limits::Limits;

/// The order of the flexible groups.
pub(super) struct Order {
    /// Whether the driver decides about it at all.
    pub(super) decides: bool,
    /// What the groups want.
    pub(super) wants: Wants,
    /// By group: what it has had, and its place in the order; where that is the same, who was put
    /// there first comes first.
    pub(super) had: Vec<u64>,
    places: Vec<(u64, u64)>,
    /// The last place, and how often a group was put anywhere.
    pub(super) latest: u64,
    put: u64,
    /// Since the PMU was disabled: the groups that perf core tries whatever else was refused, and
    /// these with the group that was.
    pub(super) offered: Vec<bool>,
    pub(super) promoted: Vec<(usize, usize)>,
    /// By group: the counters that were left when it was refused last and no other group could use them.
    left: Vec<CounterMask>,
}

impl Order {
    /// So many groups, as they were opened, which want this.
    pub(super) fn new(groups: usize, wants: Wants, decides: bool) -> Self {
        let numbers = 1..=groups as u64;
        Self {
            decides,
            wants,
            had: numbers.clone().collect(),
            places: numbers.map(|number| (number, number)).collect(),
            latest: groups as u64,
            put: groups as u64,
            offered: vec![false; groups],
            promoted: Vec::new(),
            left: vec![CounterMask::EMPTY; groups],
        }
    }

    /// `Context::requeue()` in `rust/perf`: by its runtime.
    pub(super) fn requeue(&mut self, group: usize, place: u64) {
        self.had[group] = place;
        self.put(group, place);
    }

    fn put(&mut self, group: usize, place: u64) {
        self.put += 1;
        self.places[group] = (place, self.put);
        self.latest = self.latest.max(place);
    }

    /// The place of a group.
    pub(super) fn place(&self, group: usize) -> u64 {
        self.places[group].0
    }

    /// Brings groups into the order of their places.
    pub(super) fn sort(&self, groups: &mut [usize]) {
        groups.sort_unstable_by_key(|group| self.places[*group]);
    }

    /// `Scheduling::offer()` there, for the groups that were found behind one that is refused.
    pub(super) fn offer(&mut self, found: &[usize], refused: usize, left: CounterMask) {
        for group in found {
            self.offered[*group] = true;
            self.promoted.push((*group, refused));
        }
        self.left[refused] = left;
    }

    /// Puts groups in front of others that were refused.
    pub(super) fn promote(&mut self, promoted: &[(usize, usize)]) {
        for (group, before) in promoted {
            self.put(*group, self.place(*before).saturating_sub(1));
        }
    }
}

/// A flexible group that is offered.
pub(super) struct Offered<'a> {
    pub(super) number: usize,
    pub(super) groups: &'a [Group],
    pub(super) previous: &'a [Option<CounterId>],
    pub(super) pinned_active: &'a [usize],
    pub(super) flexible: &'a [usize],
    pub(super) flexible_active: &'a [usize],
    pub(super) order: &'a Order,
    pub(super) is_over: bool,
    pub(super) limits: Limits,
}

impl<'a> Offer for Offered<'a> {
    type Event = EventNumber;
    type Group = Candidate<'a>;

    fn is_corrupting(&self) -> bool {
        self.is_group_corrupting()
    }

    fn is_group_corrupting(&self) -> bool {
        self.groups[self.number].wants().is_corrupting()
    }

    fn is_pinned(&self) -> bool {
        false
    }

    fn is_found(&self) -> bool {
        self.order.offered[self.number]
    }

    fn takes_turns_with(&self, event: EventNumber) -> bool {
        let mut pinned = self.pinned_active.iter();
        !pinned.any(|group| self.groups[*group].has(event))
    }

    fn wants(&mut self) -> Option<Wants> {
        Some(self.order.wants)
    }

    fn active(&self) -> Wants {
        let mut active = Wants::NOTHING;
        for group in self.flexible_active {
            active.add(&self.groups[*group].wants(), self.groups[*group].exclusive);
        }
        active
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn may_let_pass(&self) -> bool {
        true
    }

    fn is_known_useless(&self, reach: CounterMask) -> bool {
        !self.is_over && self.order.left[self.number] == reach
    }

    fn behind(&self) -> impl Iterator<Item = Candidate<'a>> + Clone {
        let (groups, previous, offered) = (self.groups, self.previous, &self.order.offered);
        let number = self.number;
        let flexible = self.flexible.iter().copied();
        let behind = flexible.skip_while(move |it| *it != number).skip(1);
        behind
            .filter(move |it| !offered[*it])
            .map(move |number| Candidate {
                group: &groups[number],
                number,
                previous,
            })
    }
}

/// The numbers of the groups that were found.
pub(super) fn numbers(found: &Found<Candidate<'_>>) -> Vec<usize> {
    found.groups().map(|it| it.number).collect()
}
