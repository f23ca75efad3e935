// SPDX-License-Identifier: GPL-2.0

//! The order in which the perf core offers the flexible groups of a context, for the driver's
//! decisions.

use crate::logic::regs::counter::CounterMask;
use crate::logic::rotation::Wants;

/// The order of the flexible groups.
pub(super) struct Order {
    /// Set if the driver decides the order.
    pub(super) decides: bool,
    /// The demand of the groups.
    pub(super) wants: Wants,
    /// By group: its runtime, and its place in the order. Equal places are in the order of
    /// insertion.
    pub(super) runtime: Vec<u64>,
    places: Vec<(u64, u64)>,
    /// The last place, and the number of insertions.
    pub(super) latest: u64,
    put: u64,
    /// The groups that the perf core has tried although others were refused, since the PMU was
    /// disabled.
    pub(super) offered: Vec<bool>,
    /// The groups that were found, each with the offered group behind which it was found.
    pub(super) found: Vec<(usize, usize)>,
    /// The moves since the last interval ended.
    pub(super) moved: Vec<Move>,
    /// By group: the counters for which the search behind it must not be repeated before the end of
    /// the interval ([`Searched::left`]).
    pub(super) left: Vec<CounterMask>,
}

impl Order {
    /// Creates the order of this many groups with this demand, in the order of opening.
    pub(super) fn new(groups: usize, wants: Wants, decides: bool) -> Self {
        let numbers = 1..=groups as u64;
        Self {
            decides,
            wants,
            runtime: numbers.clone().collect(),
            places: numbers.map(|number| (number, number)).collect(),
            latest: groups as u64,
            put: groups as u64,
            offered: vec![false; groups],
            found: Vec::new(),
            moved: Vec::new(),
            left: vec![CounterMask::EMPTY; groups],
        }
    }

    /// Mirrors `Context::requeue()` in `rust/perf_core`.
    pub(super) fn requeue(&mut self, group: usize, place: u64) {
        self.runtime[group] = place;
        self.put(group, place);
    }

    fn put(&mut self, group: usize, place: u64) {
        self.put += 1;
        self.places[group] = (place, self.put);
        self.latest = self.latest.max(place);
    }

    /// Returns the place of a group.
    pub(super) fn place(&self, group: usize) -> u64 {
        self.places[group].0
    }

    /// Returns the distance of a group by runtime from the last place.
    pub(super) fn lag(&self, group: usize) -> u64 {
        self.latest.saturating_sub(self.runtime[group])
    }

    /// Sorts groups by their places.
    pub(super) fn sort(&self, groups: &mut [usize]) {
        groups.sort_unstable_by_key(|group| self.places[*group]);
    }

    /// Mirrors `Scheduling::offer()` and `Scheduling::bring_forward()` there, for groups that were
    /// found behind another, each with whether it may pass. Groups that may not pass can be found
    /// behind several groups; they move behind the first of these.
    pub(super) fn find(&mut self, found: &[(usize, bool)], by: usize) {
        for (group, may_pass) in found {
            self.offered[*group] = *may_pass;
            if !self.found.iter().any(|(it, _)| it == group) {
                self.found.push((*group, by));
            }
        }
    }

    /// Moves groups.
    pub(super) fn move_all(&mut self, moves: &[Move]) {
        for it in moves {
            if !it.is_behind && self.place(it.to) == 0 {
                // No place precedes it.
                self.put(it.to, 1);
            }
            let place = self.place(it.to);
            let place = match it.is_behind {
                true => place,
                false => place.saturating_sub(1),
            };
            self.put(it.group, place);
        }
        self.moved.extend(moves);
    }
}

/// A group that moves before a refused group, or after a placed one.
#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) group: usize,
    pub(super) to: usize,
    pub(super) is_behind: bool,
}
