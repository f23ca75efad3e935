// SPDX-License-Identifier: GPL-2.0

//! The events of a running rpmu, and a plan for them.
//!
//! This module plans for the events of a [schedule](crate::schedule) as if they had been given with
//! `-e`.

use crate::logic::sched::assign::Policy;
use crate::machine::Machine;
use crate::names::{
    Kind,
    Wanted,
    WantedEvent, //
};
use crate::plan::Request;
use crate::report::Report;
use crate::schedule::{
    attributes,
    Files,
    Names,
    ScheduledEvent, //
};
use crate::text;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The state of the whole machine.
#[derive(Clone, Debug, Serialize)]
pub struct Live {
    /// Version of this format. Changes when a field changes its meaning or is removed.
    pub version: u32,
    /// The online CPUs.
    pub cpus: Vec<LiveCpu>,
}

/// One CPU.
#[derive(Clone, Debug, Serialize)]
pub struct LiveCpu {
    /// Its number.
    pub cpu: u32,
    /// The events on counters, waiting, or in the error state.
    pub events: Vec<ScheduledEvent>,
    /// The plan for these events if they stay; `None` without events.
    pub plan: Option<Report>,
}

/// Reads the state below `root`: `/`, or a copy of these files.
///
/// # Errors
///
/// If a file cannot be read, or if there is no event list for the CPU.
pub fn read(root: &Path) -> Result<Live, String> {
    let files = Files { root };
    let mut read: Vec<(u32, Machine, Vec<ScheduledEvent>)> = Vec::new();
    for cpu in files.cpus()? {
        let machine = files.machine(cpu)?;
        let Some(schedule) = files.schedule(cpu, &mut Names::new(Some(machine)))? else {
            continue;
        };
        read.push((cpu, machine, schedule.events));
    }
    let policy = match files.parameter("policy").as_deref() {
        Some("mainline") => Policy::Mainline,
        _ => Policy::Rpmu,
    };
    let share = files.parameter("share").as_deref() != Some("N");
    let interval = files.rotation_interval();
    let plan = |cpu: u32, machine: Machine, events: &[ScheduledEvent]| {
        let sibling = files.sibling(cpu);
        let other = read.iter().find(|(number, ..)| Some(*number) == sibling);
        Report::new(&Request {
            machine,
            policy,
            share,
            watchdog: false,
            events: wanted(events),
            beside: Vec::new(),
            sibling: other.map_or_else(Vec::new, |(_, _, events)| wanted(events)),
            interval,
            duration: 1.0,
        })
    };
    let cpus = read.iter().map(|(cpu, machine, events)| LiveCpu {
        cpu: *cpu,
        events: events.clone(),
        plan: (!events.is_empty()).then(|| plan(*cpu, *machine, events)),
    });
    Ok(Live {
        version: 1,
        cpus: cpus.collect(),
    })
}

/// Groups the events in the order in which they were opened, the CPU's own first.
fn wanted(events: &[ScheduledEvent]) -> Vec<Wanted> {
    let mut leaders: Vec<(bool, u64)> = events
        .iter()
        .map(|event| (event.task.is_some(), event.group))
        .collect();
    leaders.sort_unstable();
    leaders.dedup_by_key(|(_, group)| *group);
    let group = |(_, group): &(bool, u64)| {
        let mut members: Vec<&ScheduledEvent> =
            events.iter().filter(|it| it.group == *group).collect();
        members.sort_unstable_by_key(|event| event.id);
        let events: Vec<WantedEvent> = members
            .iter()
            .enumerate()
            .map(|(index, event)| {
                WantedEvent {
                    label: None,
                    name: event.name.clone(),
                    alone: event.name.clone(),
                    kind: Kind::Hardware(attributes(event.asked_for)),
                    // Only leaders are pinned.
                    pinned: event.pinned && index == 0,
                    exclusive: false,
                    stays: true,
                }
            })
            .collect();
        Wanted {
            braces: events.len() > 1,
            events,
            suffix: String::new(),
            weak: false,
        }
    };
    leaders.iter().map(group).collect()
}

impl Live {
    /// Returns whether every event counts all the time.
    pub fn is_perfect(&self) -> bool {
        let mut plans = self.cpus.iter().filter_map(|cpu| cpu.plan.as_ref());
        plans.all(Report::is_perfect)
    }

    /// Formats the state and the plans as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for cpu in &self.cpus {
            if cpu.events.is_empty() {
                // Writing to a string does not fail.
                let _ = writeln!(out, "CPU {}: no event\n", cpu.cpu);
                continue;
            }
            let _ = writeln!(out, "CPU {}, now", cpu.cpu);
            let width = cpu.events.iter().map(|event| event.name.len()).max();
            for event in &cpu.events {
                let _ = writeln!(out, "{}", line(event, width.unwrap_or(0)));
            }
            let tasks = cpu.events.iter().any(|event| event.task.is_some());
            let all = cpu.events.iter().any(|event| event.task.is_none());
            let _ = writeln!(out, "\nCPU {}, if these events stay", cpu.cpu);
            if tasks && all {
                out += "(Planned as one rotation; the perf core schedules the CPU's own events before the task's.)\n";
            }
            if let Some(plan) = &cpu.plan {
                out += &text::text(plan);
            }
            out += "\n";
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }
}

/// Formats one event as text.
fn line(event: &ScheduledEvent, width: usize) -> String {
    let on = event.counter.as_deref().unwrap_or("-");
    let whose = event.task.as_deref().unwrap_or("all of the CPU");
    let pinned = if event.pinned { ", pinned" } else { "" };
    let mut line = format!("  {on:<7} {:<width$}  {whose}{pinned}", event.name);
    if let Some(ms) = event.for_ms {
        line += &format!(", for {ms} ms");
    }
    if let Some(opener) = &event.opened_by {
        line += &format!(", opened by {opener}");
    }
    if let Some(why) = &event.why {
        line += &format!("\n          {why}");
    }
    line
}
