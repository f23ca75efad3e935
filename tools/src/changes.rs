// SPDX-License-Identifier: GPL-2.0

//! Changes to the command, the system or the machine that would help, cheapest first.

use crate::logic::sched::assign::Policy;
use crate::machine::{
    Machine,
    Smt, //
};
use crate::names::{
    self,
    Wanted,
    WantedEvent, //
};
use crate::open::Opened;
use crate::plan::{
    Plan,
    Request,
    Shown, //
};
use crate::regroup::regroup;
use crate::split::{
    Place,
    Unit, //
};
use crate::syntax::Quoted;
use serde::Serialize;

/// The most groups that are split or unpinned one by one, because each needs a plan.
const MAX_TRIES: usize = 8;

/// A change that helps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The advice.
    pub what: String,
    /// Set if every event then counts all the time, also those of the commands beside it.
    pub avoids: bool,
    /// Number of the command's own events that then count all the time.
    pub always: usize,
    /// Number of the command's own events that then count at all.
    pub counted: usize,
    /// The smallest share of time among those, from 0 to 1.
    pub least: f64,
    /// The new list of events, if it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<String>,
}

/// The split of a command into runs whose events count all the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// The events of each run, in perf's syntax.
    pub events: Vec<String>,
    /// Set if fewer runs are known not to be enough.
    pub minimal: bool,
    /// The events that no run can count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
}

/// Rates a plan by the events of the command: those that count all the time, those that count at
/// all, and the sum of their percentages.
fn score(request: &Request, plan: &Plan) -> (usize, usize, u64) {
    let events = 0..request.number_of_events();
    let shown: Vec<Shown> = events.map(|event| plan.shown(event)).collect();
    let always = shown
        .iter()
        .filter(|shown| **shown == Shown::Always)
        .count();
    let counted = shown
        .iter()
        .filter(|shown| !matches!(shown, Shown::NotCounted | Shown::NotSupported))
        .count();
    let share = |shown: &Shown| match shown {
        Shown::Always => 100.0,
        Shown::Percent(percent) => *percent,
        _ => 0.0,
    };
    let total: f64 = shown.iter().map(share).sum();
    (always, counted, total.round() as u64)
}

/// Returns the smallest share of time among the events that count at all.
fn least(request: &Request, plan: &Plan) -> f64 {
    let events = 0..request.number_of_events();
    let counted = events
        .filter(|event| !matches!(plan.shown(*event), Shown::NotCounted | Shown::NotSupported));
    counted.map(|event| plan.shares[event]).fold(1.0, f64::min)
}

/// Tries each change on its own and returns those that help, cheapest first.
pub fn changes(request: &Request, plan: &Plan) -> Vec<Change> {
    let now = score(request, plan);
    let mut found = Vec::new();
    for (what, changed) in candidates(request) {
        let then = Plan::new(&changed);
        let score = score(&changed, &then);
        let helps = (score.1, score.0, score.2) > (now.1, now.0, now.2);
        // Do not recommend a change after which fewer events count all the time, unless more count.
        if !helps || score.0 < now.0 && score.1 == now.1 {
            continue;
        }
        let events = names::text(&changed.events);
        found.push(Change {
            what,
            avoids: then.is_perfect(),
            always: score.0,
            counted: score.1,
            least: least(&changed, &then),
            events: (events != names::text(&request.events)).then_some(events),
        });
    }
    found
}

fn candidates(request: &Request) -> Vec<(String, Request)> {
    let mut found = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Request)| {
        let mut changed = request.clone();
        change(&mut changed);
        found.push((what, changed));
    };
    let groups = || request.events.iter().enumerate();
    let large: Vec<usize> = groups()
        .filter(|(_, group)| group.events.len() > 1)
        .map(|(index, _)| index)
        .collect();
    for index in large.iter().take(MAX_TRIES) {
        let what = format!("regroup: split {}", request.events[*index].text());
        add(what, &|changed| {
            take_apart(&mut changed.events, &[*index], &request.machine)
        });
    }
    if large.len() > 1 {
        add("regroup: split all groups".to_owned(), &|changed| {
            take_apart(&mut changed.events, &large, &request.machine);
        });
    }
    let pinned = groups().filter(|(_, group)| group.events[0].pinned);
    for (index, group) in pinned.take(MAX_TRIES) {
        add(format!("unpin {}", group.text()), &|changed| {
            unpin(&mut changed.events[index]);
        });
    }
    if request.watchdog {
        add(
            "disable the NMI watchdog (sysctl kernel.nmi_watchdog=0)".to_owned(),
            &|changed| {
                changed.watchdog = false;
            },
        );
    }
    if request.policy == Policy::Mainline {
        add("load rpmu with policy=rpmu".to_owned(), &|changed| {
            changed.policy = Policy::Rpmu
        });
    }
    if request.policy == Policy::Rpmu && !request.share {
        let what = "let equal events share a counter (share=1)";
        add(what.to_owned(), &|changed| changed.share = true);
    }
    if !request.beside.is_empty() {
        add(
            "do not run the commands beside it at the same time".to_owned(),
            &|changed| {
                changed.beside.clear();
            },
        );
    }
    let machine = request.machine;
    // Skip the plan where the number of threads has no effect.
    let has_no_part = |new: &Machine| {
        let same = new.pmu.capabilities.counters == machine.pmu.capabilities.counters
            && new.no_force_abort == machine.no_force_abort;
        same && machine.pmu.model.ht_erratum.is_none() && request.sibling.is_empty()
    };
    let mut with = |what: &str, smt, no_force_abort| {
        let new = Machine::of_list(machine.list, smt, no_force_abort);
        let new = new.and_then(|new| match machine.guest {
            Some(guest) => new.as_guest(guest),
            None => Ok(new),
        });
        if let Some(new) = new.ok().filter(|new| !has_no_part(new)) {
            add(what.to_owned(), &|changed| changed.machine = new);
        }
    };
    if machine.no_force_abort {
        with("make TSX transactions abort (echo 1 >/sys/bus/event_source/devices/cpu/allow_tsx_force_abort)", machine.smt, false);
    }
    if machine.smt == Smt::On {
        with(
            "take the core's other thread offline (echo off >/sys/devices/system/cpu/smt/control)",
            Smt::Offline,
            machine.no_force_abort,
        );
    }
    if machine.smt != Smt::Off && machine.guest.is_none() {
        with(
            "disable SMT in the firmware",
            Smt::Off,
            machine.no_force_abort,
        );
    }
    if !request.sibling.is_empty() {
        add(
            "do not count on the core's other thread at the same time".to_owned(),
            &|changed| changed.sibling.clear(),
        );
    }
    found
}

/// Splits the groups with the numbers in `which` into single events, and regroups topdown events
/// like perf.
fn take_apart(groups: &mut Vec<Wanted>, which: &[usize], machine: &Machine) {
    let old = std::mem::take(groups);
    for (index, group) in old.into_iter().enumerate() {
        if which.contains(&index) {
            groups.extend(group.events.iter().map(alone));
        } else {
            groups.push(group);
        }
    }
    *groups = regroup(std::mem::take(groups), machine);
}

fn alone(event: &WantedEvent) -> Wanted {
    let event = WantedEvent {
        name: event.alone.clone(),
        ..event.clone()
    };
    Wanted {
        events: vec![event],
        braces: false,
        suffix: String::new(),
        weak: false,
    }
}

fn unpin(group: &mut Wanted) {
    let without = |text: &str| {
        let (name, letters) = text.rsplit_once([':', '/']).unwrap_or((text, ""));
        if letters.is_empty() || !letters.contains('D') {
            return text.to_owned();
        }
        let left = letters.replace('D', "");
        let separator = &text[name.len()..=name.len()];
        if left.is_empty() && separator == ":" {
            name.to_owned()
        } else {
            format!("{name}{separator}{left}")
        }
    };
    group.suffix = without(&group.suffix);
    for event in &mut group.events {
        event.pinned = false;
        event.name = without(&event.name);
        event.alone = without(&event.alone);
    }
}

/// Splits the countable events of the command into runs whose events count all the time, as few
/// runs as the search finds. Keeps the groups, except for groups that never fit: of these, only
/// slots and topdown metrics stay together.
pub fn runs(request: &Request, opened: &Opened) -> Runs {
    let machine = &request.machine;
    let place = Place {
        machine,
        policy: request.policy,
        always: request.watchdog(),
    };
    let mut events = opened.events.iter();
    // The parts and their needs; a part without needs can be in any run.
    let mut parts: Vec<(Wanted, Unit)> = Vec::new();
    let mut never = Vec::new();
    for group in &request.events {
        let needs: Vec<_> = events.by_ref().take(group.events.len()).collect();
        let demands = |events: &[&crate::open::Event]| -> Unit {
            events.iter().filter_map(|event| event.demand).collect()
        };
        if needs.iter().all(|event| event.refused.is_none()) && place.fits(&[&demands(&needs)]) {
            parts.push((group.clone(), demands(&needs)));
            continue;
        }
        let single = regroup(group.events.iter().map(alone).collect(), machine);
        let opened = request.open(&single);
        let mut events = opened.events.iter();
        for part in single {
            let needs: Vec<_> = events.by_ref().take(part.events.len()).collect();
            let unit = demands(&needs);
            if needs.iter().all(|event| event.refused.is_none()) && place.fits(&[&unit]) {
                parts.push((part, unit));
            } else {
                never.extend(part.events.into_iter().map(|event| event.name));
            }
        }
    }
    // An exclusive group gets a separate run.
    let own = |(group, unit): &&(Wanted, Unit)| group.events[0].exclusive && !unit.is_empty();
    let counted = || parts.iter().filter(|part| !part.1.is_empty() && !own(part));
    let units: Vec<Unit> = counted().map(|(_, unit)| unit.clone()).collect();
    let split = place.split(&units);
    let groups: Vec<&Wanted> = counted().map(|(group, _)| group).collect();
    let software = parts
        .iter()
        .filter(|(_, unit)| unit.is_empty())
        .map(|(group, _)| group);
    let mut lists: Vec<Vec<&Wanted>> = split
        .runs
        .iter()
        .map(|run| run.iter().map(|unit| groups[*unit]).collect())
        .collect();
    lists.extend(parts.iter().filter(own).map(|(group, _)| vec![group]));
    if lists.is_empty() {
        lists.push(Vec::new());
    }
    lists[0].extend(software);
    let list = |groups: &Vec<&Wanted>| {
        groups
            .iter()
            .map(|group| group.text())
            .collect::<Vec<_>>()
            .join(",")
    };
    Runs {
        events: lists
            .iter()
            .filter(|list| !list.is_empty())
            .map(list)
            .collect(),
        minimal: split.is_minimal,
        never,
    }
}

/// Returns the perf stat command for a list of events.
pub fn command(events: &str) -> String {
    format!("perf stat -e {} …", Quoted(events))
}
