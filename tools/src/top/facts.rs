// SPDX-License-Identifier: GPL-2.0

//! The facts that `rpmu-top` shows, from two readings.
//!
//! An event's share is the part of the time between the readings in which it counted. An event that
//! rides counts on the counter of another one, so that shares of events with one counter may add up
//! to more than one.

use super::readings::Reading;
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use crate::machine::Machine;
use crate::schedule::{
    Schedule,
    ScheduledEvent, //
};
use serde::Serialize;
use std::collections::HashMap;

/// The state of the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Version of this format. Changes when a field changes its meaning or is removed.
    pub version: u32,
    /// The name of the machine's event list; `None` if there is none for it.
    pub machine: Option<&'static str>,
    /// The module's parameters, as `name=value`.
    pub parameters: Vec<String>,
    /// The online CPUs.
    pub cpus: Vec<CpuFacts>,
    /// The events on all CPUs: of each CPU those on counters, then those that wait.
    pub events: Vec<EventFacts>,
}

/// One CPU.
#[derive(Clone, Debug, Serialize)]
pub struct CpuFacts {
    /// Its number.
    pub cpu: u32,
    /// The milliseconds since the reading before; `None` at the first reading.
    pub elapsed_ms: Option<u64>,
    /// Its counters.
    pub counters: Vec<CounterFacts>,
    /// The number of its events that wait or are in the error state.
    pub waiting: usize,
    /// The number of its events that the driver did not list.
    pub unlisted: u64,
}

/// One counter.
#[derive(Clone, Debug, Serialize)]
pub struct CounterFacts {
    /// Its name.
    pub name: String,
    /// The ID of the event that has it now.
    pub event: Option<u64>,
    /// The share of that event.
    pub share: Option<f64>,
}

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// On a counter.
    Counts,
    /// On the counter of an equal event.
    Rides,
    /// Waits for a counter.
    Waits,
    /// Pinned, and got no counter: does not count until it is enabled again.
    Error,
}

impl State {
    /// Returns the state in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Rides => "rides",
            Self::Waits => "waits",
            Self::Error => "error",
        }
    }
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct EventFacts {
    /// The CPU.
    pub cpu: u32,
    /// The state.
    pub state: State,
    /// The part of the time since the last reading in which the event counted, from 0 to 1; `None`
    /// if it was not on this CPU then.
    pub share: Option<f64>,
    /// The event.
    #[serde(flatten)]
    pub event: ScheduledEvent,
}

impl EventFacts {
    /// Returns who has opened the event.
    pub fn opener(&self) -> &str {
        self.event.opened_by.as_deref().unwrap_or("?")
    }

    /// Returns what it counts: a task, or the whole CPU.
    pub fn counts(&self) -> &str {
        self.event.task.as_deref().unwrap_or("all of the CPU")
    }

    /// Returns the counter, or the state of an event that has none.
    pub fn place(&self) -> &str {
        let counter = self.event.counter.as_deref();
        counter.unwrap_or(self.state.word())
    }
}

impl Facts {
    /// Finds the facts in the reading `now`, with shares since the one `before`.
    pub fn new(
        machine: Option<&Machine>,
        parameters: Vec<String>,
        before: Option<&Reading>,
        now: &Reading,
    ) -> Self {
        let before = before.map_or(&[][..], |reading| &reading.schedules);
        let counted = before.iter().flat_map(|schedule| &schedule.events);
        let counted = counted.filter_map(|event| Some((event.id, event.counted_ms?)));
        let counted: HashMap<u64, u64> = counted.collect();
        let mut facts = Self {
            version: 1,
            machine: machine.map(|machine| machine.list.name),
            parameters,
            cpus: Vec::new(),
            events: Vec::new(),
        };
        for schedule in &now.schedules {
            let last = before.iter().find(|it| it.cpu == schedule.cpu);
            let elapsed_ms = last.and_then(|last| schedule.at_ms?.checked_sub(last.at_ms?));
            let first = facts.events.len();
            let event = |event: &ScheduledEvent| {
                let counted = || event.counted_ms?.checked_sub(*counted.get(&event.id)?);
                let share = elapsed_ms.zip(counted()).and_then(|(all, part)| {
                    // CAST: milliseconds are far below 2^52.
                    (all > 0).then(|| (part as f64 / all as f64).min(1.0))
                });
                EventFacts {
                    cpu: schedule.cpu,
                    state: match (&event.counter, event.rides_on) {
                        (Some(_), None) => State::Counts,
                        (Some(_), Some(_)) => State::Rides,
                        (None, _) if event.is_error => State::Error,
                        (None, _) => State::Waits,
                    },
                    share,
                    event: event.clone(),
                }
            };
            facts.events.extend(schedule.events.iter().map(event));
            let own = &facts.events[first..];
            facts.cpus.push(CpuFacts {
                cpu: schedule.cpu,
                elapsed_ms,
                counters: counters(machine, schedule, own),
                waiting: own.iter().filter(|it| it.state >= State::Waits).count(),
                unlisted: schedule.unlisted,
            });
        }
        facts
    }

    /// Returns the number of events in this state.
    pub fn count(&self, state: State) -> usize {
        self.events.iter().filter(|it| it.state == state).count()
    }

    /// Returns the machine, the parameters and the number of events in each state, in one line.
    pub fn head(&self) -> String {
        let mut head = self.machine.unwrap_or("unknown machine").to_owned();
        let cpus = self.cpus.len();
        head += &format!(", {cpus} CPU{}", if cpus == 1 { "" } else { "s" });
        for parameter in &self.parameters {
            head += &format!(", {parameter}");
        }
        let unlisted: u64 = self.cpus.iter().map(|cpu| cpu.unlisted).sum();
        let waiting = self.count(State::Waits);
        head += &format!(
            ": {} events on counters, {} riding, {waiting} waiting",
            self.count(State::Counts),
            self.count(State::Rides),
        );
        match self.count(State::Error) {
            0 => {}
            errors => head += &format!(", {errors} in the error state"),
        }
        if unlisted != 0 {
            head += &format!(", {unlisted} not listed");
        }
        head
    }
}

/// Returns the counters of a CPU: those of the machine, and others that are in use, such as topdown
/// metrics.
fn counters(
    machine: Option<&Machine>,
    schedule: &Schedule,
    events: &[EventFacts],
) -> Vec<CounterFacts> {
    let all = machine.map_or(CounterMask::EMPTY, |it| it.pmu.capabilities.counters);
    let all = all.without(all.metrics());
    let mut names: Vec<String> = all.iter().map(|it: CounterId| it.to_string()).collect();
    for name in schedule.events.iter().filter_map(|it| it.counter.as_ref()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let counter = |name: String| {
        let mut holders = events.iter().filter(|it| it.state == State::Counts);
        let holder = holders.find(|it| it.event.counter.as_ref() == Some(&name));
        CounterFacts {
            name,
            event: holder.map(|holder| holder.event.id),
            share: holder.and_then(|holder| holder.share),
        }
    };
    names.into_iter().map(counter).collect()
}
