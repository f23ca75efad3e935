// SPDX-License-Identifier: GPL-2.0

//! Simulation of the perf core and the driver with open events: which events count, and when.
//!
//! The perf core keeps two lists of groups, pinned and flexible ones. It tries the pinned ones
//! first, then the flexible ones in their order, up to the first that does not fit. At the end of
//! each interval the first active flexible group goes to the end of its list, and all flexible ones
//! are tried again. A pinned group that does not fit is given up, and so are all pinned groups
//! behind it.
//!
//! With `policy=rpmu` the driver has the perf core try others that fit, and moves all groups that
//! have counted behind those with a smaller runtime. Equal events share a counter.
//!
//! Perf core: `merge_sched_in()`, `group_can_go_on()`, `group_sched_in()`, `perf_rotate_context()`
//! and their callees, in `kernel/events/core.c`. The decisions of the driver are made by its own
//! code: [`rotation`](crate::logic::rotation), [`cpu_schedule`](crate::logic::sched::cpu_schedule),
//! and [`smt`](crate::logic::smt) where the threads of a core have to agree.
//!
//! The state of a CPU at the end of an interval determines all that follows. So once a state comes
//! again, everything repeats.

mod cpu;
mod group;
mod on_cpu;
mod order;
mod outcomes;

use crate::logic::model::demand::Demand;
use crate::logic::model::Scope;
use crate::logic::refusal::Refusal;
use crate::logic::regs::counter::CounterMask;
use crate::logic::sched::assign::Policy;
use crate::logic::smt::siblings::{
    Core,
    Thread, //
};
use crate::machine::Machine;
use crate::open::{
    shares_a_core,
    Opened, //
};
use cpu::Cpu;
use std::collections::HashMap;

/// Largest number of simulated steps.
const MAX_STEPS: usize = 20_000;
/// The most flexible groups for which the simulation looks for repetition with `policy=rpmu`.
const MOST_REPEATED: usize = 64;
/// An interval in nanoseconds. Its length matters if the threads of a core contend.
const INTERVAL: u64 = 4_000_000;
/// The maximum number of times that the threads of a core can make each other schedule again at one
/// point in time.
const MAX_WAKES: usize = 16;

/// Number of an event: as in [`Opened::events`]; the watchdog has the next number.
pub type EventNumber = usize;

/// The events on the counters, and the waiting groups with the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The events that count, by counter. Of several events on a counter, all but the first ride.
    pub counters: Vec<(u8, EventNumber)>,
    /// The groups that wait, by number in [`Opened::groups`].
    pub waiting: Vec<(usize, Wait)>,
    /// The counters that the core's other thread uses.
    pub sibling: u64,
    /// The counters that no event may use because of that thread.
    pub closed: u64,
    /// Largest number of general-purpose counters.
    pub gp: u32,
}

impl Configuration {
    /// Returns the events that count, those on the same counter together.
    pub fn by_counter(&self) -> impl Iterator<Item = &[(u8, EventNumber)]> {
        self.counters.chunk_by(|(one, _), (other, _)| one == other)
    }

    /// Returns the counters in use, each with the event that does not ride.
    pub fn heads(&self) -> impl Iterator<Item = (u8, EventNumber)> + '_ {
        self.by_counter()
            .filter_map(|events| events.first().copied())
    }

    /// Returns the riders, each with its counter and the event on whose counter it rides.
    pub fn riders(&self) -> impl Iterator<Item = (u8, EventNumber, EventNumber)> + '_ {
        self.by_counter().flat_map(|events| {
            let (_, head) = events[0];
            let riders = events[1..].iter();
            riders.map(move |(counter, rider)| (*counter, *rider, head))
        })
    }
}

/// The reason why a group is not on the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// It was refused, with this entry of [`Simulation::refusals`].
    Refused(usize),
    /// The perf core did not try the group, because this other group had failed before it.
    Behind(usize),
    /// It waits in rotation: groups with a smaller runtime go first.
    Turn,
    /// It needs the PMU for itself, or another group has the PMU for itself.
    Exclusive,
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// All configurations, in the order of their first occurrence.
    pub configurations: Vec<Configuration>,
    /// The refusals in these configurations.
    pub refusals: Vec<Refusal>,
    /// The configuration of each step, to the end of the first period, or of all simulated steps if
    /// they do not repeat.
    pub steps: Vec<usize>,
    /// The step from which they repeat; the number of steps, if they do not repeat.
    pub repeats_from: usize,
    /// Steps of an interval: 2 if the other thread's events also rotate.
    pub steps_per_interval: usize,
}

impl Simulation {
    /// Returns the configuration of a step, however late.
    pub fn at(&self, step: usize) -> usize {
        if step < self.steps.len() {
            return self.steps[step];
        }
        let period = self.steps.len() - self.repeats_from;
        match period {
            0 => self.steps[self.steps.len() - 1],
            _ => self.steps[self.repeats_from + (step - self.repeats_from) % period],
        }
    }

    /// Returns the number of intervals of each configuration, in a run of this many intervals.
    pub fn intervals(&self, intervals: f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.configurations.len()];
        let mut left = intervals * self.steps_per_interval as f64;
        let mut take = |step: usize, times: f64| sums[step] += times;
        let period = self.steps.len() - self.repeats_from;
        for (index, step) in self.steps.iter().enumerate() {
            if index == self.repeats_from && period > 0 {
                let rounds = (left / period as f64).floor();
                self.steps[index..]
                    .iter()
                    .for_each(|step| take(*step, rounds));
                left -= rounds * period as f64;
            }
            take(*step, left.min(1.0));
            left -= left.min(1.0);
        }
        if period == 0 && left > 0.0 {
            take(self.steps[self.steps.len() - 1], left);
        }
        let per_interval = self.steps_per_interval as f64;
        sums.iter().map(|steps| steps / per_interval).collect()
    }
}

/// The input of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The driver's policy.
    pub policy: Policy,
    /// The demand of the NMI watchdog, if it counts cycles, pinned, on every CPU.
    pub watchdog: Option<Demand>,
    /// The events on the core's other thread, which were opened first.
    pub sibling: Option<&'a Opened>,
    /// Number of intervals of interest.
    pub intervals: f64,
}

/// Simulates until everything repeats, or for the intervals of interest.
pub fn simulate(setting: &Setting<'_>, opened: &Opened) -> Simulation {
    let machine = setting.machine;
    let mut core = Core::new(machine.pmu.capabilities.gp());
    if machine.pmu.model.offcore_scope == Scope::Core {
        core = core.sharing_registers();
    }
    let mut core = shares_a_core(machine).then(|| {
        // It does not matter which thread each CPU is.
        core.join(0);
        core.join(1);
        core
    });
    let mut cpus = vec![Cpu::new(setting, opened, Thread::First)];
    if let Some(sibling) = setting.sibling.filter(|_| machine.has_sibling()) {
        cpus.insert(0, Cpu::new(setting, sibling, Thread::Second));
    }
    let ours = cpus.len() - 1;
    for cpu in 0..cpus.len() {
        let woken = cpus[cpu].schedule(core.as_mut(), true);
        wake(&mut cpus, core.as_mut(), cpu, woken);
    }

    let mut simulation = Simulation {
        configurations: Vec::new(),
        refusals: Vec::new(),
        steps: Vec::new(),
        repeats_from: 0,
        steps_per_interval: cpus.len(),
    };
    let mut known: HashMap<Configuration, usize> = HashMap::new();
    let mut states: HashMap<Vec<u16>, usize> = HashMap::new();
    let most = (setting.intervals * cpus.len() as f64).ceil() as usize;
    while simulation.steps.len() < most.clamp(1, MAX_STEPS) {
        let step = simulation.steps.len();
        simulation.repeats_from = step + 1;
        // With very many groups, repetition takes longer than the intervals of interest. The same
        // holds if the threads of a core contend.
        let contended = core.as_ref().is_some_and(Core::is_contended);
        let few = |cpu: &Cpu<'_>| cpu.flexible.len() <= MOST_REPEATED || !cpu.order.decides;
        if !contended && cpus.iter().all(few) {
            let mut state: Vec<u16> = vec![(step % cpus.len()) as u16];
            cpus.iter().for_each(|cpu| cpu.state(&mut state));
            if let Some(before) = states.insert(state, step) {
                simulation.repeats_from = before;
                break;
            }
        }
        let number = cpus[ours].outcomes.configuration().unwrap_or_else(|| {
            let configuration = cpus[ours].configuration(core.as_ref());
            let next = known.len();
            *known.entry(configuration).or_insert_with_key(|new| {
                simulation.configurations.push(new.clone());
                next
            })
        });
        cpus[ours].outcomes.remember_configuration(number);
        simulation.steps.push(number);
        // The other thread's timer expires in the middle of this thread's intervals.
        let ticking = if cpus.len() == 2 && step % 2 == 0 {
            0
        } else {
            ours
        };
        cpus.iter_mut()
            .for_each(|cpu| cpu.run(INTERVAL / simulation.steps_per_interval as u64));
        let woken = cpus[ticking].rotate(core.as_mut());
        wake(&mut cpus, core.as_mut(), ticking, woken);
    }
    simulation.refusals = std::mem::take(&mut cpus[ours].refusals);
    simulation
}

/// Makes the CPUs that others have woken schedule again.
fn wake(cpus: &mut [Cpu<'_>], mut core: Option<&mut Core>, mut by: usize, mut woken: bool) {
    for _ in 0..MAX_WAKES {
        if !woken || cpus.len() < 2 {
            return;
        }
        by = 1 - by;
        woken = cpus[by].schedule(core.as_deref_mut(), true);
    }
}

/// Returns whether there are as many events that can use only `counters` as there are `counters`.
pub fn is_taken(counters: CounterMask, events: &[CounterMask]) -> bool {
    let confined = events.iter().filter(|event| event.is_subset(counters));
    confined.count() as u32 >= counters.weight()
}
