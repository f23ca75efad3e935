// SPDX-License-Identifier: GPL-2.0

//! The comparison of the drivers: what a test's results on both mean.

use super::tap::{
    Figure,
    Test,
    Verdict, //
};
use serde::Serialize;
use std::collections::BTreeSet;

/// A part of the run: which driver has the PMU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The built-in driver, before rpmu was loaded.
    BuiltIn,
    /// rpmu.
    Rpmu,
    /// The built-in driver again, after rpmu has given the PMU back.
    BuiltInAgain,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 3] = [Self::BuiltIn, Self::Rpmu, Self::BuiltInAgain];

    /// Returns the phase in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Rpmu => "rpmu",
            Self::BuiltInAgain => "built-in again",
        }
    }
}

/// What a check gave in a phase.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// The tests with their results.
    pub tests: Vec<Test>,
    /// The measured values.
    pub figures: Vec<Figure>,
    /// Why there are no or not all results; empty if there are.
    pub incomplete: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl Part {
    /// Returns the number of tests with this result.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.tests.iter().filter(|it| it.verdict == verdict).count()
    }

    fn test(&self, name: &str) -> Option<&Test> {
        self.tests.iter().find(|it| it.name == name)
    }
}

/// What the results of a test on both drivers mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// rpmu has found that the PMU does not work, and has switched its counters off.
    SwitchedOff,
    /// It fails on rpmu only: a fault of rpmu.
    RpmuOnly,
    /// It fails on the built-in driver after rpmu, not before: rpmu has left something behind.
    LeftBehind,
    /// It fails on both drivers: the hardware, the hypervisor, or the test.
    Both,
    /// It fails on the built-in driver only. No problem of rpmu.
    BuiltInOnly,
}

impl Kind {
    /// Returns whether the run has failed because of it.
    pub const fn is_problem(self) -> bool {
        !matches!(self, Self::BuiltInOnly)
    }

    /// Returns the meaning in words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::SwitchedOff => "the PMU does not work, or rpmu is wrong: please report it",
            Self::RpmuOnly => "fails on rpmu only: please report it",
            Self::LeftBehind => {
                "fails on the built-in driver after rpmu, not before: please report it"
            }
            Self::Both => "fails on both drivers: the hardware, the hypervisor or this check",
            Self::BuiltInOnly => "fails on the built-in driver, not on rpmu",
        }
    }
}

/// A test that did not pass on each driver.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The check.
    pub check: String,
    /// The test, or what else has failed.
    pub test: String,
    /// The meaning.
    pub kind: Kind,
    /// The messages of the worst phase.
    pub said: Vec<String>,
}

/// Compares the results of a check in the three phases; a phase that did not run is `None`.
pub fn compare(check: &str, parts: &[Option<Part>; 3]) -> Vec<Finding> {
    let mut names = BTreeSet::new();
    for part in parts.iter().flatten() {
        names.extend(part.tests.iter().map(|it| it.name.as_str()));
    }
    let mut findings: Vec<Finding> = names
        .into_iter()
        .filter_map(|name| {
            let tests = parts.each_ref().map(|part| part.as_ref()?.test(name));
            let failed = tests.map(|it| it.map(|it| it.verdict == Verdict::Failed));
            finding(check, name, failed, |phase| {
                tests[phase].map_or(Vec::new(), |it| it.said.clone())
            })
        })
        .collect();
    let incomplete = parts
        .each_ref()
        .map(|part| part.as_ref().map(|part| !part.incomplete.is_empty()));
    findings.extend(finding(check, "the program", incomplete, |phase| {
        parts[phase]
            .iter()
            .map(|part| part.incomplete.clone())
            .collect()
    }));
    findings
}

/// Compares the lines of the kernel's log that look like trouble in the three phases.
pub fn compare_logs(trouble: &[Vec<String>; 3]) -> Option<Finding> {
    let failed = trouble.each_ref().map(|lines| Some(!lines.is_empty()));
    finding("log", "the kernel's log", failed, |phase| {
        trouble[phase].clone()
    })
}

/// Returns the meaning of failures in the phases, if there are any. `None`: not run there.
fn finding(
    check: &str,
    test: &str,
    failed: [Option<bool>; 3],
    said: impl Fn(usize) -> Vec<String>,
) -> Option<Finding> {
    let [before, rpmu, after] = failed.map(|it| it == Some(true));
    let (kind, phase) = match (before, rpmu, after) {
        (false, false, false) => return None,
        (false, true, _) => (Kind::RpmuOnly, 1),
        (false, false, true) => (Kind::LeftBehind, 2),
        (true, true, _) => (Kind::Both, 1),
        (true, false, _) => (Kind::BuiltInOnly, 0),
    };
    Some(Finding {
        check: check.to_owned(),
        test: test.to_owned(),
        kind,
        said: said(phase),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(verdict: Verdict) -> Option<Part> {
        let said = vec![format!("{verdict:?}")];
        let test = Test {
            name: "t".to_owned(),
            verdict,
            runs: 1,
            said,
        };
        Some(Part {
            tests: vec![test],
            ..Part::default()
        })
    }

    #[test]
    fn kinds() {
        use Verdict::{
            Failed as F,
            Passed as P,
            Skipped as S, //
        };
        let cases = [
            ([P, P, P], None),
            ([S, S, S], None),
            ([P, S, P], None),
            ([P, F, P], Some(Kind::RpmuOnly)),
            ([S, F, S], Some(Kind::RpmuOnly)),
            ([P, F, F], Some(Kind::RpmuOnly)),
            ([P, P, F], Some(Kind::LeftBehind)),
            ([F, F, F], Some(Kind::Both)),
            ([F, F, P], Some(Kind::Both)),
            ([F, P, F], Some(Kind::BuiltInOnly)),
            ([F, S, P], Some(Kind::BuiltInOnly)),
        ];
        for (verdicts, kind) in cases {
            let found = compare("c", &verdicts.map(part));
            assert_eq!(found.first().map(|it| it.kind), kind, "{verdicts:?}");
            if let Some(finding) = found.first() {
                assert_eq!(finding.said, ["Failed"], "{verdicts:?}");
            }
        }
    }

    /// rpmu could not be loaded, or the run was interrupted.
    #[test]
    fn phases_that_did_not_run() {
        assert_eq!(compare("c", &[part(Verdict::Passed), None, None]), []);
        let found = compare("c", &[part(Verdict::Failed), None, None]);
        assert_eq!(found[0].kind, Kind::BuiltInOnly);
    }

    /// Trouble that the built-in driver has before rpmu is loaded is none that rpmu leaves behind.
    #[test]
    fn trouble_in_the_log() {
        let trouble = |lines: [&str; 3]| {
            let phases = lines.map(|it| it.lines().map(str::to_owned).collect());
            compare_logs(&phases).map(|it| (it.kind, it.said.concat()))
        };
        assert_eq!(trouble(["", "", ""]), None);
        assert_eq!(trouble(["", "b", ""]), Some((Kind::RpmuOnly, "b".into())));
        assert_eq!(trouble(["", "", "c"]), Some((Kind::LeftBehind, "c".into())));
        assert_eq!(
            trouble(["a", "", "c"]),
            Some((Kind::BuiltInOnly, "a".into()))
        );
        assert_eq!(trouble(["a", "b", ""]), Some((Kind::Both, "b".into())));
    }

    #[test]
    fn a_program_that_hangs() {
        let hung = Part {
            incomplete: "ended after 60 s".to_owned(),
            ..Part::default()
        };
        let found = compare(
            "c",
            &[Some(Part::default()), Some(hung), Some(Part::default())],
        );
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].kind, found[0].test.as_str()),
            (Kind::RpmuOnly, "the program")
        );
        assert_eq!(found[0].said, ["ended after 60 s"]);
    }
}
