// SPDX-License-Identifier: GPL-2.0

//! The command line.

use clap::{
    value_parser,
    Args,
    CommandFactory,
    Parser,
    Subcommand,
    ValueEnum, //
};
use clap_complete::{
    generate,
    Shell, //
};
use rpmu_plan::data::{
    lists,
    source, //
};
use rpmu_plan::explain::counter_names;
use rpmu_plan::live::{
    self,
    Live, //
};
use rpmu_plan::logic::open::attr::Leader;
use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    aliases,
    similar,
    Guest,
    Machine,
    NoMachine,
    Smt, //
};
use rpmu_plan::names::{
    self,
    find,
    Kind, //
};
use rpmu_plan::plan::Request;
use rpmu_plan::report::Report;
use rpmu_plan::terms::Tool;
use rpmu_plan::time::seconds;
use rpmu_plan::{
    svg,
    text, //
};
use std::path::{
    Path,
    PathBuf, //
};
use std::process::ExitCode;

/// Predict how perf stat counts events on a machine that rpmu drives: which event is on which
/// counter, when, and why an event does not count all the time.
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[command(
    after_help = "Exit status: 0 if every event counts all the time, 1 if not, 2 on invalid arguments.\n\
    See rpmu-plan(1) for details and examples."
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
    /// Print the completions for a shell, which that shell reads.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Args)]
struct ListArguments {
    /// The CPU model.
    #[arg(short, long)]
    model: String,
    /// Two hardware threads per core, or one.
    #[arg(long, value_enum, default_value_t = Threads::On)]
    smt: Threads,
    #[command(flatten)]
    guest: GuestArguments,
    /// List only events whose name contains this.
    pattern: Option<String>,
}

#[derive(Args)]
struct PlanArguments {
    /// The CPU model, by the perf tool's name; `rpmu-plan models` lists them.
    #[arg(short, long, required_unless_present = "live")]
    model: Option<String>,
    /// The events, in the syntax of perf stat -e. Repeated options form one list.
    #[arg(short, long, required_unless_present = "live")]
    event: Vec<String>,
    /// Show the events on the running rpmu's counters, and a plan for these events. With DIR, read
    /// the files of debugfs, procfs and sysfs below DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    #[arg(conflicts_with_all = ["model", "event", "smt", "counters", "fixed", "watchdog", "no_force_abort", "sibling", "beside", "policy", "share", "interval", "duration", "record", "svg", "html"])]
    live: Option<PathBuf>,
    /// Two hardware threads per core, or one.
    #[arg(long, value_enum, default_value_t = Threads::On)]
    smt: Threads,
    #[command(flatten)]
    guest: GuestArguments,
    /// The NMI watchdog is on: it counts cycles on every CPU.
    #[arg(long)]
    watchdog: bool,
    /// A Skylake with allow_tsx_force_abort=0, where TSX reserves counter 3.
    #[arg(long, conflicts_with_all = ["counters", "fixed"])]
    no_force_abort: bool,
    /// Events that another command counts on the same CPU, at the same time. Each repeated option
    /// is one more command.
    #[arg(long, value_name = "EVENTS")]
    beside: Vec<String>,
    /// Events that the core's other thread counts at the same time.
    #[arg(long, value_name = "EVENTS")]
    sibling: Option<String>,
    /// The module's parameter `policy`.
    #[arg(long, value_enum, default_value_t = PolicyName::Rpmu)]
    policy: PolicyName,
    /// The module's parameter `share`: 1 if equal events share a counter. Not with the policy of
    /// mainline.
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = value_parser!(u8).range(0..=1))]
    share: u8,
    /// The rotation interval, perf_event_mux_interval_ms in sysfs.
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = seconds)]
    interval: f64,
    /// How long the task runs while its events count.
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = seconds)]
    duration: f64,
    /// The events are those of perf record, which samples them, and accepts more terms than perf
    /// stat.
    #[arg(long)]
    record: bool,
    /// Print the report as JSON.
    #[arg(long, conflicts_with_all = ["svg", "html"])]
    json: bool,
    /// Print an SVG picture of the counters over time.
    #[arg(long, conflicts_with = "html")]
    svg: bool,
    /// Print an HTML page with the picture and the text.
    #[arg(long)]
    html: bool,
}

/// A virtual machine, if there is one of these.
#[derive(Args)]
struct GuestArguments {
    /// Plan for a virtual machine with this many general-purpose counters.
    #[arg(long, value_name = "N")]
    counters: Option<u8>,
    /// Plan for a virtual machine with this many fixed counters.
    #[arg(long, value_name = "N")]
    fixed: Option<u8>,
}

impl GuestArguments {
    fn guest(&self) -> Option<Guest> {
        let guest = Guest {
            gp: self.counters,
            fixed: self.fixed,
        };
        (guest != Guest::default()).then_some(guest)
    }
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

/// A message about invalid arguments.
struct Wrong(String);

fn main() -> ExitCode {
    let command = Command::parse();
    let done = match command.other {
        Some(Other::Models) => {
            print(&models());
            Ok(ExitCode::SUCCESS)
        }
        Some(Other::List(arguments)) => list(&arguments),
        Some(Other::Completions { shell }) => {
            print(&completions(shell));
            Ok(ExitCode::SUCCESS)
        }
        None => plan(&command.plan),
    };
    done.unwrap_or_else(|Wrong(text)| {
        eprintln!("rpmu-plan: {text}");
        ExitCode::from(2)
    })
}

/// Writes to standard output. Ignores errors: the reader may close the pipe early.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Returns the script with which `shell` completes the command line.
fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Command::command(), "rpmu-plan", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn machine(
    model: &str,
    smt: Threads,
    no_force_abort: bool,
    guest: &GuestArguments,
) -> Result<Machine, Wrong> {
    let machine = Machine::new(model, smt.into(), no_force_abort);
    let machine = machine.and_then(|machine| match guest.guest() {
        Some(guest) => machine.as_guest(guest),
        None => Ok(machine),
    });
    machine.map_err(|why| {
        Wrong(match why {
            NoMachine::Unknown(name) => {
                let similar = match &similar(&name)[..] {
                    [] => String::new(),
                    names => format!("did you mean {}? ", names.join(", ")),
                };
                format!("unknown model {name}; {similar}known models:\n{}", models().trim_end())
            }
            NoMachine::NoForceAbort(name) => {
                format!("--no-force-abort: {name} has no allow_tsx_force_abort; only Skylake cores have it")
            }
            NoMachine::Counters(text) | NoMachine::Unsupported(text) => text,
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

/// Parses and resolves a list of events.
fn events(text: &str, machine: &Machine, tool: Tool) -> Result<Vec<names::Wanted>, Wrong> {
    names::parse_for(text, machine, tool)
        .map_err(|mistake| Wrong(format!("invalid events\n{}", mistake.show(text))))
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
    let machine = machine(
        model,
        arguments.smt,
        arguments.no_force_abort,
        &arguments.guest,
    )?;
    let tool = match arguments.record {
        true => Tool::Record,
        false => Tool::Stat,
    };
    let sibling = match &arguments.sibling {
        Some(_) if !machine.has_sibling() => {
            return Err(Wrong(
                "--sibling: with one thread per core there is no other thread".to_owned(),
            ));
        }
        Some(text) => events(text, &machine, tool)?,
        None => Vec::new(),
    };
    let beside = arguments.beside.iter();
    let beside = beside.map(|text| events(text, &machine, tool));
    let request = Request {
        machine,
        policy: match arguments.policy {
            PolicyName::Mainline => Policy::Mainline,
            PolicyName::Rpmu => Policy::Rpmu,
        },
        share: arguments.share != 0,
        watchdog: arguments.watchdog,
        events: events(&arguments.event.join(","), &machine, tool)?,
        beside: beside.collect::<Result<_, _>>()?,
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
    let machine = machine(&arguments.model, arguments.smt, false, &arguments.guest)?;
    let pattern = arguments
        .pattern
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    let mut found = false;
    let mut out = String::new();
    for name in names::all(&machine).filter(|name| name.to_lowercase().contains(&pattern)) {
        let Some(Kind::Hardware(mut attr)) = find(&name, &machine) else {
            continue;
        };
        // As in a group led by slots, in which metrics count.
        attr.leader = Leader::Slots;
        found = true;
        let counters = match machine.configure(&attr) {
            Ok(event) => counter_names(machine.pmu.constraint(event.select).counters),
            Err(refusal) => format!("- ({refusal})"),
        };
        out += &format!("{name:<60} {counters}\n");
    }
    if !found {
        let model = machine.list.name;
        return Err(Wrong(format!("no event of {model} matches {pattern}")));
    }
    print(&format!(
        "{out}\n{}, version {}. {}\n",
        machine.list.name,
        machine.list.version,
        source()
    ));
    Ok(ExitCode::SUCCESS)
}
