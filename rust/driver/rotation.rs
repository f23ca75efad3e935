// SPDX-License-Identifier: GPL-2.0

//! Rotation: the order in which the groups of a context get counters when not all fit.
//!
//! [`logic::rotation`](crate::logic::rotation) decides; this file presents the perf core's groups
//! to it and applies its decisions. At the end of an interval, it moves groups that have counted
//! behind others ([`Driver::line_up`]). When a group is refused, it makes the perf core offer
//! groups behind that one, or moves them in front of it ([`Driver::let_others_pass`]). In all else,
//! the perf core's order holds.
//!
//! With `policy=mainline`, and on kernel versions on which rotation was not tried, this file does
//! nothing.

pub(super) mod known;
pub(super) mod turn;

use super::{
    cpu::{
        CallbackState,
        Cpu, //
    },
    event,
    Driver, //
};
use crate::{
    logic::{
        model::demand::Demand,
        regs::counter::{
            CounterId,
            CounterMask, //
        },
        rotation::{
            look_ahead,
            owes_turns,
            place_after_interval,
            turns,
            Beside,
            ContextWants,
            Counted,
            GroupWants,
            Offered,
            OnCounter,
            Search,
            Vacancy,
            Waiting,
            Wants,
            MOST_DISPLACED,
            MOST_LOOKED_AT,
            TURN, //
        },
        sched::{
            cpu_schedule::{
                CpuSchedule,
                Entries, //
            },
            riders::Riders, //
        },
    },
    perf::{
        Event,
        EventId,
        PmuDisabled,
        Scheduling, //
    },
    perf_core::{
        Behind,
        Cgroups,
        Context,
        EventGroup,
        IntervalEnd, //
    },
};
use kernel::cpu::CpuId;
use known::{
    Demands,
    Known,
    RotationState,
    KNOWN, //
};

impl Demands {
    /// Returns the cached demand of the groups of `context` that contend with one another now: of
    /// all groups; if one of these is corrupting, only of those that can be on the CPU together
    /// with its current task. If the latter is not cached, returns that of all groups.
    fn now(&mut self, context: &Context<'_, Driver>) -> Option<&Wants> {
        let all = follow(&mut *self.contexts, context, None)?;
        let all = all.1.groups.wants();
        let Some(cgroups) = cgroups_of(context, all) else {
            return Some(all);
        };
        let known = follow(&mut *self.cgroups, context, Some(&cgroups));
        Some(known.map_or(all, |(_, known)| known.groups.wants()))
    }

    /// Returns the same demand as [`now`](Self::now), at the end of an interval, and caches it.
    fn at_end(&mut self, context: &Context<'_, Driver>) -> &Wants {
        let Self {
            contexts,
            last_replaced,
            cgroups: of_cgroups,
            places,
        } = self;
        let new_place = || {
            *last_replaced = last_replaced.wrapping_add(1) % KNOWN;
            Some(*last_replaced)
        };
        let all = look_at(&mut **contexts, context, None, new_place);
        let all = all.map_or(const { &Wants::NOTHING }, |(_, all)| all);
        let Some(cgroups) = cgroups_of(context, all) else {
            return all;
        };
        let new_place = || places.new_entry();
        match look_at(&mut **of_cgroups, context, Some(&cgroups), new_place) {
            Some((place, wants)) => {
                places.used(place);
                wants
            }
            None => all,
        }
    }
}

/// Finds the demand of the groups of `context`, or of its groups for `cgroups`, in the cache
/// `known`, and brings it up to date. Returns it with its place there. [`None`] if it is not
/// cached, or too much has changed since.
fn follow<'a>(
    known: &'a mut [Option<Known>],
    context: &Context<'_, Driver>,
    cgroups: Option<&Cgroups>,
) -> Option<(usize, &'a mut Known)> {
    let version = context.version();
    let cgroup = cgroups.and_then(Cgroups::id);
    let mut places = known.iter_mut().enumerate();
    let (place, known) = places.find_map(|(place, known)| {
        let known = known.as_mut().filter(|it| it.is(&version, cgroup))?;
        Some((place, known))
    })?;
    let changes = version
        .generation()
        .wrapping_sub(known.version.generation());
    if changes == 0 {
        return Some((place, known));
    }
    if !ContextWants::can_follow(changes) {
        return None;
    }
    let groups = &mut known.groups;
    let mut whole = true;
    let all_there = context.for_each_since(Some(&known.version), |group, is_leader| {
        if cgroups.is_none_or(|it| it.have(group)) {
            add_group(groups, group);
            whole &= is_leader.0;
        }
    });
    groups.changed(whole, all_there);
    known.version = version;
    Some((place, known))
}

/// Returns the demand of the groups of `context`, or of its groups for `cgroups`, at the end of an
/// interval, with its place in the cache `known`. Walks the groups if the demand is not cached or
/// is stale. [`None`] if it is not cached and `new_place` has no place for it.
fn look_at<'a>(
    known: &'a mut [Option<Known>],
    context: &Context<'_, Driver>,
    cgroups: Option<&Cgroups>,
    new_place: impl FnOnce() -> Option<usize>,
) -> Option<(usize, &'a Wants)> {
    let followed = follow(known, context, cgroups);
    let good = followed.and_then(|(place, known)| known.groups.end_interval().then_some(place));
    let place = match good {
        Some(place) => place,
        None => walk(known, context, cgroups, new_place)?,
    };
    let known = known.get(place)?.as_ref()?;
    Some((place, known.groups.wants()))
}

/// Walks the groups of `context`, and stores their demand in the cache `known`. Returns the place.
#[cold]
#[inline(never)]
fn walk(
    known: &mut [Option<Known>],
    context: &Context<'_, Driver>,
    cgroups: Option<&Cgroups>,
    new_place: impl FnOnce() -> Option<usize>,
) -> Option<usize> {
    let version = context.version();
    let cgroup = cgroups.and_then(Cgroups::id);
    let is_it = |it: &Option<Known>| it.as_ref().is_some_and(|it| it.is(&version, cgroup));
    let place = known.iter().position(is_it).or_else(new_place)?;
    let known = known.get_mut(place)?.insert(Known {
        version,
        cgroup,
        groups: ContextWants::NOTHING,
    });
    let _ = context.for_each_since(None, |group, is_leader| {
        if is_leader.0 && cgroups.is_none_or(|it| it.have(group)) {
            add_group(&mut known.groups, group);
        }
    });
    Some(place)
}

/// Returns the control groups of the task on this CPU, if only part of `context` can be on the CPU
/// with that task, and a group of `all` is corrupting. Only beside corrupting events, which halve
/// the counters, does it matter which groups contend.
fn cgroups_of(context: &Context<'_, Driver>, all: &Wants) -> Option<Cgroups> {
    if !all.any_corrupting() {
        return None;
    }
    let cgroups = context.cgroups();
    cgroups.id().map(|_| cgroups)
}

/// Adds the demand of a group, and the keys of its events.
fn add_group(wants: &mut ContextWants, group: EventGroup<'_, Driver>) {
    let mut demand = GroupWants::default();
    let mut is_copy = true;
    group.for_each_event(|event, _| {
        let its = &event.data().demand;
        demand.add(its.constraint);
        is_copy &= wants.add_event(its);
    });
    wants.add(&demand, group.is_exclusive(), is_copy);
}

/// Returns the demand of all events of a group, including disabled ones.
fn wants_of(group: EventGroup<'_, Driver>) -> GroupWants {
    let mut wants = GroupWants::default();
    group.for_each_event(|event, _| wants.add(event.data().demand.constraint));
    wants
}

/// Returns whether `group`, which waits, is to be charged for the time that it has counted since
/// the last charge.
fn owes(group: EventGroup<'_, Driver>, (now, interval): (u64, u64)) -> bool {
    let ran = group.with_first_enabled(now, |event, running| event.data().turn.uncharged(running));
    ran.is_some_and(|ran| owes_turns(ran, interval))
}

/// Charges `group`, and returns its turns since the last charge. A group whose turns end by
/// overflow is charged one turn, whatever its length. If such a group `waits`, it had to leave
/// before its overflow, and is charged by its time like the others. A group without an enabled
/// event is charged one turn.
///
/// Each event keeps the time for which it was charged, so that times of different events are not
/// compared.
fn turns_of(group: EventGroup<'_, Driver>, waits: bool, (now, interval): (u64, u64)) -> u64 {
    let first = group.with_first_enabled(now, |event, running| {
        let data = event.data();
        (data.turn.charge(running), data.switches && !waits)
    });
    match first {
        Some((_, true)) | None => TURN,
        Some((ran, false)) => turns(ran, interval),
    }
}

/// The events on this CPU that have a planned counter.
// A named type: the symbol names of `Iterator::filter_map()` would be too long.
#[derive(Clone)]
struct OnCounters<'a> {
    cx: &'a PmuDisabled<'a, Driver>,
    context: &'a Context<'a, Driver>,
    riders: &'a Riders,
    entries: Entries<'a, EventId>,
}

impl Iterator for OnCounters<'_> {
    type Item = OnCounter;

    fn next(&mut self) -> Option<OnCounter> {
        let Self {
            cx,
            context,
            riders,
            entries,
        } = self;
        entries.find_map(|entry| {
            let mut rotates = true;
            Driver::for_each_sharer(cx, riders, entry.event, |event| {
                rotates &= context.rotates(event);
            });
            Some(OnCounter {
                constraint: entry.constraint,
                counter: entry.planned()?,
                rotates,
            })
        })
    }
}

/// Returns the events of `schedule` that have a planned counter, each with whether it rotates with
/// the groups of `context`.
fn on_counters<'a>(
    cx: &'a PmuDisabled<'a, Driver>,
    (schedule, riders): (&'a CpuSchedule<EventId>, &'a Riders),
    context: &'a Context<'a, Driver>,
) -> OnCounters<'a> {
    OnCounters {
        cx,
        context,
        riders,
        entries: schedule.entries(),
    }
}

/// Returns the bits of the keys of the events on the CPU that do not rotate with the groups of
/// `context`. An event with such a key may also be among those that rotate.
fn keys_beside(
    cx: &PmuDisabled<'_, Driver>,
    (schedule, riders): (&CpuSchedule<EventId>, &Riders),
    context: &Context<'_, Driver>,
) -> u64 {
    let mut keys = 0;
    if schedule.keys() != 0 {
        for entry in schedule.entries() {
            Driver::for_each_sharer(cx, riders, entry.event, |event| {
                if !context.rotates(event) {
                    keys |= entry.demand().key.bit();
                }
            });
        }
    }
    keys
}

/// A group that waits on a CPU.
#[derive(Clone, Copy)]
struct Candidate<'a>(EventGroup<'a, Driver>);

/// The groups that wait behind another one.
// A named type: the symbol names of `Iterator::map()` would be too long.
#[derive(Clone)]
struct Candidates<'a>(Behind<'a, Driver>);

impl<'a> Iterator for Candidates<'a> {
    type Item = Candidate<'a>;

    fn next(&mut self) -> Option<Candidate<'a>> {
        self.0.next().map(Candidate)
    }
}

impl Waiting for Candidate<'_> {
    type Event = EventId;

    fn for_each_event(&self, mut f: impl FnMut(EventId, Demand, Option<CounterId>)) {
        // Waiting events have no id: all get the same handle.
        let Some(id) = EventId::from_index(0) else {
            return;
        };
        let cpu = CpuId::current();
        self.0.for_each_member(|member| {
            let data = member.data();
            f(id, data.demand, data.last_place.counter_on(cpu));
        });
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }

    fn may_pass(&self) -> bool {
        !self.is_exclusive() && !self.0.has_software_leader()
    }

    fn lag(&self) -> u64 {
        self.0.lag()
    }
}

/// Describes the group of `event`, which the perf core offers.
fn offered(cx: &Scheduling<'_, Driver>, event: &Event<Driver>) -> Offered {
    let group = cx.group(event);
    let mut demand = GroupWants::default();
    group.for_each_member(|member| demand.add(member.data().demand.constraint));
    Offered {
        demand,
        lag: group.lag(),
        is_found: cx.is_offered(event),
        is_exclusive: group.is_exclusive(),
    }
}

impl Driver {
    /// Moves the groups that have counted behind groups with a smaller runtime.
    pub(super) fn line_up(&self, cx: &IntervalEnd<'_, Self>) {
        let cpu = self.cpus.this_cpu(cx.irqs());
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            return;
        };
        let CallbackState {
            schedule,
            riders,
            rotation,
            ..
        } = &mut *own;
        let all = self.hardware.pmu.capabilities.all();
        let clock = cx.clock();
        let RotationState {
            demands,
            brought_forward,
            placed_within,
            any_alone,
            rideable,
            ..
        } = rotation;
        *rideable = 0;
        let brought_forward = brought_forward.take();
        let placed_within = core::mem::take(placed_within);
        *any_alone = false;
        cx.for_each_context(|context| {
            if !context.may_be_ordered() {
                return;
            }
            let wants = demands.at_end(&context);
            *any_alone |= wants.any_alone();
            *rideable |= wants.rideable(keys_beside(cx, (schedule, riders), &context));
            let latest = context.latest();
            let mut moved = false;
            let mut charge = |group: EventGroup<'_, Self>, waits: bool| {
                let mut counters = CounterMask::EMPTY;
                let mut corrupting = false;
                group.for_each_member(|member| {
                    let data = member.data();
                    corrupting |= data.demand.constraint.corrupting;
                    if let Some(counter) = event::counter(member) {
                        counters.insert(counter);
                    }
                });
                let counted = Counted {
                    runtime: group.runtime_place(),
                    counters: if waits { all } else { counters },
                    corrupting,
                    turns: turns_of(group, waits, clock),
                };
                let events = on_counters(cx, (schedule, riders), &context);
                let limits = || self.limits_now(cx, cpu);
                let place = place_after_interval(&counted, latest, wants, all, events, limits);
                if let Some(place) = place {
                    context.requeue(group, place);
                    // A refused group in front may keep the perf core from offering this one for a
                    // while. Record now that it waits.
                    group.for_each_member(|member| member.data().turn.wait());
                    moved = true;
                }
            };
            context.active().for_each(|group| charge(group, false));
            if placed_within {
                let waiting = cx.in_order(&context).take(MOST_LOOKED_AT);
                let displaced = waiting.filter(|group| owes(*group, clock));
                displaced
                    .take(MOST_DISPLACED)
                    .for_each(|group| charge(group, true));
            }
            // If no group has moved, the perf core moves the first one, as usual, unless a group
            // was just brought forward to that place.
            if moved || brought_forward {
                cx.keep_order(&context);
            }
        });
    }

    /// Returns whether `event`, which is being added, has to wait until it can count together with
    /// others of its kind: corrupting ones, or ones that are not.
    pub(super) fn waits_for_its_kind(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
    ) -> bool {
        let is_corrupting = event.data().demand.constraint.corrupting;
        (is_corrupting || own.schedule.any_corrupting())
            && self.shares_a_core
            && self.common.orders_groups
            && !cx.is_of_pinned_group(event)
            && self.waits_beside_corrupting(cx, cpu, own, event)
    }

    #[cold]
    #[inline(never)]
    fn waits_beside_corrupting(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
    ) -> bool {
        let CallbackState {
            schedule,
            riders,
            rotation,
            ..
        } = own;
        let group = offered(cx, event);
        let taken = schedule.taken();
        if !group.may_wait(taken) {
            return false;
        }
        let context = cx.context(event);
        let beside = Beside::of(on_counters(cx, (schedule, riders), &context));
        let wants = rotation.demands.now(&context);
        // Last, since the limits take the core's lock.
        wants.is_some()
            && beside.is_some()
            && group.waits_for_its_kind(
                wants,
                (taken, beside),
                self.hardware.pmu.capabilities.all(),
                &self.limits_now(cx, cpu),
            )
    }

    /// Finds groups that fit, among those behind the group of `event`, which is refused, and makes
    /// the perf core offer them, or brings them forward.
    #[cold]
    pub(super) fn let_others_pass(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
    ) {
        if !self.common.orders_groups || cx.is_of_pinned_group(event) || !cx.may_offer() {
            return;
        }
        let CallbackState {
            schedule,
            riders,
            rotation,
            ..
        } = own;
        let counters = self.hardware.pmu.capabilities.all();
        let vacancy = Vacancy::beside(schedule, counters, self.left_to_tsx());
        let context = cx.context(event);
        let generation = context.version().generation();
        let turn = &event.data().turn;
        let left = match cx.is_interval_end() {
            true => CounterMask::EMPTY,
            false => turn.left_at(generation),
        };
        let may_ride = match cx.is_interval_end() {
            true => rotation.rideable & schedule.keys() != 0,
            false => {
                schedule.keys() != 0
                    && turn.may_search_again(generation)
                    && rotation.demands.now(&context).is_none_or(|wants| {
                        let beside = keys_beside(cx, (schedule, riders), &context);
                        wants.rideable(beside) & schedule.keys() != 0
                    })
            }
        };
        if !may_ride && !vacancy.is_new(left) {
            return;
        }
        let wants = rotation.demands.now(&context);
        let mut active = Wants::NOTHING;
        let groups = context.active();
        let groups = groups.map(|group| (wants_of(group), group.is_exclusive()));
        if !vacancy.is_wanted(wants, groups, &mut active) && !may_ride {
            return;
        }
        let is_first = context.active().next().is_none();
        let search = (&mut active, is_first, may_ride);
        let (left, is_long) = self.look_behind(cx, cpu, own, event, search);
        turn.set_left(left, generation);
        if may_ride && is_long {
            turn.set_searched(generation);
        }
    }

    /// If the group of `event` is the first of its context to be placed at the end of an interval,
    /// makes the perf core offer groups behind it that fit beside it. Without this, an exclusive
    /// group in between would keep them waiting.
    #[inline]
    pub(super) fn let_others_join(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
    ) {
        if self.may_let_others_join(cx, own) {
            self.let_others_join_at_end(cx, cpu, own, event);
        }
    }

    /// Returns whether [others may join](Self::let_others_join) an event that is placed now.
    #[inline]
    pub(super) fn may_let_others_join(
        &self,
        cx: &Scheduling<'_, Self>,
        own: &CallbackState,
    ) -> bool {
        own.rotation.any_alone && self.common.orders_groups && cx.is_interval_end()
    }

    #[cold]
    fn let_others_join_at_end(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
    ) {
        let context = cx.context(event);
        let is_first = context.active().next().is_none();
        if !is_first || cx.is_of_pinned_group(event) || !cx.may_offer() {
            return;
        }
        let wants = own.rotation.demands.now(&context);
        if !wants.is_some_and(|wants| offered(cx, event).lets_others_join(wants)) {
            return;
        }
        let mut active = Wants::NOTHING;
        let _ = self.look_behind(cx, cpu, own, event, (&mut active, false, false));
    }

    /// Looks for groups behind the group of `event`, and makes the perf core offer them or brings
    /// them forward. `active`, `is_first` and `may_ride` are as in [`Search`]. Returns the counters
    /// for which this must not be repeated before the end of the interval, and whether the search
    /// was long.
    #[inline(never)]
    fn look_behind(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut CallbackState,
        event: &Event<Self>,
        (active, is_first, may_ride): (&mut Wants, bool, bool),
    ) -> (CounterMask, bool) {
        let CallbackState {
            schedule,
            riders,
            rotation,
            ..
        } = own;
        let context = cx.context(event);
        let mut search = Search {
            counters: self.hardware.pmu.capabilities.all(),
            limits: self.limits_now(cx, cpu),
            wants: rotation.demands.now(&context),
            active,
            beside: Beside::of(on_counters(cx, (schedule, riders), &context)),
            is_first,
            may_ride,
            may_bring_forward: cx.is_interval_end(),
        };
        let brought_forward = &mut rotation.brought_forward;
        let mut found = |candidate: Candidate<'_>| match candidate.may_pass() {
            true => cx.offer(candidate.0, event),
            false => {
                cx.bring_forward(candidate.0, event);
                brought_forward.record();
            }
        };
        let behind = Candidates(cx.behind(event));
        let searched = look_ahead(schedule, &mut search, behind, &mut found);
        if searched.refusal.is_some() {
            self.wait_for_sibling(cx, cpu, own);
        }
        (searched.left(), searched.is_long())
    }
}
