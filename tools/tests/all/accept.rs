// SPDX-License-Identifier: GPL-2.0

//! Predictions for the reference cases: every cell of `selftests/accept/expected` that concerns the
//! module, within its tolerance, except for cases with other agents or the watchdog.

use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::parse;
use rpmu_plan::plan::{
    Plan,
    Request,
    Shown, //
};
use std::collections::HashMap;

/// Tolerance in percentage points, on top of the expected range.
const TOLERANCE: f64 = 3.0;

/// Returns the perf tool's event list for a CPU model of QEMU.
fn list_of(cpu: &str) -> &'static str {
    match cpu {
        "SandyBridge" => "sandybridge",
        "SandyBridge,model=45" => "jaketown",
        "IvyBridge" => "ivybridge",
        "IvyBridge,model=62" => "ivytown",
        "Haswell" => "haswell",
        "Broadwell" => "broadwell",
        "Skylake-Client" => "skylake",
        "Icelake-Server" => "icelakex",
        "GraniteRapids" => "graniterapids",
        "Denverton,model=77" => "silvermont",
        "Denverton" => "goldmont",
        "Denverton,model=122" => "goldmontplus",
        "Snowridge" => "snowridgex",
        "SierraForest,model=190" => "alderlaken",
        "SierraForest" => "sierraforest",
        "Opteron_G3,family=21,model=2" => "amdfam15h",
        "EPYC-Rome" => "amdzen2",
        "EPYC-Genoa" => "amdzen4",
        "EPYC-Genoa,family=26,model=80" => "amdzen6",
        _ => panic!("no event list is known for {cpu}"),
    }
}

fn is_as_expected(shown: Shown, expected: &str) -> bool {
    let range = expected.split(':').next().unwrap();
    let percent = match (range, shown) {
        ("nc", shown) => return shown == Shown::NotCounted,
        ("ns", shown) => return shown == Shown::NotSupported,
        ("100", shown) => return shown == Shown::Always,
        (_, Shown::Always) => 100.0,
        (_, Shown::Percent(percent)) => percent,
        _ => return false,
    };
    let (low, high) = range.split_once("..").unwrap_or((range, range));
    let [low, high] = [low, high].map(|bound| bound.parse::<f64>().unwrap());
    (low - TOLERANCE..=high + TOLERANCE).contains(&percent)
}

#[derive(Default)]
struct Case<'a> {
    number: &'a str,
    interval: f64,
    intervals: f64,
    /// Set if other events are opened beside those of the command line. The planner does not know
    /// of them.
    has_others: bool,
    events: HashMap<&'a str, &'a str>,
}

#[test]
fn reference_cases() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../selftests/accept/expected");
    let text = std::fs::read_to_string(path).unwrap();
    let mut models: HashMap<&str, (&str, bool)> = HashMap::new();
    let mut case = Case::default();
    let (mut cells, mut wrong) = (0, Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["model", label, cpu, ..] => {
                let no_abort = words.contains(&"allow_tsx_force_abort=0");
                models.insert(label, (list_of(cpu), no_abort));
            }
            ["case", number, interval, intervals, ..] => {
                case = Case {
                    number,
                    interval: interval.parse().unwrap(),
                    intervals: intervals.parse().unwrap(),
                    ..Case::default()
                };
            }
            ["on", "agents" | "watchdog"] => case.has_others = true,
            ["events", labels, events] => {
                case.events
                    .extend(labels.split(',').map(|label| (label, events)));
            }
            ["expect", labels, ht, drivers, results] if !case.has_others => {
                for label in labels.split(',') {
                    let threads = if ht == "any" {
                        vec!["on", "off"]
                    } else {
                        vec![ht]
                    };
                    for ht in threads {
                        for driver in ["mainline", "rpmu"] {
                            let mut drivers = drivers.split(',');
                            if !drivers.any(|it| it == driver || it == "all" || it == "module") {
                                continue;
                            }
                            cells += 1;
                            let seen = predict(&case, models[label], label, ht, driver);
                            let expected: Vec<&str> = results.split(',').collect();
                            let right = seen.len() == expected.len()
                                && seen
                                    .iter()
                                    .zip(&expected)
                                    .all(|(it, as_is)| is_as_expected(*it, as_is));
                            if !right {
                                let seen: Vec<String> = seen.iter().map(Shown::to_string).collect();
                                wrong.push(format!(
                                    "case {} on {label}, HT {ht}, {driver}: {results} expected, {} predicted",
                                    case.number,
                                    seen.join(",")
                                ));
                            }
                        }
                    }
                }
            }
            _ => {}
        }
    }
    println!("{cells} cells");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cells >= 150, "{cells} cells are not all of them");
}

fn predict(
    case: &Case<'_>,
    model: (&str, bool),
    label: &str,
    ht: &str,
    driver: &str,
) -> Vec<Shown> {
    let smt = if ht == "on" { Smt::On } else { Smt::Off };
    let machine = Machine::new(model.0, smt, model.1).unwrap();
    let request = Request {
        machine,
        policy: Policy::from_name(driver.as_bytes()).unwrap(),
        share: true,
        watchdog: false,
        events: parse(case.events[label], &machine).unwrap(),
        beside: Vec::new(),
        sibling: Vec::new(),
        interval: case.interval,
        // 0 intervals: the run ends before the first rotation.
        duration: case.interval
            * if case.intervals == 0.0 {
                0.1
            } else {
                case.intervals
            },
    };
    let plan = Plan::new(&request);
    (0..plan.opened.events.len())
        .map(|event| plan.shown(event))
        .collect()
}
