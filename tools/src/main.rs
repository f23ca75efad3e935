// SPDX-License-Identifier: GPL-2.0

//! The command.

use clap::{Args, Parser, Subcommand, ValueEnum};
use rpmu_plan::data::{lists, source};
use rpmu_plan::explain::counter_names;
use rpmu_plan::live::{self, Live};
use rpmu_plan::logic::open::attr::configure;
use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{aliases, Machine, NoMachine, Smt};
use rpmu_plan::names::{self, find, Kind};
use rpmu_plan::plan::Request;
use rpmu_plan::report::Report;
use rpmu_plan::{svg, text};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Predict how perf stat will count events on an rpmu machine: who is on which counter, when, and
/// why not always.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[command(
    after_help = "Exit status: 0 if every event counts all the time, 1 if not, 2 if there is a mistake.\n\
    More, with examples: rpmu-plan(1)."
)]
struct Command {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    plan: PlanArguments,
}

#[derive(Subcommand)]
enum Other {
    /// List a model's events with the counters that can count them.
    List(ListArguments),
    /// List the models.
    Models,
}

#[derive(Args)]
struct ListArguments {
    /// The CPU model.
    #[arg(short, long)]
    model: String,
    /// Two threads a core, or one.
    #[arg(long, value_enum, default_value_t = Threads::On)]
    smt: Threads,
    /// Only events whose name has this in it.
    pattern: Option<String>,
}

#[derive(Args)]
struct PlanArguments {
    /// The CPU model, as the perf tool calls it; `rpmu-plan models` lists them.
    #[arg(short, long, required_unless_present = "live")]
    model: Option<String>,
    /// The events, as for perf stat. Several are one list.
    #[arg(short, long, required_unless_present = "live")]
    event: Vec<String>,
    /// What this machine's rpmu has on its counters right now, and what will come of it; or that of a
    /// machine whose files are below DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    #[arg(conflicts_with_all = ["model", "event", "smt", "watchdog", "no_force_abort", "sibling", "policy", "interval", "duration", "svg", "html"])]
    live: Option<PathBuf>,
    /// Two threads a core, or one.
    #[arg(long, value_enum, default_value_t = Threads::On)]
    smt: Threads,
    /// The NMI watchdog counts cycles on every CPU.
    #[arg(long)]
    watchdog: bool,
    /// A Skylake whose transactions keep counter 3 (allow_tsx_force_abort=0).
    #[arg(long)]
    no_force_abort: bool,
    /// Events that are counted on the core's other thread at the same time.
    #[arg(long, value_name = "EVENTS")]
    sibling: Option<String>,
    /// The module's parameter of that name.
    #[arg(long, value_enum, default_value_t = PolicyName::Rpmu)]
    policy: PolicyName,
    /// How long until events take turns: perf_event_mux_interval_ms.
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = seconds)]
    interval: f64,
    /// How long the events are counted while the task runs.
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = seconds)]
    duration: f64,
    /// Print JSON.
    #[arg(long, conflicts_with_all = ["svg", "html"])]
    json: bool,
    /// Print a picture of the counters over time.
    #[arg(long, conflicts_with = "html")]
    svg: bool,
    /// Print a page with the picture and all that is said about it.
    #[arg(long)]
    html: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Threads {
    On,
    Off,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    Mainline,
    Rpmu,
}

impl From<Threads> for Smt {
    fn from(threads: Threads) -> Self {
        match threads {
            Threads::On => Self::On,
            Threads::Off => Self::Off,
        }
    }
}

/// `4ms`, `2s`, `500us`.
fn seconds(text: &str) -> Result<f64, String> {
    let end = text
        .find(|it: char| it.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return Err("a time is a number with us, ms, s or min behind it".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number * factor),
        _ => Err("a time is more than 0".to_owned()),
    }
}

/// A mistake of the user's.
struct Wrong(String);

fn main() -> ExitCode {
    let command = Command::parse();
    let done = match command.other {
        Some(Other::Models) => {
            print(&models());
            Ok(ExitCode::SUCCESS)
        }
        Some(Other::List(arguments)) => list(&arguments),
        None => plan(&command.plan),
    };
    done.unwrap_or_else(|Wrong(text)| {
        eprintln!("rpmu-plan: {text}");
        ExitCode::from(2)
    })
}

/// Whoever does not want to read on closes the pipe.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn machine(model: &str, smt: Threads, no_force_abort: bool) -> Result<Machine, Wrong> {
    Machine::new(model, smt.into(), no_force_abort).map_err(|why| {
        Wrong(match why {
            NoMachine::Unknown(name) => format!("no model is called {name}; there are\n{}", models().trim_end()),
            NoMachine::NoForceAbort(name) => {
                format!("--no-force-abort: {name} has no allow_tsx_force_abort, only Skylake and its kin have")
            }
            NoMachine::Unsupported(text) => text,
        })
    })
}

fn models() -> String {
    let line = |list| {
        let names: Vec<&str> = aliases(list).collect();
        let also = if names.is_empty() {
            String::new()
        } else {
            format!("  (or {})", names.join(", "))
        };
        format!("  {}{also}\n", list.name)
    };
    lists().map(line).collect()
}

/// The events of a list, or the mistake with the place.
fn events(text: &str, machine: &Machine) -> Result<Vec<names::Wanted>, Wrong> {
    names::parse(text, machine)
        .map_err(|mistake| Wrong(format!("mistake in the events\n{}", mistake.show(text))))
}

fn show_live(root: &Path, json: bool) -> Result<ExitCode, Wrong> {
    let live: Live = live::read(root).map_err(Wrong)?;
    let out = if json {
        let json = serde_json::to_string_pretty(&live);
        json.map_err(|error| Wrong(error.to_string()))? + "\n"
    } else {
        live.text()
    };
    print(&out);
    Ok(status(live.is_perfect()))
}

fn status(is_perfect: bool) -> ExitCode {
    if is_perfect {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn plan(arguments: &PlanArguments) -> Result<ExitCode, Wrong> {
    if let Some(root) = &arguments.live {
        return show_live(root, arguments.json);
    }
    let model = arguments.model.as_deref().unwrap_or_default();
    let machine = machine(model, arguments.smt, arguments.no_force_abort)?;
    let sibling = match &arguments.sibling {
        Some(_) if !machine.has_sibling() => {
            return Err(Wrong(
                "--sibling: with --smt off there is no other thread".to_owned(),
            ));
        }
        Some(text) => events(text, &machine)?,
        None => Vec::new(),
    };
    let request = Request {
        machine,
        policy: match arguments.policy {
            PolicyName::Mainline => Policy::Mainline,
            PolicyName::Rpmu => Policy::Rpmu,
        },
        watchdog: arguments.watchdog,
        events: events(&arguments.event.join(","), &machine)?,
        sibling,
        interval: arguments.interval,
        duration: arguments.duration,
    };
    let report = Report::new(&request);
    let out = if arguments.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Wrong(error.to_string()))? + "\n"
    } else if arguments.svg {
        svg::picture(&report)
    } else if arguments.html {
        svg::page(&report)
    } else {
        text::text(&report)
    };
    print(&out);
    Ok(status(report.is_perfect()))
}

fn list(arguments: &ListArguments) -> Result<ExitCode, Wrong> {
    let machine = machine(&arguments.model, arguments.smt, false)?;
    let pattern = arguments
        .pattern
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    let mut found = false;
    let mut out = String::new();
    for name in names::all(&machine).filter(|name| name.to_lowercase().contains(&pattern)) {
        let Some(Kind::Hardware(attr)) = find(&name, &machine) else {
            continue;
        };
        found = true;
        let counters = match configure(&machine.pmu, &attr, |_| true, || true) {
            Ok(event) => counter_names(machine.pmu.constraint(event.select).counters),
            Err(refusal) => format!("- ({refusal})"),
        };
        out += &format!("{name:<60} {counters}\n");
    }
    if !found {
        let model = machine.list.name;
        return Err(Wrong(format!(
            "no event of {model} has {pattern} in its name"
        )));
    }
    print(&format!(
        "{out}\n{}, version {}. {}\n",
        machine.list.name,
        machine.list.version,
        source()
    ));
    Ok(ExitCode::SUCCESS)
}
