// SPDX-License-Identifier: GPL-2.0

//! Tests `rpmu-top` on recorded files, and its screen on a terminal in memory.

use ratatui::backend::TestBackend;
use ratatui::Terminal;
use rpmu_plan::top::draw::draw;
use rpmu_plan::top::facts::{
    Facts,
    State, //
};
use rpmu_plan::top::readings::Source;
use rpmu_plan::top::screen::{
    Action,
    Filter,
    Key,
    Screen,
    Sort, //
};
use serde_json::Value;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::Command;
use std::time::Instant;

const CPUINFO: &str = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 60\n";

/// The events of CPU 0 at a time, in the driver's format. In the second after 1,000 the watchdog
/// counts all the time, two events share counter 2, and one rides.
fn schedule(at: u64) -> String {
    let since = at - 1000;
    let (half, other) = (since / 2, since / 2 + 1);
    format!(
        "\
# at_ms={at} on this CPU's clock
# counter, event, the counters that it may use, since when, opener, task
FIXED1 type=0 config=0x0 id=3 may=PMC0,FIXED1 for_ms={at} counted_ms={at} pinned opened_by=the NMI watchdog task=none, all of the CPU
PMC2   type=4 config=0x148 id=111 may=PMC2 for_ms=2 counted_ms={half} opened_by=perf[190] task=191 sleep
PMC2   type=4 config=0x148 id=120 rides_on=111 counted_ms={since} opened_by=agent[77] task=none, all of the CPU
# and 3 more events that ride on these counters
# waiting groups and their members: the reason; the events on the wanted counters
waits type=4 config=0xc000ca3 id=115 members=2 counted_ms={other} opened_by=perf[190] task=191 sleep: waits for its turn behind PMC2: id=111 with riders id=120
member type=4 config=0xc4 id=116 group=115 counted_ms={other}
error type=4 config=0x248 id=117 members=1 counted_ms=0 opened_by=pin[5] task=none, all of the CPU: it got no counter, some time ago
# the last failures of events that are not on this CPU now
waits type=4 config=0x777 id=90 members=1 failed=1 ms_ago=9999 task=99 gone: 5 events compete for 4 counters
"
    )
}

/// A directory, removed on drop.
struct Recording(PathBuf);

impl Recording {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        Self(root)
    }

    /// Two readings of one CPU, a second apart.
    fn of_one_cpu(name: &str) -> Self {
        let it = Self::new(name);
        it.write("000000", "proc/cpuinfo", CPUINFO);
        for (reading, at) in [("000000", 1000), ("000001", 2000)] {
            it.write(
                reading,
                "sys/kernel/debug/rpmu/cpu0/schedule",
                &schedule(at),
            );
            it.write(reading, "sys/module/rpmu/parameters/policy", "rpmu\n");
        }
        it
    }

    fn write(&self, reading: &str, name: &str, text: &str) {
        let path = self.0.join(reading).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the exit status, standard output and standard error.
    fn said(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_rpmu-top"))
            .arg("--root")
            .arg(&self.0)
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let status = output.status.code().unwrap();
        (status, text(output.stdout), text(output.stderr))
    }

    /// Returns the facts of the two readings.
    fn facts(&self) -> Facts {
        let mut source = Source::new(&self.0).unwrap();
        let first = source.take().unwrap();
        let parameters = source.parameters();
        let second = source.take().unwrap();
        Facts::new(source.machine(), parameters, Some(&first), &second)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_facts_are_told() {
    let (status, out, err) = Recording::of_one_cpu("top-json").said(&["--json"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let facts: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(facts["machine"], "haswell");
    assert_eq!(facts["parameters"][0], "policy=rpmu");
    let cpu = &facts["cpus"][0];
    assert_eq!(cpu["elapsed_ms"], 1000);
    assert_eq!(cpu["waiting"], 3);
    assert_eq!(cpu["unlisted"], 3);
    let counters = cpu["counters"].as_array().unwrap();
    let counter = |name: &str| counters.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(counter("PMC2")["event"], 111);
    assert_eq!(counter("PMC2")["share"], 0.5);
    assert_eq!(counter("PMC0")["event"], Value::Null);
    assert_eq!(counter("FIXED1")["share"], 1.0);
    let events = facts["events"].as_array().unwrap();
    let event = |id: u64| events.iter().find(|it| it["id"] == id).unwrap();
    assert_eq!(events.len(), 6);
    assert_eq!(event(3)["opened_by"], "the NMI watchdog");
    assert_eq!(event(3)["state"], "counts");
    assert_eq!(event(120)["state"], "rides");
    assert_eq!(event(120)["share"], 1.0);
    assert_eq!(event(120)["rides_on"], 111);
    assert_eq!(event(115)["state"], "waits");
    assert_eq!(event(116)["opened_by"], "perf[190]");
    assert_eq!(event(116)["task"], "191 sleep");
    let why =
        "waits for its turn behind PMC2: l1d_pend_miss.pending with riders l1d_pend_miss.pending";
    assert_eq!(event(116)["why"], why);
    assert_eq!(event(117)["state"], "error");
}

#[test]
fn a_table_is_printed() {
    let recording = Recording::of_one_cpu("top-table");
    let (status, out, _) = recording.said(&["--once"]);
    assert_eq!(status, 0);
    for text in [
        "haswell, 1 CPU, policy=rpmu: 2 events on counters, 1 riding, 2 waiting, 1 in the error state, 3 not listed\n",
        "CPU 0: 2 of 11 counters in use: PMC2 50.0 %, FIXED1 100 %; 3 wait; 3 more are not listed\n",
        "   0 FIXED1     100 %  cycles ",
        "   0 waits     50.0 %  cycle_activity.stalls_l1d_pending  perf[190]",
        "the NMI watchdog  all of the CPU, pinned\n",
        "             waits for its turn behind PMC2: l1d_pend_miss.pending",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    // A group's reason is said once.
    assert_eq!(out.matches("waits for its turn").count(), 1, "{out}");
    // Failures of tasks that have ended are omitted.
    assert!(!out.contains("r777"), "{out}");
    let (_, out, _) = recording.said(&["--once", "--filter", "AGENT"]);
    assert!(
        out.contains("agent[77]") && !out.contains("perf[190]"),
        "{out}"
    );
    let (_, out, _) = recording.said(&["--once", "--cpu", "1"]);
    assert!(out.contains("No event matches the filter."), "{out}");
    let (_, out, _) = recording.said(&["--once", "--waiting", "--sort", "event"]);
    let lines: Vec<&str> = out.lines().filter(|it| it.starts_with("   0 ")).collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].contains("br_inst_retired"), "{out}");
}

#[test]
fn metrics_are_printed() {
    let recording = Recording::of_one_cpu("top-metrics");
    let debugfs = "sys/kernel/debug/rpmu";
    let refusals = "\
# refused perf_event_open() calls, newest first, at most 64
# seconds ago, pid, command, errno, event: reason
     0.020 191 perf EINVAL type=raw config=0xc4 cpu=any group=2: 3 counters
    59.900 191 perf EINVAL type=raw config=0xc4 cpu=any group=2: 3 counters
    12.000 7 a EBUSY type=raw config=0xc4 cpu=any group=2: another
    60.100 191 perf EINVAL type=raw config=0xc4 cpu=any group=2: 3 counters
";
    recording.write("000001", &format!("{debugfs}/refusals"), refusals);
    recording.write("000001", &format!("{debugfs}/breaker"), "# the PMU works\n");
    let (status, out, err) = recording.said(&["--metrics"]);
    assert_eq!((status, err.as_str()), (0, ""));
    for line in [
        "rpmu_loaded 1",
        "rpmu_given_up 0",
        "rpmu_counters{cpu=\"0\"} 11",
        "rpmu_counters_used{cpu=\"0\"} 2",
        "rpmu_events{cpu=\"0\",state=\"counts\"} 2",
        "rpmu_events{cpu=\"0\",state=\"rides\"} 1",
        "rpmu_events{cpu=\"0\",state=\"waits\"} 2",
        "rpmu_events{cpu=\"0\",state=\"error\"} 1",
        "rpmu_event_share_min_ratio{cpu=\"0\"} 0",
        "rpmu_waiting_events{reason=\"turn\"} 2",
        "rpmu_waiting_events{reason=\"error\"} 1",
        "rpmu_waiting_events{reason=\"register\"} 0",
        "rpmu_recent_refusals{errno=\"EBUSY\"} 1",
        "rpmu_recent_refusals{errno=\"EINVAL\"} 2",
    ] {
        assert!(out.lines().any(|it| it == line), "{line}: {out}");
    }
    let given_up = "# given up because of CPU 0: an NMI storm\n";
    recording.write("000001", &format!("{debugfs}/breaker"), given_up);
    let (_, out, _) = recording.said(&["--metrics"]);
    assert!(out.contains("rpmu_given_up 1\n"), "{out}");
}

#[test]
fn mistakes_are_explained() {
    let (status, out, err) = Recording::new("top-none").said(&["--once"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("is rpmu loaded"), "{err}");
    let (status, _, err) = Recording::of_one_cpu("top-pipe").said(&[]);
    assert_eq!(status, 2);
    assert!(err.contains("no terminal"), "{err}");
    let (status, _, err) = Recording::of_one_cpu("top-time").said(&["--once", "-i", "0s"]);
    assert_eq!(status, 2);
    assert!(err.contains("greater than 0"), "{err}");
}

/// A recording can be recorded again.
#[test]
fn readings_are_kept() {
    let (from, to) = (Recording::of_one_cpu("top-from"), Recording::new("top-to"));
    let copy = to.0.to_str().unwrap();
    let (status, before, err) = from.said(&["--json", "--record", copy]);
    assert_eq!((status, err.as_str()), (0, ""));
    let (_, after, _) = to.said(&["--json"]);
    assert_eq!(before, after);
}

/// A machine without an event list shows raw names.
#[test]
fn other_machines_are_shown() {
    let recording = Recording::of_one_cpu("top-other");
    recording.write("000000", "proc/cpuinfo", "cpu family\t: 15\nmodel\t: 1\n");
    let (status, out, _) = recording.said(&["--once"]);
    assert_eq!(status, 0);
    assert!(out.starts_with("unknown machine, 1 CPU"), "{out}");
    assert!(out.contains(" rc4 "), "{out}");
}

/// Returns the screen as text.
fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

fn screen(facts: Facts) -> Screen {
    let mut screen = Screen::new(Filter::default(), Sort::Cpu, 1000);
    screen.facts = Some(facts);
    screen
}

#[test]
fn the_screen_shows_it() {
    let mut screen = screen(Recording::of_one_cpu("top-screen").facts());
    let lines = drawn(&mut screen, 80, 24);
    assert_eq!(lines[1], "CPU 0   PMC ..▄..... FIXED .█. 3 wait");
    assert!(
        lines[2].starts_with(" CPU COUNTER   SHARE EVENT"),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("   0 FIXED1    100 % cycles"),
        "{}",
        lines[3]
    );
    assert!(lines[3].ends_with("all of the CPU"), "{}", lines[3]);
    let described = lines[19..23].join(" ");
    assert!(
        described.contains("opened by the NMI watchdog"),
        "{described}"
    );
    assert!(lines[23].contains("? help"), "{}", lines[23]);
    // The fourth row waits.
    for _ in 0..3 {
        assert_eq!(screen.key(Key::Down), Action::Draw);
    }
    let described = drawn(&mut screen, 80, 24)[19..23].join(" ");
    assert!(
        described.contains("waits for its turn behind PMC2"),
        "{described}"
    );
    // With more room, rows have bars and reasons.
    let lines = drawn(&mut screen, 200, 24);
    assert!(lines[2].contains("WHY NOT"), "{}", lines[2]);
    assert!(lines[3].contains("██████████"), "{}", lines[3]);
    assert!(
        lines[6].contains("waits for its turn behind"),
        "{}",
        lines[6]
    );
    screen.ascii = true;
    let lines = drawn(&mut screen, 80, 24);
    assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
    assert_eq!(lines[1], "CPU 0   PMC ..5..... FIXED .#. 3 wait");
}

#[test]
fn keys_change_the_screen() {
    let mut screen = screen(Recording::of_one_cpu("top-keys").facts());
    let press = |screen: &mut Screen, keys: &str| {
        for letter in keys.chars() {
            screen.key(Key::Letter(letter));
        }
    };
    assert_eq!(screen.rows().len(), 6);
    press(&mut screen, "w");
    assert!(screen.rows().iter().all(|it| it.state >= State::Waits));
    screen.key(Key::Escape);
    press(&mut screen, "/perf");
    assert_eq!(screen.rows().len(), 3);
    // Letters are text while a filter is being typed.
    press(&mut screen, "q");
    assert_eq!(screen.rows().len(), 0);
    screen.key(Key::Backspace);
    screen.key(Key::Enter);
    assert_eq!(screen.rows().len(), 3);
    press(&mut screen, "c7");
    assert_eq!(screen.filter.cpu, Some(7));
    screen.key(Key::Escape);
    assert_eq!(screen.filter.cpu, None);
    assert_eq!(screen.filter.text, "perf");
    screen.key(Key::Escape);
    press(&mut screen, "sG");
    assert_eq!(screen.sort, Sort::Share);
    let rows = screen.rows();
    assert_eq!(screen.index(&rows), 5);
    // The selected event stays selected in another order.
    let selected = screen.selected;
    press(&mut screen, "s");
    assert_eq!(screen.selected, selected);
    assert_eq!(screen.key(Key::Letter('+')), Action::Faster);
    assert_eq!(screen.key(Key::Letter('q')), Action::Quit);
    press(&mut screen, "?");
    let help = drawn(&mut screen, 80, 24).join("\n");
    assert!(help.contains("show only events that wait"), "{help}");
}

/// Writes a recording of many CPUs with some events each, and returns its facts.
fn many(name: &str, cpus: u64, events: u64) -> (Recording, Facts) {
    let recording = Recording::new(name);
    recording.write("000000", "proc/cpuinfo", CPUINFO);
    for (reading, at) in [("000000", 1000), ("000001", 2000)] {
        for cpu in 0..cpus {
            let mut text = format!("# at_ms={at} on this CPU's clock\n");
            for event in 0..events {
                let id = cpu * events + event + 1;
                let counted = (at - 1000) * (event % 4 + 1) / 4;
                text += &match event {
                    0..4 => format!("PMC{event}   type=4 config={:#x} id={id} may=PMC0,PMC1,PMC2,PMC3 for_ms=1 counted_ms={counted} opened_by=perf[{id}] task=none, all of the CPU\n", 0xc0 + event),
                    _ => format!("waits type=4 config={:#x} id={id} members=1 counted_ms={counted} opened_by=perf[{id}] task=none, all of the CPU: waits for its turn behind PMC0: id=1\n", 0xc0 + event),
                };
            }
            recording.write(
                reading,
                &format!("sys/kernel/debug/rpmu/cpu{cpu}/schedule"),
                &text,
            );
        }
    }
    let facts = recording.facts();
    (recording, facts)
}

/// Large machines fit on the screen: all parts are there, and the selected event's CPU is shown.
#[test]
fn many_cpus_and_events_fit() {
    for (cpus, width) in [(64, 80), (256, 80), (256, 200)] {
        let (_recording, facts) = many(&format!("top-many-{cpus}-{width}"), cpus, 4);
        let mut screen = screen(facts);
        screen.key(Key::End);
        let lines = drawn(&mut screen, width, 24);
        let last = format!("CPU {}", cpus - 1);
        let shown = lines.iter().position(|line| line.contains(&last));
        assert!(shown.is_some_and(|line| line <= 6), "{lines:#?}");
        let selected = lines
            .iter()
            .any(|line| line.starts_with(&format!("{:>4} PMC3", cpus - 1)));
        assert!(selected, "{lines:#?}");
        assert!(
            lines[23].starts_with(&format!("{0}/{0} ", cpus * 4)),
            "{}",
            lines[23]
        );
    }
    let (_recording, facts) = many("top-many-events", 1, 1000);
    let mut screen = screen(facts);
    let start = Instant::now();
    for _ in 0..100 {
        screen.key(Key::PageDown);
        drawn(&mut screen, 200, 50);
    }
    // A hundred pages a second would be far more than one refresh a second needs.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    // No size is too small.
    for (width, height) in [(1, 1), (10, 3), (20, 8), (80, 6)] {
        drawn(&mut screen, width, height);
    }
}

#[test]
fn completes() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(env!("CARGO_BIN_EXE_rpmu-top"))
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("waiting"), "{shell}");
    }
}
