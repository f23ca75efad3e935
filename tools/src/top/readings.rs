// SPDX-License-Identifier: GPL-2.0

//! Readings of rpmu's files, from the running kernel or from a recording.

use super::metrics::Health;
use crate::machine::Machine;
use crate::schedule::{
    Files,
    Names,
    Schedule, //
};
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};

/// The state of all CPUs at one time.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The schedules of the online CPUs, in the order of their numbers.
    pub schedules: Vec<Schedule>,
}

/// A source of readings.
pub struct Source {
    /// The roots to read, one after another; the last one again and again.
    roots: Vec<PathBuf>,
    /// The number of readings so far.
    taken: usize,
    /// The directory in which to keep a copy of each reading.
    record: Option<PathBuf>,
    names: Names,
    machine: Option<Machine>,
}

impl Source {
    /// Prepares to read below `root`: `/`, a copy of the files, or a directory with several copies
    /// as [`record`](Self::record) makes it.
    ///
    /// # Errors
    ///
    /// If there are no files to read; the message says what to do.
    pub fn new(root: &Path) -> Result<Self, String> {
        let mut roots = recorded(root);
        if roots.is_empty() {
            roots.push(root.to_owned());
        }
        let files = Files { root: &roots[0] };
        let cpus = files.cpus()?;
        // A machine without an event list has events without names, which is no reason to stop.
        let machine = cpus.first().and_then(|cpu| files.machine(*cpu).ok());
        Ok(Self {
            roots,
            taken: 0,
            record: None,
            names: Names::new(machine),
            machine,
        })
    }

    /// Keeps a copy of each reading in a directory below `directory`.
    pub fn record(&mut self, directory: &Path) {
        self.record = Some(directory.to_owned());
    }

    /// Returns the machine; `None` if it has no event list.
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// Returns whether the readings come from a recording that has ended.
    pub fn is_over(&self) -> bool {
        self.roots.len() > 1 && self.taken >= self.roots.len()
    }

    /// Returns whether there is only one reading, which does not change.
    pub fn is_still(&self) -> bool {
        self.roots.len() == 1 && self.roots[0] != Path::new("/")
    }

    /// Returns whether the readings are those of the running kernel.
    pub fn is_live(&self) -> bool {
        self.roots.len() == 1 && self.roots[0] == Path::new("/")
    }

    fn root(&self) -> &Path {
        let last = self.roots.len().saturating_sub(1);
        &self.roots[self.taken.min(last)]
    }

    /// Returns the module's parameters, as `name=value`.
    pub fn parameters(&self) -> Vec<String> {
        let files = Files { root: self.root() };
        let name = |name: &&str| Some(format!("{name}={}", files.parameter(name)?));
        ["policy", "share"].iter().filter_map(name).collect()
    }

    /// Reads the state of rpmu besides the schedules.
    pub fn health(&self) -> Health {
        let files = Files { root: self.root() };
        // An older version may lack one.
        let text = |name| files.of_machine(name).unwrap_or_default();
        Health::parse(&text("refusals"), &text("breaker"))
    }

    /// Takes the next reading.
    ///
    /// # Errors
    ///
    /// If rpmu is no longer loaded, or if a file cannot be read or copied.
    pub fn take(&mut self) -> Result<Reading, String> {
        if let Some(directory) = &self.record {
            // Numbers of the same width sort in the order of time.
            let copy = directory.join(format!("{:06}", self.taken));
            Files { root: self.root() }.copy_to(&copy)?;
        }
        let root = self.root().to_owned();
        let files = Files { root: &root };
        let mut schedules = Vec::new();
        for cpu in files.cpus()? {
            schedules.extend(files.schedule(cpu, &mut self.names)?);
        }
        self.taken += 1;
        Ok(Reading { schedules })
    }
}

/// Lists the readings in a recording, in the order of time.
fn recorded(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_reading = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.len() == 6 && name.bytes().all(|it| it.is_ascii_digit()))
    };
    let mut readings: Vec<PathBuf> = paths.filter(is_reading).collect();
    readings.sort_unstable();
    readings
}
