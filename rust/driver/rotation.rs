// SPDX-License-Identifier: GPL-2.0

//! Rotation: which groups of a context go first when they do not all fit.
//!
//! [`logic::rotation`](crate::logic::rotation) decides; this file shows it the perf core's groups
//! and applies its decisions: it moves groups behind others at the end of an interval
//! ([`Driver::line_up`]), and has groups offered although one before them is refused, or moves them
//! in front of it ([`Driver::let_others_pass`]). The rest is up to the perf core's order.
//!
//! With `policy=mainline`, and on kernel versions that this was not tried on, it does nothing.

pub(super) mod known;
pub(super) mod turn;

use super::{
    cpu::{
        Cpu,
        Own, //
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
            let_others_join,
            let_others_pass,
            owes_turns,
            place_after_interval,
            turns,
            waits_for_its_kind,
            ContextWants,
            Counted,
            Found,
            GroupWants,
            Offer,
            Waiting,
            Wants,
            MOST_DISPLACED,
            MOST_LOOKED_AT,
            TURN, //
        },
        sched::{
            cpu_schedule::CpuSchedule,
            limits::Limits, //
        },
    },
    perf::{
        Event,
        EventId,
        Scheduling, //
    },
    perf_core::{
        Behind,
        Cgroups,
        Context,
        IntervalEnd,
        WaitingGroup, //
    },
};
use kernel::cpu::CpuId;
use known::{
    Known,
    RotationState,
    KNOWN, //
};

impl RotationState {
    /// Returns the demand of the groups of `context`, or of those for `cgroups`, if cached, brought
    /// up to date.
    fn known(
        &mut self,
        context: &Context<'_, Driver>,
        cgroups: Option<&Cgroups>,
    ) -> Option<&mut Known> {
        let version = context.version();
        let cgroup = cgroups.and_then(Cgroups::id);
        let mut entries = self.known.iter_mut().flatten();
        let known = entries.find(|it| it.is(&version, cgroup))?;
        let changes = version
            .generation()
            .wrapping_sub(known.version.generation());
        if changes == 0 {
            return Some(known);
        }
        if !ContextWants::can_follow(changes) {
            return None;
        }
        let groups = &mut known.groups;
        let mut whole = true;
        let all_there = context.for_each_since(Some(&known.version), |group, is_leader| {
            if cgroups.is_none_or(|it| it.have(group)) {
                groups.add(&wants_of(group), group.is_exclusive());
                whole &= is_leader.0;
            }
        });
        groups.changed(whole, all_there);
        known.version = version;
        Some(known)
    }

    /// Returns the demand of the groups of `context` that contend with one another now, if cached:
    /// of all groups, or where corrupting events are among them, of those that can be on the CPU
    /// with the task that is there.
    fn known_now(&mut self, context: &Context<'_, Driver>) -> Option<Wants> {
        let all = *self.known(context, None)?.groups.wants();
        match cgroups_of(context, &all) {
            None => Some(all),
            Some(cgroups) => {
                let known = self.known(context, Some(&cgroups))?;
                Some(*known.groups.wants())
            }
        }
    }

    /// Returns this demand at the end of an interval, and caches it.
    fn look_at(&mut self, context: &Context<'_, Driver>) -> Wants {
        let all = self.walk(context, None);
        match cgroups_of(context, &all) {
            None => all,
            Some(cgroups) => self.walk(context, Some(&cgroups)),
        }
    }

    /// Returns the demand of the groups of `context`, or of those for `cgroups`, at the end of an
    /// interval, and caches it.
    fn walk(&mut self, context: &Context<'_, Driver>, cgroups: Option<&Cgroups>) -> Wants {
        if let Some(known) = self.known(context, cgroups) {
            if known.groups.end_interval() {
                return *known.groups.wants();
            }
        }
        let version = context.version();
        let cgroup = cgroups.and_then(Cgroups::id);
        let mut groups = ContextWants::NOTHING;
        let _ = context.for_each_since(None, |group, is_leader| {
            if is_leader.0 && cgroups.is_none_or(|it| it.have(group)) {
                groups.add(&wants_of(group), group.is_exclusive());
            }
        });
        let is_it = |it: &Option<Known>| it.as_ref().is_some_and(|it| it.is(&version, cgroup));
        let place = self.known.iter().position(is_it).unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1) % KNOWN;
            self.next
        });
        if let Some(slot) = self.known.get_mut(place) {
            *slot = Some(Known {
                version,
                cgroup,
                groups,
            });
        }
        *groups.wants()
    }
}

/// Returns the control groups of the task on this CPU, if groups that are for these alone can be on
/// it now, and not all of `context`, and that matters: where corrupting events halve the counters,
/// the kinds of the groups decide.
fn cgroups_of(context: &Context<'_, Driver>, all: &Wants) -> Option<Cgroups> {
    if !all.any_corrupting() {
        return None;
    }
    let cgroups = context.cgroups();
    cgroups.id().map(|_| cgroups)
}

/// Returns the demand of a group, of events that are not enabled too.
fn wants_of(group: WaitingGroup<'_, Driver>) -> GroupWants {
    let mut wants = GroupWants::default();
    group.for_each_event(|event, _| wants.add(event.data().demand.constraint));
    wants
}

/// Returns whether `group`, which waits, has counted for long since it was charged last.
fn owes(group: WaitingGroup<'_, Driver>, (now, interval): (u64, u64)) -> bool {
    let ran = group.with_first_enabled(now, |event, running| event.data().turn.uncharged(running));
    ran.is_some_and(|ran| owes_turns(ran, interval))
}

/// Charges `group`. Returns how long it has counted since it was charged last: a whole turn, if its
/// turns end by overflow, as these have lengths of their own, unless it `waits`: then it had to
/// leave before.
///
/// An event keeps what it was charged for, so that the time is always that of the same event.
fn turns_of(group: WaitingGroup<'_, Driver>, waits: bool, (now, interval): (u64, u64)) -> u64 {
    let first = group.with_first_enabled(now, |event, running| {
        let data = event.data();
        (data.turn.charge(running), data.switches && !waits)
    });
    match first {
        Some((_, true)) | None => TURN,
        Some((ran, false)) => turns(ran, interval),
    }
}

/// Returns the counters that the events on this CPU may use that do not rotate with the groups of
/// `context`.
#[cold]
fn lasting(
    cx: &IntervalEnd<'_, Driver>,
    schedule: &CpuSchedule<EventId>,
    context: &Context<'_, Driver>,
) -> CounterMask {
    let rotates = |id| cx.event(id).is_some_and(|event| context.rotates(event));
    let entries = schedule.entries().filter(|entry| !rotates(entry.event));
    let counters = entries.map(|entry| entry.constraint.counters);
    counters.fold(CounterMask::EMPTY, CounterMask::union)
}

/// A group that waits on a CPU.
// Small, since many of them are found on the kernel's stack.
#[derive(Clone, Copy)]
struct Candidate<'a>(WaitingGroup<'a, Driver>);

/// The groups that wait behind another one.
// With a name: what is made of `Iterator::map()` has a long one.
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
        // The handle for events that wait, which have no id.
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

/// A group that the perf core offers, one of whose events is being added.
struct Offered<'a, 't> {
    driver: &'a Driver,
    cx: &'a Scheduling<'a, Driver>,
    cpu: &'a Cpu,
    rotation: &'t mut RotationState,
    event: &'a Event<Driver>,
}

impl<'a> Offered<'a, '_> {
    fn context(&self) -> Context<'a, Driver> {
        self.cx.context(self.event)
    }
}

impl<'a> Offer for Offered<'a, '_> {
    type Event = EventId;
    type Group = Candidate<'a>;

    fn is_corrupting(&self) -> bool {
        self.event.data().demand.constraint.corrupting
    }

    fn demand(&self) -> GroupWants {
        let mut wants = GroupWants::default();
        self.cx
            .group(self.event)
            .for_each_member(|member| wants.add(member.data().demand.constraint));
        wants
    }

    fn is_pinned(&self) -> bool {
        self.cx.is_of_pinned_group(self.event)
    }

    fn is_found(&self) -> bool {
        self.cx.is_offered(self.event)
    }

    fn rotates_with(&self, event: EventId) -> bool {
        self.cx
            .event(event)
            .is_some_and(|it| self.context().rotates(it))
    }

    #[inline(never)]
    fn wants(&mut self) -> Option<Wants> {
        let context = self.context();
        self.rotation.known_now(&context)
    }

    #[inline(never)]
    fn active(&self) -> Wants {
        let mut active = Wants::NOTHING;
        self.context().for_each_active(|group| {
            let wants = wants_of(group);
            if !wants.is_empty() {
                active.add(&wants, group.is_exclusive());
            }
        });
        active
    }

    fn limits(&self) -> Limits {
        self.driver.limits_now(self.cx, self.cpu)
    }

    fn may_let_pass(&self) -> bool {
        self.cx.may_offer()
    }

    fn may_bring_forward(&self) -> bool {
        self.cx.is_interval_end()
    }

    fn is_first(&self) -> bool {
        let mut is_first = true;
        self.context().for_each_active(|_| is_first = false);
        is_first
    }

    fn is_exclusive(&self) -> bool {
        self.cx.group(self.event).is_exclusive()
    }

    fn lag(&self) -> u64 {
        self.cx.group(self.event).lag()
    }

    fn is_known_useless(&self, reach: CounterMask) -> bool {
        let left = || (reach, self.context().version().generation());
        !self.cx.is_interval_end() && self.event.data().turn.left() == left()
    }

    fn behind(&self) -> impl Iterator<Item = Candidate<'a>> + Clone {
        Candidates(self.cx.behind(self.event))
    }
}

impl Driver {
    /// Moves the groups that have counted behind those with a smaller runtime.
    pub(super) fn line_up(&self, cx: &IntervalEnd<'_, Self>) {
        let cpu = self.cpus.this_cpu(cx.irqs());
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            return;
        };
        let Own {
            schedule, rotation, ..
        } = &mut *own;
        let all = self.hardware.pmu.capabilities.all();
        let clock = cx.clock();
        let brought_forward = core::mem::take(&mut rotation.brought_forward);
        let placed_within = core::mem::take(&mut rotation.placed_within);
        rotation.any_alone = false;
        cx.for_each_context(|context| {
            if !context.may_be_ordered() {
                return;
            }
            let wants = rotation.look_at(&context);
            rotation.any_alone |= wants.any_alone();
            let latest = context.latest();
            let mut moved = false;
            let mut charge = |group: WaitingGroup<'_, Self>, waits: bool| {
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
                let lasting = || lasting(cx, schedule, &context);
                let limits = || self.limits_now(cx, cpu);
                let place = place_after_interval(&counted, latest, &wants, all, lasting, limits);
                if let Some(place) = place {
                    context.requeue(group, place);
                    // The perf core may not offer the group for a while, behind one that is
                    // refused.
                    group.for_each_member(|member| member.data().turn.wait());
                    moved = true;
                }
            };
            context.for_each_active(|group| charge(group, false));
            if placed_within {
                let waiting = cx.in_order(&context).take(MOST_LOOKED_AT);
                let displaced = waiting.filter(|group| owes(*group, clock));
                displaced
                    .take(MOST_DISPLACED)
                    .for_each(|group| charge(group, true));
            }
            // If no group has moved, the perf core moves the first one, unless that has just come
            // there.
            if moved || brought_forward {
                cx.keep_order(&context);
            }
        });
    }

    /// Returns the group of `event`, which is being added.
    #[inline]
    fn offered<'a, 't>(
        &'a self,
        cx: &'a Scheduling<'a, Self>,
        cpu: &'a Cpu,
        rotation: &'t mut RotationState,
        event: &'a Event<Self>,
    ) -> Offered<'a, 't> {
        Offered {
            driver: self,
            cx,
            cpu,
            rotation,
            event,
        }
    }

    /// Returns whether `event`, which is being added, has to wait for others of its kind.
    pub(super) fn waits_for_its_kind(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) -> bool {
        if !self.shares_a_core || !self.common.orders_groups {
            return false;
        }
        let Own {
            schedule, rotation, ..
        } = own;
        let counters = self.hardware.pmu.capabilities.all();
        let mut offered = self.offered(cx, cpu, rotation, event);
        waits_for_its_kind(schedule, counters, &mut offered)
    }

    /// Makes the perf core offer groups that fit behind that of `event`, which is refused, or
    /// brings them forward.
    #[cold]
    pub(super) fn let_others_pass(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) {
        if !self.common.orders_groups {
            return;
        }
        let Own {
            schedule, rotation, ..
        } = own;
        let counters = self.hardware.pmu.capabilities.all();
        let closed = self.left_to_tsx();
        let mut found = Found::NOTHING;
        let mut offered = self.offered(cx, cpu, rotation, event);
        if !let_others_pass(schedule, counters, closed, &mut offered, &mut found) {
            return;
        }
        self.take_up(cx, cpu, own, event, &found);
        let generation = cx.context(event).version().generation();
        event.data().turn.set_left(found.left(), generation);
    }

    /// Makes the perf core offer groups that fit beside that of `event`, which is placed as the
    /// first at the end of an interval, although exclusive ones are between them.
    #[inline]
    pub(super) fn let_others_join(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) {
        if self.common.orders_groups && own.rotation.any_alone && cx.is_interval_end() {
            self.let_others_join_at_end(cx, cpu, own, event);
        }
    }

    #[cold]
    fn let_others_join_at_end(
        &self,
        cx: &Scheduling<'_, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
    ) {
        let Own {
            schedule, rotation, ..
        } = own;
        let counters = self.hardware.pmu.capabilities.all();
        let mut found = Found::NOTHING;
        let mut offered = self.offered(cx, cpu, rotation, event);
        if let_others_join(schedule, counters, &mut offered, &mut found) {
            self.take_up(cx, cpu, own, event, &found);
        }
    }

    /// Makes the perf core offer the groups that were found behind that of `event`, or brings them
    /// forward.
    fn take_up<'a>(
        &self,
        cx: &Scheduling<'a, Self>,
        cpu: &Cpu,
        own: &mut Own,
        event: &Event<Self>,
        found: &Found<Candidate<'a>>,
    ) {
        for candidate in found.groups() {
            if candidate.may_pass() {
                cx.offer(candidate.0, event);
            } else {
                cx.bring_forward(candidate.0, event);
                own.rotation.brought_forward = true;
            }
        }
        if found.refusal.is_some() {
            self.wait_for_sibling(cx, cpu, own);
        }
    }
}
