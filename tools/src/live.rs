// SPDX-License-Identifier: GPL-2.0

//! The events of a running rpmu, and a plan for them.
//!
//! `rpmu/cpuN/schedule` in debugfs lists the events on a CPU's counters and the waiting ones, by
//! type and config (`rust/driver/explain/snapshot.rs`); /proc and sysfs describe the machine. This
//! module finds the events' names and plans for them as if they had been given with `-e`.

use crate::logic::open::attr::{
    Attributes,
    EventType, //
};
use crate::logic::sched::assign::Policy;
use crate::machine::{
    list_of,
    Machine,
    Smt, //
};
use crate::names::{
    name_of,
    Kind,
    Wanted,
    WantedEvent, //
};
use crate::plan::Request;
use crate::report::Report;
use crate::text;
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};

const SCHEDULES: &str = "sys/kernel/debug/rpmu";
const CPU_PMU: &str = "sys/bus/event_source/devices/cpu";

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
    pub events: Vec<LiveEvent>,
    /// The plan for these events if they stay; `None` without events.
    pub plan: Option<Report>,
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct LiveEvent {
    /// The ID that `PERF_EVENT_IOC_ID` returns.
    pub id: u64,
    /// The ID of its group's leader.
    pub group: u64,
    /// A name that the perf tool accepts.
    pub name: String,
    /// Set if it is pinned.
    pub pinned: bool,
    /// PID and name of the task that it counts; `None` for an event that counts the whole CPU.
    pub task: Option<String>,
    /// The counter that it occupies.
    pub counter: Option<String>,
    /// Milliseconds since it got this counter.
    pub for_ms: Option<u64>,
    /// The driver's reason why it has no counter, with event names in place of IDs.
    pub why: Option<String>,
    #[serde(skip)]
    asked_for: (u32, u64, u64),
}

/// The file tree to read.
struct Files<'a> {
    root: &'a Path,
}

impl Files<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.path(name);
        let text = fs::read_to_string(&path);
        text.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads a file that holds one word.
    fn word(&self, name: &str) -> Option<String> {
        Some(self.text(name).ok()?.trim().to_owned())
    }

    /// Lists the CPUs that have a schedule.
    fn cpus(&self) -> Result<Vec<u32>, String> {
        let path = self.path(SCHEDULES);
        let entries = fs::read_dir(&path).map_err(|error| {
            format!(
                "{}: {error} (is rpmu loaded, debugfs mounted, and are you root?)",
                path.display()
            )
        })?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let numbers = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok());
        let mut cpus: Vec<u32> = numbers.collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Returns the other thread of the CPU's core, if it is online.
    fn sibling(&self, cpu: u32) -> Option<u32> {
        let name = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = self.word(&name)?;
        let numbers = list.split([',', '-']).filter_map(|it| it.parse().ok());
        numbers.into_iter().find(|number| *number != cpu)
    }

    fn machine(&self, cpu: u32) -> Result<Machine, String> {
        let cpuinfo = self.text("proc/cpuinfo")?;
        let field = |wanted: &str| {
            let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(name, _)| name.trim() == wanted)?;
            value.trim().parse::<u32>().ok()
        };
        let family = field("cpu family").and_then(|family| u16::try_from(family).ok());
        let model = field("model").and_then(|model| u8::try_from(model).ok());
        let (family, model) = family
            .zip(model)
            .ok_or("/proc/cpuinfo: no family and model")?;
        let smt = match (
            self.sibling(cpu),
            self.word("sys/devices/system/cpu/smt/control"),
        ) {
            (Some(_), _) => Smt::On,
            (None, Some(control)) if control == "off" || control == "forceoff" => Smt::Offline,
            _ => Smt::Off,
        };
        let abort = self.word(&format!("{CPU_PMU}/allow_tsx_force_abort"));
        let no_force_abort = abort.is_some_and(|abort| abort == "0");
        let list = list_of(family, model)
            .ok_or_else(|| format!("no event list for model {model:#x} of family {family:#x}"))?;
        Machine::of_list(list, smt, no_force_abort).map_err(|why| format!("{}: {why:?}", list.name))
    }
}

/// Reads the state below `root`: `/`, or a copy of these files.
///
/// # Errors
///
/// If a file cannot be read, or if there is no event list for the CPU.
pub fn read(root: &Path) -> Result<Live, String> {
    let files = Files { root };
    let mut read: Vec<(u32, Machine, Vec<LiveEvent>)> = Vec::new();
    for cpu in files.cpus()? {
        let text = files.text(&format!("{SCHEDULES}/cpu{cpu}/schedule"))?;
        if text.starts_with("# this CPU is off") {
            continue;
        }
        let machine = files.machine(cpu)?;
        read.push((cpu, machine, events(&text, &machine)));
    }
    let policy = match files.word("sys/module/rpmu/parameters/policy").as_deref() {
        Some("mainline") => Policy::Mainline,
        _ => Policy::Rpmu,
    };
    let share = files.word("sys/module/rpmu/parameters/share").as_deref() != Some("N");
    let interval = files.word(&format!("{CPU_PMU}/perf_event_mux_interval_ms"));
    let interval = interval.and_then(|text| text.parse::<f64>().ok());
    let interval = interval.filter(|ms| *ms > 0.0).unwrap_or(4.0) / 1e3;
    let plan = |cpu: u32, machine: Machine, events: &[LiveEvent]| {
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

/// Parses the events of a schedule, those on counters first.
fn events(text: &str, machine: &Machine) -> Vec<LiveEvent> {
    let mut events: Vec<LiveEvent> = Vec::new();
    // The last section lists failures of tasks that no longer run here.
    let mut is_here = true;
    for line in text.lines() {
        if line.starts_with('#') {
            is_here &= !line.starts_with("# the last");
            continue;
        }
        if is_here {
            events.extend(event(line, machine));
        }
    }
    // A group waits as a whole; the schedule gives the reason with its first event.
    let first: Vec<LiveEvent> = events
        .iter()
        .filter(|event| event.why.is_some())
        .cloned()
        .collect();
    let names: Vec<(u64, String)> = events
        .iter()
        .map(|event| (event.id, event.name.clone()))
        .collect();
    for event in &mut events {
        if event.counter.is_none() && event.why.is_none() {
            if let Some(first) = first.iter().find(|it| it.group == event.group) {
                event.why.clone_from(&first.why);
                event.task.clone_from(&first.task);
            }
        }
        event.why = event.why.as_deref().map(|why| with_names(why, &names));
    }
    events
}

/// Replaces each `id=N` by the event's name.
fn with_names(why: &str, names: &[(u64, String)]) -> String {
    let mut out = String::new();
    let mut rest = why;
    while let Some(at) = rest.find("id=") {
        let (before, id) = (&rest[..at], &rest[at + 3..]);
        let end = id.find(|it: char| !it.is_ascii_digit()).unwrap_or(id.len());
        let number = id[..end].parse::<u64>().ok();
        let name = names.iter().find(|(id, _)| Some(*id) == number);
        out += before;
        out += name.map_or(&rest[at..at + 3 + end], |(_, name)| name);
        rest = &id[end..];
    }
    out + rest
}

/// Parses the event on a line; `None` if the line has another format.
fn event(line: &str, machine: &Machine) -> Option<LiveEvent> {
    let (start, why) = match line.split_once(": ") {
        Some((start, why)) => (start, Some(why.to_owned())),
        None => (line, None),
    };
    let (first, rest) = start.split_once(' ')?;
    let field = |wanted: &str| {
        let mut words = rest
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        words
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    };
    let number = |wanted: &str| {
        let text = field(wanted)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let id = number("id")?;
    let kind = u32::try_from(number("type")?).ok()?;
    let (config, config1) = (number("config")?, number("config1").unwrap_or(0));
    let is_on = !matches!(first, "waits" | "error" | "member");
    let task = rest.split_once(" task=").map(|(_, task)| task);
    Some(LiveEvent {
        id,
        group: number("group").unwrap_or(id),
        name: name_of(&attributes(kind, config, config1), machine),
        pinned: first == "error" || rest.split_whitespace().any(|word| word == "pinned"),
        task: task
            .filter(|task| !task.starts_with("none"))
            .map(str::to_owned),
        counter: is_on.then(|| first.to_owned()),
        for_ms: number("for_ms"),
        why,
        asked_for: (kind, config, config1),
    })
}

fn attributes(kind: u32, config: u64, config1: u64) -> Attributes {
    let mut attr = Attributes::counting(EventType::decode(kind, 4), config);
    attr.config1 = config1;
    attr
}

/// Groups the events in the order in which they were opened, the CPU's own first.
fn wanted(events: &[LiveEvent]) -> Vec<Wanted> {
    let mut leaders: Vec<(bool, u64)> = events
        .iter()
        .map(|event| (event.task.is_some(), event.group))
        .collect();
    leaders.sort_unstable();
    leaders.dedup_by_key(|(_, group)| *group);
    let group = |(_, group): &(bool, u64)| {
        let mut members: Vec<&LiveEvent> = events.iter().filter(|it| it.group == *group).collect();
        members.sort_unstable_by_key(|event| event.id);
        let events: Vec<WantedEvent> = members
            .iter()
            .enumerate()
            .map(|(index, event)| {
                let (kind, config, config1) = event.asked_for;
                WantedEvent {
                    label: None,
                    name: event.name.clone(),
                    alone: event.name.clone(),
                    kind: Kind::Hardware(attributes(kind, config, config1)),
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
                let _ = writeln!(out, "{}", event.line(width.unwrap_or(0)));
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

impl LiveEvent {
    fn line(&self, width: usize) -> String {
        let on = self.counter.as_deref().unwrap_or("-");
        let whose = self.task.as_deref().unwrap_or("all of the CPU");
        let pinned = if self.pinned { ", pinned" } else { "" };
        let mut line = format!("  {on:<7} {:<width$}  {whose}{pinned}", self.name);
        if let Some(ms) = self.for_ms {
            line += &format!(", for {ms} ms");
        }
        if let Some(why) = &self.why {
            line += &format!("\n          {why}");
        }
        line
    }
}
