// SPDX-License-Identifier: GPL-2.0

//! The report on a plan: printed by `--json`, and the source of the text, the picture and the page.

use crate::changes::{
    changes,
    runs,
    Change,
    Runs, //
};
use crate::explain::{
    causes,
    counter_names,
    is_zero,
    Cause, //
};
use crate::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use crate::logic::sched::assign::Policy;
use crate::machine::{
    Machine,
    Smt, //
};
use crate::plan::{
    Plan,
    Request,
    Shown, //
};
use crate::simulate::{
    EventNumber,
    Wait, //
};
use serde::Serialize;
use std::collections::HashMap;

/// Maximum number of intervals listed one by one.
const MAX_TURNS: usize = 64;
/// Maximum number of waiting groups listed for a configuration.
const MAX_WAITING: usize = 16;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this format. Changes when a field changes its meaning or is removed.
    pub version: u32,
    /// The machine.
    pub machine: MachineReport,
    /// The rotation interval in milliseconds.
    pub interval_ms: f64,
    /// The duration of the measurement, in seconds.
    pub seconds: f64,
    /// The events: those of the command, then those of each command beside it.
    pub events: Vec<EventReport>,
    /// The different assignments of events to counters.
    pub configurations: Vec<ConfigurationReport>,
    /// The index of the configuration in each interval, from the first on, for 64 intervals at
    /// most.
    pub turns: Vec<usize>,
    /// The interval from which the sequence repeats; `None` if it does not repeat.
    pub repeats_from: Option<usize>,
    /// Changes that would help, cheapest first. Empty if every event counts all the time.
    pub changes: Vec<Change>,
    /// The split of the command into runs whose events count all the time. `None` if every event
    /// counts all the time already.
    pub runs: Option<Runs>,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// The perf tool's name for the model, such as `haswellx`.
    pub model: &'static str,
    /// The microarchitecture.
    pub name: &'static str,
    /// Hardware threads of a core: `on` (two), `offline` (two, one of them offline) or `off` (one).
    pub smt: Smt,
    /// Set for a virtual machine.
    #[serde(skip_serializing_if = "is_false")]
    pub guest: bool,
    /// The counters of a thread.
    pub counters: Vec<String>,
    /// The driver's policy.
    pub policy: &'static str,
    /// Set if equal events share a counter.
    pub share: bool,
    /// Set if the NMI watchdog counts.
    pub watchdog: bool,
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct EventReport {
    /// The name that perf shows: the value of the term `name=`, or else the event as written in the
    /// list.
    pub name: String,
    /// The number of its command: 0 for the planned command, from 1 on for those of `--beside`.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside: usize,
    /// Index of its group, in the order of the lists.
    pub group: usize,
    /// Set if its group has other events.
    pub grouped: bool,
    /// Set if its group is pinned.
    pub pinned: bool,
    /// The counters that can count it; `None` for a software event, for an event of another PMU,
    /// and for an event whose attributes the driver refuses.
    pub counters: Option<String>,
    /// Set if another PMU than the core's counts it.
    #[serde(skip_serializing_if = "is_false")]
    pub elsewhere: bool,
    /// The reason why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedReport>,
    /// The share of time in which it counts, from 0 to 1.
    pub share: f64,
    /// Perf's output: a percentage, `<not counted>` or `<not supported>`.
    pub shown: String,
    /// The equal events on whose counters it rides for at least a part of the time, the most
    /// frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rides_on: Vec<RideReport>,
    /// The reasons why it does not count all the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

/// A ride on the counters of an equal event.
#[derive(Clone, Debug, Serialize)]
pub struct RideReport {
    /// The name of the equal event.
    pub event: String,
    /// The number of its command; for the watchdog's event, the number of the rider's command.
    #[serde(skip_serializing_if = "is_zero")]
    pub beside: usize,
    /// The counters.
    pub counters: String,
    /// The share of time, from 0 to 1.
    pub share: f64,
}

/// `serde` wants a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A refusal.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedReport {
    /// The error of perf_event_open.
    pub errno: &'static str,
    /// The reason.
    pub reason: String,
}

/// One configuration.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigurationReport {
    /// `C1`, `C2` and so on.
    pub name: String,
    /// Its share of time, from 0 to 1.
    pub share: f64,
    /// The occupied counters and their events.
    pub counters: Vec<(String, String)>,
    /// The counters that several events share, and the events that ride on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub riders: Vec<(String, String)>,
    /// The waiting groups, each with the reason; only the first ones if there are many.
    pub waiting: Vec<(String, String)>,
    /// The number of waiting groups that `waiting` omits.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_waiting: usize,
}

impl Report {
    /// Makes the plan and the report on it.
    pub fn new(request: &Request) -> Self {
        let plan = Plan::new(request);
        let perfect = plan.is_perfect();
        let causes = if perfect {
            Vec::new()
        } else {
            causes(request, &plan)
        };
        let steps = plan.simulation.steps_per_interval;
        let intervals = (request.duration / request.interval).ceil().max(1.0) as usize;
        let (configurations, numbers) = configurations(&plan);
        let turn = |interval: usize| numbers[plan.simulation.at(interval * steps)];
        let repeats = plan.simulation.repeats_from < plan.simulation.steps.len();
        Self {
            version: 2,
            machine: MachineReport::new(request),
            interval_ms: request.interval * 1e3,
            seconds: request.duration,
            events: event_reports(request, &plan, &causes),
            configurations,
            turns: (0..intervals.min(MAX_TURNS)).map(turn).collect(),
            repeats_from: repeats.then_some(plan.simulation.repeats_from / steps),
            changes: if perfect {
                Vec::new()
            } else {
                changes(request, &plan)
            },
            runs: (!perfect).then(|| runs(request, &plan.opened)),
        }
    }

    /// Returns whether every event counts all the time.
    pub fn is_perfect(&self) -> bool {
        self.events
            .iter()
            .all(|event| event.shown == Shown::Always.to_string())
    }
}

impl MachineReport {
    fn new(request: &Request) -> Self {
        let Machine { list, pmu, smt, .. } = &request.machine;
        Self {
            model: list.name,
            name: pmu.model.name,
            smt: *smt,
            guest: request.machine.guest.is_some(),
            counters: pmu
                .capabilities
                .counters
                .iter()
                .map(|counter| counter.to_string())
                .collect(),
            policy: match request.policy {
                Policy::Mainline => "mainline",
                Policy::Rpmu => "rpmu",
            },
            share: request.shares(),
            watchdog: request.watchdog,
        }
    }
}

/// The place of an event in the lists.
#[derive(Clone, Copy)]
struct Place {
    /// The number of its command.
    command: usize,
    /// The number of its group.
    group: usize,
    /// Set if the group has other events.
    grouped: bool,
}

fn places(request: &Request) -> Vec<Place> {
    let commands = std::iter::once(&request.events).chain(&request.beside);
    let groups = commands
        .enumerate()
        .flat_map(|(command, groups)| groups.iter().map(move |group| (command, group)));
    let places = groups.enumerate().flat_map(|(group, (command, it))| {
        let size = it.events.len();
        let place = Place {
            command,
            group,
            grouped: size > 1,
        };
        std::iter::repeat_n(place, size)
    });
    places.collect()
}

fn event_reports(request: &Request, plan: &Plan, causes: &[Vec<Cause>]) -> Vec<EventReport> {
    let places = places(request);
    let mut rides = rides(plan);
    let reports = places.iter().zip(&mut rides).enumerate();
    let reports = reports.map(|(event, (place, rides))| {
        let rides = std::mem::take(rides).into_iter().map(|ride| RideReport {
            event: plan.name(ride.head).to_owned(),
            // The watchdog is of no command.
            beside: places.get(ride.head).unwrap_or(place).command,
            counters: counter_names(ride.counters),
            share: ride.share,
        });
        EventReport {
            rides_on: rides.collect(),
            ..event_report(*place, plan, causes, event)
        }
    });
    reports.collect()
}

/// A ride of an event.
struct Ride {
    head: EventNumber,
    counters: CounterMask,
    /// The share of time.
    share: f64,
}

/// Returns the rides of each event, the most frequent first.
fn rides(plan: &Plan) -> Vec<Vec<Ride>> {
    let total: f64 = plan.intervals.iter().sum();
    let mut rides: Vec<Vec<Ride>> = Vec::new();
    rides.resize_with(plan.opened.events.len(), Vec::new);
    let configurations = plan.simulation.configurations.iter().zip(&plan.intervals);
    for (configuration, intervals) in configurations.filter(|(_, intervals)| **intervals > 0.0) {
        for (counter, rider, head) in configuration.riders() {
            // `Report::events` has no entry for the watchdog's event.
            let Some(rides) = rides.get_mut(rider) else {
                continue;
            };
            let counter = CounterId::from_index(usize::from(counter));
            let counters = counter.map_or(CounterMask::EMPTY, CounterId::mask);
            let share = intervals / total;
            match rides.iter_mut().find(|ride| ride.head == head) {
                Some(ride) => {
                    ride.counters = ride.counters | counters;
                    ride.share += share;
                }
                None => rides.push(Ride {
                    head,
                    counters,
                    share,
                }),
            }
        }
    }
    let by_share = |one: &Ride, other: &Ride| other.share.total_cmp(&one.share);
    rides.iter_mut().for_each(|rides| rides.sort_by(by_share));
    rides
}

fn event_report(place: Place, plan: &Plan, causes: &[Vec<Cause>], number: usize) -> EventReport {
    let Place {
        command,
        group,
        grouped,
    } = place;
    let event = &plan.opened.events[number];
    let shown = plan.shown(number);
    let is_lost = event.refused.is_none() && shown != Shown::Always;
    EventReport {
        name: event.name.clone(),
        beside: command,
        group,
        grouped,
        pinned: plan
            .opened
            .group_of(number)
            .is_some_and(|group| group.pinned),
        counters: event
            .demand
            .map(|demand| counter_names(demand.constraint.counters)),
        elsewhere: event.is_elsewhere,
        refused: event.refused.map(|why| RefusedReport {
            errno: why.errno(),
            reason: why.to_string(),
        }),
        share: plan.shares[number],
        shown: shown.to_string(),
        rides_on: Vec::new(),
        causes: match plan.opened.number_of_group(number) {
            Some(group) if is_lost => causes[group].clone(),
            _ => Vec::new(),
        },
    }
}

/// Returns the configurations, and for each configuration of the simulation its index in them.
/// Configurations that differ only in the waiting groups are merged.
fn configurations(plan: &Plan) -> (Vec<ConfigurationReport>, Vec<usize>) {
    let total: f64 = plan.intervals.iter().sum();
    let never = |group: usize| {
        let group = plan.opened.groups.get(group);
        let first = group.and_then(|group| group.members.first());
        first.is_some_and(|first| plan.shares[*first] <= 0.0)
    };
    let wait = |group: usize, wait: Wait| match wait {
        Wait::Refused(refusal) => plan.simulation.refusals[refusal].to_string(),
        Wait::Behind(group) => format!("not tried after {}", plan.group_name(group)),
        Wait::Turn if never(group) => "gets no turn".to_owned(),
        Wait::Turn => "waits for rotation".to_owned(),
        Wait::Exclusive => "an exclusive group (:e) does not share the PMU".to_owned(),
    };
    let mut known: HashMap<&[(u8, EventNumber)], usize> = HashMap::new();
    let mut reports: Vec<ConfigurationReport> = Vec::new();
    let mut numbers = Vec::new();
    for (configuration, intervals) in plan.simulation.configurations.iter().zip(&plan.intervals) {
        let number = *known
            .entry(&configuration.counters)
            .or_insert(reports.len());
        numbers.push(number);
        if let Some(report) = reports.get_mut(number) {
            report.share += intervals / total;
            continue;
        }
        let pair = |counter: u8, event| {
            let counter = CounterId::from_index(usize::from(counter))?;
            Some((counter.to_string(), plan.name(event).to_owned()))
        };
        let heads = configuration.heads();
        let riders = configuration.riders();
        let waiting = configuration.waiting.iter();
        reports.push(ConfigurationReport {
            name: format!("C{}", number + 1),
            share: intervals / total,
            counters: heads
                .filter_map(|(counter, event)| pair(counter, event))
                .collect(),
            riders: riders
                .filter_map(|(counter, event, _)| pair(counter, event))
                .collect(),
            more_waiting: waiting.len().saturating_sub(MAX_WAITING),
            waiting: waiting
                .take(MAX_WAITING)
                .map(|(group, why)| (plan.group_name(*group), wait(*group, *why)))
                .collect(),
        });
    }
    (reports, numbers)
}
