// SPDX-License-Identifier: GPL-2.0

//! One CPU: what perf core does with its groups, and what the driver answers by its own decisions.

use super::group::Group;
use super::order::{numbers, Offered, Order};
use super::outcomes::{counter_code, Outcome, Outcomes};
use super::{Configuration, EventNumber, Setting, Wait};
use crate::logic::open::refusal::Refusal;
use crate::logic::regs::counter::CounterId;
use crate::logic::rotation::{
    let_others_pass, place_after_interval, waits_for_its_kind, Counted, Wants,
};
use crate::logic::sched::assign::Policy;
use crate::logic::sched::cpu_schedule::Roster;
use crate::logic::sched::limits::Limits;
use crate::logic::smt::protocol::{limits_now, Plain, ThreadState};
use crate::logic::smt::right_of_way::Share;
use crate::logic::smt::siblings::{Core, Thread};
use crate::machine::Machine;
use crate::open::{closed, shares_a_core, Opened};

/// One CPU.
pub(super) struct Cpu<'a> {
    machine: &'a Machine,
    thread: Thread,
    groups: Vec<Group>,
    roster: Roster<EventNumber>,
    /// What the driver keeps of its dealings with the core's other thread.
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
    pub(super) flexible: Vec<usize>,
    flexible_active: Vec<usize>,
    /// Those that are given up, and the flexible ones that are not on, with the reason.
    given_up: Vec<(usize, Wait)>,
    waiting: Vec<(usize, Wait)>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) order: Order,
    /// The flexible groups in the roster. They are not those that are on where an outcome was known.
    in_roster: Vec<usize>,
    /// Who is on which counter.
    counters: Vec<(u8, EventNumber)>,
    /// Whether the threads of a core have to agree.
    threads_agree: bool,
    pub(super) outcomes: Outcomes,
    /// Whether nobody else decides: there is no other thread with events.
    alone: bool,
}

impl<'a> Cpu<'a> {
    pub(super) fn new(setting: &Setting<'a>, opened: &Opened, thread: Thread) -> Self {
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
        let decides = setting.policy == Policy::Rpmu;
        let order = Order::new(groups.len(), wants, decides);
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
            order,
            in_roster: Vec::new(),
            counters: Vec::new(),
            outcomes: Outcomes::default(),
            alone: setting.sibling.is_none() || !machine.has_sibling(),
        }
    }

    /// Time goes by.
    pub(super) fn run(&mut self, time: u64) {
        self.now += time;
        for group in self.flexible_active.iter().chain(&self.pinned_active) {
            self.running[*group] += time;
        }
    }

    /// Takes all flexible groups off, the pinned ones too if `all`, and tries all that are off.
    ///
    /// Returns whether the core's other thread has to schedule anew.
    pub(super) fn schedule(&mut self, mut core: Option<&mut Core>, all: bool) -> bool {
        let mut woken = false;
        self.outcomes.leave();
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
        self.order.promoted.clear();
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
    pub(super) fn rotate(&mut self, core: Option<&mut Core>) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        self.is_over = true;
        if self.order.decides {
            self.line_up(core.as_deref());
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
        if let Some(known) = self.outcomes.find(&self.flexible, &self.previous) {
            self.flexible_active.clone_from(&known.flexible_active);
            self.waiting.clone_from(&known.waiting);
            self.counters.clone_from(&known.counters);
            self.previous.clone_from(&known.previous);
            let promoted = known.promoted.clone();
            self.is_over = false;
            self.promote(&promoted);
            return false;
        }
        let woken = self.schedule(core, false);
        self.outcomes.add(Outcome::new(
            &self.flexible_active,
            &self.waiting,
            &self.counters,
            &self.previous,
            std::mem::take(&mut self.order.promoted),
        ));
        woken
    }

    /// `line_up()` in `rust/driver/rotation.rs`: who has counted goes behind those that have had less. Where
    /// none has, perf core lets another be the first.
    fn line_up(&mut self, core: Option<&Core>) {
        let latest = self.order.latest;
        let limits = self.limits(core);
        let all = self.machine.pmu.capabilities.counters;
        let mut moved = false;
        for group in self.flexible_active.clone() {
            let its = |event: EventNumber| self.groups[group].has(event);
            let counters = self.counters.iter().filter(|(_, event)| its(*event));
            let counters =
                counters.filter_map(|(counter, _)| CounterId::from_index(usize::from(*counter)));
            let counted = Counted {
                had: self.order.had[group],
                counters: counters.collect(),
                corrupting: self.groups[group].wants().is_corrupting(),
            };
            let place = place_after_interval(&counted, latest, &self.order.wants, all, || limits);
            if let Some(place) = place {
                self.order.requeue(group, place);
                moved = true;
            }
        }
        if !moved {
            let first = self.flexible_active.first().or(self.flexible.first());
            if let Some(first) = first.copied() {
                self.order.requeue(first, latest + 1);
            }
        }
        self.order.sort(&mut self.flexible);
    }

    /// Puts groups in front of others that were refused.
    fn promote(&mut self, promoted: &[(usize, usize)]) {
        self.order.promote(promoted);
        if !promoted.is_empty() {
            self.order.sort(&mut self.flexible);
        }
    }

    /// The limits that hold now for groups that rotate.
    fn limits(&self, core: Option<&Core>) -> Limits {
        limits_now(core.map(|core| (core, self.thread)), closed(self.machine))
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
        if let Some(failed) = failed.filter(|_| pinned || !self.order.offered[number]) {
            return Err(match self.order.decides && !pinned {
                true => Wait::Turn,
                false => Wait::Behind(failed),
            });
        }
        let mut core = core;
        if !pinned && self.waits_for_its_kind(number, core.as_deref()) {
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

    /// What decides about a group that is offered.
    fn offered(
        &mut self,
        number: usize,
        core: Option<&Core>,
    ) -> (&mut Roster<EventNumber>, Offered<'_>) {
        let offered = Offered {
            number,
            limits: self.limits(core),
            groups: &self.groups,
            previous: &self.previous,
            pinned_active: &self.pinned_active,
            flexible: &self.flexible,
            flexible_active: &self.flexible_active,
            order: &self.order,
            is_over: self.is_over,
        };
        (&mut self.roster, offered)
    }

    /// `waits_for_its_kind()` in `rust/driver/rotation.rs`.
    fn waits_for_its_kind(&mut self, group: usize, core: Option<&Core>) -> bool {
        if !self.order.decides || !self.threads_agree {
            return false;
        }
        let counters = self.machine.pmu.capabilities.counters;
        let (roster, mut offered) = self.offered(group, core);
        waits_for_its_kind(roster, counters, &mut offered)
    }

    /// `let_others_pass()` there.
    fn let_others_pass(&mut self, refused: usize, core: Option<&mut Core>) {
        if !self.order.decides {
            return;
        }
        let counters = self.machine.pmu.capabilities.counters;
        let closed = closed(self.machine);
        let (roster, mut offered) = self.offered(refused, core.as_deref());
        let Some(found) = let_others_pass(roster, counters, closed, &mut offered) else {
            return;
        };
        let (groups, left) = (numbers(&found), found.left());
        if let Some(core) = core.filter(|_| found.refusal.is_some()) {
            self.smt.wait(core, self.thread);
        }
        self.order.offer(&groups, refused, left);
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
            self.order.promoted.clear();
        }
        let offered = std::mem::take(&mut self.order.promoted);
        let active = &self.flexible_active;
        let promoted: Vec<_> = offered
            .into_iter()
            .filter(|(group, _)| active.contains(group))
            .collect();
        self.promote(&promoted);
        self.order.promoted = promoted;
        self.order.offered.fill(false);
        told.woken.is_some()
    }

    /// All that decides what comes next.
    pub(super) fn state(&self, state: &mut Vec<u16>) {
        state.extend(self.flexible.iter().map(|group| *group as u16));
        if self.order.decides {
            for group in &self.flexible {
                // How far it is behind the others is all that matters.
                for number in [self.order.had[*group], self.order.place(*group)] {
                    let behind = self.order.latest - number;
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

    pub(super) fn configuration(&self, core: Option<&Core>) -> Configuration {
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
