// SPDX-License-Identifier: GPL-2.0

//! The module and the settings that `rpmu-check` changes and puts back, and the kernel's log.

use rpmu_plan::check::advice;
use std::fs::{
    self,
    File, //
};
use std::io::{
    Read,
    Seek,
    SeekFrom, //
};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::{
    Command,
    Stdio, //
};
use std::thread::sleep;
use std::time::Duration;

/// The directory of the PMU in sysfs.
pub(crate) const PMU: &str = "/sys/bus/event_source/devices/cpu";

const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";

/// Returns whether rpmu is loaded.
pub(crate) fn is_loaded() -> bool {
    Path::new("/sys/module/rpmu").exists()
}

/// Runs a command of the system. Returns its output and messages, as an error if it fails.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", format!("/usr/sbin:/usr/bin:/sbin:/bin:{path}"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        // Ctrl-C must not interrupt it.
        .process_group(0)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(said),
    }
}

/// Loads rpmu from the file, or by its name from the installed modules.
pub(crate) fn load(module: Option<&Path>, parameters: &str) -> Result<(), String> {
    let done = match module {
        Some(file) => run("insmod", &[&file.to_string_lossy(), parameters]),
        None => run("modprobe", &["rpmu", parameters]),
    };
    done.map(drop)
}

/// Unloads rpmu. An event that is just being closed may keep it for a moment.
pub(crate) fn unload() -> Result<(), String> {
    let mut said = String::new();
    for _ in 0..50 {
        if !is_loaded() {
            return Ok(());
        }
        match run("rmmod", &["rpmu"]) {
            Ok(_) => return Ok(()),
            Err(error) => said = error,
        }
        sleep(Duration::from_millis(100));
    }
    Err(said)
}

/// Returns what to do about an error of loading, after the error itself.
pub(crate) fn with_remedy(error: &str) -> String {
    let error = error.lines().last().unwrap_or("no message");
    match advice::remedy(error) {
        Some(remedy) => format!("{error}\n  {remedy}"),
        None => error.to_owned(),
    }
}

/// Unloads rpmu when it is dropped, also in a panic.
pub(crate) struct Loaded;

impl Drop for Loaded {
    fn drop(&mut self) {
        if is_loaded() && unload().is_err() {
            eprintln!(
                "rpmu-check: rpmu cannot be unloaded: /sys/kernel/debug/rpmu/users names what \
                 keeps it. On trial, it gives the PMU back by itself."
            );
        }
    }
}

/// Settings that test programs change: put back when this is dropped, as a program that was ended
/// cannot do it. The NMI watchdog is off until then, as it is an event on the PMU.
pub(crate) struct Settings(Vec<(PathBuf, String)>);

impl Settings {
    /// Saves the settings and turns the watchdog off.
    pub(crate) fn save() -> Self {
        // In this order: the rate cannot be written while the percentage is 0.
        let paths = [
            "/proc/sys/kernel/perf_cpu_time_max_percent".into(),
            "/proc/sys/kernel/perf_event_max_sample_rate".into(),
            format!("{PMU}/rdpmc"),
            format!("{PMU}/perf_event_mux_interval_ms"),
            WATCHDOG.into(),
        ];
        let read = |path: String| Some((PathBuf::from(&path), fs::read_to_string(path).ok()?));
        let saved = Self(paths.into_iter().filter_map(read).collect());
        let _ = fs::write(WATCHDOG, "0");
        saved
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, value) in &self.0 {
            if fs::read_to_string(path).is_ok_and(|now| now != *value) {
                let _ = fs::write(path, value);
            }
        }
    }
}

/// The kernel's log.
pub(crate) struct Log(Option<File>);

/// Words in lines of the kernel's log that say that something is wrong.
const TROUBLE: [&str; 12] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "Call Trace",
    "general protection",
    "unchecked MSR",
    "NMI received for unknown reason",
    "Dazed and confused",
    "irq loop stuck",
    "soft lockup",
    "hard LOCKUP",
    "detected stall",
];

/// Returns whether a line of the kernel's log says that something is wrong.
pub(crate) fn is_trouble(line: &str) -> bool {
    TROUBLE.iter().any(|it| line.contains(it))
}

impl Log {
    /// Opens the log at its end. Without permission, there will be no lines.
    pub(crate) fn open() -> Self {
        const O_NONBLOCK: i32 = 0o4000;
        let opened = File::options()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open("/dev/kmsg");
        let mut file = opened.ok();
        if let Some(file) = &mut file {
            let _ = file.seek(SeekFrom::End(0));
        }
        Self(file)
    }

    /// Returns the lines since the last call that rpmu has logged or that say that something is
    /// wrong.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(file) = &mut self.0 else {
            return lines;
        };
        let mut record = [0; 8192];
        loop {
            match file.read(&mut record) {
                Ok(0) => return lines,
                // "priority,number,time,flags;message", then lines of details.
                Ok(length) => {
                    let record = String::from_utf8_lossy(&record[..length]);
                    let text = record.split_once(';').map_or("", |(_, text)| text);
                    let line = text.lines().next().unwrap_or_default();
                    if line.starts_with("rpmu: ") || is_trouble(line) {
                        lines.push(line.to_owned());
                    }
                }
                // EPIPE: records were overwritten; the next read continues after them.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => (),
                Err(_) => return lines,
            }
        }
    }
}
