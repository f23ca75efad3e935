// SPDX-License-Identifier: GPL-2.0

//! Known outcomes of rotation on a CPU, for reuse while no other CPU has an influence.

use super::order::Move;
use super::{
    EventNumber,
    Wait, //
};
use crate::logic::{
    regs::counter::CounterId,
    rotation::BroughtForward, //
};
use std::collections::HashMap;

/// An outcome.
#[derive(Clone)]
pub(super) struct Outcome {
    pub(super) flexible_active: Vec<usize>,
    pub(super) waiting: Vec<(usize, Wait)>,
    pub(super) counters: Vec<(u8, EventNumber)>,
    pub(super) previous: Vec<Option<CounterId>>,
    pub(super) moved: Vec<Move>,
    pub(super) brought_forward: BroughtForward,
    /// The number of the configuration, once it is known.
    configuration: Option<usize>,
}

impl Outcome {
    pub(super) fn new(
        flexible_active: &[usize],
        waiting: &[(usize, Wait)],
        counters: &[(u8, EventNumber)],
        previous: &[Option<CounterId>],
        moved: Vec<Move>,
        brought_forward: BroughtForward,
    ) -> Self {
        Self {
            flexible_active: flexible_active.to_vec(),
            waiting: waiting.to_vec(),
            counters: counters.to_vec(),
            previous: previous.to_vec(),
            moved,
            brought_forward,
            configuration: None,
        }
    }
}

/// The known outcomes.
#[derive(Default)]
pub(super) struct Outcomes {
    all: Vec<Outcome>,
    /// By the order of the flexible groups, whether these lag far behind, and the events' previous
    /// counters.
    known: HashMap<Vec<u16>, usize>,
    /// The current one.
    current: Option<usize>,
    /// The key of the last search.
    key: Vec<u16>,
}

impl Outcomes {
    /// Finds the outcome of rotation from this state, and makes it the current one.
    pub(super) fn find(
        &mut self,
        flexible: &[usize],
        lags: impl Fn(usize) -> bool,
        previous: &[Option<CounterId>],
    ) -> Option<&Outcome> {
        self.key.clear();
        let groups = flexible.iter().map(|group| (*group, lags(*group)));
        self.key
            .extend(groups.map(|(group, lags)| 2 * group as u16 + u16::from(lags)));
        self.key
            .extend(previous.iter().map(|previous| counter_code(*previous)));
        let number = *self.known.get(&self.key)?;
        self.current = Some(number);
        Some(&self.all[number])
    }

    /// Adds the outcome for the last [search](Self::find), and makes it the current one.
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.current = Some(self.all.len());
        self.known.insert(self.key.clone(), self.all.len());
        self.all.push(outcome);
    }

    /// Forgets which outcome is the current one.
    pub(super) fn leave(&mut self) {
        self.current = None;
    }

    /// Returns the number of the configuration, if known.
    pub(super) fn configuration(&self) -> Option<usize> {
        self.all.get(self.current?)?.configuration
    }

    /// Records the number of the configuration.
    pub(super) fn remember_configuration(&mut self, number: usize) {
        if let Some(outcome) = self.current.and_then(|it| self.all.get_mut(it)) {
            outcome.configuration = Some(number);
        }
    }
}

/// Encodes a counter, or none.
pub(super) fn counter_code(counter: Option<CounterId>) -> u16 {
    counter.map_or(u16::MAX, |counter| counter.index() as u16)
}
