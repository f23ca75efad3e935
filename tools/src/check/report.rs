// SPDX-License-Identifier: GPL-2.0

//! The report: what was tried on which machine, and how the drivers differ.

use super::advice;
use super::checks::Check;
use super::compare::{
    compare,
    Finding,
    Kind,
    Part,
    Phase, //
};
use super::facts::Machine;
use super::private::Private;
use super::tap::Verdict;
use serde::Serialize;
use std::fmt::Write;

/// What a report's reader must know about exact counts on real hardware.
pub const EXACTNESS: &str = "Counts of instructions and branches in user mode are exact, except \
    that many processors count the return from an interrupt or page fault as an instruction or \
    branch of the interrupted program: such a count is a few too high, never too low. Therefore a \
    test that fails runs again, up to three times. Counts that include the kernel contain its \
    interrupts and are compared within limits. Errata may add deviations: see errata.md.";

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "end", content = "why")]
pub enum End {
    /// All phases ran.
    Complete,
    /// No time was left for some checks.
    OutOfTime,
    /// rpmu could not be loaded, or not be unloaded; the reason.
    Stopped(String),
    /// The user interrupted the run.
    Interrupted,
}

/// A check with its results in each phase.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The name on the command line.
    pub name: String,
    /// What it checks.
    pub title: String,
    /// The results on the built-in driver, on rpmu, and on the built-in driver again.
    pub parts: [Option<Part>; 3],
}

/// A measured value on each driver.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The unit.
    pub unit: String,
    /// The values in the phases.
    pub values: [Option<f64>; 3],
}

/// The report. Serialized, it is `rpmu-check.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of rpmu-check.
    pub version: String,
    /// The version of this format.
    pub format: u32,
    /// How the run ended.
    pub end: End,
    /// The machine.
    pub machine: Machine,
    /// The duration in seconds.
    pub seconds: f64,
    /// What failed, the worst first.
    pub findings: Vec<Finding>,
    /// The checks.
    pub checks: Vec<Entry>,
    /// The measured values, side by side.
    pub figures: Vec<Row>,
    /// What rpmu has logged, and what else in the kernel's log looks like trouble.
    pub log: Vec<String>,
}

impl Report {
    /// Returns an empty report on this machine.
    pub fn new(machine: Machine, checks: &[&Check]) -> Self {
        let entry = |check: &&Check| Entry {
            name: check.name.to_owned(),
            title: check.title.to_owned(),
            parts: [None, None, None],
        };
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: 1,
            end: End::Complete,
            machine,
            seconds: 0.0,
            findings: Vec::new(),
            checks: checks.iter().map(entry).collect(),
            figures: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Adds the results of a check.
    pub fn add(&mut self, check: &str, phase: Phase, part: Part) {
        if let Some(entry) = self.checks.iter_mut().find(|it| it.name == check) {
            entry.parts[phase as usize] = Some(part);
        }
    }

    /// Adds a finding that no test program has made, such as trouble in the kernel's log.
    pub fn find(&mut self, check: &str, test: &str, kind: Kind, said: Vec<String>) {
        self.findings.push(Finding {
            check: check.to_owned(),
            test: test.to_owned(),
            kind,
            said,
        });
    }

    /// Adds that rpmu has switched its counters off, and why; `line` is its line in the log.
    pub fn switched_off(&mut self, why: &str, line: &str) {
        self.find(
            "breaker",
            &format!("rpmu has switched its counters off: {why}"),
            Kind::SwitchedOff,
            advice::explained(&[line.to_owned()]),
        );
    }

    /// Compares the drivers and removes personal details: nothing may be added afterwards.
    pub fn finish(&mut self, private: &Private) {
        for entry in &self.checks {
            self.findings.extend(compare(&entry.name, &entry.parts));
        }
        self.findings.sort_by_key(|it| it.kind);
        self.figures = rows(&self.checks);
        let clean = |text: &mut String| *text = private.clean(text);
        self.log.iter_mut().for_each(clean);
        self.findings
            .iter_mut()
            .flat_map(|it| &mut it.said)
            .for_each(clean);
        for part in self
            .checks
            .iter_mut()
            .flat_map(|it| &mut it.parts)
            .flatten()
        {
            clean(&mut part.incomplete);
            for test in &mut part.tests {
                clean(&mut test.name);
                test.said.iter_mut().for_each(clean);
            }
        }
        let Machine { cpu, kernel, .. } = &mut self.machine;
        clean(cpu);
        clean(kernel);
        if let End::Stopped(why) = &mut self.end {
            clean(why);
        }
    }

    /// Returns whether all phases ran, tests passed on rpmu, and none failed on rpmu or after it.
    pub fn is_good(&self) -> bool {
        self.end == End::Complete
            && self.passed() > 0
            && !self.findings.iter().any(|it| it.kind.is_problem())
    }

    /// Returns the number of tests that passed on rpmu.
    fn passed(&self) -> usize {
        let parts = self
            .checks
            .iter()
            .filter_map(|it| it.parts[Phase::Rpmu as usize].as_ref());
        parts.map(|it| it.count(Verdict::Passed)).sum()
    }

    /// Returns the result in one sentence.
    pub fn verdict(&self) -> String {
        let problems = self.findings.iter().filter(|it| it.kind.is_problem());
        let count = problems.clone().count();
        match (&self.end, count) {
            (End::Interrupted, _) => "Interrupted: the report is not complete.".to_owned(),
            (End::Stopped(why), _) => format!("Stopped: {why}."),
            (End::OutOfTime, 0) => {
                "No time was left for all checks (--minutes gives more); no other problem."
                    .to_owned()
            }
            (End::Complete, 0) => match self.passed() {
                0 => {
                    "Nothing was tried: no test of these checks applies to this machine.".to_owned()
                }
                passed => format!(
                    "rpmu works on this machine: {passed} tests passed on rpmu, and none failed on \
                     rpmu nor, after it, on the built-in driver."
                ),
            },
            (End::Complete | End::OutOfTime, _) => {
                let mut names: Vec<&str> = problems.map(|it| it.check.as_str()).collect();
                names.dedup();
                let s = if count == 1 { "" } else { "s" };
                format!("{count} problem{s}: {}.", names.join(", "))
            }
        }
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "rpmu-check {}: {}\n", self.version, self.verdict())?;
        for (name, value) in self.facts() {
            writeln!(out, "{name:<12}{value}")?;
        }
        if !self.findings.is_empty() {
            writeln!(out)?;
        }
        for finding in &self.findings {
            writeln!(
                out,
                "{}: {}: {}",
                finding.check,
                finding.test,
                finding.kind.meaning()
            )?;
            for line in &finding.said {
                writeln!(out, "    {line}")?;
            }
        }
        if self
            .checks
            .iter()
            .any(|it| it.parts.iter().any(Option::is_some))
        {
            writeln!(out, "\n{:<16}{}", "check", header())?;
            for entry in &self.checks {
                let cells = entry.parts.each_ref().map(|it| cell(it.as_ref()));
                let cells: Vec<String> = cells.iter().map(|it| format!("{it:>18}")).collect();
                writeln!(out, "{:<16}{}  {}", entry.name, cells.concat(), entry.title)?;
            }
        }
        if !self.figures.is_empty() {
            writeln!(out, "\n{:<34}{}", "measured", header())?;
        }
        for row in &self.figures {
            let values = row.values.map(|it| it.map_or("-".to_owned(), number));
            let values: Vec<String> = values.iter().map(|it| format!("{it:>18}")).collect();
            let name = row.name.replace('_', " ");
            writeln!(out, "{name:<34}{}  {}", values.concat(), row.unit)?;
        }
        writeln!(out)?;
        for line in wrapped(EXACTNESS, 100) {
            writeln!(out, "{line}")?;
        }
        if !self.log.is_empty() {
            writeln!(out, "\nThe kernel's log:")?;
        }
        for line in &self.log {
            writeln!(out, "    {line}")?;
        }
        Ok(())
    }

    /// Returns the machine's description as names and values.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let it = &self.machine;
        let kind = match it.virtual_machine {
            true => "virtual machine",
            false => "no hypervisor",
        };
        vec![
            ("processor", it.cpu.clone()),
            (
                "",
                format!(
                    "{}, {}, microcode {}",
                    it.vendor, it.signature, it.microcode
                ),
            ),
            (
                "CPUs",
                format!(
                    "{}; threads per core: {}; {kind}",
                    it.cpus, it.threads_per_core
                ),
            ),
            ("kernel", it.kernel.clone()),
            ("duration", format!("{:.0} s", self.seconds)),
        ]
    }
}

fn header() -> String {
    Phase::ALL.map(|it| format!("{:>18}", it.name())).concat()
}

/// Returns the results of a check in a phase in a few words.
pub fn cell(part: Option<&Part>) -> String {
    let Some(part) = part else {
        return "not run".to_owned();
    };
    let failed = part.count(Verdict::Failed);
    let mut words = Vec::new();
    if failed > 0 {
        words.push(format!("{failed} FAILED"));
    }
    if !part.incomplete.is_empty() {
        words.push("INCOMPLETE".to_owned());
    }
    match part.count(Verdict::Passed) {
        0 if words.is_empty() => words.push("does not apply".to_owned()),
        0 => (),
        passed => words.push(format!("{passed} ok")),
    }
    words.join(", ")
}

/// Returns a number with as many digits as say something.
pub fn number(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        magnitude if magnitude >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn rows(checks: &[Entry]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for entry in checks {
        for (phase, part) in entry.parts.iter().enumerate() {
            for figure in part.iter().flat_map(|it| &it.figures) {
                let at = rows.iter().position(|it| it.name == figure.name);
                let at = at.unwrap_or_else(|| {
                    rows.push(Row {
                        name: figure.name.clone(),
                        unit: figure.unit.clone(),
                        values: [None; 3],
                    });
                    rows.len() - 1
                });
                rows[at].values[phase] = Some(figure.value);
            }
        }
    }
    rows
}

/// Breaks a paragraph into lines of at most `width` characters.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::checks;
    use super::super::html;
    use super::super::tap::{
        self,
        Output, //
    };
    use super::*;

    const PASSED: &str = "1..1\n# a.c:1:t:figure read 100 ns\nok 1 t\n";
    const FAILED: &str = "1..1\n# a.c:1:t:gandalf has read /home/jane/secret\nnot ok 1 t\n";

    fn report(outputs: [&str; 3]) -> Report {
        let mut report = tried(outputs);
        finish(&mut report);
        report
    }

    /// Returns a report to which more can be added.
    fn tried(outputs: [&str; 3]) -> Report {
        let machine = Machine {
            cpu: "A CPU of jane".to_owned(),
            kernel: "7.3-gandalf".to_owned(),
            ..Machine::default()
        };
        let exact = checks::find("exact").unwrap();
        let mut report = Report::new(machine, &[exact]);
        for (phase, text) in Phase::ALL.into_iter().zip(outputs) {
            let Output { tests, figures, .. } = tap::parse(text);
            report.add(
                "exact",
                phase,
                Part {
                    tests,
                    figures,
                    ..Part::default()
                },
            );
        }
        report.log.push("rpmu: in use: 1 of tool[7]".to_owned());
        report
    }

    fn finish(report: &mut Report) {
        let passwd = "jane:x:1000:1000::/home/jane:/bin/sh";
        report.finish(&Private::new("gandalf", passwd));
    }

    #[test]
    fn good() {
        let report = report([PASSED; 3]);
        assert!(report.is_good());
        let text = report.text();
        assert!(text.contains("rpmu works on this machine"), "{text}");
        assert!(text.contains("read") && text.contains("100"), "{text}");
    }

    #[test]
    fn a_difference() {
        let report = report([PASSED, FAILED, PASSED]);
        assert!(!report.is_good());
        assert!(
            report.verdict().contains("1 problem: exact"),
            "{}",
            report.verdict()
        );
        let text = report.text();
        assert!(text.contains("exact: t: fails on rpmu only"), "{text}");
        assert!(text.contains("1 FAILED"), "{text}");
        // The built-in driver's fault is none of rpmu's.
        assert!(super::tests::report([FAILED, PASSED, FAILED]).is_good());
    }

    /// The reason comes first, before the tests that failed because of it.
    #[test]
    fn counters_off() {
        let mut report = tried([PASSED, FAILED, PASSED]);
        let why = "a counter ran backwards or jumped";
        let line = format!("rpmu: CPU 1: {why}. All counters are off, their events");
        report.switched_off(why, &line);
        finish(&mut report);
        assert!(!report.is_good());
        let text = report.text();
        let words = format!("\nbreaker: rpmu has switched its counters off: {why}: ");
        let [breaker, test] =
            [words.as_str(), "\nexact: t: "].map(|it| text.find(it).expect(&text));
        assert!(breaker < test, "{text}");
        assert!(text.contains("more than it can count"), "{text}");
        assert!(report.verdict().contains(": breaker, exact"), "{text}");
        assert!(html::page(&report).contains("switched its counters off"));
    }

    #[test]
    fn nothing_personal_in_any_form() {
        let report = report([FAILED; 3]);
        let json = serde_json::to_string(&report).unwrap();
        for form in [report.text(), json, html::page(&report)] {
            for word in ["gandalf", "jane", "/home", "tool["] {
                assert!(!form.contains(word), "{word} in {form}");
            }
            assert!(form.contains("(a process)"));
        }
    }

    #[test]
    fn stopped() {
        let mut report = report([PASSED; 3]);
        report.end = End::Stopped("rpmu could not be loaded".to_owned());
        assert!(!report.is_good());
        assert_eq!(report.verdict(), "Stopped: rpmu could not be loaded.");
        report.end = End::Interrupted;
        assert!(!report.is_good());
    }

    /// A run in which nothing was tried has not shown that rpmu works.
    #[test]
    fn nothing_applies() {
        let report = report(["1..1\nok 1 t # SKIP no PEBS\n"; 3]);
        assert!(!report.is_good());
        assert!(report.verdict().starts_with("Nothing was tried"));
    }

    #[test]
    fn numbers() {
        let text = [0.0, 12.0, 0.1234, 2.74, 812.5, -3.25].map(number);
        assert_eq!(text, ["0", "12", "0.123", "2.7", "812", "-3.2"]);
    }
}
