// SPDX-License-Identifier: GPL-2.0

//! What came of rotating before, where nothing but the CPU's own events decides: so that it need not be
//! found out again.

use super::{EventNumber, Wait};
use crate::logic::regs::counter::CounterId;
use std::collections::HashMap;

/// What has come of it.
#[derive(Clone)]
pub(super) struct Outcome {
    pub(super) flexible_active: Vec<usize>,
    pub(super) waiting: Vec<(usize, Wait)>,
    pub(super) counters: Vec<(u8, EventNumber)>,
    pub(super) previous: Vec<Option<CounterId>>,
    pub(super) promoted: Vec<(usize, usize)>,
    /// The number of the configuration, once it is known.
    configuration: Option<usize>,
}

impl Outcome {
    pub(super) fn new(
        flexible_active: &[usize],
        waiting: &[(usize, Wait)],
        counters: &[(u8, EventNumber)],
        previous: &[Option<CounterId>],
        promoted: Vec<(usize, usize)>,
    ) -> Self {
        Self {
            flexible_active: flexible_active.to_vec(),
            waiting: waiting.to_vec(),
            counters: counters.to_vec(),
            previous: previous.to_vec(),
            promoted,
            configuration: None,
        }
    }
}

/// All that has come of it so far.
#[derive(Default)]
pub(super) struct Outcomes {
    all: Vec<Outcome>,
    /// By the order of the flexible groups and the counters that events had last.
    known: HashMap<Vec<u16>, usize>,
    /// The one that there is now.
    current: Option<usize>,
    /// What was looked for last.
    key: Vec<u16>,
}

impl Outcomes {
    /// Looks for what came of this.
    pub(super) fn find(
        &mut self,
        flexible: &[usize],
        previous: &[Option<CounterId>],
    ) -> Option<&Outcome> {
        self.key.clear();
        self.key.extend(flexible.iter().map(|group| *group as u16));
        self.key
            .extend(previous.iter().map(|previous| counter_code(*previous)));
        let number = *self.known.get(&self.key)?;
        self.current = Some(number);
        Some(&self.all[number])
    }

    /// This has come of what was [looked for](Self::find) last.
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.current = Some(self.all.len());
        self.known.insert(self.key.clone(), self.all.len());
        self.all.push(outcome);
    }

    /// Something else happens.
    pub(super) fn leave(&mut self) {
        self.current = None;
    }

    /// The number of the configuration, if it is known what it is.
    pub(super) fn configuration(&self) -> Option<usize> {
        self.all.get(self.current?)?.configuration
    }

    /// Says which number it has.
    pub(super) fn remember_configuration(&mut self, number: usize) {
        if let Some(outcome) = self.current.and_then(|it| self.all.get_mut(it)) {
            outcome.configuration = Some(number);
        }
    }
}

/// A counter as a number, or that there is none.
pub(super) fn counter_code(counter: Option<CounterId>) -> u16 {
    counter.map_or(u16::MAX, |counter| counter.index() as u16)
}
