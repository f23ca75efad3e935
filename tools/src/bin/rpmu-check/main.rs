// SPDX-License-Identifier: GPL-2.0

//! `rpmu-check`: tries rpmu on a real machine and writes a report.

mod run;
mod signals;
mod system;

use clap::{
    value_parser,
    CommandFactory,
    Parser,
    Subcommand, //
};
use clap_complete::{
    generate,
    Shell, //
};
use rpmu_plan::check::advice;
use rpmu_plan::check::checks::{
    self,
    Asked,
    Check,
    Load,
    CHECKS, //
};
use rpmu_plan::check::compare::{
    compare_logs,
    Kind,
    Part,
    Phase, //
};
use rpmu_plan::check::facts::Machine;
use rpmu_plan::check::html;
use rpmu_plan::check::private::Private;
use rpmu_plan::check::report::{
    cell,
    End,
    Report, //
};
use run::{
    Runner,
    Scratch, //
};
use std::fs;
use std::io::{
    stderr,
    IsTerminal,
    Write, //
};
use std::os::unix::fs::MetadataExt;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::ExitCode;
use std::time::{
    Duration,
    Instant, //
};
use system::{
    is_loaded,
    is_trouble,
    with_remedy,
    Loaded,
    Log,
    Settings,
    PMU, //
};

/// Try rpmu on this machine: run test programs on the kernel's built-in PMU driver, on rpmu, and
/// on the built-in driver again, compare the drivers and write a report without personal details.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Ctrl-C gives the PMU back at once.\n\
    Exit status: 0 if no test failed on rpmu or after it, 1 if one did, 2 if nothing could be tried,\n\
    130 if interrupted. See rpmu-check(1).")]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Only say what loading rpmu would do, in words; nothing changes.
    #[arg(long)]
    dry_run: bool,
    /// Load this rpmu.ko instead of the installed one.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Run these checks only; `rpmu-check list` lists them.
    #[arg(long, value_name = "CHECK,...", value_delimiter = ',', value_parser = name)]
    only: Vec<String>,
    /// Leave these checks out.
    #[arg(long, value_name = "CHECK,...", value_delimiter = ',', value_parser = name)]
    skip: Vec<String>,
    /// Also take CPUs offline and online.
    #[arg(long)]
    hotplug: bool,
    /// Also let the machine sleep and wake up.
    #[arg(long)]
    suspend: bool,
    /// The time limit in minutes.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=1000))]
    minutes: u64,
    /// The directory for rpmu-check.html, rpmu-check.txt and rpmu-check.json.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// The directory of the test programs.
    #[arg(long, value_name = "DIR", default_value = "/usr/lib/rpmu-tools")]
    programs: PathBuf,
}

#[derive(Subcommand)]
enum Other {
    /// List the checks.
    List,
    /// Print the completions for a shell, which that shell reads.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Parses the name of a check.
fn name(text: &str) -> Result<String, String> {
    match checks::find(text) {
        Some(check) => Ok(check.name.to_owned()),
        None => Err("no such check: see rpmu-check list".to_owned()),
    }
}

/// A message about the reason why nothing could be tried.
struct Wrong(String);

/// How many take-overs the check of them makes.
const TAKE_OVERS: usize = 10;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.other {
        Some(Other::List) => {
            print(&list());
            Ok(ExitCode::SUCCESS)
        }
        Some(Other::Completions { shell }) => {
            let mut script = Vec::new();
            generate(shell, &mut Arguments::command(), "rpmu-check", &mut script);
            print(&String::from_utf8_lossy(&script));
            Ok(ExitCode::SUCCESS)
        }
        None => check_machine(&arguments),
    };
    done.unwrap_or_else(|Wrong(text)| {
        eprintln!("rpmu-check: {text}");
        ExitCode::from(2)
    })
}

/// Writes to standard output. Ignores errors: the reader may close the pipe early.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn list() -> String {
    let line = |check: &Check| {
        let asked = match check.asked {
            Asked::No => "",
            Asked::Hotplug => " (with --hotplug)",
            Asked::Suspend => " (with --suspend)",
        };
        format!("{:<16}{}{asked}\n", check.name, check.title)
    };
    CHECKS.iter().map(line).collect()
}

/// Returns the checks that the arguments select.
fn selected(arguments: &Arguments) -> Vec<&'static Check> {
    let wanted = |check: &&Check| {
        let named = arguments.only.iter().any(|it| it == check.name);
        let asked = match check.asked {
            Asked::No => true,
            Asked::Hotplug => arguments.hotplug || named,
            Asked::Suspend => arguments.suspend || named,
        };
        asked
            && (named || arguments.only.is_empty())
            && !arguments.skip.iter().any(|it| it == check.name)
    };
    CHECKS.iter().filter(wanted).collect()
}

/// Looks for what would keep everything from working.
fn look_ahead(arguments: &Arguments, checks: &[&Check]) -> Result<(), Wrong> {
    let wrong = |text: String| Err(Wrong(text));
    if fs::metadata("/proc/self").map_or(true, |it| it.uid() != 0) {
        return wrong("only root may load a module: type: sudo rpmu-check".to_owned());
    }
    if is_loaded() {
        return wrong("rpmu is loaded already: unload it first (modprobe -r rpmu)".to_owned());
    }
    if !Path::new(PMU).exists() {
        let found = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if Path::new(&format!("{PMU}_core")).exists() {
            return wrong(
                "this processor has different types of cores, which rpmu-check does not know yet"
                    .to_owned(),
            );
        }
        let why = match Machine::new(&found, "").virtual_machine {
            true => "this virtual machine has no PMU: turn it on in the hypervisor's settings",
            false => "the kernel's driver has not started: dmesg | grep -i perf says why",
        };
        return wrong(format!("there is no core PMU ({PMU}): {why}"));
    }
    if let Some(module) = &arguments.module {
        if !module.is_file() {
            return wrong(format!(
                "{}: no such module; make KDIR=/lib/modules/$(uname -r)/build builds \
                 build/rpmu.ko",
                module.display()
            ));
        }
    }
    if arguments.dry_run {
        return Ok(());
    }
    let programs = &arguments.programs;
    let absent = checks
        .iter()
        .find(|it| !programs.join(it.program).is_file());
    if let Some(check) = absent {
        return wrong(format!(
            "there is no test program {} in {}: install rpmu-tools, or name another directory \
             with --programs",
            check.program,
            programs.display()
        ));
    }
    if checks.is_empty() {
        return wrong("no check is left: see rpmu-check list".to_owned());
    }
    // Otherwise the results of ten minutes would be lost.
    let probe = arguments.out.join("rpmu-check.txt");
    if let Err(error) = fs::write(&probe, "rpmu-check has not finished.\n") {
        return wrong(format!(
            "the report cannot be written to {}: {error}: name another directory with --out",
            arguments.out.display()
        ));
    }
    Ok(())
}

fn check_machine(arguments: &Arguments) -> Result<ExitCode, Wrong> {
    let checks = selected(arguments);
    look_ahead(arguments, &checks)?;
    signals::note_all();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let machine = Machine::new(&read("/proc/cpuinfo"), &read("/proc/sys/kernel/osrelease"));
    let private = Private::new(&read("/proc/sys/kernel/hostname"), &read("/etc/passwd"));
    if machine.virtual_machine {
        say("This is a virtual machine: its PMU is what the hypervisor makes of the real one.");
    }
    // A dry run changes nothing.
    let settings = (!arguments.dry_run).then(Settings::save);
    let mut log = Log::open();
    let module = arguments.module.as_deref();
    let would_load = dry_run(module, &mut log);
    if arguments.dry_run {
        return Ok(match would_load {
            Ok(_) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        });
    }
    let scratch = Scratch::new().map_err(|error| Wrong(format!("temporary files: {error}")))?;
    let programs = fs::canonicalize(&arguments.programs)
        .map_err(|error| Wrong(format!("{}: {error}", arguments.programs.display())))?;
    let mut session = Session {
        report: Report::new(machine, &checks),
        checks,
        module,
        runner: Runner {
            programs: &programs,
            scratch: &scratch,
        },
        start: Instant::now(),
        limit: Duration::from_secs(60 * arguments.minutes),
        log,
        trouble: Default::default(),
        is_off: false,
    };
    match would_load {
        Ok(lines) => {
            session.report.log = lines;
            session.run();
        }
        Err((why, lines)) => {
            session.report.log = lines;
            session.report.end = End::Stopped(why);
        }
    }
    let Session {
        mut report, start, ..
    } = session;
    report.seconds = start.elapsed().as_secs_f64();
    drop(settings);
    report.finish(&private);
    write_report(&report, &arguments.out)?;
    Ok(match report.end {
        End::Interrupted => ExitCode::from(130),
        _ if report.is_good() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn write_report(report: &Report, directory: &Path) -> Result<(), Wrong> {
    let text = report.text();
    let json = serde_json::to_string_pretty(report);
    let json = json.map_err(|error| Wrong(error.to_string()))? + "\n";
    let files = [
        ("rpmu-check.txt", &text),
        ("rpmu-check.json", &json),
        ("rpmu-check.html", &html::page(report)),
    ];
    for (name, content) in files {
        let path = directory.join(name);
        fs::write(&path, content).map_err(|error| Wrong(format!("{}: {error}", path.display())))?;
    }
    print(&format!(
        "{text}\nThe report: {}. To report a problem, attach this file.\n",
        directory.join("rpmu-check.html").display()
    ));
    Ok(())
}

/// Prints a line of progress.
fn say(text: &str) {
    let mut out = stderr();
    let clear = if out.is_terminal() { "\r\x1b[K" } else { "" };
    let _ = writeln!(out, "{clear}{text}");
}

/// Shows what runs now, on a terminal only.
fn show(text: &str) {
    let mut out = stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}");
        let _ = out.flush();
    }
}

/// Asks rpmu what loading would do, and prints the answer in words. Returns rpmu's lines in the
/// log; as an error, with the reason, if it would not load.
fn dry_run(module: Option<&Path>, log: &mut Log) -> Result<Vec<String>, (String, Vec<String>)> {
    log.news();
    let loaded = system::load(module, "dry_run=1");
    let lines = log.news();
    for line in &lines {
        say(line);
        if let Some(meaning) = advice::meaning(line) {
            say(&format!("    {meaning}"));
        }
    }
    let error = match loaded {
        // A version of rpmu without dry runs.
        Ok(()) => {
            drop(Loaded);
            "this rpmu is too old: it has no dry run".to_owned()
        }
        Err(error) if error.contains("Operation canceled") => return Ok(lines),
        Err(error) => with_remedy(&error),
    };
    say(&format!("rpmu-check: rpmu would not load: {error}"));
    Err((format!("rpmu would not load: {error}"), lines))
}

/// A run of all checks.
struct Session<'a> {
    report: Report,
    checks: Vec<&'static Check>,
    module: Option<&'a Path>,
    runner: Runner<'a>,
    start: Instant,
    limit: Duration,
    log: Log,
    /// Lines of the kernel's log that look like trouble, of each phase.
    trouble: [Vec<String>; 3],
    /// Set if rpmu has switched its counters off.
    is_off: bool,
}

impl Session<'_> {
    fn run(&mut self) {
        let minutes = self.limit.as_secs() / 60;
        say(&format!(
            "The checks take {minutes} minutes at most. Ctrl-C gives the PMU back."
        ));
        // The parts of the time after which a phase must be over.
        self.phase(Phase::BuiltIn, 0.32);
        if self.goes_on() {
            self.on_rpmu(0.66);
        }
        if self.goes_on() {
            self.phase(Phase::BuiltInAgain, 0.97);
        }
        self.report.findings.extend(compare_logs(&self.trouble));
        if signals::interrupted() {
            self.report.end = End::Interrupted;
            say("rpmu-check: interrupted; the built-in driver has the PMU");
        }
    }

    fn goes_on(&self) -> bool {
        !signals::interrupted() && !matches!(self.report.end, End::Stopped(_))
    }

    /// Returns whether checks can still run on rpmu. With its counters off, they would only fail to
    /// open their events.
    fn can_try_rpmu(&self) -> bool {
        self.goes_on() && !self.is_off
    }

    fn end(&self, part: f64) -> Instant {
        self.start + self.limit.mul_f64(part)
    }

    /// Runs all checks on the driver that has the PMU.
    fn phase(&mut self, phase: Phase, part: f64) {
        for check in self.checks.clone() {
            self.check(check, phase, part);
        }
        self.read_log(phase);
    }

    fn check(&mut self, check: &Check, phase: Phase, part: f64) {
        if !self.goes_on() {
            return;
        }
        let seconds = self.start.elapsed().as_secs();
        let limit = self.limit.as_secs();
        let name = phase.name();
        show(&format!(
            "{seconds:>4} of {limit} s  {name}: {} ...",
            check.title
        ));
        match self.runner.check(check, self.end(part)) {
            Some(part) => {
                let result = cell(Some(&part));
                say(&format!(
                    "{seconds:>4} s  {name}: {}: {result}",
                    check.title
                ));
                self.report.add(check.name, phase, part);
            }
            None if signals::interrupted() => (),
            None => {
                say(&format!(
                    "{seconds:>4} s  {name}: {}: no time is left",
                    check.title
                ));
                self.report.end = End::OutOfTime;
            }
        }
    }

    /// Loads rpmu and runs all checks: on trial, then those that need it without.
    fn on_rpmu(&mut self, part: f64) {
        let checks = self.checks.clone();
        let of = |load: Load| -> Vec<&Check> {
            checks
                .iter()
                .copied()
                .filter(|it| it.load == load)
                .collect()
        };
        let on_trial = of(Load::OnTrial);
        // Longer than the run, so that the PMU does not go back in the middle of a check.
        let trial = format!("trial={}", self.limit.as_secs() + 60);
        if !on_trial.is_empty() {
            self.loaded(&trial, &on_trial, part);
        }
        for check in of(Load::TenTimes) {
            self.take_overs(check, &trial, part);
        }
        let rdpmc = of(Load::ForRdpmc);
        if !rdpmc.is_empty() {
            self.loaded("", &rdpmc, part);
        }
    }

    /// Loads rpmu with the parameters, runs the checks and unloads it.
    fn loaded(&mut self, parameters: &str, checks: &[&Check], part: f64) {
        if !self.can_try_rpmu() {
            return;
        }
        if let Err(error) = system::load(self.module, parameters) {
            return self.failed("loading rpmu", &error);
        }
        let loaded = Loaded;
        for check in checks {
            self.check(check, Phase::Rpmu, part);
            self.read_log(Phase::Rpmu);
            if self.is_off {
                break;
            }
        }
        std::mem::forget(loaded);
        if let Err(error) = system::unload() {
            self.failed("unloading rpmu", &error);
        }
        self.read_log(Phase::Rpmu);
    }

    /// Notes that the PMU has not changed hands.
    fn failed(&mut self, what: &str, error: &str) {
        let lines = self.log.news();
        let mut said = vec![with_remedy(error)];
        said.extend(advice::explained(&lines));
        self.report.log.extend(lines);
        say(&format!("rpmu-check: {what}: {}", said.join("\n")));
        self.report.find("take-over", what, Kind::RpmuOnly, said);
        self.report.end = End::Stopped(format!("{what} failed"));
    }

    /// Takes the PMU over and gives it back several times, and runs the check on each driver.
    fn take_overs(&mut self, check: &Check, trial: &str, part: f64) {
        let mut sum = Part::default();
        let end = self.end(part);
        let seconds = self.start.elapsed().as_secs();
        for i in 1..=TAKE_OVERS {
            if !self.can_try_rpmu() {
                return;
            }
            show(&format!(
                "{seconds:>4} s  {}: {i} of {TAKE_OVERS} ...",
                check.title
            ));
            if let Err(error) = system::load(self.module, trial) {
                return self.failed(&format!("loading rpmu, take-over {i}"), &error);
            }
            let loaded = Loaded;
            let on_rpmu = self.runner.check(check, end);
            std::mem::forget(loaded);
            if let Err(error) = system::unload() {
                return self.failed(&format!("unloading rpmu, take-over {i}"), &error);
            }
            let after = self.runner.check(check, end);
            for (driver, part) in [("rpmu", on_rpmu), ("built_in", after)] {
                let Some(part) = part else {
                    if !signals::interrupted() {
                        self.report.end = End::OutOfTime;
                    }
                    return;
                };
                sum.seconds += part.seconds;
                sum.incomplete += &part.incomplete;
                sum.tests.extend(part.tests.into_iter().map(|mut test| {
                    test.name = format!("take_over_{i}.{driver}.{}", test.name);
                    test
                }));
            }
        }
        let result = cell(Some(&sum));
        say(&format!("{seconds:>4} s  rpmu: {}: {result}", check.title));
        self.report.add(check.name, Phase::Rpmu, sum);
        self.read_log(Phase::Rpmu);
    }

    /// Takes the new lines of the kernel's log into the report.
    fn read_log(&mut self, phase: Phase) {
        let lines = self.log.news();
        for line in &lines {
            match advice::why_switched_off(line) {
                Some(why) => self.switched_off(why, line),
                None if is_trouble(line) => self.trouble[phase as usize].push(line.clone()),
                None => (),
            }
        }
        self.report.log.extend(lines);
    }

    /// Notes that rpmu has switched its counters off: the first time only, as it finds the same
    /// after another load.
    fn switched_off(&mut self, why: &str, line: &str) {
        if self.is_off {
            return;
        }
        self.is_off = true;
        say(&format!(
            "rpmu-check: rpmu has switched its counters off: {why}: no further check runs on rpmu"
        ));
        self.report.switched_off(why, line);
    }
}
