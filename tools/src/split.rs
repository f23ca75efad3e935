// SPDX-License-Identifier: GPL-2.0

//! The split of events into runs whose events count all the time, as few runs as the search finds.
//!
//! First fit gives an upper bound, and the capacity of the counters a lower bound. Between the two,
//! a complete search tries every number of runs, up to a limit on its effort.

use crate::logic::model::demand::{
    Demand,
    Requirement, //
};
use crate::logic::regs::counter::CounterMask;
use crate::logic::regs::extra_register::ExtraRegister;
use crate::logic::sched::assign::Policy;
use crate::machine::Machine;
use crate::open::{
    shares_a_core,
    validate, //
};
use crate::sharing::{
    distinct,
    forget_unique_keys, //
};
use std::collections::HashMap;
use std::hash::{
    BuildHasherDefault,
    Hasher, //
};

/// Maximum number of search nodes and of sets checked against the PMU.
const MAX_NODES: usize = 20_000;
const MAX_CHECKS: usize = 3_000;
/// Number of units up to which the search ignores these limits.
const ALWAYS: usize = 10;

/// The needs of events that must be in the same run.
pub type Unit = Vec<Demand>;

/// A split into runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The indices of the units in each run.
    pub runs: Vec<Vec<usize>>,
    /// Set if fewer runs are known not to be enough.
    pub is_minimal: bool,
}

/// The setting of the runs.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The machine; the core's other thread is idle.
    pub machine: &'a Machine,
    /// The driver's policy.
    pub policy: Policy,
    /// An event that counts in every run.
    pub always: Option<Demand>,
}

impl Place<'_> {
    /// Returns whether these units can count together.
    pub fn fits(&self, units: &[&Unit]) -> bool {
        let events = units
            .iter()
            .flat_map(|unit| unit.iter())
            .chain(&self.always);
        let events = distinct(events.copied());
        // This rejects most sets and is much faster than a trial.
        let masks = || events.iter().map(|demand| demand.constraint.counters);
        let crowded = |counters: CounterMask| {
            let confined = masks().filter(|mask| mask.is_subset(counters));
            confined.count() as u32 > counters.weight()
        };
        !masks().any(crowded) && validate(&events, self.machine, self.policy).is_ok()
    }

    /// Splits units, each of which fits alone, into as few runs as the search finds.
    pub fn split(&self, units: &[Unit]) -> Split {
        let mut units = units.to_vec();
        forget_unique_keys(&mut units, self.always);
        let mut search = Search::new(self, &units);
        // Equal events need one counter in one run, and events equal to `always` need none.
        let events = distinct(
            self.always
                .into_iter()
                .chain(units.iter().flatten().copied()),
        );
        let events = &events[usize::from(self.always.is_some())..];
        let first = search.first_fit();
        // If some number of runs may be enough, so may any larger number.
        let (mut low, mut high) = (1.min(first.len()), first.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.may_do(events, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        while low < first.len() {
            let mut runs = Vec::new();
            match search.fill(0, low, &mut runs) {
                Some(true) => return search.result(runs, true),
                Some(false) => low += 1,
                None => return search.result(first, false),
            }
        }
        search.result(first, true)
    }

    /// Returns whether this many runs may be enough. Considers the counters, the limit on a thread
    /// with corrupting events and the extra registers separately, and ignores groups.
    fn may_do(&self, events: &[Demand], runs: usize) -> bool {
        let always = self
            .always
            .iter()
            .cycle()
            .take(runs * usize::from(self.always.is_some()));
        let masks = events
            .iter()
            .chain(always)
            .map(|demand| demand.constraint.counters);
        if !fill_counters(&masks.collect::<Vec<_>>(), runs) {
            return false;
        }
        let corrupting = events
            .iter()
            .filter(|demand| demand.constraint.corrupting)
            .count();
        let half = self.machine.pmu.capabilities.gp() as usize / 2;
        if shares_a_core(self.machine) && corrupting > half * runs {
            return false;
        }
        // Count the values for either of two registers, and those for one register only.
        let mut values: Vec<Requirement> = Vec::new();
        for required in events.iter().flat_map(|demand| demand.requirements()) {
            let is_known = |known: &Requirement| {
                known.value == required.value
                    && known
                        .registers()
                        .any(|it| required.registers().any(|own| own == it))
            };
            if !values.iter().any(is_known) {
                values.push(required);
            }
        }
        let in_two = values
            .iter()
            .filter(|value| value.alternative.is_some())
            .count();
        let in_one = ExtraRegister::ALL.into_iter().map(|register| {
            let own = values
                .iter()
                .filter(|value| value.alternative.is_none() && value.register == register);
            own.count()
        });
        in_two <= 2 * runs && in_one.max() <= Some(runs)
    }
}

/// Returns whether every event gets one of its counters if each counter can be used this many
/// times.
fn fill_counters(events: &[CounterMask], times: usize) -> bool {
    // Augmenting paths over the current holders of each counter.
    let mut holders: HashMap<usize, Vec<usize>> = HashMap::new();
    (0..events.len()).all(|event| {
        give(
            event,
            events,
            times,
            &mut holders,
            &mut CounterMask::EMPTY.clone(),
        )
    })
}

fn give(
    event: usize,
    events: &[CounterMask],
    times: usize,
    holders: &mut HashMap<usize, Vec<usize>>,
    seen: &mut CounterMask,
) -> bool {
    for counter in events[event] {
        if seen.contains(counter) {
            continue;
        }
        seen.insert(counter);
        let index = counter.index();
        let count = holders.entry(index).or_default().len();
        if count < times {
            holders.entry(index).or_default().push(event);
            return true;
        }
        for place in 0..count {
            let other = holders[&index][place];
            if give(other, events, times, holders, seen) {
                holders.entry(index).or_default()[place] = event;
                return true;
            }
        }
    }
    false
}

/// The units of a run, in ascending order.
struct Run {
    units: Vec<usize>,
    /// For each prefix of the units, its bit set; `None` if an index exceeds 127.
    keys: Vec<Option<u128>>,
}

impl Run {
    fn of(unit: usize) -> Self {
        let mut run = Self {
            units: Vec::new(),
            keys: vec![Some(0)],
        };
        run.push(unit);
        run
    }

    /// Returns the bit set of the run with one more unit.
    fn key_with(&self, unit: usize) -> Option<u128> {
        let bit = 1u128.checked_shl(u32::try_from(unit).ok()?)?;
        Some((*self.keys.last()?)? | bit)
    }

    fn push(&mut self, unit: usize) {
        self.keys.push(self.key_with(unit));
        self.units.push(unit);
    }

    fn pop(&mut self) {
        self.keys.pop();
        self.units.pop();
    }
}

/// A fast hasher for bit sets, which no attacker chooses.
#[derive(Default)]
struct BitHasher(u64);

impl Hasher for BitHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u128(u128::from(*byte)));
    }

    fn write_u128(&mut self, bits: u128) {
        // CAST: uses both halves.
        let folded = self.0 ^ (bits as u64) ^ ((bits >> 64) as u64).rotate_left(32);
        let product = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

struct Search<'a> {
    place: &'a Place<'a>,
    /// The units in the order of the search, with their indices.
    units: Vec<(usize, &'a Unit)>,
    /// For sets already checked, whether their units fit together.
    known: HashMap<u128, bool, BuildHasherDefault<BitHasher>>,
    nodes: usize,
    checks: usize,
}

impl<'a> Search<'a> {
    fn new(place: &'a Place<'a>, units: &'a [Unit]) -> Self {
        let mut units: Vec<(usize, &Unit)> = units.iter().enumerate().collect();
        // Largest units first, then those with the least choice; equal units are adjacent.
        units.sort_by_key(|(_, unit)| {
            let masks = || unit.iter().map(|demand| demand.constraint.counters);
            let weights: u32 = masks().map(CounterMask::weight).sum();
            let bits: Vec<u64> = masks().map(CounterMask::bits).collect();
            (usize::MAX - unit.len(), weights, bits)
        });
        Self {
            place,
            units,
            known: HashMap::default(),
            nodes: 0,
            checks: 0,
        }
    }

    /// Returns whether a run has room for one more unit, which comes after all of its units.
    fn has_room(&mut self, run: &Run, unit: usize) -> bool {
        let key = run.key_with(unit);
        if let Some(fits) = key.and_then(|key| self.known.get(&key)) {
            return *fits;
        }
        self.checks += 1;
        let with = run.units.iter().chain([&unit]);
        let units: Vec<&Unit> = with.map(|unit| self.units[*unit].1).collect();
        let fits = self.place.fits(&units);
        if let Some(key) = key {
            self.known.insert(key, fits);
        }
        fits
    }

    fn first_fit(&mut self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        // A run without room for a unit has no room for an equal unit.
        let mut start = 0;
        for unit in 0..self.units.len() {
            if unit == 0 || self.units[unit].1 != self.units[unit - 1].1 {
                start = 0;
            }
            while start < runs.len() && !self.has_room(&runs[start], unit) {
                start += 1;
            }
            match runs.get_mut(start) {
                Some(run) => run.push(unit),
                None => runs.push(Run::of(unit)),
            }
        }
        runs
    }

    /// Tries to place the units from `unit` on into at most `most` runs; `None` at the effort
    /// limit.
    fn fill(&mut self, unit: usize, most: usize, runs: &mut Vec<Run>) -> Option<bool> {
        self.nodes += 1;
        let many = self.nodes > MAX_NODES || self.checks > MAX_CHECKS;
        if many && self.units.len() > ALWAYS {
            return None;
        }
        if unit == self.units.len() {
            return Some(true);
        }
        // Symmetry: of two equal units, the later one is placed in the same run or a later one.
        let same = unit > 0 && self.units[unit].1 == self.units[unit - 1].1;
        let start = match same {
            true => runs
                .iter()
                .position(|run| run.units.last() == Some(&(unit - 1)))
                .unwrap_or(0),
            false => 0,
        };
        for number in start..runs.len() {
            if !self.has_room(&runs[number], unit) {
                continue;
            }
            runs[number].push(unit);
            if self.fill(unit + 1, most, runs)? {
                return Some(true);
            }
            runs[number].pop();
        }
        if runs.len() < most {
            runs.push(Run::of(unit));
            if self.fill(unit + 1, most, runs)? {
                return Some(true);
            }
            runs.pop();
        }
        Some(false)
    }

    /// Returns the runs with the units' own indices, sorted.
    fn result(&self, runs: Vec<Run>, is_minimal: bool) -> Split {
        let own = |run: Run| {
            let mut own: Vec<usize> = run.units.iter().map(|unit| self.units[*unit].0).collect();
            own.sort_unstable();
            own
        };
        let mut runs: Vec<Vec<usize>> = runs.into_iter().map(own).collect();
        runs.sort();
        Split { runs, is_minimal }
    }
}
