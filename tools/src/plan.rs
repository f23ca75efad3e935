// SPDX-License-Identifier: GPL-2.0

//! The share of time in which each event counts, and perf stat's output for it.

use crate::logic::model::demand::{
    Demand,
    Unshared, //
};
use crate::logic::open::attr::{
    Attributes,
    EventType, //
};
use crate::logic::sched::assign::Policy;
use crate::machine::Machine;
use crate::names::Wanted;
use crate::open::{
    open,
    Opened, //
};
use crate::simulate::{
    simulate,
    EventNumber,
    Setting,
    Simulation, //
};
use std::fmt;

/// The input of a plan.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machine.
    pub machine: Machine,
    /// The driver's policy.
    pub policy: Policy,
    /// The module's parameter `share`; without effect with the policy of mainline, see
    /// [`Self::shares`].
    pub share: bool,
    /// Set if the NMI watchdog is on.
    pub watchdog: bool,
    /// The events.
    pub events: Vec<Wanted>,
    /// The events of other commands that count on the same CPU, in the order in which these were
    /// started.
    pub beside: Vec<Vec<Wanted>>,
    /// The events of the core's other thread.
    pub sibling: Vec<Wanted>,
    /// The rotation interval in seconds (`perf_event_mux_interval_ms`).
    pub interval: f64,
    /// The duration of the measurement, in seconds.
    pub duration: f64,
}

/// A prediction.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The opened and the refused events: those of the command, then those beside it.
    pub opened: Opened,
    /// The event on each counter in each step.
    pub simulation: Simulation,
    /// The number of intervals of each configuration.
    pub intervals: Vec<f64>,
    /// The share of time in which each event counts, from 0 to 1.
    pub shares: Vec<f64>,
}

/// The output of perf stat for an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown {
    /// A count without a percentage.
    Always,
    /// A count and the percentage of time.
    Percent(f64),
    /// `<not counted>`.
    NotCounted,
    /// `<not supported>`.
    NotSupported,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Always => "100 %".to_owned(),
            Self::Percent(percent) => format!("{percent:.1} %"),
            Self::NotCounted => "<not counted>".to_owned(),
            Self::NotSupported => "<not supported>".to_owned(),
        };
        f.pad(&text)
    }
}

/// Returns the needs of the watchdog's event, `wd_hw_attr` in `kernel/watchdog_perf.c`; `None` if
/// the driver refuses the event.
pub fn watchdog(machine: &Machine) -> Option<Demand> {
    let attr = Attributes::counting(EventType::Hardware, 0);
    let event = machine.configure(&attr).ok()?;
    let constraint = machine.pmu.constraint(event.select);
    Some(Demand {
        // It samples, with a period of about ten seconds.
        key: event.key(constraint, true),
        ..constraint.into()
    })
}

impl Request {
    /// Returns the needs of the watchdog's event if the watchdog is on; with a key that is not
    /// shared if events do not share counters.
    pub fn watchdog(&self) -> Option<Demand> {
        let demand = self.watchdog.then(|| watchdog(&self.machine)).flatten()?;
        Some(match self.shares() {
            true => demand,
            false => Demand {
                key: demand.key.unshared(Unshared::Off),
                ..demand
            },
        })
    }

    /// Returns the number of events of the command itself.
    pub fn number_of_events(&self) -> usize {
        self.events.iter().map(|group| group.events.len()).sum()
    }

    /// Returns whether equal events share a counter.
    pub fn shares(&self) -> bool {
        self.share && self.policy == Policy::Rpmu
    }

    /// Opens events for the machine.
    pub fn open(&self, events: &[Wanted]) -> Opened {
        let mut opened = open(events, &self.machine, self.policy);
        if !self.shares() {
            opened.share_nothing();
        }
        opened
    }
}

impl Plan {
    /// Opens the events and simulates their schedule.
    pub fn new(request: &Request) -> Self {
        let Request {
            machine, policy, ..
        } = request;
        let mut opened = request.open(&request.events);
        for events in &request.beside {
            opened.append(request.open(events));
        }
        let sibling = request.open(&request.sibling);
        let total = request.duration / request.interval;
        let setting = Setting {
            machine,
            policy: *policy,
            watchdog: request.watchdog(),
            sibling: (!sibling.groups.is_empty()).then_some(&sibling),
            intervals: total,
        };
        let simulation = simulate(&setting, &opened);
        let intervals = simulation.intervals(total);
        // An empty sum is -0.
        let share = |event| share(&opened, &simulation, &intervals, event) / total + 0.0;
        Self {
            shares: (0..opened.events.len()).map(share).collect(),
            opened,
            simulation,
            intervals,
        }
    }

    /// Returns the output of perf stat for an event.
    pub fn shown(&self, event: EventNumber) -> Shown {
        let share = self.shares[event];
        if self.opened.events[event].refused.is_some() {
            Shown::NotSupported
        } else if share <= 0.0 || !self.opened.is_readable(event) {
            Shown::NotCounted
        } else if share >= 1.0 - 1e-9 {
            Shown::Always
        } else {
            Shown::Percent(share * 100.0)
        }
    }

    /// Returns the open events that do not count all the time or are not shown.
    pub fn losses(&self) -> impl Iterator<Item = EventNumber> + '_ {
        let events = 0..self.opened.events.len();
        events.filter(|event| {
            let shown = self.shown(*event);
            shown != Shown::Always && shown != Shown::NotSupported
        })
    }

    /// Returns whether every event is open and counts all the time.
    pub fn is_perfect(&self) -> bool {
        (0..self.opened.events.len()).all(|event| self.shown(event) == Shown::Always)
    }

    /// Returns the name of an event, or of the watchdog, whose index is the last one.
    pub fn name(&self, event: EventNumber) -> &str {
        let event = self.opened.events.get(event);
        event.map_or("(NMI watchdog)", |event| &event.name)
    }

    /// Returns the name of a group: its events' names, separated by commas.
    pub fn group_name(&self, group: usize) -> String {
        match self.opened.groups.get(group) {
            None => "(NMI watchdog)".to_owned(),
            Some(group) => {
                let names = group.members.iter().map(|event| self.name(*event));
                let names: Vec<&str> = names.collect();
                match names[..] {
                    [name] => name.to_owned(),
                    _ => format!("{{{}}}", names.join(",")),
                }
            }
        }
    }
}

/// Returns the number of intervals in which an event counts: those in which the first event of its
/// group that needs a counter has one, or all intervals if no event of the group needs one.
fn share(opened: &Opened, simulation: &Simulation, intervals: &[f64], event: EventNumber) -> f64 {
    let Some(group) = opened.group_of(event) else {
        return 0.0;
    };
    let counted = group.members.iter();
    let Some(counted) = counted
        .copied()
        .find(|member| opened.events[*member].demand.is_some())
    else {
        return intervals.iter().sum();
    };
    let configurations = simulation.configurations.iter().zip(intervals);
    let with_it = configurations.filter(|(configuration, _)| {
        let mut counters = configuration.counters.iter();
        counters.any(|(_, event)| *event == counted)
    });
    with_it.map(|(_, intervals)| intervals).sum()
}
