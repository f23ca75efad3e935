// SPDX-License-Identifier: GPL-2.0

//! Runs the test programs.

use super::signals;
use rpmu_plan::check::checks::Check;
use rpmu_plan::check::compare::Part;
use rpmu_plan::check::tap::{
    self,
    Output,
    Verdict, //
};
use std::fs::{
    self,
    File, //
};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{
    CommandExt,
    ExitStatusExt, //
};
use std::path::{
    Path,
    PathBuf, //
};
use std::process::{
    Command,
    Stdio, //
};
use std::thread::sleep;
use std::time::{
    Duration,
    Instant, //
};

/// A directory for the programs' output, removed when it is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("rpmu-check-{}", std::process::id()));
        // Fails if it exists already.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the programs in a directory.
pub(crate) struct Runner<'a> {
    pub(crate) programs: &'a Path,
    pub(crate) scratch: &'a Scratch,
}

impl Runner<'_> {
    /// Runs a check and repeats tests that fail, until `end` at most. `None` if there is no time,
    /// or if the user has interrupted it.
    pub(crate) fn check(&self, check: &Check, end: Instant) -> Option<Part> {
        let start = Instant::now();
        if start >= end || signals::interrupted() {
            return None;
        }
        let limit = Duration::from_secs(check.limit).min(end - start);
        let (output, incomplete) = self.program(check.program, check.options, limit);
        let mut part = Part {
            tests: output.tests,
            figures: output.figures,
            incomplete,
            seconds: 0.0,
        };
        for test in &mut part.tests {
            while test.verdict == Verdict::Failed && test.runs < check.tries() {
                let now = Instant::now();
                if now >= end || signals::interrupted() {
                    break;
                }
                let limit = Duration::from_secs(check.limit).min(end - now);
                let name = full_name(&test.name);
                let (again, _) = self.program(check.program, &["-r", &name], limit);
                let runs = test.runs + 1;
                match again.tests.into_iter().next() {
                    Some(next) => *test = tap::Test { runs, ..next },
                    None => break,
                }
            }
        }
        if signals::interrupted() {
            return None;
        }
        part.seconds = start.elapsed().as_secs_f64();
        Some(part)
    }

    /// Runs a program for at most `limit`. Returns its output, and why that is incomplete.
    fn program(&self, name: &str, arguments: &[&str], limit: Duration) -> (Output, String) {
        let path = self.scratch.0.join("output");
        let ended = self.start(name, arguments, &path, limit);
        let text = fs::read(&path).unwrap_or_default();
        let output = tap::parse(&String::from_utf8_lossy(&text));
        let incomplete = match ended {
            Err(error) => format!("{name}: {error}"),
            Ok(None) => format!("{name} was ended after {:.0} s", limit.as_secs_f64()),
            Ok(Some(signal)) if signal != 0 => format!("{name} was ended by signal {signal}"),
            Ok(Some(_)) if output.is_complete() => String::new(),
            Ok(Some(_)) => {
                let last = output.rest.last().map_or("", |it| it.as_str());
                format!("{name}: some tests have no result: {last}")
            }
        };
        (output, incomplete)
    }

    /// Starts a program with its output in a file, so that nothing else runs while it counts, and
    /// waits. Returns the signal that has ended it, or 0; `None` if the time was over.
    fn start(
        &self,
        name: &str,
        arguments: &[&str],
        path: &Path,
        limit: Duration,
    ) -> io::Result<Option<i32>> {
        let file = File::create(path)?;
        let mut child = Command::new(self.programs.join(name))
            .args(arguments)
            .current_dir(self.programs)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stderr(file.try_clone()?)
            .stdout(file)
            // Ctrl-C arrives here only.
            .process_group(0)
            .spawn()?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status.signal().unwrap_or(0)));
            }
            if start.elapsed() >= limit || signals::interrupted() {
                signals::kill_all(child.id());
                child.wait()?;
                return Ok(None);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the name by which the harness selects a test.
fn full_name(name: &str) -> String {
    match name.contains('.') {
        true => name.to_owned(),
        false => format!("global.{name}"),
    }
}
