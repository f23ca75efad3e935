// SPDX-License-Identifier: GPL-2.0

//! Tests which lists of events the planner accepts, compared with the perf tool:
//! `selftests/perf_forms` has the verdicts, which apply to both. If perf is as new as the file, the
//! tests also run it, with a sysfs as rpmu creates it, and compare its attributes of each event.
//! `selftests/perf_forms.sh` runs perf in a guest.

use rpmu_plan::logic::model::{
    memory_files,
    HardwareId, //
};
use rpmu_plan::logic::open::attr::EventType;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::{
    parse_for,
    Kind, //
};
use rpmu_plan::terms::Tool;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::Command;
use std::sync::Mutex;

/// A line of the file.
struct Form {
    model: &'static str,
    verdict: &'static str,
    text: &'static str,
    /// Set if the planner's verdict differs from perf's on purpose.
    differs: bool,
}

const FILE: &str = include_str!("../../../selftests/perf_forms");
/// The release of perf that the file is for.
const RELEASE: &str = "perf version 7.3";
/// The models of the file, with the CPUID that perf gets.
const MODELS: &[(&str, &str)] = &[
    ("haswell", "GenuineIntel-6-3C-3"),
    ("icelakex", "GenuineIntel-6-6A-6"),
    ("amdzen4", "AuthenticAMD-25-11-1"),
];

fn forms() -> Vec<Form> {
    let mut model = "";
    let mut forms = Vec::new();
    for line in FILE.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[') {
            Some(name) if !line.contains('\t') => model = name.trim_end_matches(']'),
            _ => {
                let mut parts = line.split('\t');
                forms.push(Form {
                    model,
                    verdict: parts.next().unwrap(),
                    text: parts.next().unwrap(),
                    differs: parts.next().is_some_and(|why| !why.starts_with('[')),
                });
            }
        }
    }
    forms
}

fn machine(model: &str) -> Machine {
    Machine::new(model, Smt::On, false).unwrap()
}

/// Returns the models that a form is for.
fn models_of(form: &Form) -> Vec<&'static str> {
    match form.model {
        "all" => MODELS.iter().map(|model| model.0).collect(),
        model => vec![model],
    }
}

/// Returns the verdict on a form: the commands that accept it.
fn verdict(takes: impl Fn(Tool) -> bool) -> &'static str {
    match (takes(Tool::Stat), takes(Tool::Record)) {
        (true, true) => "both",
        (true, false) => "stat",
        (false, true) => "record",
        (false, false) => "none",
    }
}

fn report(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_planner_takes_what_perf_takes() {
    let mut wrong = Vec::new();
    for form in forms() {
        for model in models_of(&form) {
            let machine = machine(model);
            let own = verdict(|tool| parse_for(form.text, &machine, tool).is_ok());
            if (own == form.verdict) == form.differs {
                wrong.push(format!("{model}\t{own}\t{}\t{}", form.verdict, form.text));
            }
        }
    }
    report(&wrong);
}

/// Writes a file below `dir`, with its directories.
fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Makes the parts of sysfs and tracefs that perf reads, as on a machine where rpmu is loaded.
fn make_sysfs(machine: &Machine, dir: &Path) {
    let pmus = dir.join("bus/event_source/devices");
    let (pmu, model) = (&machine.pmu, &machine.pmu.model);
    let capabilities = &pmu.capabilities;
    for (name, bits) in pmu.fields() {
        write(&pmus, &format!("cpu/format/{name}"), &format!("{bits}\n"));
    }
    for (pmu, kind) in [
        ("cpu", 4),
        ("software", 1),
        ("tracepoint", 2),
        ("breakpoint", 5),
        ("msr", 8),
        ("kprobe", 6),
        ("uprobe", 7),
    ] {
        write(&pmus, &format!("{pmu}/type"), &format!("{kind}\n"));
    }
    write(&pmus, "msr/format/event", "config:0-63\n");
    write(&pmus, "msr/events/tsc", "event=0x00\n");
    write(&pmus, "kprobe/format/retprobe", "config:0\n");
    write(&pmus, "uprobe/format/retprobe", "config:0\n");
    write(&pmus, "uprobe/format/ref_ctr_offset", "config:32-63\n");
    for id in HardwareId::ALL {
        if let Some(select) = pmu.hardware_event(id) {
            let [event, umask, flags, cmask, ..] = select.bits().to_le_bytes();
            let mut text = format!("event={event:#04x},umask={umask:#04x}");
            if flags & (1 << 7) != 0 {
                text += ",inv";
            }
            if cmask != 0 {
                text += &format!(",cmask={cmask:#04x}");
            }
            write(&pmus, &format!("cpu/events/{}", id.sysfs_name()), &text);
        }
    }
    for file in model.topdown_files {
        write(&pmus, &format!("cpu/events/{}", file.name), file.text(2));
    }
    let memory = model.memory_files.iter();
    let precise = capabilities.pebs_format.is_some();
    let memory = memory.filter(|(name, _)| precise || *name == memory_files::AUXILIARY);
    let tsx = model.tsx_files.iter().filter(|_| capabilities.rtm);
    for (name, text) in memory.chain(tsx) {
        write(&pmus, &format!("cpu/events/{name}"), &format!("{text}\n"));
    }
    let cpus = dir.join("devices/system/cpu");
    for name in ["online", "present", "possible"] {
        write(&cpus, name, "0-1\n");
    }
    for (number, name) in ["sched/sched_switch", "sched/sched_wakeup", "printk/console"]
        .iter()
        .enumerate()
    {
        let event = dir.join("tracing/events").join(name);
        write(&event, "id", &format!("{}\n", number + 300));
        let format = format!(
            "name: x\nID: {}\nformat:\n\nprint fmt: \"\"\n",
            number + 300
        );
        write(&event, "format", &format);
    }
}

/// Runs the perf tool on a list; returns its exit status and its output.
fn perf(dir: &Path, cpuid: &str, tool: Tool, list: &str) -> (Option<i32>, String) {
    let arguments: &[&str] = match tool {
        Tool::Stat => &["stat", "-vv"],
        Tool::Record => &["record", "-o", "/dev/null"],
    };
    let output = Command::new("perf")
        .args(arguments)
        .args(["-e", list, "true"])
        .env("SYSFS_PATH", dir)
        .env("TRACEFS_PATH", dir.join("tracing"))
        .env("PERF_CPUID", cpuid)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

/// Returns the attributes of the core's events in perf's output: type, config, config1, precise_ip,
/// whether user and kernel are excluded.
fn shown(text: &str) -> Vec<[u64; 6]> {
    let mut all = Vec::new();
    for block in text.split("perf_event_attr:\n").skip(1) {
        let block = block.split("----").next().unwrap();
        let value = |name: &str| {
            let mut lines = block.lines().map(str::trim);
            let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let word = line.map_or("0", |line| line.split_whitespace().next().unwrap());
            match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
                None => word.parse().unwrap(),
            }
        };
        let names = ["type", "config", "{ bp_addr, config1 }", "precise_ip"];
        let [kind, config, config1, precise] = names.map(value);
        let next = [
            kind,
            config,
            config1,
            precise,
            value("exclude_user"),
            value("exclude_kernel"),
        ];
        if [0, 3, 4].contains(&kind) && all.last() != Some(&next) {
            all.push(next);
        }
    }
    all
}

/// Returns the planner's attributes for a list.
fn planned(list: &str, machine: &Machine) -> Vec<[u64; 6]> {
    let Ok(groups) = parse_for(list, machine, Tool::Stat) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for event in groups.iter().flat_map(|group| &group.events) {
        if let Kind::Hardware(attr) = event.kind {
            let kind = match attr.event_type {
                EventType::Hardware => 0,
                EventType::HwCache => 3,
                _ => 4,
            };
            let next = [
                kind,
                attr.config,
                attr.config1,
                u64::from(attr.precise_ip),
                u64::from(attr.exclude_user),
                u64::from(attr.exclude_kernel),
            ];
            if all.last() != Some(&next) {
                all.push(next);
            }
        }
    }
    all
}

#[test]
fn perf_says_so() {
    let version = Command::new("perf").arg("--version").output();
    let version = version.map_or(String::new(), |it| {
        String::from_utf8_lossy(&it.stdout).into()
    });
    if !version.starts_with(RELEASE) {
        eprintln!("perf is not asked: {version:?} is not {RELEASE}");
        return;
    }
    let dir = std::env::temp_dir().join(format!("perf-forms-{}", std::process::id()));
    let place = |model: &str| -> PathBuf { dir.join(model) };
    for (model, _) in MODELS {
        make_sysfs(&machine(model), &place(model));
    }
    // For forms that are the same on all models, perf is run for the first model.
    let forms = forms();
    let asked = Mutex::new(forms.iter());
    let wrong = Mutex::new(Vec::new());
    let ask = || loop {
        let Some(form) = asked.lock().unwrap().next() else {
            return;
        };
        let model = models_of(form)[0];
        let cpuid = MODELS.iter().find(|it| it.0 == model).unwrap().1;
        let (status, text) = perf(&place(model), cpuid, Tool::Stat, form.text);
        // Perf record accepts everything that perf stat accepts.
        let takes = |tool| match tool {
            Tool::Stat => status != Some(129),
            Tool::Record => {
                status != Some(129) || perf(&place(model), cpuid, tool, form.text).0 != Some(129)
            }
        };
        let said = verdict(takes);
        if said != form.verdict {
            let line = format!("{model}\tperf: {said}\t{}\t{}", form.verdict, form.text);
            wrong.lock().unwrap().push(line);
        }
        let (own, its) = (planned(form.text, &machine(model)), shown(&text));
        // If a leader cannot be opened, perf opens no member of its group.
        if !form.differs && !own.starts_with(&its) {
            let line = format!("{model}\t{}: perf {its:x?}, planned {own:x?}", form.text);
            wrong.lock().unwrap().push(line);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(ask);
        }
    });
    fs::remove_dir_all(&dir).unwrap();
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    report(&wrong);
}
