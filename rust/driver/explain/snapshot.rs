// SPDX-License-Identifier: GPL-2.0

//! Who has which counter of a CPU, and who waits for one: `rpmu/cpuN/schedule` in debugfs.
//!
//! The CPU itself looks, in an interrupt. That comes in between callbacks, not during one, so it
//! finds the schedule at rest, and needs no lock that a callback would have to wait for. Those that wait
//! for their turn are found by looking, too: they are not tried, and nothing is kept of that.

use super::failures::{self, Unplaced};
use crate::{
    driver::{CorePmu, Driver},
    kern::{call::call_on, caller::Caller},
    logic::{
        regs::counter::{CounterId, CounterMask, MAX_COUNTERS},
        sched::{assign::Policy, cpu_schedule::Entry, explanation::Listed},
    },
    perf::{Event, EventId},
};
use kernel::{cpu::CpuId, fmt, interrupt::LocalInterruptDisabled, prelude::*};

/// So many events that wait are shown.
const WAITING: usize = 32;

/// An event.
#[derive(Clone, Copy)]
struct Shown {
    /// The perf core's number of it, and of the leader of its group.
    number: u64,
    group: u64,
    /// `attr.type`, `attr.config` and `attr.config1`.
    event_type: u32,
    config: u64,
    config1: u64,
    pinned: bool,
    /// Who it counts for, if it does not count for all of the CPU.
    task: Option<Caller>,
}

impl Shown {
    /// The event is on this CPU, or should be.
    fn new(event: &Event<Driver>, group: u64) -> Self {
        let (event_type, config) = event.asked_for();
        Self {
            number: event.number(),
            group,
            event_type,
            config,
            config1: event.asked_for_besides(),
            pinned: event.is_pinned(),
            task: event.is_of_task().then(Caller::current),
        }
    }

    fn fmt_task(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// An event that has a counter.
#[derive(Clone, Copy)]
struct Holder {
    counter: CounterId,
    /// The schedule's entry.
    entry: Entry<EventId>,
    event: Shown,
    /// How long it has had the counter, in milliseconds.
    age: u32,
}

/// An event that should count, and is on no counter.
#[derive(Clone, Copy)]
struct Waiting {
    event: Shown,
    /// Whether its group is pinned, and so is not tried again.
    is_error: bool,
    /// Whether others take turns with it.
    waits_for_its_turn: bool,
    /// The counters that it may have.
    counters: CounterMask,
    /// How long it has counted so far, in milliseconds.
    counted: u64,
}

/// The counters of a CPU that are in use, and who waits.
pub(in crate::driver) struct Snapshot {
    holders: [Option<Holder>; MAX_COUNTERS],
    /// The newest first.
    waiting: [Option<Waiting>; WAITING],
    /// How many wait besides.
    more: usize,
    unplaced: [Option<Unplaced>; failures::KEPT],
    /// Whether those that were not tried get their turn sooner or later ([`Policy`]).
    takes_turns: bool,
}

impl Snapshot {
    /// Has `cpu` look at what it has. `ENXIO` if it is off, or `ENOMEM`. Process context.
    pub(in crate::driver) fn take(pmu: &CorePmu, cpu: CpuId) -> Result<KBox<Self>> {
        let mut snapshot = KBox::init(
            init!(Self {
                holders <- pin_init::init_array_from_fn(|_| None),
                waiting <- pin_init::init_array_from_fn(|_| None),
                more: 0,
                unplaced <- pin_init::init_array_from_fn(|_| None),
                takes_turns: pmu.ops().hardware.policy == Policy::Rpmu,
            }),
            GFP_KERNEL,
        )?;
        call_on(cpu, |irqs| snapshot.look(pmu, irqs))?;
        let newest_first = |slot: &Option<Unplaced>| slot.map(|unplaced| unplaced.when.age());
        snapshot.unplaced.sort_unstable_by_key(newest_first);
        Ok(snapshot)
    }

    fn look(&mut self, pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
        let Some(cx) = pmu.on_cpu(irqs) else { return };
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
                    event: Shown::new(event, cx.group_of(event)),
                    age: event.data().since().age(),
                });
        }
        let mut slots = self.waiting.iter_mut();
        cx.for_each_inactive(|event, group| match slots.next() {
            Some(slot) => {
                *slot = Some(Waiting {
                    event: Shown::new(event, group.number),
                    is_error: group.is_error,
                    waits_for_its_turn: event.data().waits_for_its_turn(),
                    counters: event.data().demand.constraint.counters,
                    counted: event.time_running() / 1_000_000,
                });
            }
            None => self.more = self.more.saturating_add(1),
        });
        self.unplaced = *own.unplaced.slots();
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {} may={} for_ms={}",
            self.counter,
            self.event,
            Listed(self.entry.constraint.counters),
            self.age,
        )?;
        if self.entry.constraint.corrupting {
            f.write_str(" exclusive")?;
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

impl Snapshot {
    fn holders(&self) -> impl Iterator<Item = &Holder> + Clone {
        self.holders.iter().flatten()
    }

    /// Who waits, in the order in which they were opened.
    fn waiting(&self) -> impl Iterator<Item = &Waiting> + Clone {
        self.waiting.iter().rev().flatten()
    }

    /// The event that stands for its group, among those that wait: the first.
    fn first_of(&self, group: u64) -> Option<&Waiting> {
        self.waiting().find(|it| it.event.group == group)
    }

    /// Who has the counters that are wanted, as it is now.
    fn fmt_holders(
        &self,
        wanted: CounterMask,
        mut separator: &str,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        for holder in self.holders().filter(|it| wanted.contains(it.counter)) {
            write!(
                f,
                "{separator}{}: id={}",
                holder.counter, holder.event.number
            )?;
            separator = "; ";
        }
        f.write_str("\n")
    }

    /// Who found no place, and what for.
    fn fmt_unplaced(&self, unplaced: &Unplaced, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (event_type, config) = unplaced.asked_for;
        write!(
            f,
            "{}type={event_type} config={config:#x} id={} members={} failed={} ms_ago={}",
            if unplaced.pinned { "error " } else { "waits " },
            unplaced.number,
            unplaced.members,
            unplaced.times,
            unplaced.when.age(),
        )?;
        match unplaced.task {
            Some(task) => write!(f, " task={task}")?,
            None => f.write_str(" task=none, all of the CPU")?,
        }
        write!(f, ": {}", unplaced.explanation)?;
        self.fmt_holders(unplaced.explanation.counters(), "; ", f)
    }

    /// Why a group waits, of which this is the first event: what was in the way when it was tried, or
    /// why it was not.
    fn fmt_group(&self, first: &Waiting, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_group = |it: &&Waiting| it.event.group == first.event.group;
        let members = self.waiting().filter(is_in_group);
        let is_known = |it: &&Unplaced| members.clone().any(|one| one.event.number == it.number);
        let waits_for_turn = first.waits_for_its_turn && !first.is_error;
        if !waits_for_turn {
            if let Some(unplaced) = self.unplaced.iter().flatten().find(is_known) {
                return self.fmt_unplaced(unplaced, f);
            }
        }
        write!(
            f,
            "{} {} members={} counted_ms={}",
            if first.is_error { "error" } else { "waits" },
            first.event,
            members.clone().count(),
            first.counted,
        )?;
        first.event.fmt_task(f)?;
        if first.is_error {
            return f.write_str(": it found no place, some time ago\n");
        }
        if !waits_for_turn && !self.takes_turns {
            return f.write_str(": not tried, behind one that found no place\n");
        }
        f.write_str(": waits for its turn")?;
        let none = CounterMask::EMPTY;
        let wanted = members.fold(none, |all, it| all.union(it.counters));
        self.fmt_holders(wanted, " behind ", f)
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# counter, event, the counters that it may have, since when, whose\n")?;
        for holder in self.holders() {
            fmt::Display::fmt(holder, f)?;
        }
        f.write_str(
            "# groups that wait, and their members: what was in the way; who has it now\n",
        )?;
        for waiting in self.waiting() {
            let first = self.first_of(waiting.event.group);
            if first.is_some_and(|first| first.event.number == waiting.event.number) {
                self.fmt_group(waiting, f)?;
            } else {
                writeln!(f, "member {}", waiting.event)?;
            }
        }
        if self.more != 0 {
            writeln!(f, "# and {} events more", self.more)?;
        }
        f.write_str("# the last that found no place, and are not here now\n")?;
        for unplaced in self.unplaced.iter().flatten() {
            let number = unplaced.number;
            let is_placed = self.holders().any(|it| it.event.number == number);
            let waits = self.waiting().any(|it| it.event.number == number);
            if !is_placed && !waits {
                self.fmt_unplaced(unplaced, f)?;
            }
        }
        Ok(())
    }
}
