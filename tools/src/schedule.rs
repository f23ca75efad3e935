// SPDX-License-Identifier: GPL-2.0

//! The schedules of a running rpmu.
//!
//! `rpmu/cpuN/schedule` in debugfs lists the events on a CPU's counters and the waiting ones, by
//! type and config (`rust/driver/explain/snapshot.rs`); /proc and sysfs describe the machine. This
//! module parses these files and finds the events' names.

use crate::logic::open::attr::{
    Attributes,
    EventType, //
};
use crate::machine::{
    list_of,
    Machine,
    Smt, //
};
use crate::names::name_of;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};

/// The directory of rpmu's files, below the root.
const SCHEDULES: &str = "sys/kernel/debug/rpmu";
const CPU_PMU: &str = "sys/bus/event_source/devices/cpu";
const PARAMETERS: &str = "sys/module/rpmu/parameters";

/// The schedule of one CPU.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The CPU's number.
    pub cpu: u32,
    /// The time when it was taken, in milliseconds of the CPU's clock; `None` from a version that
    /// does not tell.
    pub at_ms: Option<u64>,
    /// The events on counters, riding, waiting, or in the error state.
    pub events: Vec<ScheduledEvent>,
    /// The number of further events, which the driver did not list.
    pub unlisted: u64,
}

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduledEvent {
    /// The ID that `PERF_EVENT_IOC_ID` returns.
    pub id: u64,
    /// The ID of its group's leader.
    pub group: u64,
    /// A name that the perf tool accepts.
    pub name: String,
    /// Set if it is pinned.
    pub pinned: bool,
    /// Name and PID of the task that has opened it, or the part of the kernel; `None` from a
    /// version that does not tell.
    pub opened_by: Option<String>,
    /// PID and name of the task that it counts; `None` for an event that counts the whole CPU.
    pub task: Option<String>,
    /// The counter that it occupies.
    pub counter: Option<String>,
    /// The ID of the event on whose counter it rides.
    pub rides_on: Option<u64>,
    /// Milliseconds since it got this counter.
    pub for_ms: Option<u64>,
    /// Milliseconds that it has counted so far.
    pub counted_ms: Option<u64>,
    /// The driver's reason why it has no counter, with event names in place of IDs.
    pub why: Option<String>,
    /// Set if it is in the error state, and does not count until it is enabled again.
    pub is_error: bool,
    /// `attr.type`, `attr.config` and `attr.config1`.
    #[serde(skip)]
    pub asked_for: (u32, u64, u64),
}

/// The names of the events of a machine, which do not have to be looked up again.
pub struct Names {
    machine: Option<Machine>,
    found: HashMap<(u32, u64, u64), String>,
}

impl Names {
    /// Prepares for a `machine`; without one, events have raw names.
    pub fn new(machine: Option<Machine>) -> Self {
        Self {
            machine,
            found: HashMap::new(),
        }
    }

    fn name(&mut self, asked_for: (u32, u64, u64)) -> String {
        let machine = &self.machine;
        let find = || match machine {
            Some(machine) => name_of(&attributes(asked_for), machine),
            None => raw_name(asked_for),
        };
        self.found.entry(asked_for).or_insert_with(find).clone()
    }
}

/// Returns the name of an event on a machine without an event list.
fn raw_name((kind, config, config1): (u32, u64, u64)) -> String {
    match (EventType::decode(kind, 4), config1) {
        (EventType::Hardware, _) => format!("0:{config:#x}"),
        (EventType::HwCache, _) => format!("3:{config:#x}"),
        (_, 0) => format!("r{config:x}"),
        (_, config1) => format!("cpu/config={config:#x},config1={config1:#x}/"),
    }
}

/// Returns the attributes with this type, config and config1.
pub(crate) fn attributes((kind, config, config1): (u32, u64, u64)) -> Attributes {
    let mut attr = Attributes::counting(EventType::decode(kind, 4), config);
    attr.config1 = config1;
    attr
}

/// The file tree to read: `/`, or a copy of rpmu's files and those that describe the machine.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The root of the tree.
    pub root: &'a Path,
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

    /// Reads a parameter of the module.
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.word(&format!("{PARAMETERS}/{name}"))
    }

    /// Reads the rotation interval, in seconds.
    pub fn rotation_interval(&self) -> f64 {
        let interval = self.word(&format!("{CPU_PMU}/perf_event_mux_interval_ms"));
        let interval = interval.and_then(|text| text.parse::<f64>().ok());
        interval.filter(|ms| *ms > 0.0).unwrap_or(4.0) / 1e3
    }

    /// Lists the CPUs that have a schedule.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read; the message says what to do.
    pub fn cpus(&self) -> Result<Vec<u32>, String> {
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
    pub fn sibling(&self, cpu: u32) -> Option<u32> {
        let name = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = self.word(&name)?;
        let numbers = list.split([',', '-']).filter_map(|it| it.parse().ok());
        numbers.into_iter().find(|number| *number != cpu)
    }

    /// Finds out what machine this is.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if there is no event list for the CPU.
    pub fn machine(&self, cpu: u32) -> Result<Machine, String> {
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

    /// Reads the schedule of a CPU; `None` if it is offline.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn schedule(&self, cpu: u32, names: &mut Names) -> Result<Option<Schedule>, String> {
        let text = self.text(&format!("{SCHEDULES}/cpu{cpu}/schedule"))?;
        if text.starts_with("# this CPU ") {
            return Ok(None);
        }
        Ok(Some(parse(cpu, &text, names)))
    }

    /// Reads one of rpmu's files about the whole machine: `refusals`, `breaker` or `users`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn of_machine(&self, name: &str) -> Result<String, String> {
        self.text(&format!("{SCHEDULES}/{name}"))
    }

    /// Copies the files that this module reads to `copy`, so that they can be read from there.
    ///
    /// # Errors
    ///
    /// If a schedule cannot be read, or if a file cannot be written.
    pub fn copy_to(&self, copy: &Path) -> Result<(), String> {
        let write = |name: &str, text: &str| {
            let path = copy.join(name);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            let written = made.and_then(|()| fs::write(&path, text));
            written.map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut optional = vec![
            "proc/cpuinfo".to_owned(),
            "sys/devices/system/cpu/smt/control".to_owned(),
            format!("{CPU_PMU}/allow_tsx_force_abort"),
            format!("{CPU_PMU}/perf_event_mux_interval_ms"),
            format!("{PARAMETERS}/policy"),
            format!("{PARAMETERS}/share"),
            format!("{SCHEDULES}/refusals"),
            format!("{SCHEDULES}/breaker"),
        ];
        for cpu in self.cpus()? {
            let name = format!("{SCHEDULES}/cpu{cpu}/schedule");
            write(&name, &self.text(&name)?)?;
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            optional.push(format!("{topology}/thread_siblings_list"));
        }
        for name in optional {
            if let Ok(text) = self.text(&name) {
                write(&name, &text)?;
            }
        }
        Ok(())
    }
}

/// Parses a schedule. Its events on counters come first.
pub(crate) fn parse(cpu: u32, text: &str, names: &mut Names) -> Schedule {
    let mut schedule = Schedule {
        cpu,
        at_ms: None,
        events: Vec::new(),
        unlisted: 0,
    };
    for line in text.lines() {
        let Some(comment) = line.strip_prefix('#') else {
            schedule.events.extend(event(line, names));
            continue;
        };
        // The last section lists failures of tasks that no longer run here.
        if comment.starts_with(" the last") {
            break;
        }
        let mut words = comment.split_whitespace();
        match words.next() {
            Some("and") => {
                let more = words.next().and_then(|it| it.parse::<u64>().ok());
                schedule.unlisted += more.unwrap_or(0);
            }
            Some(first) => {
                if let Some(at) = first.strip_prefix("at_ms=") {
                    schedule.at_ms = at.parse().ok();
                }
            }
            None => {}
        }
    }
    complete(&mut schedule.events);
    schedule
}

/// Gives each event of a waiting group the group's reason, which the schedule has with its first
/// event, and replaces IDs in reasons by names.
fn complete(events: &mut [ScheduledEvent]) {
    let reasons = events.iter().filter(|event| event.why.is_some());
    let first: HashMap<u64, ScheduledEvent> = reasons
        .rev()
        .map(|event| (event.group, event.clone()))
        .collect();
    let names = events.iter().map(|event| (event.id, event.name.clone()));
    let names: HashMap<u64, String> = names.collect();
    for event in events {
        if event.counter.is_none() && event.why.is_none() {
            if let Some(first) = first.get(&event.group) {
                event.why.clone_from(&first.why);
                event.task.clone_from(&first.task);
                event.is_error = first.is_error;
                if event.opened_by.is_none() {
                    event.opened_by.clone_from(&first.opened_by);
                }
            }
        }
        event.why = event.why.as_deref().map(|why| with_names(why, &names));
    }
}

/// Replaces each `id=N` by the event's name.
fn with_names(why: &str, names: &HashMap<u64, String>) -> String {
    let mut out = String::new();
    let mut rest = why;
    while let Some(at) = rest.find("id=") {
        let (before, id) = (&rest[..at], &rest[at + 3..]);
        let end = id.find(|it: char| !it.is_ascii_digit()).unwrap_or(id.len());
        let number = id[..end].parse::<u64>().ok();
        let name = number.and_then(|number| names.get(&number));
        out += before;
        out += name.map_or(&rest[at..at + 3 + end], String::as_str);
        rest = &id[end..];
    }
    out + rest
}

/// Parses the event on a line; `None` if the line has another format.
fn event(line: &str, names: &mut Names) -> Option<ScheduledEvent> {
    let (start, why) = match line.split_once(": ") {
        Some((start, why)) => (start, Some(why.to_owned())),
        None => (line, None),
    };
    let (first, rest) = start.split_once(' ')?;
    // Names of tasks stand at the end, where they cannot be taken for other fields.
    let (rest, task) = match rest.split_once(" task=") {
        Some((rest, task)) => (rest, Some(task)),
        None => (rest, None),
    };
    let (rest, opened_by) = match rest.split_once(" opened_by=") {
        Some((rest, opener)) => (rest, Some(opener.to_owned())),
        None => (rest, None),
    };
    let field = |wanted: &str| {
        let words = rest.split_whitespace();
        let mut words = words.filter_map(|word| word.split_once('='));
        let (_, value) = words.find(|(name, _)| *name == wanted)?;
        Some(value)
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
    let asked_for = (kind, number("config")?, number("config1").unwrap_or(0));
    let is_on = !matches!(first, "waits" | "error" | "member");
    Some(ScheduledEvent {
        id,
        group: number("group").unwrap_or(id),
        name: names.name(asked_for),
        pinned: first == "error" || rest.split_whitespace().any(|word| word == "pinned"),
        opened_by,
        task: task
            .filter(|task| !task.starts_with("none"))
            .map(str::to_owned),
        counter: is_on.then(|| first.to_owned()),
        rides_on: number("rides_on"),
        for_ms: number("for_ms"),
        counted_ms: number("counted_ms"),
        why,
        is_error: first == "error",
        asked_for,
    })
}
