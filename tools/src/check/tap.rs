// SPDX-License-Identifier: GPL-2.0

//! A parser for the output of the test programs (TAP, as the kernel's selftests print it).

use serde::Serialize;

/// The result of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It does not apply here.
    Skipped,
}

/// A test and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Test {
    /// The name: fixture, variant and test, separated by dots.
    pub name: String,
    /// The result of the last run.
    pub verdict: Verdict,
    /// The number of runs: more than one if it failed at first.
    pub runs: u32,
    /// Its messages, or the reason why it was skipped.
    pub said: Vec<String>,
}

/// A measured value, printed by a test as `# figure NAME VALUE UNIT`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The name, in words separated by underscores.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The unit; may be empty.
    pub unit: String,
}

/// The output of a test program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    /// The tests, in their order.
    pub tests: Vec<Test>,
    /// The measured values.
    pub figures: Vec<Figure>,
    /// The number of tests that the program announced.
    pub planned: Option<usize>,
    /// Messages after the last test's result.
    pub rest: Vec<String>,
}

impl Output {
    /// Returns whether there are as many results as announced.
    pub fn is_complete(&self) -> bool {
        self.planned == Some(self.tests.len())
    }
}

/// Parses the output of a test program.
pub fn parse(text: &str) -> Output {
    let mut output = Output::default();
    let mut said = Vec::new();
    for line in text.lines() {
        if let Some(plan) = line.strip_prefix("1..") {
            output.planned = plan.split(' ').next().and_then(|it| it.parse().ok());
        } else if let Some(rest) = line.strip_prefix("ok ") {
            output
                .tests
                .push(test(rest, true, std::mem::take(&mut said)));
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            output
                .tests
                .push(test(rest, false, std::mem::take(&mut said)));
        } else if let Some(figure) = figure(line) {
            output.figures.push(figure);
        } else if !is_frame(line) {
            said.push(line.trim_start_matches('#').trim().to_owned());
        }
    }
    output.rest = said;
    output
}

/// Parses the part of a result's line behind `ok` or `not ok`.
fn test(rest: &str, ok: bool, mut said: Vec<String>) -> Test {
    // The number comes first.
    let rest = rest.split_once(' ').map_or("", |(_, name)| name);
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let skipped = directive.strip_prefix("SKIP").map(str::trim);
    if let Some(reason) = skipped {
        said = vec![reason.to_owned()];
    }
    Test {
        name: name.trim().trim_start_matches("global.").to_owned(),
        verdict: match (skipped, ok) {
            (Some(_), _) => Verdict::Skipped,
            (None, true) => Verdict::Passed,
            (None, false) => Verdict::Failed,
        },
        runs: 1,
        said,
    }
}

fn figure(line: &str) -> Option<Figure> {
    // TH_LOG puts the file, the line and the test before the text.
    let (before, figure) = line.split_once("figure ")?;
    if !before.starts_with('#') {
        return None;
    }
    let mut words = figure.split(' ');
    Some(Figure {
        name: words.next()?.to_owned(),
        value: words.next()?.parse().ok()?,
        unit: words.collect::<Vec<_>>().join(" "),
    })
}

/// Returns whether the line only frames the results.
fn is_frame(line: &str) -> bool {
    let text = line.trim_start_matches('#').trim();
    text.is_empty()
        || text.starts_with("TAP version")
        || text.starts_with("RUN ")
        || text.starts_with("OK ")
        || text.starts_with("FAIL ")
        || text.starts_with("Starting ")
        || text.starts_with("PASSED:")
        || text.starts_with("FAILED:")
        || text.starts_with("Totals:")
        || text.ends_with("skipped test(s) detected.  Consider enabling relevant config options to improve coverage.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program prints with the kernel's harness.
    const HARNESS: &str = "\
TAP version 13
1..3
# Starting 3 tests from 1 test cases.
#  RUN           exact.task.instructions_user ...
# exact_count.c:57:instructions_user:Expected expected (200005) == read_value(fd) (200006)
# instructions_user: Test failed
#          FAIL  exact.task.instructions_user
not ok 1 exact.task.instructions_user
#  RUN           global.cost ...
# real_machine.c:99:cost:figure read 812.5 ns
#            OK  global.cost
ok 2 global.cost
#  RUN           topdown.shares ...
#      SKIP      no topdown metrics
ok 3 topdown.shares # SKIP no topdown metrics
# FAILED: 2 / 3 tests passed.
# 1 skipped test(s) detected.  Consider enabling relevant config options to improve coverage.
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
";

    #[test]
    fn harness() {
        let output = parse(HARNESS);
        assert!(output.is_complete());
        assert_eq!(output.rest, Vec::<String>::new());
        let names: Vec<_> = output
            .tests
            .iter()
            .map(|it| (it.name.as_str(), it.verdict))
            .collect();
        assert_eq!(
            names,
            [
                ("exact.task.instructions_user", Verdict::Failed),
                ("cost", Verdict::Passed),
                ("topdown.shares", Verdict::Skipped),
            ]
        );
        assert!(output.tests[0].said[0].contains("(200006)"));
        assert_eq!(output.tests[2].said, ["no topdown metrics"]);
        let figure = Figure {
            name: "read".to_owned(),
            value: 812.5,
            unit: "ns".to_owned(),
        };
        assert_eq!(output.figures, [figure]);
    }

    /// A program that died in its second test.
    #[test]
    fn cut_off() {
        let end = HARNESS.find("#            OK").unwrap_or_default();
        let output = parse(&HARNESS[..end]);
        assert!(!output.is_complete());
        assert_eq!(output.tests.len(), 1);
        assert!(!parse("").is_complete());
    }
}
