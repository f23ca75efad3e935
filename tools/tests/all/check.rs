// SPDX-License-Identifier: GPL-2.0

//! Tests the command line of rpmu-check. Never lets it try this machine.

use rpmu_plan::check::checks::CHECKS;
use std::process::Command;

/// Returns the exit status, and standard output and error.
fn said(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_rpmu-check"))
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[test]
fn lists_its_checks() {
    let (status, text) = said(&["list"]);
    assert_eq!(status, 0);
    for check in CHECKS {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{} ", check.name)));
        assert!(
            line.is_some_and(|line| line.contains(check.title)),
            "{}",
            check.name
        );
    }
    assert!(text.contains("(with --suspend)"), "{text}");
}

#[test]
fn mistakes_are_explained() {
    for (arguments, words) in [
        (
            &["--only", "exactt"][..],
            "no such check: see rpmu-check list",
        ),
        (&["--minutes", "0"], "not in 1..=1000"),
        (&["list", "--dry-run"], "unexpected argument"),
    ] {
        let (status, text) = said(arguments);
        assert_eq!(status, 2, "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn completes() {
    for shell in ["bash", "zsh", "fish"] {
        let (status, text) = said(&["completions", shell]);
        assert_eq!(status, 0);
        assert!(text.contains("dry-run"), "{shell}");
    }
}

/// The man page has each option.
#[test]
fn the_manual_is_complete() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/rpmu-check.1");
    let manual = std::fs::read_to_string(path).unwrap().replace('\\', "");
    let (_, help) = said(&["--help"]);
    let mut options = 0;
    for line in help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
    {
        let name = line.split([' ', '=']).next().unwrap();
        options += 1;
        let heads = [format!(".BI --{name} "), format!(".B --{name}\n")];
        assert!(heads.iter().any(|it| manual.contains(it)), "--{name}");
    }
    assert_eq!(options, 9, "{help}");
}
