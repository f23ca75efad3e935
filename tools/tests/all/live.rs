// SPDX-License-Identifier: GPL-2.0

//! Tests `--live` on the files of a running rpmu.

use serde_json::Value;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::Command;

/// A machine's files, removed on drop.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    /// Returns the exit status, standard output and standard error.
    fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_rpmu-plan"))
            .arg(format!("--live={}", self.0.display()))
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let status = output.status.code().unwrap();
        (status, text(output.stdout), text(output.stderr))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CPUINFO: &str =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 60\nmodel name\t: some\n";
const CPUINFO_FILE: (&str, &str) = ("proc/cpuinfo", CPUINFO);
const SIBLINGS: &str = "sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
const SCHEDULE_0: &str = "sys/kernel/debug/rpmu/cpu0/schedule";
const SCHEDULE_1: &str = "sys/kernel/debug/rpmu/cpu1/schedule";

/// A schedule in the driver's format: the watchdog, and a task's events, two of which need counter
/// 2.
const SCHEDULE: &str = "\
# counter, event, the counters that it may use, since when, task
FIXED1 type=0 config=0x0 id=3 may=PMC0,PMC1,PMC2,PMC3,FIXED1 for_ms=4012 pinned task=none, all of the CPU
PMC2   type=4 config=0x148 id=111 may=PMC2 for_ms=12 task=191 a:b
PMC0   type=4 config=0x1b7 config1=0x3fffc00002 id=112 may=PMC0,PMC1,PMC2,PMC3 for_ms=12 register=OffcoreResponse0 task=191 a:b
PMC1   type=3 config=0x10002 id=114 group=112 may=PMC0,PMC1,PMC2,PMC3 for_ms=12 task=191 a:b
# waiting groups and their members: the reason; the events on the wanted counters
waits type=4 config=0xc000ca3 id=115 members=2 counted_ms=300 task=191 a:b: waits for its turn behind PMC2: id=111
member type=4 config=0xc4 id=116 group=115
# the last failures of events that are not on this CPU now
waits type=4 config=0x777 id=90 members=1 failed=1 ms_ago=9999 task=99 gone: 5 events compete for 4 counters (0xf); PMC2: id=111
";

fn haswell() -> Files {
    Files::new(
        "live-haswell",
        &[
            CPUINFO_FILE,
            (SIBLINGS, "0\n"),
            ("sys/devices/system/cpu/smt/control", "off\n"),
            (SCHEDULE_0, SCHEDULE),
            (SCHEDULE_1, "# this CPU is off\n"),
            ("sys/module/rpmu/parameters/policy", "rpmu\n"),
            (
                "sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms",
                "2\n",
            ),
        ],
    )
}

#[test]
fn names_come_back_and_a_plan_is_made() {
    let (status, out, err) = haswell().said(&["--json"]);
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    let live: Value = serde_json::from_str(&out).unwrap();
    let cpus = live["cpus"].as_array().unwrap();
    assert_eq!(cpus.len(), 1);
    let events = cpus[0]["events"].as_array().unwrap();
    let names: Vec<&str> = events
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "cycles",
            "l1d_pend_miss.pending",
            "offcore_response.demand_rfo.l3_miss.any_response",
            "LLC-load-misses",
            "cycle_activity.stalls_l1d_pending",
            "br_inst_retired.all_branches",
        ]
    );
    assert_eq!(events[0]["pinned"], true);
    assert_eq!(events[0]["task"], Value::Null);
    assert_eq!(events[0]["counter"], "FIXED1");
    assert_eq!(events[1]["for_ms"], 12);
    assert_eq!(events[1]["task"], "191 a:b");
    let why = "waits for its turn behind PMC2: l1d_pend_miss.pending";
    assert_eq!(events[4]["why"], why);
    assert_eq!(events[5]["why"], why);
    let plan = &cpus[0]["plan"];
    assert_eq!(plan["machine"]["model"], "haswell");
    assert_eq!(plan["machine"]["smt"], "offline");
    assert_eq!(plan["interval_ms"], 2.0);
    assert_eq!(plan["events"][0]["shown"], "100 %");
    for event in [1, 4, 5] {
        let share = plan["events"][event]["share"].as_f64().unwrap();
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
    assert_eq!(plan["events"][2]["group"], plan["events"][3]["group"]);
    assert!(plan["runs"]["events"].as_array().is_some());
}

#[test]
fn people_get_it_in_words() {
    let (status, out, _) = haswell().said(&[]);
    assert_eq!(status, 1);
    for text in [
        "CPU 0, now\n  FIXED1  cycles ",
        "all of the CPU, pinned, for 4012 ms",
        "\n          waits for its turn behind PMC2: l1d_pend_miss.pending\n",
        "CPU 0, if these events stay\n(Planned as one rotation",
        "What would help, cheapest first",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    // Failures of tasks that have ended are omitted.
    assert!(!out.contains("r777"), "{out}");
}

#[test]
fn the_other_thread_counts_as_well() {
    let corrupting = "PMC0   type=4 config=0x81d0 id=7 may=PMC0,PMC1,PMC2,PMC3 for_ms=1 corrupting task=none, all of the CPU\n";
    let line = |n: u32| {
        format!("PMC{}   type=4 config={n:#x}c4 id={n} may=PMC0,PMC1,PMC2,PMC3 for_ms=1 task=none, all of the CPU", n - 1)
    };
    let many = (1..=4).map(line).collect::<Vec<_>>().join("\n");
    let files = Files::new(
        "live-threads",
        &[
            CPUINFO_FILE,
            (SIBLINGS, "0-1\n"),
            (
                "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
                "0-1\n",
            ),
            (SCHEDULE_0, &many),
            (SCHEDULE_1, corrupting),
        ],
    );
    let (_, out, _) = files.said(&["--json"]);
    let live: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(live["cpus"][0]["plan"]["machine"]["smt"], "on");
    // The corrupting event leaves half of the counters to this thread.
    let shares = live["cpus"][0]["plan"]["events"].as_array().unwrap();
    assert!(shares.iter().any(|event| event["share"] != 1.0), "{out}");
    let changes = live["cpus"][0]["plan"]["changes"].to_string();
    assert!(changes.contains("on the core's other thread"), "{changes}");
}

/// A task may have any name.
#[test]
fn names_of_tasks_are_no_fields() {
    let schedule = "\
# at_ms=7 on this CPU's clock
PMC0   type=4 config=0xc4 id=5 may=PMC0 for_ms=1 counted_ms=3 opened_by=pinned?id=6[12] task=9 pinned
PMC1   type=4 config=0xc5 id=6 may=PMC1 for_ms=1 counted_ms=3 opened_by=the NMI watchdog task=none, all of the CPU
";
    let files = Files::new(
        "live-names",
        &[CPUINFO_FILE, (SIBLINGS, "0\n"), (SCHEDULE_0, schedule)],
    );
    let (_, out, _) = files.said(&["--json"]);
    let live: Value = serde_json::from_str(&out).unwrap();
    let events = &live["cpus"][0]["events"];
    assert_eq!(events[0]["pinned"], false);
    assert_eq!(events[0]["id"], 5);
    assert_eq!(events[0]["opened_by"], "pinned?id=6[12]");
    assert_eq!(events[0]["task"], "9 pinned");
    assert_eq!(events[1]["opened_by"], "the NMI watchdog");
    assert_eq!(events[1]["task"], Value::Null);
}

#[test]
fn nothing_to_see() {
    let idle = "# counter, event\n# waiting groups\n# the last\n";
    let files = Files::new(
        "live-idle",
        &[CPUINFO_FILE, (SIBLINGS, "0\n"), (SCHEDULE_0, idle)],
    );
    assert_eq!(
        files.said(&[]),
        (0, "CPU 0: no event\n".to_owned(), String::new())
    );
    let (status, out, err) = Files::new("live-none", &[CPUINFO_FILE]).said(&[]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("is rpmu loaded"), "{err}");
    let files = Files::new(
        "live-other",
        &[
            ("proc/cpuinfo", "cpu family\t: 15\nmodel\t: 1\n"),
            (SCHEDULE_0, idle),
        ],
    );
    let (status, _, err) = files.said(&[]);
    assert_eq!(status, 2);
    assert!(
        err.contains("no event list for model 0x1 of family 0xf"),
        "{err}"
    );
}
