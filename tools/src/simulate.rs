// SPDX-License-Identifier: GPL-2.0

//! What perf core and the driver do with events that are open: who counts, and when.
//!
//! Perf core keeps two lists of groups, pinned and flexible ones. It tries the pinned ones first,
//! then the flexible ones in their order; behind the first flexible group that finds no counters
//! no other is tried. Each interval the first flexible group that is on goes to the end of its list,
//! and all flexible ones are tried anew. A pinned group that finds no counters is given up.
//!
//! With `policy=rpmu` the driver has those tried all the same that fit, and puts all groups that have
//! counted behind those that have had less: [`Turns`], after `rust/driver/rotation.rs`.
//!
//! Perf core: `merge_sched_in()`, `group_can_go_on()`, `group_sched_in()`, `perf_rotate_context()`
//! and what they call, in `kernel/events/core.c`. What the driver answers is answered by its own
//! [`Roster`], and by its own [`Core`] where the threads of a core have to agree.
//!
//! From what it is in after an interval, a CPU goes on in one way only. So when that comes again,
//! all is known that will ever happen.

use crate::logic::model::Scope;
use crate::logic::open::refusal::Refusal;
use crate::logic::regs::counter::{CounterId, CounterMask};
use crate::logic::rotation::{look_ahead, requeue, Beside, GroupWants, Waiting, Wants};
use crate::logic::sched::assign::Policy;
use crate::logic::sched::cpu_schedule::Roster;
use crate::logic::sched::extra_register::Demand;
use crate::logic::sched::limits::Limits;
use crate::logic::smt::protocol::{limits_now, Plain, ThreadState};
use crate::logic::smt::right_of_way::Share;
use crate::logic::smt::siblings::{Core, Thread};
use crate::machine::Machine;
use crate::open::{closed, shares_a_core, Opened};
use std::collections::HashMap;

/// Most steps that are simulated.
const MAX_STEPS: usize = 20_000;
/// Most flexible groups with which it is found out after which time everything repeats itself.
const MOST_REPEATED: usize = 64;
/// An interval in nanoseconds. How long it is matters where the threads of a core contend.
const INTERVAL: u64 = 4_000_000;
/// How often the threads of a core can make each other schedule anew at one time.
const MAX_WAKES: usize = 16;

/// Number of an event: as in [`Opened::events`], and behind these the watchdog.
pub type EventNumber = usize;

/// Who is on the counters, and who is not, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The events that count, by counter.
    pub counters: Vec<(u8, EventNumber)>,
    /// The groups that do not, by number in [`Opened::groups`].
    pub waiting: Vec<(usize, Wait)>,
    /// The counters that the core's other thread uses,
    pub sibling: u64,
    /// those that no event may take because of it,
    pub closed: u64,
    /// and how many general-purpose ones may be used.
    pub gp: u32,
}

/// Why a group is not on the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// It found no counters. Which [`Simulation::refusals`] says.
    Refused(usize),
    /// Perf core did not try it, because this group before it found no counters.
    Behind(usize),
    /// It is not its turn: the driver lets others go first that have had less.
    Turn,
    /// It wants the PMU for itself, or this group has it for itself.
    Exclusive,
}

/// What happens.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Every configuration that occurs, in the order of its first time.
    pub configurations: Vec<Configuration>,
    /// The refusals that they speak of.
    pub refusals: Vec<Refusal>,
    /// Which configuration there is in each step, up to where it begins to repeat itself;
    pub steps: Vec<usize>,
    /// from this one on it does. At the end, if it does not.
    pub repeats_from: usize,
    /// Steps of an interval: 2 where the other thread's events take turns as well.
    pub steps_per_interval: usize,
}

impl Simulation {
    /// The configuration in a step, however late.
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

    /// How many intervals each configuration has, in a run of so many.
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

/// A group as far as scheduling is concerned.
struct Group {
    events: Vec<(EventNumber, Demand)>,
    exclusive: bool,
}

impl Group {
    fn wants(&self) -> GroupWants {
        let mut wants = GroupWants::default();
        self.events
            .iter()
            .for_each(|(_, demand)| wants.add(demand.constraint));
        wants
    }
}

/// A group that waits.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    group: &'a Group,
    number: usize,
    /// The counter that each event had last.
    previous: &'a [Option<CounterId>],
}

impl Waiting for Candidate<'_> {
    type Event = EventNumber;

    fn for_each_event(&self, mut f: impl FnMut(EventNumber, Demand, Option<CounterId>)) {
        for (event, demand) in &self.group.events {
            f(*event, *demand, self.previous[*event]);
        }
    }

    fn is_alone(&self) -> bool {
        self.group.exclusive
    }
}

/// The order of the flexible groups, and what `rust/driver/rotation.rs` keeps.
struct Turns {
    /// Whether the driver decides about it at all.
    decides: bool,
    /// What the groups want.
    wants: Wants,
    /// By group: what it has had, and its place in the order; where that is the same, who was put
    /// there first comes first.
    had: Vec<u64>,
    places: Vec<(u64, u64)>,
    /// The last place, and how often a group was put anywhere.
    latest: u64,
    put: u64,
    /// Since the PMU was disabled: the groups that perf core tries whatever else was refused, and
    /// these with the group that was.
    offered: Vec<bool>,
    promoted: Vec<(usize, usize)>,
}

impl Turns {
    fn put(&mut self, group: usize, place: u64) {
        self.put += 1;
        self.places[group] = (place, self.put);
        self.latest = self.latest.max(place);
    }
}

/// What comes of taking turns, where nothing but the CPU's own events decides.
#[derive(Clone)]
struct Outcome {
    flexible_active: Vec<usize>,
    waiting: Vec<(usize, Wait)>,
    counters: Vec<(u8, EventNumber)>,
    previous: Vec<Option<CounterId>>,
    promoted: Vec<(usize, usize)>,
    /// The number of the configuration, once it is known.
    configuration: Option<usize>,
}

/// One CPU.
struct Cpu<'a> {
    machine: &'a Machine,
    thread: Thread,
    groups: Vec<Group>,
    roster: Roster<EventNumber>,
    smt: ThreadState,
    /// The groups' shares of the time.
    shares: Vec<Share>,
    /// The time, in nanoseconds, and how much of it groups have been on counters.
    now: u64,
    running: Vec<u64>,
    /// Since the PMU was disabled: whether an interval is over.
    is_over: bool,
    /// The counter that each event had last.
    previous: Vec<Option<CounterId>>,
    /// The pinned groups that are not given up, by number; the watchdog's is first.
    pinned: Vec<usize>,
    /// Those that are on.
    pinned_active: Vec<usize>,
    flexible: Vec<usize>,
    flexible_active: Vec<usize>,
    /// Those that are given up, and the flexible ones that are not on, with the reason.
    given_up: Vec<(usize, Wait)>,
    waiting: Vec<(usize, Wait)>,
    refusals: Vec<Refusal>,
    turns: Turns,
    /// The flexible groups in the roster. They are not those that are on where an outcome was known.
    in_roster: Vec<usize>,
    /// Who is on which counter.
    counters: Vec<(u8, EventNumber)>,
    /// Whether the threads of a core have to agree.
    threads_agree: bool,
    /// What came of it the last time, by number, and the number by the order of the flexible groups
    /// and the counters that events had last.
    outcomes: Vec<Outcome>,
    known: HashMap<Vec<u16>, usize>,
    /// The one that there is now.
    outcome: Option<usize>,
    /// For the key of [`known`](Self::known).
    key: Vec<u16>,
    /// Whether nobody else decides: there is no other thread with events.
    alone: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Where.
    pub machine: &'a Machine,
    /// How the driver decides.
    pub policy: Policy,
    /// Whether the NMI watchdog counts cycles, pinned, on every CPU.
    pub watchdog: Option<Demand>,
    /// What runs on the core's other thread, from before.
    pub sibling: Option<&'a Opened>,
    /// How many intervals are of interest.
    pub intervals: f64,
}

/// Simulates until everything repeats itself, or nobody wants to know more.
pub fn simulate(setting: &Setting<'_>, opened: &Opened) -> Simulation {
    let machine = setting.machine;
    let mut core = Core::new(machine.pmu.capabilities.gp());
    if machine.pmu.model.offcore_scope == Scope::Core {
        core = core.sharing_registers();
    }
    let mut core = shares_a_core(machine).then(|| {
        // Who sits where does not matter.
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
        // With very many groups it takes longer than anybody wants to know until all comes again. Nor
        // does what the threads of a core owe each other come again soon.
        let contended = core.as_ref().is_some_and(Core::is_contended);
        let few = |cpu: &Cpu<'_>| cpu.flexible.len() <= MOST_REPEATED || !cpu.turns.decides;
        if !contended && cpus.iter().all(few) {
            let mut state: Vec<u16> = vec![(step % cpus.len()) as u16];
            cpus.iter().for_each(|cpu| cpu.state(&mut state));
            if let Some(before) = states.insert(state, step) {
                simulation.repeats_from = before;
                break;
            }
        }
        let number = cpus[ours].configuration_number().unwrap_or_else(|| {
            let configuration = cpus[ours].configuration(core.as_ref());
            let next = known.len();
            *known.entry(configuration).or_insert_with_key(|new| {
                simulation.configurations.push(new.clone());
                next
            })
        });
        cpus[ours].remember_configuration(number);
        simulation.steps.push(number);
        // The other thread's timer fires in the middle of our intervals.
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

/// Makes the CPUs schedule anew that the others have set something free for.
fn wake(cpus: &mut [Cpu<'_>], mut core: Option<&mut Core>, mut by: usize, mut woken: bool) {
    for _ in 0..MAX_WAKES {
        if !woken || cpus.len() < 2 {
            return;
        }
        by = 1 - by;
        woken = cpus[by].schedule(core.as_deref_mut(), true);
    }
}

impl<'a> Cpu<'a> {
    fn new(setting: &Setting<'a>, opened: &Opened, thread: Thread) -> Self {
        let machine = setting.machine;
        let mut groups = Vec::new();
        let (mut pinned, mut flexible) = (Vec::new(), Vec::new());
        for (number, group) in opened.groups.iter().enumerate() {
            let events = group.members.iter();
            let events = events.filter_map(|event| Some((*event, opened.events[*event].demand?)));
            groups.push(Group {
                events: events.collect(),
                exclusive: group.exclusive,
            });
            if opened.needs_counters(group) {
                if group.pinned {
                    &mut pinned
                } else {
                    &mut flexible
                }
                .push(number);
            }
        }
        let mut events = opened.events.len();
        if let Some(demand) = setting.watchdog {
            // The CPU's own pinned events come before a task's.
            pinned.insert(0, groups.len());
            groups.push(Group {
                events: vec![(events, demand)],
                exclusive: false,
            });
            events += 1;
        }
        let mut wants = Wants::NOTHING;
        for group in &flexible {
            let group = &groups[*group];
            wants.add(&group.wants(), group.exclusive);
        }
        let numbers = 1..=groups.len() as u64;
        let turns = Turns {
            decides: setting.policy == Policy::Rpmu,
            wants,
            had: numbers.clone().collect(),
            places: numbers.map(|number| (number, number)).collect(),
            latest: groups.len() as u64,
            put: groups.len() as u64,
            offered: vec![false; groups.len()],
            promoted: Vec::new(),
        };
        Self {
            machine,
            thread,
            smt: ThreadState::default(),
            shares: vec![Share::NONE; groups.len()],
            running: vec![0; groups.len()],
            is_over: false,
            now: 1,
            groups,
            threads_agree: shares_a_core(machine),
            roster: Roster::new(&machine.pmu.capabilities).with_policy(setting.policy),
            previous: vec![None; events],
            pinned,
            pinned_active: Vec::new(),
            flexible,
            flexible_active: Vec::new(),
            given_up: Vec::new(),
            waiting: Vec::new(),
            refusals: Vec::new(),
            turns,
            in_roster: Vec::new(),
            counters: Vec::new(),
            outcomes: Vec::new(),
            known: HashMap::new(),
            outcome: None,
            key: Vec::new(),
            alone: setting.sibling.is_none() || !machine.has_sibling(),
        }
    }

    /// Time goes by.
    fn run(&mut self, time: u64) {
        self.now += time;
        for group in self.flexible_active.iter().chain(&self.pinned_active) {
            self.running[*group] += time;
        }
    }

    /// Takes all flexible groups off, the pinned ones too if `all`, and tries all that are off.
    ///
    /// Returns whether the core's other thread has to schedule anew.
    fn schedule(&mut self, mut core: Option<&mut Core>, all: bool) -> bool {
        let mut woken = false;
        self.outcome = None;
        self.flexible_active.clear();
        for group in std::mem::take(&mut self.in_roster) {
            self.take_off(group);
        }
        if all {
            // Those that only waited for others are tried again.
            let refusals = &self.refusals;
            let waits = |wait: &Wait| matches!(wait, Wait::Refused(it) if refusals[*it].is_for_the_moment());
            let (again, given_up) = std::mem::take(&mut self.given_up)
                .into_iter()
                .partition::<Vec<_>, _>(|(_, wait)| waits(wait));
            self.given_up = given_up;
            self.pinned.extend(again.iter().map(|(group, _)| *group));
            for group in std::mem::take(&mut self.pinned_active) {
                self.take_off(group);
            }
            let mut failed: Option<usize> = None;
            for group in std::mem::take(&mut self.pinned) {
                match self.try_group(group, true, failed, core.as_deref_mut(), &mut woken) {
                    Ok(()) => {
                        self.pinned_active.push(group);
                        self.pinned.push(group);
                    }
                    Err(wait) => {
                        failed.get_or_insert(group);
                        self.given_up.push((group, wait));
                    }
                }
            }
        }
        self.waiting.clear();
        self.turns.promoted.clear();
        let mut failed: Option<usize> = None;
        for index in 0..self.flexible.len() {
            let group = self.flexible[index];
            match self.try_group(group, false, failed, core.as_deref_mut(), &mut woken) {
                Ok(()) => {
                    self.flexible_active.push(group);
                    self.in_roster.push(group);
                }
                Err(wait) => {
                    failed.get_or_insert(group);
                    self.waiting.push((group, wait));
                }
            }
        }
        self.settle(core) | woken
    }

    /// `perf_rotate_context()`.
    fn rotate(&mut self, core: Option<&mut Core>) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        self.is_over = true;
        if self.turns.decides {
            self.line_up();
        } else {
            let first = self.flexible_active.first().or(self.flexible.first());
            if let Some(first) = first.copied() {
                self.flexible.retain(|group| *group != first);
                self.flexible.push(first);
            }
        }
        if !self.alone {
            return self.schedule(core, false);
        }
        self.key.clear();
        self.key
            .extend(self.flexible.iter().map(|group| *group as u16));
        self.key
            .extend(self.previous.iter().map(|previous| counter_code(*previous)));
        if let Some(number) = self.known.get(&self.key) {
            let known = &self.outcomes[*number];
            self.flexible_active.clone_from(&known.flexible_active);
            self.waiting.clone_from(&known.waiting);
            self.counters.clone_from(&known.counters);
            self.previous.clone_from(&known.previous);
            let promoted = known.promoted.clone();
            self.outcome = Some(*number);
            self.is_over = false;
            self.promote(&promoted);
            return false;
        }
        let key = self.key.clone();
        let woken = self.schedule(core, false);
        self.outcome = Some(self.outcomes.len());
        self.known.insert(key, self.outcomes.len());
        self.outcomes.push(Outcome {
            flexible_active: self.flexible_active.clone(),
            waiting: self.waiting.clone(),
            counters: self.counters.clone(),
            previous: self.previous.clone(),
            promoted: std::mem::take(&mut self.turns.promoted),
            configuration: None,
        });
        woken
    }

    /// The number of the configuration, if it is known what it is.
    fn configuration_number(&self) -> Option<usize> {
        self.outcomes.get(self.outcome?)?.configuration
    }

    /// Says which number it has.
    fn remember_configuration(&mut self, number: usize) {
        if let Some(outcome) = self.outcome.and_then(|it| self.outcomes.get_mut(it)) {
            outcome.configuration = Some(number);
        }
    }

    /// `line_up()` in `rust/driver/rotation.rs`: who has counted goes behind those that have had less. Where
    /// none has, perf core lets another be the first.
    fn line_up(&mut self) {
        let latest = self.turns.latest;
        let limits = self.limits_alone();
        let gp = self.machine.pmu.capabilities.counters.gp().weight();
        let mut moved = false;
        for group in self.flexible_active.clone() {
            let events = &self.groups[group].events;
            let counter = |event: EventNumber| {
                let mut counters = self.counters.iter();
                let (counter, _) = counters.find(|(_, it)| *it == event)?;
                CounterId::from_index(usize::from(*counter))
            };
            let counters = events.iter().filter_map(|(event, _)| counter(*event));
            if !self.turns.wants.contend_for(counters.collect()) {
                continue;
            }
            let corrupting = self.groups[group].wants().is_corrupting();
            let charge = self.turns.wants.charge(corrupting, gp, &limits);
            let place = requeue(self.turns.had[group], latest, charge);
            self.turns.had[group] = place;
            self.turns.put(group, place);
            moved = true;
        }
        if !moved {
            let first = self.flexible_active.first().or(self.flexible.first());
            if let Some(first) = first.copied() {
                self.turns.had[first] = latest + 1;
                self.turns.put(first, latest + 1);
            }
        }
        self.sort();
    }

    /// Brings the flexible groups into the order of their places.
    fn sort(&mut self) {
        let places = &self.turns.places;
        self.flexible.sort_unstable_by_key(|group| places[*group]);
    }

    /// Puts groups in front of others that were refused.
    fn promote(&mut self, promoted: &[(usize, usize)]) {
        for (group, before) in promoted {
            let (place, _) = self.turns.places[*before];
            self.turns.put(*group, place.saturating_sub(1));
        }
        if !promoted.is_empty() {
            self.sort();
        }
    }

    /// What holds however little the other thread uses.
    fn limits_alone(&self) -> Limits {
        let gp = self.machine.pmu.capabilities.gp();
        let limits = match self.threads_agree {
            true => Limits::beside_sibling(gp),
            false => Limits::NONE,
        };
        limits.closing(closed(self.machine))
    }

    /// `group_can_go_on()` and `group_sched_in()`.
    fn try_group(
        &mut self,
        number: usize,
        pinned: bool,
        failed: Option<usize>,
        core: Option<&mut Core>,
        woken: &mut bool,
    ) -> Result<(), Wait> {
        let mut active = self.pinned_active.iter().chain(&self.flexible_active);
        if active.any(|group| self.groups[*group].exclusive) {
            return Err(Wait::Exclusive);
        }
        let list = if pinned {
            &self.pinned_active
        } else {
            &self.flexible_active
        };
        if self.groups[number].exclusive && !list.is_empty() {
            return Err(Wait::Exclusive);
        }
        if let Some(failed) = failed.filter(|_| pinned || !self.turns.offered[number]) {
            return Err(match self.turns.decides && !pinned {
                true => Wait::Turn,
                false => Wait::Behind(failed),
            });
        }
        let mut core = core;
        if !pinned && self.waits_for_its_kind(number) {
            self.let_others_pass(number, core);
            return Err(Wait::Turn);
        }
        let placed = self.place(number, pinned, core.as_deref_mut(), woken);
        let (share, running) = (&mut self.shares[number], self.running[number]);
        let mut share = || share.account(self.now, running);
        match placed {
            Ok(()) => self.smt.note_placed(|| Some(share())),
            Err(_) if pinned => self.smt.note_pinned_refused(&mut self.roster),
            Err(_) => self.smt.note_refused(&mut self.roster, share),
        }
        placed.map_err(|refusal| {
            if !pinned {
                self.let_others_pass(number, core);
            }
            let known = self.refusals.iter().position(|known| *known == refusal);
            Wait::Refused(known.unwrap_or_else(|| {
                self.refusals.push(refusal);
                self.refusals.len() - 1
            }))
        })
    }

    /// `waits_for_its_kind()` in `rust/driver/rotation.rs`.
    fn waits_for_its_kind(&self, group: usize) -> bool {
        if !self.turns.decides || !self.threads_agree || self.turns.offered[group] {
            return false;
        }
        let mut beside = Beside::default();
        for active in &self.flexible_active {
            for (_, demand) in &self.groups[*active].events {
                match demand.constraint.exclusive {
                    true => beside.corrupting += 1,
                    false => beside.others += 1,
                }
            }
        }
        let corrupting = self.groups[group].wants().is_corrupting();
        let gp = self.machine.pmu.capabilities.counters.gp().weight();
        let wants = &self.turns.wants;
        wants.waits_for_its_kind(corrupting, beside, gp, &self.limits_alone())
    }

    /// `let_others_pass()` there.
    fn let_others_pass(&mut self, refused: usize, core: Option<&mut Core>) {
        if !self.turns.decides {
            return;
        }
        let counters = self.machine.pmu.capabilities.counters;
        let seated = core.as_deref().map(|core| (core, self.thread));
        let limits = limits_now(seated, closed(self.machine));
        let behind = self
            .flexible
            .iter()
            .copied()
            .skip_while(|it| *it != refused);
        let behind = behind.skip(1).filter(|it| !self.turns.offered[*it]);
        let behind = behind.map(|number| Candidate {
            group: &self.groups[number],
            number,
            previous: &self.previous,
        });
        let mut active = Wants::NOTHING;
        for group in &self.flexible_active {
            active.add(&self.groups[*group].wants(), false);
        }
        let wants = Some((&self.turns.wants, active));
        let found = look_ahead(&mut self.roster, counters, &limits, wants, behind);
        let waits_for_sibling = found.refusal.is_some();
        let found: Vec<usize> = found.groups().map(|it| it.number).collect();
        let _ = self.roster.take_wish();
        if let Some(core) = core.filter(|_| waits_for_sibling) {
            self.smt.wait(core, self.thread);
        }
        for group in found {
            self.turns.offered[group] = true;
            self.turns.promoted.push((group, refused));
        }
    }

    /// `add()` and `commit_txn()` in `rust/driver/schedule.rs`.
    fn place(
        &mut self,
        number: usize,
        pinned: bool,
        core: Option<&mut Core>,
        woken: &mut bool,
    ) -> Result<(), Refusal> {
        self.roster.begin();
        for (event, demand) in &self.groups[number].events {
            let added = self
                .roster
                .add(*event, *demand, self.previous[*event], &Limits::NONE);
            if let Err(refusal) = added {
                self.roster.cancel();
                return Err(refusal);
            }
        }
        let plain = Plain::of(&self.roster);
        let core = core.map(|core| (core, self.thread));
        let (roster, transactions) = (&mut self.roster, closed(self.machine));
        let is_pinned = || pinned;
        let (planned, waker) =
            self.smt
                .plan(core, roster, plain, transactions, is_pinned, Roster::commit);
        *woken |= waker.is_some();
        if planned.is_err() {
            self.roster.cancel();
        }
        planned.map_err(|denied| denied.refusal)
    }

    fn take_off(&mut self, number: usize) {
        for (event, _) in &self.groups[number].events {
            self.roster.remove(*event);
        }
    }

    /// `enable()` in `rust/driver/schedule.rs`.
    fn settle(&mut self, core: Option<&mut Core>) -> bool {
        for (event, counter) in self.roster.arriving() {
            self.previous[event] = Some(counter);
        }
        self.roster.settle();
        let placed = self.roster.entries();
        let placed = placed.filter_map(|entry| Some((entry.placed()?.index() as u8, entry.event)));
        self.counters.clear();
        self.counters.extend(placed);
        self.counters.sort_unstable();
        let is_over = std::mem::take(&mut self.is_over);
        let (release, now) = (self.smt.release(&mut self.roster), self.now);
        let told = release
            .zip(core)
            .map(|(release, core)| release.tell(core, self.thread, is_over, || now));
        let told = told.unwrap_or_default();
        if told.keeps_places {
            self.turns.promoted.clear();
        }
        let offered = std::mem::take(&mut self.turns.promoted);
        let active = &self.flexible_active;
        let promoted: Vec<_> = offered
            .into_iter()
            .filter(|(group, _)| active.contains(group))
            .collect();
        self.promote(&promoted);
        self.turns.promoted = promoted;
        self.turns.offered.fill(false);
        told.woken.is_some()
    }

    /// All that decides what comes next.
    fn state(&self, state: &mut Vec<u16>) {
        state.extend(self.flexible.iter().map(|group| *group as u16));
        if self.turns.decides {
            for group in &self.flexible {
                // How far it is behind the others is all that matters.
                for number in [self.turns.had[*group], self.turns.places[*group].0] {
                    let behind = self.turns.latest - number;
                    state.extend([0, 16, 32, 48].map(|shift| (behind >> shift) as u16));
                }
            }
        }
        state.push(self.flexible_active.len() as u16);
        state.extend(self.flexible_active.iter().map(|group| *group as u16));
        state.push(self.pinned.len() as u16);
        state.extend(self.previous.iter().map(|previous| counter_code(*previous)));
        state.extend(self.counters.iter().map(|(counter, _)| u16::from(*counter)));
    }

    fn configuration(&self, core: Option<&Core>) -> Configuration {
        let limits = core.map_or(Limits::NONE, |core| core.limits_of_pinned(self.thread));
        Configuration {
            counters: self.counters.clone(),
            waiting: self.given_up.iter().chain(&self.waiting).copied().collect(),
            sibling: limits.closed_to_exclusive.bits(),
            closed: limits.closed.bits(),
            gp: limits.gp,
        }
    }
}

/// Whether as many events as there are `counters` can have no others than these.
pub fn is_taken(counters: CounterMask, events: &[CounterMask]) -> bool {
    let confined = events.iter().filter(|event| event.is_subset(counters));
    confined.count() as u32 >= counters.weight()
}

/// A counter as a number, or that there is none.
fn counter_code(counter: Option<CounterId>) -> u16 {
    counter.map_or(u16::MAX, |counter| counter.index() as u16)
}
