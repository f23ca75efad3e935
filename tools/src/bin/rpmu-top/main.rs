// SPDX-License-Identifier: GPL-2.0

//! `rpmu-top`: shows which events have the counters of this machine, which wait for one, and why.

mod terminal;

use clap::{
    CommandFactory,
    Parser,
    Subcommand,
    ValueEnum, //
};
use clap_complete::{
    generate,
    Shell, //
};
use rpmu_plan::time::seconds;
use rpmu_plan::top::facts::Facts;
use rpmu_plan::top::metrics::metrics;
use rpmu_plan::top::readings::Source;
use rpmu_plan::top::screen::{
    self,
    Filter,
    Screen, //
};
use rpmu_plan::top::table::table;
use std::io::{
    stdin,
    stdout,
    IsTerminal,
    Write, //
};
use std::path::{
    Path,
    PathBuf, //
};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

/// Show which events are on the performance counters of this machine, who has opened them, which
/// events wait for a counter, and why. Needs rpmu, and root.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Exit status: 0, or 2 if nothing can be shown. See rpmu-top(1).")]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Print a table and end.
    #[arg(long)]
    once: bool,
    /// Print the state as JSON and end.
    #[arg(long, conflicts_with = "once")]
    json: bool,
    /// Print metrics for Prometheus and end; without rpmu, print that it is not loaded.
    #[arg(long, conflicts_with_all = ["once", "json", "cpu", "filter", "waiting", "sort"])]
    metrics: bool,
    /// The time between readings, such as 500ms; shares are those of this time.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    interval: f64,
    /// Show only events of this CPU.
    #[arg(short, long, value_name = "CPU")]
    cpu: Option<u32>,
    /// Show only events with this text in the event, the opener, the task, the counter or the
    /// reason.
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Show only events that wait for a counter.
    #[arg(short, long)]
    waiting: bool,
    /// The order of the events.
    #[arg(short, long, value_enum, default_value_t = Sort::Cpu)]
    sort: Sort,
    /// Draw without other characters than ASCII. The default where the locale has no UTF-8.
    #[arg(long)]
    ascii: bool,
    /// Keep a copy of each reading below DIR, for --root.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Show what --record has kept in DIR, or a copy of the files of debugfs, procfs and sysfs.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Subcommand)]
enum Other {
    /// Print the completions for a shell, which that shell reads.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Sort {
    /// By CPU, then as the driver lists the events.
    Cpu,
    /// Smallest share first.
    Share,
    /// By name.
    Event,
    /// By the user that has opened the event.
    Opener,
    /// By the task that the event counts.
    Task,
}

impl From<Sort> for screen::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Cpu => Self::Cpu,
            Sort::Share => Self::Share,
            Sort::Event => Self::Event,
            Sort::Opener => Self::Opener,
            Sort::Task => Self::Task,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.other {
        Some(Other::Completions { shell }) => {
            let mut script = Vec::new();
            generate(shell, &mut Arguments::command(), "rpmu-top", &mut script);
            print(&String::from_utf8_lossy(&script));
            Ok(())
        }
        None => show(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("rpmu-top: {text}");
            ExitCode::from(2)
        }
    }
}

/// Writes to standard output. Ignores errors: the reader may close the pipe early.
fn print(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn show(arguments: &Arguments) -> Result<(), String> {
    if arguments.metrics && !is_loaded(&arguments.root) {
        print(&metrics(None));
        return Ok(());
    }
    let mut source = Source::new(&arguments.root)?;
    if let Some(directory) = &arguments.record {
        source.record(directory);
    }
    let filter = Filter {
        cpu: arguments.cpu,
        waiting: arguments.waiting,
        text: arguments.filter.clone(),
    };
    let interval = Duration::from_secs_f64(arguments.interval);
    if arguments.once || arguments.json {
        let facts = facts(&mut source, interval)?;
        let text = match arguments.json {
            false => table(&facts, &filter, arguments.sort.into()),
            true => {
                let json = serde_json::to_string_pretty(&facts);
                json.map_err(|error| error.to_string())? + "\n"
            }
        };
        print(&text);
        return Ok(());
    }
    if arguments.metrics {
        let facts = facts(&mut source, interval)?;
        print(&metrics(Some((&facts, &source.health()))));
        return Ok(());
    }
    if !stdout().is_terminal() || !stdin().is_terminal() {
        return Err("this is no terminal: print the state with --once or --json".to_owned());
    }
    let mut screen = Screen::new(filter, arguments.sort.into(), terminal::ms(interval));
    screen.ascii = arguments.ascii || !terminal::has_utf8();
    screen.colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    terminal::run(&mut source, screen)
}

/// Returns whether rpmu is loaded, or was when the files below `root` were copied.
fn is_loaded(root: &Path) -> bool {
    // Everybody may look there, unlike into debugfs.
    root != Path::new("/") || Path::new("/sys/module/rpmu").exists()
}

/// Returns the facts of two readings with the interval between them; of one if there is only one.
fn facts(source: &mut Source, interval: Duration) -> Result<Facts, String> {
    let first = source.take()?;
    if source.is_still() {
        let parameters = source.parameters();
        return Ok(Facts::new(source.machine(), parameters, None, &first));
    }
    if source.is_live() {
        sleep(interval);
    }
    let parameters = source.parameters();
    let second = source.take()?;
    Ok(Facts::new(
        source.machine(),
        parameters,
        Some(&first),
        &second,
    ))
}
