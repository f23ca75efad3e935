// SPDX-License-Identifier: GPL-2.0

//! The events on the counters of a CPU, and the waiting events: `rpmu/cpuN/schedule` in debugfs.
//!
//! The CPU itself takes the snapshot, in an interrupt. Callbacks run with interrupts off, so the
//! schedule is consistent in an interrupt, and no lock is needed. Waiting events are read from the
//! perf core, since no failure is recorded for those that wait for their turn. Events for control
//! groups are not shown while they wait.

use super::{
    failures::{
        self,
        Failure, //
    },
    users::Opener, //
};
use crate::{
    driver::{
        event,
        CorePmu,
        Driver, //
    },
    kern::{
        call::call_on,
        caller::Caller, //
    },
    logic::{
        model::demand::{
            Demand,
            Unshared, //
        },
        regs::counter::{
            CounterId,
            CounterMask,
            MAX_COUNTERS, //
        },
        sched::{
            cpu_schedule::Entry,
            explanation::{
                Listed,
                WouldShare, //
            },
            room::have_room, //
        },
    },
    perf::{
        Event,
        EventId,
        OnCpu, //
    },
    perf_core::{
        clock,
        User, //
    },
};
use kernel::{
    cpu::CpuId,
    fmt,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The maximum number of waiting events that are shown.
const WAITING: usize = 32;

/// The maximum number of events that are shown riding on the counters of others.
const RIDERS: usize = 64;

/// The description of an event.
#[derive(Clone, Copy)]
struct Shown {
    /// The ids of the event and of the group's leader (`PERF_EVENT_IOC_ID`).
    number: u64,
    group: u64,
    /// `attr.type`, `attr.config` and `attr.config1`.
    event_type: u32,
    config: u64,
    config1: u64,
    pinned: bool,
    sampled: bool,
    /// The time that the event has counted so far, in milliseconds.
    counted: u64,
    /// The user that has opened the event.
    user: User,
    /// The task that the event counts, unless it counts a CPU.
    task: Option<Caller>,
}

impl Shown {
    /// Describes `event`, which is on this CPU, or waits there in a context that is locked.
    fn new(cx: &OnCpu<'_, Driver>, event: &Event<Driver>, group: u64) -> Self {
        let (event_type, config) = event.attr_config();
        Self {
            number: event.number(),
            group,
            event_type,
            config,
            config1: event.attr_config1(),
            pinned: event.is_pinned(),
            sampled: event.is_sampling(),
            counted: event.time_on_counters() / 1_000_000,
            user: cx.user_of(event),
            task: event.is_of_task().then(Caller::current),
        }
    }

    fn fmt_task(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " opened_by={}", Opener(&self.user))?;
        match self.task {
            Some(task) => write!(f, " task={task}"),
            None => f.write_str(" task=none, all of the CPU"),
        }
    }
}

impl core::fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type={} config={:#x}", self.event_type, self.config)?;
        if self.config1 != 0 {
            write!(f, " config1={:#x}", self.config1)?;
        }
        write!(f, " id={}", self.number)?;
        if self.group != self.number {
            write!(f, " group={}", self.group)?;
        }
        Ok(())
    }
}

/// An event on a counter.
#[derive(Clone, Copy)]
struct Holder {
    counter: CounterId,
    /// The event's entry in the schedule.
    entry: Entry<EventId>,
    event: Shown,
    /// Set if the event's group is pinned, so that it does not rotate.
    stays: bool,
    /// The time for which the event has had the counter, in milliseconds.
    age: u32,
}

/// An event that rides on the counter of an equal one.
#[derive(Clone, Copy)]
struct Rider {
    counter: CounterId,
    event: Shown,
    /// The id of the event that the schedule has the counter for.
    head: u64,
    /// Set if the rider's group is pinned, so that the counter does not rotate.
    stays: bool,
}

/// An event that waits for a counter.
#[derive(Clone, Copy)]
struct WaitingEvent {
    event: Shown,
    /// Set if the event's group is in the error state: it is pinned and got no counter.
    is_error: bool,
    /// Set if the event waits for its turn in the rotation.
    waits_for_its_turn: bool,
    demand: Demand,
}

/// The events on the counters of a CPU, and the waiting events.
pub(in crate::driver) struct Snapshot {
    holders: [Option<Holder>; MAX_COUNTERS],
    riders: [Option<Rider>; RIDERS],
    /// The number of further riders.
    more_riders: usize,
    /// The waiting events. In each context, the newest come first.
    waiting: [Option<WaitingEvent>; WAITING],
    /// The number of further waiting events.
    more: usize,
    /// The perf core's clock on this CPU, in milliseconds.
    at: u64,
    failures: [Option<Failure>; failures::KEPT],
    /// The counters that no event may use, see `Tfa::closed()`.
    closed: CounterMask,
    /// Set if this driver orders the groups, so that groups that were not tried wait for their
    /// turn.
    takes_turns: bool,
}

impl Snapshot {
    /// Takes a snapshot of `cpu`. Fails with `ENXIO` if the CPU is offline, or with `ENOMEM`.
    /// Process context.
    pub(in crate::driver) fn take(pmu: &CorePmu, cpu: CpuId) -> Result<KBox<Self>> {
        let mut snapshot = KBox::init(
            init!(Self {
                holders <- pin_init::init_array_from_fn(|_| None),
                riders <- pin_init::init_array_from_fn(|_| None),
                more_riders: 0,
                waiting <- pin_init::init_array_from_fn(|_| None),
                more: 0,
                at: 0,
                failures <- pin_init::init_array_from_fn(|_| None),
                closed: pmu.ops().left_to_tsx(),
                takes_turns: pmu.ops().common.orders_groups,
            }),
            GFP_KERNEL,
        )?;
        call_on(cpu, |irqs| snapshot.look(pmu, irqs))?;
        let newest_first = |slot: &Option<Failure>| slot.map(|failure| failure.when.age());
        snapshot.failures.sort_unstable_by_key(newest_first);
        Ok(snapshot)
    }

    /// Fills in the snapshot, on the CPU.
    fn look(&mut self, pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
        let cx = pmu.on_cpu(irqs);
        let Some(own) = pmu.ops().cpus.this_cpu(irqs).own.borrow(irqs) else {
            return;
        };
        for (slot, entry) in self.holders.iter_mut().zip(own.schedule.entries()) {
            *slot = entry
                .placed()
                .zip(cx.event(entry.event))
                .map(|(counter, event)| Holder {
                    counter,
                    entry: *entry,
                    event: Shown::new(&cx, event, cx.group_of(event)),
                    stays: cx.is_of_pinned_group(event),
                    age: event.data().last_place.since().age(),
                });
        }
        self.at = clock() / 1_000_000;
        let mut slots = self.riders.iter_mut();
        for id in own.riders.all() {
            let event = |id| EventId::from_index(id).and_then(|id| cx.event(id));
            let head = own.riders.head_of(id).and_then(event);
            let (Some(rider), Some(head)) = (event(id), head) else {
                continue;
            };
            let Some(counter) = event::counter(rider) else {
                continue;
            };
            match slots.next() {
                Some(slot) => {
                    *slot = Some(Rider {
                        counter,
                        event: Shown::new(&cx, rider, cx.group_of(rider)),
                        head: head.number(),
                        stays: cx.is_of_pinned_group(rider),
                    });
                }
                None => self.more_riders = self.more_riders.saturating_add(1),
            }
        }
        let mut slots = self.waiting.iter_mut();
        cx.for_each_inactive(|event, group| match slots.next() {
            Some(slot) => {
                *slot = Some(WaitingEvent {
                    event: Shown::new(&cx, event, group.number),
                    is_error: group.is_error,
                    waits_for_its_turn: event.data().turn.waits(),
                    demand: event.data().demand,
                });
            }
            None => self.more = self.more.saturating_add(1),
        });
        self.failures = *own.failures.slots();
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {} may={} for_ms={} counted_ms={}",
            self.counter,
            self.event,
            Listed(self.entry.constraint.counters),
            self.age,
            self.event.counted,
        )?;
        if self.entry.constraint.corrupting {
            f.write_str(" corrupting")?;
        }
        if self.event.pinned {
            f.write_str(" pinned")?;
        }
        if let Some(register) = self.entry.planned_register() {
            write!(f, " register={register:?}")?;
        }
        self.event.fmt_task(f)?;
        f.write_str("\n")
    }
}

impl fmt::Display for Rider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {} rides_on={} counted_ms={}",
            self.counter, self.event, self.head, self.event.counted
        )?;
        if self.event.pinned {
            f.write_str(" pinned")?;
        }
        self.event.fmt_task(f)?;
        f.write_str("\n")
    }
}

impl Snapshot {
    fn riders(&self) -> impl Iterator<Item = &Rider> + Clone {
        self.riders.iter().flatten()
    }

    fn holders(&self) -> impl Iterator<Item = &Holder> + Clone {
        self.holders.iter().flatten()
    }

    /// Returns the waiting events; those of a context in the order in which they were opened.
    fn waiting(&self) -> impl Iterator<Item = &WaitingEvent> + Clone {
        self.waiting.iter().rev().flatten()
    }

    /// Returns the first waiting event of `group`.
    fn first_of(&self, group: u64) -> Option<&WaitingEvent> {
        self.waiting().find(|it| it.event.group == group)
    }

    /// Returns whether the event of `holder` never gives up its counter for the group of `waiting`:
    /// it or a rider is pinned, and counts the CPU or the same task.
    fn stays_for(&self, holder: &Holder, waiting: &WaitingEvent) -> bool {
        let stays = |stays: bool, event: &Shown| {
            stays && (event.task.is_none() || waiting.event.task.is_some())
        };
        let mut riders = self.riders_of(holder);
        stays(holder.stays, &holder.event) || riders.any(|it| stays(it.stays, &it.event))
    }

    /// Returns whether the group with this `first` event has room beside the events that stay. If
    /// not, it gets no counter while these count.
    fn has_room(&self, first: &WaitingEvent) -> bool {
        let members = self
            .waiting()
            .filter(|it| it.event.group == first.event.group);
        let members = members.map(|it| it.demand.constraint.counters);
        let stay = self.holders().filter(|it| self.stays_for(it, first));
        let stay = stay.map(|it| it.entry.constraint.counters);
        let wants = Iterator::chain(stay, members);
        have_room(wants.map(|wanted| wanted.without(self.closed)))
    }

    /// Returns the riders on the counter of `holder`.
    fn riders_of(&self, holder: &Holder) -> impl Iterator<Item = &Rider> {
        let counter = holder.counter;
        self.riders().filter(move |it| it.counter == counter)
    }

    /// Writes the events that now hold the `wanted` counters, each with its riders; if
    /// `gets_no_turn` is the first event of a group, only those that never give up their counters
    /// for this group.
    // The events are not passed as an iterator, which would give the function a long name.
    fn fmt_holders(
        &self,
        wanted: CounterMask,
        gets_no_turn: Option<&WaitingEvent>,
        mut separator: &str,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        for holder in self.holders() {
            let stays = gets_no_turn.is_none_or(|waiting| self.stays_for(holder, waiting));
            if !stays || !wanted.contains(holder.counter) {
                continue;
            }
            write!(
                f,
                "{separator}{}: id={}",
                holder.counter, holder.event.number
            )?;
            separator = "; ";
            let mut with = " with riders ";
            for rider in self.riders_of(holder) {
                write!(f, "{with}id={}", rider.event.number)?;
                with = ",";
            }
        }
        Ok(())
    }

    /// Writes the first counter that counts the same as an event of the group with this `first`
    /// event, and why that event does not share it.
    fn fmt_would_share(&self, first: &WaitingEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut members = self
            .waiting()
            .filter(|it| it.event.group == first.event.group);
        let found = members.find_map(|member| {
            self.holders().find_map(|holder| {
                let but = member.demand.why_unshared(&holder.entry.demand())?;
                let mut sampled = self.riders_of(holder).filter(|it| it.event.sampled);
                let rider = sampled.next().filter(|_| but == Unshared::Sampled);
                Some(WouldShare {
                    counter: holder.counter,
                    with: rider.map_or(holder.event.number, |it| it.event.number),
                    but,
                })
            })
        });
        found.map_or(Ok(()), |it| write!(f, "{it}"))
    }

    /// Writes a failure and its reason, and what is known of the event if it still waits.
    fn fmt_failure(
        failure: &Failure,
        waiting: Option<&WaitingEvent>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (event_type, config) = failure.attr_config;
        write!(
            f,
            "{}type={event_type} config={config:#x} id={} members={} failed={} ms_ago={}",
            if failure.pinned { "error " } else { "waits " },
            failure.number,
            failure.members,
            failure.times,
            failure.when.age(),
        )?;
        if let Some(WaitingEvent { event, .. }) = waiting {
            let (counted, opener) = (event.counted, Opener(&event.user));
            write!(f, " counted_ms={counted} opened_by={opener}")?;
        }
        match failure.task {
            Some(task) => write!(f, " task={task}")?,
            None => f.write_str(" task=none, all of the CPU")?,
        }
        write!(f, ": {}", failure.reason)
    }

    /// Writes why the group with this `first` event waits: the reason of its failure, or why it was
    /// not tried.
    fn fmt_group(&self, first: &WaitingEvent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_group = |it: &&WaitingEvent| it.event.group == first.event.group;
        let members = self.waiting().filter(is_in_group);
        let is_known = |it: &&Failure| members.clone().any(|one| one.event.number == it.number);
        let waits_for_turn = first.waits_for_its_turn && !first.is_error;
        if !waits_for_turn {
            if let Some(failure) = self.failures.iter().flatten().find(is_known) {
                Self::fmt_failure(failure, Some(first), f)?;
                let wanted = failure.reason.explanation.counters();
                self.fmt_holders(wanted, None, "; ", f)?;
                return f.write_str("\n");
            }
        }
        write!(
            f,
            "{} {} members={} counted_ms={}",
            if first.is_error { "error" } else { "waits" },
            first.event,
            members.clone().count(),
            first.event.counted,
        )?;
        first.event.fmt_task(f)?;
        if first.is_error {
            return f.write_str(": it got no counter, some time ago\n");
        }
        let none = CounterMask::EMPTY;
        let wanted = members.fold(none, |all, it| all.union(it.demand.constraint.counters));
        if !self.has_room(first) {
            f.write_str(": gets no turn while pinned events count")?;
            self.fmt_holders(wanted, Some(first), "; ", f)?;
        } else if !waits_for_turn && !self.takes_turns {
            f.write_str(": not tried, behind a group that got no counter")?;
        } else {
            f.write_str(": waits for its turn")?;
            self.fmt_holders(wanted, None, " behind ", f)?;
        }
        self.fmt_would_share(first, f)?;
        f.write_str("\n")
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# at_ms={} on this CPU's clock", self.at)?;
        f.write_str("# counter, event, the counters that it may use, since when, opener, task\n")?;
        for holder in self.holders() {
            fmt::Display::fmt(holder, f)?;
            for rider in self.riders_of(holder) {
                fmt::Display::fmt(rider, f)?;
            }
        }
        if self.more_riders != 0 {
            writeln!(
                f,
                "# and {} more events that ride on these counters",
                self.more_riders
            )?;
        }
        f.write_str(
            "# waiting groups and their members: the reason; the events on the wanted counters\n",
        )?;
        for waiting in self.waiting() {
            let first = self.first_of(waiting.event.group);
            if first.is_some_and(|first| first.event.number == waiting.event.number) {
                self.fmt_group(waiting, f)?;
            } else {
                writeln!(
                    f,
                    "member {} counted_ms={}",
                    waiting.event, waiting.event.counted
                )?;
            }
        }
        if self.more != 0 {
            writeln!(f, "# and {} more events", self.more)?;
        }
        // The events that held the counters at that time may not exist any more, so none are named.
        f.write_str("# the last failures of events that are not on this CPU now\n")?;
        for failure in self.failures.iter().flatten() {
            let number = failure.number;
            let is_placed = self.holders().any(|it| it.event.number == number)
                || self.riders().any(|it| it.event.number == number);
            let waits = self.waiting().any(|it| it.event.number == number);
            if !is_placed && !waits {
                Self::fmt_failure(failure, None, f)?;
                f.write_str("\n")?;
            }
        }
        Ok(())
    }
}
