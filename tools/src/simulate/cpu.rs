// SPDX-License-Identifier: GPL-2.0

//! One CPU: the perf core's handling of its groups, with the driver's decisions.

use super::group::{
    Candidate,
    Group, //
};
use super::on_cpu::OnCpu;
use super::order::{
    Move,
    Order, //
};
use super::outcomes::{
    counter_code,
    Outcome,
    Outcomes, //
};
use super::{
    Configuration,
    EventNumber,
    Setting,
    Wait,
    INTERVAL, //
};
use crate::logic::refusal::Refusal;
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use crate::logic::rotation::{
    lags_far_behind,
    look_ahead,
    owes_turns,
    place_after_interval,
    turns,
    Beside,
    BroughtForward,
    ContextWants,
    Counted,
    Offered,
    OnCounter,
    Search,
    Vacancy,
    Waiting,
    Wants,
    MOST_DISPLACED,
    MOST_LOOKED_AT, //
};
use crate::logic::sched::assign::Policy;
use crate::logic::sched::cpu_schedule::CpuSchedule;
use crate::logic::sched::limits::Limits;
use crate::logic::smt::protocol::{
    limits_now,
    CountersOnly,
    ThreadState, //
};
use crate::logic::smt::right_of_way::Share;
use crate::logic::smt::siblings::{
    Core,
    Thread, //
};
use crate::machine::Machine;
use crate::open::{
    closed,
    shares_a_core,
    Opened, //
};

/// One CPU.
pub(super) struct Cpu<'a> {
    machine: &'a Machine,
    thread: Thread,
    groups: Vec<Group>,
    schedule: CpuSchedule<EventNumber>,
    /// The events on the CPU, and which of them share a counter.
    on_cpu: OnCpu,
    /// The bits of the keys with which groups could ride on counters of others, at the end of the
    /// last interval.
    rideable: u64,
    /// The state that the driver keeps for the coordination with the core's other thread.
    smt: ThreadState,
    /// The groups' shares of the time.
    shares: Vec<Share>,
    /// The time, and the groups' times on counters, in nanoseconds.
    now: u64,
    running: Vec<u64>,
    /// The groups' times on counters when rotation last charged them.
    charged: Vec<u64>,
    /// Set if an interval has ended since the PMU was disabled.
    is_over: bool,
    /// Set if groups were placed in this interval while the threads of the core contended.
    placed_within: bool,
    /// The previous counter of each event.
    previous: Vec<Option<CounterId>>,
    /// The pinned groups that are not given up, by number; the watchdog's is the first.
    pinned: Vec<usize>,
    /// The active ones.
    pinned_active: Vec<usize>,
    pub(super) flexible: Vec<usize>,
    flexible_active: Vec<usize>,
    /// The pinned groups that are given up, and the flexible ones that wait, with the reasons.
    given_up: Vec<(usize, Wait)>,
    waiting: Vec<(usize, Wait)>,
    pub(super) refusals: Vec<Refusal>,
    pub(super) order: Order,
    /// The groups that were brought forward since the last end of an interval.
    brought_forward: BroughtForward,
    /// Set if all groups must be tried again because groups were brought forward.
    again: bool,
    /// The flexible groups in the schedule. After a known outcome, other groups may be active.
    in_schedule: Vec<usize>,
    /// The events, by counter. Of several events on a counter, all but the first ride.
    counters: Vec<(u8, EventNumber)>,
    /// Set if the threads of a core must coordinate.
    threads_agree: bool,
    pub(super) outcomes: Outcomes,
    /// Set if no other thread has events.
    alone: bool,
}

impl<'a> Cpu<'a> {
    pub(super) fn new(setting: &Setting<'a>, opened: &Opened, thread: Thread) -> Self {
        let machine = setting.machine;
        let mut groups = Vec::new();
        let (mut pinned, mut flexible) = (Vec::new(), Vec::new());
        for (number, group) in opened.groups.iter().enumerate() {
            let leader = group.members.first();
            let events = group.members.iter();
            let events = events.filter_map(|event| Some((*event, opened.events[*event].demand?)));
            groups.push(Group {
                events: events.collect(),
                exclusive: group.exclusive,
                led_by_software: leader
                    .is_some_and(|leader| opened.events[*leader].demand.is_none()),
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
            // The CPU's own pinned events precede a task's.
            pinned.insert(0, groups.len());
            groups.push(Group {
                events: vec![(events, demand)],
                exclusive: false,
                led_by_software: false,
            });
            events += 1;
        }
        let mut wants = ContextWants::NOTHING;
        for group in &flexible {
            let group = &groups[*group];
            let mut is_copy = true;
            for (_, demand) in &group.events {
                is_copy &= wants.add_event(demand);
            }
            wants.add(&group.wants(), group.exclusive, is_copy);
        }
        let decides = setting.policy == Policy::Rpmu;
        let order = Order::new(groups.len(), *wants.wants(), decides);
        Self {
            machine,
            thread,
            smt: ThreadState::default(),
            shares: vec![Share::NONE; groups.len()],
            running: vec![0; groups.len()],
            charged: vec![0; groups.len()],
            is_over: false,
            placed_within: false,
            now: 1,
            groups,
            threads_agree: shares_a_core(machine),
            schedule: CpuSchedule::new(&machine.pmu.capabilities).with_policy(setting.policy),
            on_cpu: OnCpu::new(events),
            rideable: 0,
            previous: vec![None; events],
            pinned,
            pinned_active: Vec::new(),
            flexible,
            flexible_active: Vec::new(),
            given_up: Vec::new(),
            waiting: Vec::new(),
            refusals: Vec::new(),
            order,
            brought_forward: BroughtForward::NONE,
            again: false,
            in_schedule: Vec::new(),
            counters: Vec::new(),
            outcomes: Outcomes::default(),
            alone: setting.sibling.is_none() || !machine.has_sibling(),
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: u64) {
        self.now += time;
        for group in self.flexible_active.iter().chain(&self.pinned_active) {
            self.running[*group] += time;
        }
    }

    /// Removes all flexible groups, with `all` also the pinned ones, and tries to place them.
    ///
    /// Returns whether the core's other thread must schedule again.
    pub(super) fn schedule(&mut self, mut core: Option<&mut Core>, all: bool) -> bool {
        let mut woken = false;
        self.outcomes.leave();
        self.flexible_active.clear();
        for group in std::mem::take(&mut self.in_schedule) {
            self.take_off(group);
        }
        if all {
            // Pinned groups that wait for the sibling are retried.
            let refusals = &self.refusals;
            let waits = |wait: &Wait| match wait {
                Wait::Refused(it) => refusals[*it].is_for_the_moment(),
                _ => false,
            };
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
        self.order.found.clear();
        let mut failed: Option<usize> = None;
        for index in 0..self.flexible.len() {
            let group = self.flexible[index];
            match self.try_group(group, false, failed, core.as_deref_mut(), &mut woken) {
                Ok(()) => {
                    self.flexible_active.push(group);
                    self.in_schedule.push(group);
                }
                Err(wait) => {
                    failed.get_or_insert(group);
                    self.waiting.push((group, wait));
                }
            }
        }
        woken |= self.enable(core.as_deref_mut());
        if std::mem::take(&mut self.again) {
            woken |= self.schedule(core, true);
        }
        woken
    }

    /// Mirrors `perf_rotate_context()`. Returns the same as `schedule()`.
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
        self.order.moved.clear();
        if !self.alone {
            return self.schedule(core, false);
        }
        let lags = |group| lags_far_behind(self.order.lag(group));
        if let Some(known) = self.outcomes.find(&self.flexible, lags, &self.previous) {
            self.flexible_active.clone_from(&known.flexible_active);
            self.waiting.clone_from(&known.waiting);
            self.counters.clone_from(&known.counters);
            self.previous.clone_from(&known.previous);
            let moved = known.moved.clone();
            self.brought_forward = known.brought_forward;
            self.is_over = false;
            self.move_all(&moved);
            return false;
        }
        let woken = self.schedule(core, false);
        self.outcomes.add(Outcome::new(
            &self.flexible_active,
            &self.waiting,
            &self.counters,
            &self.previous,
            std::mem::take(&mut self.order.moved),
            self.brought_forward,
        ));
        woken
    }

    /// Mirrors `line_up()` in `rust/driver/rotation.rs`. If no group moves and none was brought
    /// forward, the perf core moves the first one.
    fn line_up(&mut self, core: Option<&Core>) {
        let latest = self.order.latest;
        let limits = self.limits(core);
        self.rideable = self.order.wants.rideable(self.keys_beside());
        let all = self.machine.pmu.capabilities.all();
        let mut moved = false;
        let active = &self.flexible_active;
        let waiting = self.flexible.iter().filter(|it| !active.contains(it));
        let waiting = waiting.take(match std::mem::take(&mut self.placed_within) {
            true => MOST_LOOKED_AT,
            false => 0,
        });
        let owes =
            |group: &&usize| owes_turns(self.running[**group] - self.charged[**group], INTERVAL);
        let displaced = waiting.filter(owes).take(MOST_DISPLACED);
        let displaced: Vec<_> = displaced.copied().collect();
        for group in active.iter().chain(&displaced).copied().collect::<Vec<_>>() {
            let its = |event: EventNumber| self.groups[group].has(event);
            let counters = self.counters.iter().filter(|(_, event)| its(*event));
            let counters =
                counters.filter_map(|(counter, _)| CounterId::from_index(usize::from(*counter)));
            let counted = Counted {
                runtime: self.order.runtime[group],
                counters: match displaced.contains(&group) {
                    true => all,
                    false => counters.collect(),
                },
                corrupting: self.groups[group].wants().is_corrupting(),
                turns: self.turns(group),
            };
            let wants = &self.order.wants;
            let events = self.lasting();
            let place = place_after_interval(&counted, latest, wants, all, events, || limits);
            if let Some(place) = place {
                self.order.requeue(group, place);
                moved = true;
            }
        }
        let brought_forward = self.brought_forward.take();
        if !moved && !brought_forward {
            let first = self.flexible_active.first().or(self.flexible.first());
            if let Some(first) = first.copied() {
                self.order.requeue(first, latest + 1);
            }
        }
        self.order.sort(&mut self.flexible);
    }

    /// Returns the bits of the keys of the pinned events on the counters.
    fn keys_beside(&self) -> u64 {
        let pinned = self.pinned_active.iter();
        let events = pinned.flat_map(|group| &self.groups[*group].events);
        events.fold(0, |keys, (_, demand)| keys | demand.key.bit())
    }

    /// Returns the active pinned events.
    fn lasting(&self) -> impl Iterator<Item = OnCounter> + Clone + '_ {
        let pinned = self.pinned_active.iter();
        let events = pinned.flat_map(|group| &self.groups[*group].events);
        events.filter_map(|(event, demand)| {
            let mut counters = self.counters.iter();
            let (counter, _) = counters.find(|(_, it)| it == event)?;
            Some(OnCounter {
                constraint: demand.constraint,
                counter: CounterId::from_index(usize::from(*counter))?,
                rotates: false,
            })
        })
    }

    /// Mirrors `turns_of()` in `rust/driver/rotation.rs`.
    fn turns(&mut self, group: usize) -> u64 {
        let running = self.running[group];
        let before = std::mem::replace(&mut self.charged[group], running);
        turns(running - before, INTERVAL)
    }

    fn move_all(&mut self, moves: &[Move]) {
        self.order.move_all(moves);
        if !moves.is_empty() {
            self.order.sort(&mut self.flexible);
        }
    }

    /// Returns the current limits for rotating groups.
    fn limits(&self, core: Option<&Core>) -> Limits {
        limits_now(core.map(|core| (core, self.thread)), closed(self.machine))
    }

    /// Mirrors `group_can_go_on()` and `group_sched_in()`.
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
            let may_pass = self.order.decides && !pinned && self.groups[number].may_pass();
            return Err(match may_pass {
                true => Wait::Turn,
                false => Wait::Behind(failed),
            });
        }
        let mut core = core;
        if !pinned && !self.rides(number) && self.waits_for_its_kind(number, core.as_deref()) {
            self.let_others_pass(number, core);
            return Err(Wait::Turn);
        }
        let placed = self.place(number, pinned, core.as_deref_mut(), woken);
        let (share, running) = (&mut self.shares[number], self.running[number]);
        let mut share = |now| share.account(now, running);
        let clock = || self.now;
        match placed {
            Ok(true) => self.smt.note_placed(clock, |now| Some(share(now))),
            Ok(false) => {}
            Err(_) if pinned => self.smt.note_pinned_refused(&mut self.schedule),
            Err(_) => self.smt.note_refused(&mut self.schedule, clock, share),
        }
        if !pinned && placed == Ok(true) {
            self.let_others_join(number, core.as_deref_mut());
        }
        placed.map(drop).map_err(|refusal| {
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

    /// Returns what is known of a flexible group that is offered.
    fn offered(&self, group: usize) -> Offered {
        Offered {
            demand: self.groups[group].wants(),
            lag: self.order.lag(group),
            is_found: self.order.offered[group],
            is_exclusive: self.groups[group].exclusive,
        }
    }

    /// Returns the events that have a planned counter.
    fn on_counters(&self) -> impl Iterator<Item = OnCounter> + '_ {
        let is_pinned = |event| {
            let mut pinned = self.pinned_active.iter();
            pinned.any(|group| self.groups[*group].has(event))
        };
        let pinned = move |head| is_pinned(head) || self.on_cpu.riders_of(head).any(is_pinned);
        self.schedule.entries().filter_map(move |entry| {
            Some(OnCounter {
                constraint: entry.constraint,
                counter: entry.planned()?,
                rotates: !pinned(entry.event),
            })
        })
    }

    /// Mirrors `waits_for_its_kind()` in `rust/driver/rotation.rs`.
    fn waits_for_its_kind(&self, group: usize, core: Option<&Core>) -> bool {
        let offered = self.offered(group);
        let any_corrupting = offered.demand.is_corrupting() || self.schedule.any_corrupting();
        if !self.order.decides || !self.threads_agree || !any_corrupting {
            return false;
        }
        offered.waits_for_its_kind(
            Some(&self.order.wants),
            (self.schedule.taken(), Beside::of(self.on_counters())),
            self.machine.pmu.capabilities.all(),
            &self.limits(core),
        )
    }

    /// Mirrors `let_others_pass()` there.
    fn let_others_pass(&mut self, refused: usize, core: Option<&mut Core>) {
        if !self.order.decides {
            return;
        }
        let counters = self.machine.pmu.capabilities.all();
        let vacancy = Vacancy::beside(&mut self.schedule, counters, closed(self.machine));
        let left = match self.is_over {
            true => CounterMask::EMPTY,
            false => self.order.left[refused],
        };
        let rideable = match self.is_over {
            true => self.rideable,
            false => self.order.wants.rideable(self.keys_beside()),
        };
        let may_ride = rideable & self.schedule.keys() != 0;
        if !may_ride && !vacancy.is_new(left) {
            return;
        }
        let mut active = Wants::NOTHING;
        let groups = self.flexible_active.iter().map(|it| &self.groups[*it]);
        let groups = groups.map(|group| (group.wants(), group.exclusive));
        if vacancy.is_wanted(Some(&self.order.wants), groups, &mut active) || may_ride {
            let is_first = self.flexible_active.is_empty();
            self.order.left[refused] =
                self.look_behind(refused, core, &mut active, (is_first, may_ride));
        }
    }

    /// Mirrors `let_others_join()` there.
    fn let_others_join(&mut self, placed: usize, core: Option<&mut Core>) {
        let is_first = self.flexible_active.is_empty();
        if self.order.decides
            && self.is_over
            && is_first
            && self.offered(placed).lets_others_join(&self.order.wants)
        {
            self.look_behind(placed, core, &mut { Wants::NOTHING }, (false, false));
        }
    }

    /// Looks for groups behind an offered one, and has them offered or brought forward. Returns the
    /// counters for which this must not be repeated before the end of the interval.
    fn look_behind(
        &mut self,
        offered: usize,
        core: Option<&mut Core>,
        active: &mut Wants,
        (is_first, may_ride): (bool, bool),
    ) -> CounterMask {
        let mut search = Search {
            counters: self.machine.pmu.capabilities.all(),
            limits: self.limits(core.as_deref()),
            wants: Some(&self.order.wants),
            active,
            beside: Beside::of(self.on_counters()),
            is_first,
            may_ride,
            may_bring_forward: self.is_over,
        };
        let (groups, previous, order) = (&self.groups, &self.previous, &self.order);
        let flexible = self.flexible.iter().copied();
        let behind = flexible.skip_while(|it| *it != offered).skip(1);
        let behind = behind.filter(|it| !order.offered[*it]);
        let behind = behind.map(|number| Candidate {
            group: &groups[number],
            number,
            previous,
            lag: order.lag(number),
        });
        let mut found = Vec::new();
        let mut take = |group: Candidate<'_>| found.push((group.number, group.may_pass()));
        let searched = look_ahead(&mut self.schedule, &mut search, behind, &mut take);
        if let Some(core) = core.filter(|_| searched.refusal.is_some()) {
            self.smt.wait(core, self.thread);
        }
        self.find(&found, offered);
        searched.left()
    }

    fn find(&mut self, found: &[(usize, bool)], by: usize) {
        if found.iter().any(|(_, may_pass)| !may_pass) {
            self.brought_forward.record();
        }
        self.order.find(found, by);
    }

    /// Returns whether all events of the group would ride on counters of other groups.
    fn rides(&mut self, group: usize) -> bool {
        let (groups, schedule) = (&self.groups, &mut self.schedule);
        let mut events = groups[group].events.iter();
        events.all(|(_, it)| schedule.may_have_equal(it.key) && schedule.equal_event(it).is_some())
    }

    /// Mirrors `add()` and `commit_txn()` in `rust/driver/schedule.rs`. Returns whether the group
    /// takes counters of its own; it does not if all its events ride.
    fn place(
        &mut self,
        number: usize,
        pinned: bool,
        core: Option<&mut Core>,
        woken: &mut bool,
    ) -> Result<bool, Refusal> {
        self.schedule.begin();
        for (event, demand) in &self.groups[number].events {
            let added = self
                .on_cpu
                .add(&mut self.schedule, *event, demand, self.previous[*event]);
            if let Err(refusal) = added {
                self.schedule.cancel();
                self.take_off(number);
                return Err(refusal);
            }
        }
        if self.schedule.collected().next().is_none() {
            self.schedule.cancel();
            return Ok(false);
        }
        let counters_only = CountersOnly::of(&self.schedule);
        let core = core.map(|core| (core, self.thread));
        let (schedule, tfa) = (&mut self.schedule, closed(self.machine));
        let is_pinned = || pinned;
        let planned = self.smt.plan(
            core,
            schedule,
            counters_only,
            tfa,
            is_pinned,
            CpuSchedule::commit,
        );
        match planned {
            Ok(waker) => *woken |= waker.is_some(),
            Err(_) => {
                self.schedule.cancel();
                self.take_off(number);
            }
        }
        planned.map(|_| true)
    }

    fn take_off(&mut self, number: usize) {
        let groups = &self.groups;
        let demand = |event| {
            let mut all = groups.iter().flat_map(|group| &group.events);
            all.find(|(it, _)| *it == event).map(|(_, demand)| *demand)
        };
        for (event, own) in &groups[number].events {
            self.on_cpu.del(&mut self.schedule, *event, own, demand);
        }
    }

    /// Mirrors `enable()` in `rust/driver/schedule.rs`.
    fn enable(&mut self, core: Option<&mut Core>) -> bool {
        for (event, counter) in self.schedule.arriving() {
            self.previous[event] = Some(counter);
        }
        self.schedule.mark_programmed();
        let placed = self.schedule.entries();
        let placed = placed.filter_map(|entry| Some((entry.placed()?.index() as u8, entry.event)));
        self.counters.clear();
        for (counter, head) in placed {
            self.counters.push((counter, head));
            let riders = self.on_cpu.riders_of(head);
            self.counters.extend(riders.map(|rider| (counter, rider)));
        }
        // The head of a counter stays in front of its riders.
        self.counters.sort_by_key(|(counter, _)| *counter);
        let is_over = std::mem::take(&mut self.is_over);
        let (release, now) = (self.smt.release(&mut self.schedule), self.now);
        let outcome = release
            .zip(core)
            .map(|(release, core)| release.report(core, self.thread, is_over, || now));
        let outcome = outcome.unwrap_or_default();
        self.placed_within |= outcome.contends && !is_over;
        let found = std::mem::take(&mut self.order.found);
        if !outcome.keeps_places || is_over && !self.brought_forward.may_keep_places() {
            let active = &self.flexible_active;
            let moves = found.into_iter().map(|(group, to)| Move {
                group,
                to,
                is_behind: active.contains(&to),
            });
            let may_pass = |group: usize| self.groups[group].may_pass();
            let moves: Vec<_> = moves
                .filter(|it| active.contains(&it.group) == may_pass(it.group))
                .collect();
            self.again = moves.iter().any(|it| !may_pass(it.group));
            self.move_all(&moves);
        }
        self.order.offered.fill(false);
        outcome.woken.is_some()
    }

    /// Adds everything that determines the future to `state`.
    pub(super) fn state(&self, state: &mut Vec<u16>) {
        state.extend(self.flexible.iter().map(|group| *group as u16));
        if self.order.decides {
            for group in &self.flexible {
                // Only the distance from the last place matters.
                for number in [self.order.runtime[*group], self.order.place(*group)] {
                    let behind = self.order.latest - number;
                    state.extend([0, 16, 32, 48].map(|shift| (behind >> shift) as u16));
                }
                // At most this much is charged.
                let owed = self.running[*group] - self.charged[*group];
                state.push((owed.min(4 * INTERVAL) * 2 / INTERVAL) as u16);
            }
        }
        let BroughtForward { any, put_off } = self.brought_forward;
        let flags = [any, put_off, self.placed_within];
        state.extend(flags.map(u16::from));
        state.push(self.flexible_active.len() as u16);
        state.extend(self.flexible_active.iter().map(|group| *group as u16));
        state.push(self.pinned.len() as u16);
        state.extend(self.previous.iter().map(|previous| counter_code(*previous)));
        let counters = self.counters.iter();
        state.extend(counters.flat_map(|(counter, event)| [u16::from(*counter), *event as u16]));
    }

    pub(super) fn configuration(&self, core: Option<&Core>) -> Configuration {
        let limits = core.map_or(Limits::NONE, |core| core.limits_of_pinned(self.thread));
        Configuration {
            counters: self.counters.clone(),
            waiting: self.given_up.iter().chain(&self.waiting).copied().collect(),
            sibling: limits.closed_to_sharing.bits(),
            closed: limits.closed.bits(),
            gp: limits.gp,
        }
    }
}
