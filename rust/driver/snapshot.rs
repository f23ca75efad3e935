// SPDX-License-Identifier: GPL-2.0

//! Who has which counter of a CPU, and who waits for one: `rpmu/cpuN/schedule` in debugfs.
//!
//! The CPU itself looks, in an interrupt. That comes in between callbacks, not during one, so it
//! finds the roster at rest, and needs no lock that a callback would have to wait for.

use super::{
    unplaced::{self, Unplaced},
    CorePmu, Driver,
};
use crate::{
    logic::{
        counter::{CounterId, MAX_COUNTERS},
        explanation::Listed,
        roster::Entry,
    },
    perf::{Caller, Event, EventId},
    x86::call::call_on,
};
use kernel::{cpu::CpuId, fmt, interrupt::LocalInterruptDisabled, prelude::*};

/// An event that has a counter.
#[derive(Clone, Copy)]
struct Holder {
    counter: CounterId,
    /// The roster's entry.
    entry: Entry<EventId>,
    /// The perf core's number of the event.
    number: u64,
    event_type: u32,
    config: u64,
    pinned: bool,
    /// Who it counts for, if it does not count for all of the CPU.
    task: Option<Caller>,
    /// How long it has had the counter, in milliseconds.
    age: u32,
}

/// The counters of a CPU that are in use.
pub(super) struct Snapshot {
    holders: [Option<Holder>; MAX_COUNTERS],
    unplaced: [Option<Unplaced>; unplaced::KEPT],
}

impl Snapshot {
    /// Has `cpu` look at what it has. `ENXIO` if it is off, or `ENOMEM`. Process context.
    pub(super) fn take(pmu: &CorePmu, cpu: CpuId) -> Result<KBox<Self>> {
        let mut snapshot = KBox::init(
            init!(Self {
                holders <- pin_init::init_array_from_fn(|_| None),
                unplaced <- pin_init::init_array_from_fn(|_| None),
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
        for (slot, entry) in self.holders.iter_mut().zip(own.roster.entries()) {
            *slot = entry
                .placed()
                .zip(cx.event(entry.event))
                .map(|(counter, event)| Holder::new(counter, *entry, event));
        }
        self.unplaced = *own.unplaced.slots();
    }
}

impl Holder {
    fn new(counter: CounterId, entry: Entry<EventId>, event: &Event<Driver>) -> Self {
        let (event_type, config) = event.asked_for();
        Self {
            counter,
            entry,
            number: event.number(),
            event_type,
            config,
            pinned: event.is_pinned(),
            task: event.is_of_task().then(Caller::current),
            age: event.data().since().age(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} type={} config={:#x} id={} may={} for_ms={}",
            self.counter,
            self.event_type,
            self.config,
            self.number,
            Listed(self.entry.constraint.counters),
            self.age,
        )?;
        if self.entry.constraint.exclusive {
            f.write_str(" exclusive")?;
        }
        if self.pinned {
            f.write_str(" pinned")?;
        }
        if let Some(register) = self.entry.planned_register() {
            write!(f, " register={register:?}")?;
        }
        match self.task {
            Some(task) => writeln!(f, " task={task}"),
            None => f.write_str(" task=none, all of the CPU\n"),
        }
    }
}

impl Snapshot {
    fn holders(&self) -> impl Iterator<Item = &Holder> + Clone {
        self.holders.iter().flatten()
    }

    /// Who waits, and what for. Who has what that is, as it is now.
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
        let wanted = unplaced.explanation.counters();
        for holder in self.holders().filter(|it| wanted.contains(it.counter)) {
            write!(f, "; {}: id={}", holder.counter, holder.number)?;
        }
        f.write_str("\n")
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# counter, event, the counters that it may have, since when, whose\n")?;
        for holder in self.holders() {
            fmt::Display::fmt(holder, f)?;
        }
        f.write_str("# the last groups that found no place, newest first: what was in the way; who has it now\n")?;
        for unplaced in self.unplaced.iter().flatten() {
            let placed = self.holders().any(|it| it.number == unplaced.number);
            if !placed {
                self.fmt_unplaced(unplaced, f)?;
            }
        }
        Ok(())
    }
}
