// SPDX-License-Identifier: GPL-2.0

//! Tests the command: its output, its exit status, and that its man page lists all options.

use serde_json::Value;
use std::process::{
    Command,
    Output, //
};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rpmu-plan"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the exit status, standard output and standard error.
fn said(arguments: &[&str]) -> (i32, String, String) {
    let output = run(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

const CASE_3: &str =
    "{l1d_pend_miss.pending,faults},cycle_activity.stalls_l1d_pending:D,mem_uops_retired.all_loads";

#[test]
fn the_status_says_whether_all_is_counted() {
    assert_eq!(said(&["-m", "haswell", "-e", "cycles,instructions"]).0, 0);
    assert_eq!(said(&["-m", "haswell", "-e", CASE_3]).0, 1);
    assert_eq!(said(&["-m", "nehalem", "-e", "r0151:p"]).0, 1);
}

#[test]
fn mistakes_are_explained() {
    for (arguments, words) in [
        (
            &["-m", "haswell", "-e", "l1d_pend_mis.pending"][..],
            &["  ^^^^", "l1d_pend_miss.pending"][..],
        ),
        (&["-m", "haswell", "-e", "{cycles"], &["  ^", "unmatched {"]),
        (
            &["-m", "hassell", "-e", "cycles"],
            &[
                "unknown model hassell",
                "did you mean haswell",
                "  sapphirerapids",
            ],
        ),
        (&["list", "-m", "icelakexx"], &["did you mean icelakex, "]),
        (
            &["-m", "amdfam16h", "-e", "cycles", "--sibling", "cycles"],
            &["one thread per core"],
        ),
        (
            &["-m", "haswell", "-e", "cycles", "--no-force-abort"],
            &["haswell has no allow_tsx_force_abort"],
        ),
        (
            &["-m", "haswell", "-e", "cycles", "--interval", "4"],
            &["us, ms, s or min"],
        ),
        (
            &[
                "-m",
                "haswell",
                "-e",
                "cycles",
                "--smt",
                "off",
                "--sibling",
                "cycles",
            ],
            &["no other thread"],
        ),
        (
            &["-m", "haswell", "-e", "cycles", "--counters", "5"],
            &["haswell has 1 to 4 general-purpose counters"],
        ),
        (
            &["list", "-m", "icelakex", "--fixed", "4"],
            &["at most 3 fixed counters"],
        ),
        (&["-m", "haswell"], &["--event"]),
        (
            &["list", "-m", "haswell", "qqq"],
            &["no event of haswell matches qqq"],
        ),
    ] {
        let (status, out, err) = said(arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        for word in words {
            assert!(err.contains(word), "{arguments:?}: {err}");
        }
    }
}

#[test]
fn json_has_it_all() {
    let (_, out, _) = said(&[
        "-m", "haswell", "--policy", "mainline", "-e", CASE_3, "--json",
    ]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["version"], 2);
    assert_eq!(report["events"][3]["share"], 0.5);
    assert_eq!(report["events"][3]["causes"][0]["kind"], "head-of-line");
    assert_eq!(report["events"][0]["causes"][0]["kind"], "counters");
    assert_eq!(report["events"][0]["causes"][0]["counters"][0], "PMC2");
    assert_eq!(
        report["events"][0]["causes"][0]["holders"][0],
        "cycle_activity.stalls_l1d_pending:D (pinned)"
    );
    assert_eq!(report["configurations"].as_array().unwrap().len(), 2);
    assert_eq!(report["turns"][1], 1);
    assert_eq!(report["runs"]["events"].as_array().unwrap().len(), 2);
    assert_eq!(report["runs"]["minimal"], true);
}

/// Shares are 0 and not -0, and the report makes no statement about events that cannot be counted.
#[test]
fn events_that_cannot_be_counted() {
    let arguments = ["-m", "amdzen4", "-e", "cycles:pp"];
    let (status, out, _) = said(&[&arguments[..], &["--json"]].concat());
    assert_eq!(status, 1);
    assert!(
        out.contains("\"share\": 0.0") && !out.contains("-0.0"),
        "{out}"
    );
    let (_, out, _) = said(&arguments);
    assert!(out.contains("none of the events can be counted"), "{out}");
    assert!(
        !out.contains("every event counts") && !out.contains("0 runs"),
        "{out}"
    );
    let (_, out, _) = said(&["-m", "amdzen4", "-e", "cycles:pp,cycles"]);
    assert!(
        out.contains("leave out the events that cannot be counted here: cycles:pp"),
        "{out}"
    );
    assert!(
        out.contains("- 1 run: every event counts all the time"),
        "{out}"
    );
}

/// Equal events of several commands, and of the watchdog, share a counter.
#[test]
fn commands_beside_each_other_share_counters() {
    let all = "cycles,instructions,branches,branch-misses,LLC-loads,LLC-load-misses";
    let three = ["-e", all, "--beside", all, "--beside", all];
    let machine = ["-m", "haswell", "--watchdog"];
    let beside = [&machine[..], &three].concat();
    let (status, out, _) = said(&beside);
    assert_eq!(status, 0, "{out}");
    for line in [
        "cycles           PMC0-3, FIXED1  100 %, rides on (NMI watchdog) (FIXED1)",
        "branches         PMC0-3          100 %",
        "beside (2)",
        "branches         PMC0-3          100 %, rides on branches of the command (PMC0)",
    ] {
        assert!(out.lines().any(|it| it == line), "{line}: {out}");
    }
    assert!(out.contains("FIXED1=(NMI watchdog) (+3 riders)"), "{out}");

    let (_, out, _) = said(&[&beside[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&out).unwrap();
    let events = report["events"].as_array().unwrap();
    assert_eq!(events.len(), 18);
    let rider = &events[6 + 2];
    assert_eq!((&rider["beside"], &rider["group"]), (&1.into(), &8.into()));
    let ride = &rider["rides_on"][0];
    assert_eq!(
        (&ride["event"], &ride["counters"]),
        (&"branches".into(), &"PMC0".into())
    );
    assert_eq!(
        report["configurations"][0]["riders"]
            .as_array()
            .unwrap()
            .len(),
        13
    );

    for other in [["--share", "0"], ["--policy", "mainline"]] {
        let (status, out, _) = said(&[&beside[..], &other].concat());
        assert!(status == 1 && !out.contains("rider"), "{out}");
        let why = ", but with share=0 or policy=mainline, no events share a counter";
        assert!(
            out.contains("; it would share with ") && out.contains(why),
            "{out}"
        );
    }
    assert_eq!(said(&[&beside[..], &["--share", "2"]].concat()).0, 2);
    assert_eq!(said(&["--live", "--beside", all]).0, 2);
}

/// A virtual machine has the counters that it is given, and no extra registers.
#[test]
fn virtual_machines() {
    let events = "cycles,instructions,r1c4,r2c4,r4c4";
    let machine = ["-m", "haswell", "--counters", "2", "--fixed", "1"];
    let (status, out, _) = said(&[&machine[..], &["-e", events]].concat());
    assert_eq!(status, 1, "{out}");
    let head = "virtual machine, two threads per core: 2 general-purpose and 1 fixed counters";
    assert!(out.lines().next().unwrap().ends_with(head), "{out}");
    // Four events for two counters; instructions have the fixed one.
    for line in [
        "cycles        PMC0-1          50.0 %",
        "instructions  PMC0-1, FIXED0  100 %",
    ] {
        assert!(out.lines().any(|it| it == line), "{line}: {out}");
    }
    assert!(!out.contains("firmware"), "{out}");

    let none = ["-m", "haswell", "--counters", "4", "--fixed", "0", "--json"];
    let (_, out, _) = said(&[&none[..], &["-e", "cycles"]].concat());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["machine"]["guest"], true);
    assert_eq!(report["events"][0]["counters"], "PMC0-3");

    let offcore = "cpu/event=0xb7,umask=1,offcore_rsp=1/";
    assert_eq!(said(&["-m", "haswell", "-e", offcore]).0, 0);
    for refused in [offcore, "cycles:pp", "l1d_pend_miss.pending"] {
        let (status, out, _) = said(&[&machine[..], &["-e", refused]].concat());
        assert!(
            status == 1 && out.contains("<not supported>"),
            "{refused}: {out}"
        );
    }
    let (_, out, _) = said(&["list", "-m", "haswell", "--counters", "2", "cycles"]);
    let mut lines = out.lines().filter(|line| line.starts_with("cycles "));
    assert!(lines.next().unwrap().ends_with(" PMC0-1, FIXED1"), "{out}");
}

/// Two sampled events share no counter, also if one of them rides on an event that only counts.
#[test]
fn sampled_events_wait_for_riders() {
    let one = "cpu/event=0xc4,umask=1,period=100003,rand_mask=0xff,name=one/";
    let other = one.replace("one", "other");
    let events = format!("r1c4,{one},{{r2c4,r4c4,r8c4}},{other}");
    let (status, out, _) = said(&["-m", "haswell", "-e", &events]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("PMC0=r1c4 (+1 rider)"), "{out}");
    let (_, why) = out.split_once("\nother\n").unwrap();
    let why: Vec<&str> = why.lines().take_while(|it| it.starts_with(' ')).collect();
    let why = why[..].join("\n");
    assert!(
        why.contains("it would share with one, but both are sampled"),
        "{out}"
    );
    assert!(!out.contains("only  can count it"), "{out}");
}

/// Events of other PMUs are listed beside those of the core.
#[test]
fn other_pmus_need_no_counter() {
    let events = "cycles,msr/tsc/,faults,cpu/instructions,name=done/";
    let (status, out, _) = said(&["-m", "haswell", "-e", events]);
    assert_eq!(status, 0);
    let line = |start: &str| {
        let mut lines = out.lines();
        let line = lines.find(|line| line.starts_with(start)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(line("msr/tsc/"), "none");
    assert_eq!(line("faults"), "software");
    assert_eq!(line("done"), "PMC0-3,");
}

#[test]
fn perf_records_terms_are_for_perf_record() {
    let events = "cycles/call-graph=fp/,cpu/mem-loads,ldlat=30/P";
    let (status, _, err) = said(&["-m", "haswell", "-e", events]);
    assert_eq!(status, 2);
    assert!(err.contains("--record"), "{err}");
    assert_eq!(said(&["-m", "haswell", "--record", "-e", events]).0, 0);
}

#[test]
fn pictures_are_xml_with_every_event() {
    let (_, out, _) = said(&["-m", "haswell", "-e", CASE_3, "--svg"]);
    assert!(out.starts_with("<svg ") && out.trim_end().ends_with("</svg>"));
    for tag in ["g", "text", "title", "style"] {
        let opened = out.matches(&format!("<{tag}>")).count();
        let opened = opened + out.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, out.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    for name in [
        "l1d_pend_miss.pending",
        "faults",
        "mem_uops_retired.all_loads",
        "PMC3",
        "FIXED2",
    ] {
        assert!(out.contains(name), "{name}");
    }
    let (_, page, _) = said(&["-m", "haswell", "-e", CASE_3, "--html"]);
    assert!(page.starts_with("<!doctype html>") && page.contains(out.trim_end()));
    assert!(page.contains("&lt;not counted&gt;"));
}

/// A group without room beside the watchdog does not wait for a turn.
#[test]
fn a_group_that_never_counts_gets_no_turn() {
    let events = "{r1c4,r2c4,r4c4,r8c4,cycles},{r1c5,r2c5,r4c5,r8c5,cycles},r10c4";
    let machine = ["-m", "haswell", "--watchdog", "--share", "0"];
    let (_, out, _) = said(&[&machine[..], &["-e", events, "--json"]].concat());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["events"][0]["share"], 0.0);
    let configurations = report["configurations"].as_array().unwrap();
    for group in configurations
        .iter()
        .flat_map(|it| it["waiting"].as_array().unwrap())
    {
        let why = group[1].as_str().unwrap();
        assert_ne!(why, "waits for rotation", "{group}");
    }
}

/// If names do not fit in the bars, numbers identify the events.
#[test]
fn bars_have_numbers() {
    let names = ["l1_hit", "l1_miss", "fb_hit", "l2_hit", "l3_hit"];
    let events = names
        .map(|name| format!("mem_load_retired.{name}"))
        .join(",");
    let (_, out, _) = said(&["-m", "skylake", "-e", &events, "--svg"]);
    for (number, name) in (1..).zip(names) {
        assert!(out.contains(&format!(">{number}</text></g>")), "{out}");
        assert!(
            out.contains(&format!(">{number}: mem_load_retired.{name}</text>")),
            "{out}"
        );
    }
    assert!(!out.contains("mem…"), "{out}");
}

#[test]
fn cores_without_smt_have_one_thread() {
    for (model, threads) in [
        ("amdfam15h", "one thread per core"),
        ("amdfam16h", "one thread per core"),
        ("amdzen4", "two threads per core"),
        ("skylake", "two threads per core"),
    ] {
        let (_, out, _) = said(&["-m", model, "-e", "cycles"]);
        assert!(out.contains(threads), "{out}");
        let crowded = "r1c0,r2c0,r3c0,r4c0,r5c0,r6c0,r7c0,r8c0,r9c0,rac0";
        let (_, out, _) = said(&["-m", model, "-e", crowded]);
        assert_eq!(out.contains("SMT"), model == "skylake", "{out}");
    }
}

#[test]
fn lists() {
    let (status, out, _) = said(&["list", "-m", "HSW", "l1d_pend_miss.pending"]);
    assert_eq!(status, 0);
    let line = out.lines().next().unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["l1d_pend_miss.pending", "PMC2"]
    );
    assert!(out.contains("of Linux 7."));
    let (_, out, _) = said(&["list", "-m", "spr", "topdown-mem-bound"]);
    let line = out.lines().next().unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["topdown-mem-bound", "METRIC7"]
    );
    let (_, out, _) = said(&["list", "-m", "nehalem", "LLC-load"]);
    assert!(out.contains("LLC-load-misses"));
}

#[test]
fn changes_and_runs_help() {
    // The watchdog holds the fixed counter, so five events share four counters.
    let events = "cycles,r1c4,r2c4,r3c4,r4c4";
    let machine = ["-m", "skylake", "--watchdog", "--share", "0"];
    let (_, out, _) = said(&[&machine[..], &["-e", events]].concat());
    assert!(
        out.contains("sysctl kernel.nmi_watchdog=0): every event counts all the time"),
        "{out}"
    );
    assert!(
        out.contains("disable SMT in the firmware: every event counts all the time"),
        "{out}"
    );
    assert!(out.contains("2 runs"), "{out}");
    let (_, out, _) = said(&[
        "-m",
        "skylake",
        "--no-force-abort",
        "-e",
        "r1c4,r2c4,r3c4,r4c4",
    ]);
    assert!(
        out.contains("allow_tsx_force_abort): every event counts all the time"),
        "{out}"
    );
}

/// A group that does not fit beside the watchdog's event does not block the groups behind it for
/// good.
#[test]
fn groups_without_room_hold_up_none() {
    let six = "{branches,branch-misses,r77,r1c0,r2c0,r3c0}";
    for (behind, first) in [("{task-clock,r4c0}", 7), ("{r4c0,r6c0}:e", 6)] {
        let events = format!("{six},{behind},r5c0");
        let (_, out, _) = said(&[
            "-m",
            "amdzen4",
            "--watchdog",
            "--smt",
            "off",
            "--json",
            "-e",
            &events,
        ]);
        let report: Value = serde_json::from_str(&out).unwrap();
        let events = report["events"].as_array().unwrap();
        let share = |event: usize| events[event]["share"].as_f64().unwrap();
        assert_eq!(share(0), 0.0, "{report:#}");
        assert!(share(first) >= 0.33, "{report:#}");
        assert!(share(events.len() - 1) >= 0.33, "{report:#}");
        let cause = &events[first]["causes"][0];
        assert!(
            ["head-of-line", "exclusive"].contains(&cause["kind"].as_str().unwrap()),
            "{report:#}"
        );
    }
}

#[test]
fn the_sibling_is_in_the_way() {
    // The sibling's corrupting events hold two counters and leave two to this thread.
    let sibling = "mem_uops_retired.all_loads,mem_uops_retired.all_stores";
    let (status, out, _) = said(&[
        "-m",
        "haswell",
        "-e",
        "r1c4,r2c4,r3c4",
        "--sibling",
        sibling,
    ]);
    assert_eq!(status, 1);
    assert!(
        out.contains("do not count on the core's other thread at the same time: every event"),
        "{out}"
    );
}

/// If both threads rotate events that exclude each other, each event gets its share. The report
/// names the other thread as the cause while that thread holds the counters.
#[test]
fn both_threads_have_their_share() {
    let plain = "r1c4,r2c4,r4c4,r8c4,r10c4,r20c4";
    let both = "r81d0,r82d0,r1c4,r2c4,r8c4,r20c4";
    for (events, sibling, least) in [
        ("r81d0:u", plain, 0.45),
        (plain, "r81d0:u", 0.45),
        (both, both, 0.3),
    ] {
        for policy in ["rpmu", "mainline"] {
            let arguments = [
                "-m",
                "haswell",
                "-e",
                events,
                "--sibling",
                sibling,
                "--policy",
                policy,
            ];
            let (_, out, _) = said(&[&arguments[..], &["--json"]].concat());
            let report: Value = serde_json::from_str(&out).unwrap();
            for event in report["events"].as_array().unwrap() {
                let share = event["share"].as_f64().unwrap();
                assert!(share >= least, "{policy}: {event}");
                for cause in event["causes"].as_array().unwrap() {
                    assert_ne!(cause["kind"], "turn", "{policy}: {event}");
                }
            }
        }
    }
    let (_, out, _) = said(&["-m", "haswell", "-e", "r81d0:u", "--sibling", plain]);
    assert!(out.contains("the core's other thread uses PMC0-3"), "{out}");
    assert!(!out.contains("can count it"), "{out}");
}

/// Fixed counter 3 and the metrics serve one group at a time. A group that does not fit is split,
/// but metrics stay with their slots.
#[test]
fn slots_and_metrics_are_one_resource() {
    let both = "{slots,topdown-retiring,r1c4}:X,{slots,topdown-bad-spec,r2c4}:X";
    let (status, out, _) = said(&["-m", "icx", "-e", both]);
    assert_eq!(status, 1);
    assert_eq!(out.matches("  50.0 %\n").count(), 6, "{out}");
    let why = "slots count for one group at a time, and topdown metrics with them, and slots, \
               topdown-retiring hold them";
    assert!(out.contains(why), "{out}");
    assert!(out.contains("2 runs"), "{out}");

    let general: Vec<String> = (1..=9).map(|umask| format!("r{umask}c4")).collect();
    let events = format!("{{slots,topdown-retiring,{}}}", general.join(","));
    let (_, out, _) = said(&["-m", "icx", "-e", &events, "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let runs = report["runs"]["events"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{out}");
    let has = |text: &str| {
        runs.iter()
            .filter(|run| run.as_str().unwrap().contains(text))
            .count()
    };
    assert_eq!(
        (has("{slots,topdown-retiring}"), has("topdown")),
        (1, 1),
        "{out}"
    );
    assert!(report["runs"]["never"].is_null(), "{out}");

    let (_, out, _) = said(&["-m", "spr", "-e", "topdown-retiring:X"]);
    assert!(
        out.contains("EINVAL, topdown metrics need slots as the leader"),
        "{out}"
    );
}

#[test]
fn the_man_page_has_every_option() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/rpmu-plan.1");
    let page = std::fs::read_to_string(path).unwrap().replace('\\', "");
    let (_, help, _) = said(&["--help"]);
    let options = help
        .split_whitespace()
        .filter(|word| word.starts_with("--") && word.len() > 2);
    for option in options {
        let option = option.trim_end_matches([',', '.', ')']);
        // The value is optional.
        let option = option.split('[').next().unwrap_or_default();
        assert!(page.contains(option), "{option}");
    }
}

/// Each shell's completions contain the options and commands of the help.
#[test]
fn the_completions_have_every_option() {
    let (_, help, _) = said(&["--help"]);
    for shell in ["bash", "zsh", "fish"] {
        let (status, script, _) = said(&["completions", shell]);
        assert_eq!(status, 0);
        for word in ["interval", "sibling", "live", "list", "models"] {
            assert!(help.contains(word));
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(said(&["completions", "tcsh"]).0, 2);
}
