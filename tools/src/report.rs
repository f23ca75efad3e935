// SPDX-License-Identifier: GPL-2.0

//! All that is said about a plan: what `--json` prints, and what the other forms show.

use crate::changes::{changes, runs, Change, Runs};
use crate::explain::{causes, counter_names, Cause};
use crate::logic::regs::counter::CounterId;
use crate::logic::sched::assign::Policy;
use crate::machine::{Machine, Smt};
use crate::plan::{Plan, Request, Shown};
use crate::simulate::{EventNumber, Wait};
use serde::Serialize;
use std::collections::HashMap;

/// Most intervals that are listed one by one.
const MAX_TURNS: usize = 64;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this form. Changes when a field changes its meaning or goes.
    pub version: u32,
    /// Where.
    pub machine: MachineReport,
    /// Milliseconds after which events take turns.
    pub interval_ms: f64,
    /// Seconds for which they are counted.
    pub seconds: f64,
    /// The events.
    pub events: Vec<EventReport>,
    /// Who is on which counter, at one time or another.
    pub configurations: Vec<ConfigurationReport>,
    /// Which configuration there is in each interval, from the first on, by number.
    pub turns: Vec<usize>,
    /// Whether these are repeated for ever, from which one on; none, if they are not.
    pub repeats_from: Option<usize>,
    /// Changes that would help, the cheapest first. None, if nothing has to.
    pub changes: Vec<Change>,
    /// Runs in which all events count all the time. None, if they do in one.
    pub runs: Option<Runs>,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// The perf tool's name.
    pub model: &'static str,
    /// The microarchitecture.
    pub name: &'static str,
    /// Threads of a core.
    pub smt: Smt,
    /// A thread's counters.
    pub counters: Vec<String>,
    /// How the driver decides.
    pub policy: &'static str,
    /// Whether the watchdog counts.
    pub watchdog: bool,
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct EventReport {
    /// As it was written.
    pub name: String,
    /// Number of its group, in the order in which the groups were written.
    pub group: usize,
    /// Whether it is in a group with others.
    pub grouped: bool,
    /// Whether its group is pinned.
    pub pinned: bool,
    /// The counters that can count it; none for a software event.
    pub counters: Option<String>,
    /// Why it was refused, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedReport>,
    /// In what part of the time it counts, from 0 to 1.
    pub share: f64,
    /// What perf stat shows: a percentage, `<not counted>` or `<not supported>`.
    pub shown: String,
    /// Why it does not count all the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

/// A refusal.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedReport {
    /// What perf_event_open returns.
    pub errno: &'static str,
    /// Why.
    pub reason: String,
}

/// One configuration.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigurationReport {
    /// `C1` and so on.
    pub name: String,
    /// In what part of the time it is, from 0 to 1.
    pub share: f64,
    /// The counters in use, with the event on each.
    pub counters: Vec<(String, String)>,
    /// The groups that wait, and why.
    pub waiting: Vec<(String, String)>,
}

impl Report {
    /// Plans, and finds out all about the plan.
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
            version: 1,
            machine: MachineReport::new(request),
            interval_ms: request.interval * 1e3,
            seconds: request.duration,
            events: (0..plan.opened.events.len())
                .map(|event| event_report(request, &plan, &causes, event))
                .collect(),
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

    /// Whether every event counts all the time.
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
            watchdog: request.watchdog,
        }
    }
}

fn event_report(
    request: &Request,
    plan: &Plan,
    causes: &[Vec<Cause>],
    number: usize,
) -> EventReport {
    let event = &plan.opened.events[number];
    let mut sizes = request
        .events
        .iter()
        .enumerate()
        .flat_map(|(index, group)| {
            let size = group.events.len();
            (0..size).map(move |_| (index, size > 1))
        });
    let (group, grouped) = sizes.nth(number).unwrap_or_default();
    let shown = plan.shown(number);
    let is_lost = event.refused.is_none() && shown != Shown::Always;
    EventReport {
        name: event.name.clone(),
        group,
        grouped,
        pinned: plan
            .opened
            .group_of(number)
            .is_some_and(|group| group.pinned),
        counters: event
            .demand
            .map(|demand| counter_names(demand.constraint.counters)),
        refused: event.refused.map(|why| RefusedReport {
            errno: why.errno(),
            reason: why.to_string(),
        }),
        share: plan.shares[number],
        shown: shown.to_string(),
        causes: match plan
            .opened
            .groups
            .iter()
            .position(|it| it.members.contains(&number))
        {
            Some(group) if is_lost => causes[group].clone(),
            _ => Vec::new(),
        },
    }
}

/// The configurations, and which of them each of the simulation's is: those that differ only in why
/// somebody waits are one.
fn configurations(plan: &Plan) -> (Vec<ConfigurationReport>, Vec<usize>) {
    let total: f64 = plan.intervals.iter().sum();
    let wait = |wait: Wait| match wait {
        Wait::Refused(refusal) => plan.simulation.refusals[refusal].to_string(),
        Wait::Behind(group) => format!("not tried behind {}", plan.group_name(group)),
        Wait::Turn => "not its turn".to_owned(),
        Wait::Exclusive => "the PMU is for one group alone (:e)".to_owned(),
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
        let counters = configuration.counters.iter().filter_map(|(index, event)| {
            let counter = CounterId::from_index(usize::from(*index))?;
            Some((counter.to_string(), plan.name(*event).to_owned()))
        });
        let waiting = configuration.waiting.iter();
        reports.push(ConfigurationReport {
            name: format!("C{}", number + 1),
            share: intervals / total,
            counters: counters.collect(),
            waiting: waiting
                .map(|(group, why)| (plan.group_name(*group), wait(*why)))
                .collect(),
        });
    }
    (reports, numbers)
}
