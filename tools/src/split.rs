// SPDX-License-Identifier: GPL-2.0

//! Into how few runs events can be split so that all of them count all the time in theirs.
//!
//! A first fit gives a number that will do, a count of what the counters can hold one below which
//! none does. Where these differ, every way to do with fewer is tried, as far as it may take.

use crate::logic::regs::counter::CounterMask;
use crate::logic::sched::assign::Policy;
use crate::logic::sched::extra_register::{Demand, ExtraRegister, Requirement};
use crate::machine::Machine;
use crate::open::{shares_a_core, validate};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How many ways to begin are tried, and how many sets are held against the PMU, before the search
/// is given up. Up to so many groups, it never is.
const MAX_NODES: usize = 20_000;
const MAX_CHECKS: usize = 3_000;
const ALWAYS: usize = 10;

/// Events that have to be in the same run, and what each needs.
pub type Unit = Vec<Demand>;

/// Runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The units of each, by number.
    pub runs: Vec<Vec<usize>>,
    /// Whether it is known that there is no way with fewer.
    pub is_minimal: bool,
}

/// Where the runs are.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The machine; the core's other thread is idle.
    pub machine: &'a Machine,
    /// How the driver decides.
    pub policy: Policy,
    /// What counts in every run.
    pub always: Option<Demand>,
}

impl Place<'_> {
    /// Whether these units can count together.
    pub fn fits(&self, units: &[&Unit]) -> bool {
        let events = units
            .iter()
            .flat_map(|unit| unit.iter())
            .chain(&self.always);
        let events: Vec<Demand> = events.copied().collect();
        // Most of what does not fit shows here already, and it is much faster than a trial.
        let masks = || events.iter().map(|demand| demand.constraint.counters);
        let crowded = |counters: CounterMask| {
            let confined = masks().filter(|mask| mask.is_subset(counters));
            confined.count() as u32 > counters.weight()
        };
        !masks().any(crowded) && validate(&events, self.machine, self.policy).is_ok()
    }

    /// Splits units, each of which fits alone, into as few runs as there can be.
    pub fn split(&self, units: &[Unit]) -> Split {
        let mut search = Search::new(self, units);
        let first = search.first_fit();
        let mut low = (1..first.len())
            .find(|runs| self.may_do(units, *runs))
            .unwrap_or(first.len());
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

    /// Whether so many runs are enough for the counters, the limit on a thread with exclusive
    /// events, and the extra registers, each for itself and as if groups could be torn apart.
    fn may_do(&self, units: &[Unit], runs: usize) -> bool {
        let events: Vec<&Demand> = units.iter().flatten().collect();
        let always = self
            .always
            .iter()
            .cycle()
            .take(runs * usize::from(self.always.is_some()));
        let masks = events
            .iter()
            .copied()
            .chain(always)
            .map(|demand| demand.constraint.counters);
        if !fill_counters(&masks.collect::<Vec<_>>(), runs) {
            return false;
        }
        let exclusive = events
            .iter()
            .filter(|demand| demand.constraint.exclusive)
            .count();
        let half = self.machine.pmu.capabilities.gp() as usize / 2;
        if shares_a_core(self.machine) && exclusive > half * runs {
            return false;
        }
        // How many values are wanted in either of two registers, or in the one of its kind.
        let mut values: Vec<Requirement> = Vec::new();
        for required in events.iter().filter_map(|demand| demand.requirement) {
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

/// Whether every event gets one of its counters where each counter can be had so many times.
fn fill_counters(events: &[CounterMask], times: usize) -> bool {
    // Augmenting paths: who has what, and whom it can be taken from.
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

/// Units that are in a run together, in ascending order.
struct Run {
    units: Vec<usize>,
    /// The units before each, as bits; nothing, if there is one that is too large for that.
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

    /// All of them and this one, as bits.
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

/// Bits are looked up by the thousand, and nobody makes them up to collide.
#[derive(Default)]
struct BitHasher(u64);

impl Hasher for BitHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u128(u128::from(*byte)));
    }

    fn write_u128(&mut self, bits: u128) {
        // CAST: both halves.
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
    /// The units in the order in which they are placed, with their own numbers.
    units: Vec<(usize, &'a Unit)>,
    /// Whether units fit together, which are bits.
    known: HashMap<u128, bool, BuildHasherDefault<BitHasher>>,
    nodes: usize,
    checks: usize,
}

impl<'a> Search<'a> {
    fn new(place: &'a Place<'a>, units: &'a [Unit]) -> Self {
        let mut units: Vec<(usize, &Unit)> = units.iter().enumerate().collect();
        // The largest first, and of these the ones with the least choice; equal ones stay together.
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

    /// Whether a run has room for one more unit, the last of all.
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
        for unit in 0..self.units.len() {
            match runs.iter_mut().find(|run| self.has_room(run, unit)) {
                Some(run) => run.push(unit),
                None => runs.push(Run::of(unit)),
            }
        }
        runs
    }

    /// Whether the units from `unit` on can be put into so many runs; `None` if that took too long.
    fn fill(&mut self, unit: usize, most: usize, runs: &mut Vec<Run>) -> Option<bool> {
        self.nodes += 1;
        let many = self.nodes > MAX_NODES || self.checks > MAX_CHECKS;
        if many && self.units.len() > ALWAYS {
            return None;
        }
        if unit == self.units.len() {
            return Some(true);
        }
        // Of equal units, a later one is in no earlier run.
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

    /// The runs by the units' own numbers, in the order in which these came.
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
