// SPDX-License-Identifier: GPL-2.0

//! The report as text.

use crate::changes::{
    command,
    Change, //
};
use crate::machine::Smt;
use crate::report::{
    EventReport,
    Report,
    RideReport, //
};
use std::collections::HashMap;
use std::fmt::{
    self,
    Write, //
};

/// Maximum number of configurations shown with their counters.
const MAX_CONFIGURATIONS: usize = 12;
/// Maximum number of intervals listed.
const MAX_TURNS: usize = 16;
/// Maximum number of events listed on whose counters one event rides.
const MAX_RIDES: usize = 2;

/// Formats the report as text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_all(report, &mut out);
    out
}

fn write_all(report: &Report, out: &mut String) -> fmt::Result {
    head(report, out)?;
    events(report, out)?;
    configurations(report, out)?;
    causes(report, out)?;
    help(report, out)
}

fn head(report: &Report, out: &mut String) -> fmt::Result {
    let machine = &report.machine;
    let threads = match machine.smt {
        Smt::On => "two threads per core",
        Smt::Offline => "the core's other thread offline",
        Smt::Off => "one thread per core",
    };
    let fixed = machine
        .counters
        .iter()
        .filter(|counter| counter.starts_with('F'))
        .count();
    let gp = machine.counters.len() - fixed;
    writeln!(
        out,
        "{} ({}){}, {threads}: {gp} general-purpose and {fixed} fixed counters\npolicy={}{}{}, rotation every {} ms, {} s of runtime",
        machine.name,
        machine.model,
        if machine.guest { ", virtual machine" } else { "" },
        machine.policy,
        if machine.policy == "rpmu" && !machine.share { ", share=0" } else { "" },
        if machine.watchdog { ", NMI watchdog on" } else { "" },
        report.interval_ms,
        report.seconds,
    )
}

fn events(report: &Report, out: &mut String) -> fmt::Result {
    let indent = |event: &EventReport| if event.grouped { "  " } else { "" };
    let width =
        |text: &dyn Fn(&EventReport) -> usize| report.events.iter().map(text).max().unwrap_or(0);
    let names = width(&|event| event.name.len() + indent(event).len()).max(5);
    let counters = width(&|event| event.counters.as_ref().map_or(8, String::len)).max(8);
    writeln!(
        out,
        "\n{:<names$}  {:<counters$}  perf stat shows",
        "Event", "Counters"
    )?;
    let mut command = 0;
    let mut group = None;
    let mut rest = report.events.iter().peekable();
    while let Some(event) = rest.next() {
        if event.beside != command {
            command = event.beside;
            writeln!(out, "beside ({command})")?;
        }
        if event.grouped && group != Some(event.group) {
            writeln!(out, "{{")?;
        }
        group = Some(event.group);
        let name = format!("{}{}", indent(event), event.name);
        let on = match (&event.counters, &event.refused) {
            (Some(counters), _) => counters.as_str(),
            (None, None) if event.elsewhere => "none",
            (None, None) => "software",
            (None, Some(_)) => "",
        };
        write!(out, "{name:<names$}  {on:<counters$}  {}", event.shown)?;
        match &event.refused {
            Some(refused) => writeln!(out, ": {}, {}", refused.errno, refused.reason)?,
            None => writeln!(out, "{}", rides(event))?,
        }
        let is_last = rest.peek().is_none_or(|next| next.group != event.group);
        if event.grouped && is_last {
            writeln!(out, "}}")?;
        }
    }
    Ok(())
}

/// Formats the events on whose counters an event rides, the most frequent first.
fn rides(event: &EventReport) -> String {
    let ride = |ride: &RideReport| {
        let RideReport {
            event: head,
            beside,
            counters,
            ..
        } = ride;
        match *beside {
            of if of == event.beside => format!("{head} ({counters})"),
            0 => format!("{head} of the command ({counters})"),
            of => format!("{head} of beside {of} ({counters})"),
        }
    };
    let rides = event.rides_on.iter().take(MAX_RIDES);
    let mut rides: Vec<String> = rides.map(ride).collect();
    match event.rides_on.len().saturating_sub(MAX_RIDES) {
        0 => {}
        more => rides.push(format!("{more} more")),
    }
    match rides.is_empty() {
        true => String::new(),
        false => format!(", rides on {}", rides.join(" and ")),
    }
}

fn configurations(report: &Report, out: &mut String) -> fmt::Result {
    let single = report.configurations.len() == 1;
    writeln!(
        out,
        "\n{}",
        if single {
            "One configuration"
        } else {
            "Configurations"
        }
    )?;
    for configuration in report.configurations.iter().take(MAX_CONFIGURATIONS) {
        let indent = " ".repeat(4);
        write!(
            out,
            "{:<4}{:>5.1} %",
            configuration.name,
            configuration.share * 100.0
        )?;
        if configuration.counters.is_empty() {
            write!(out, "  no counter in use")?;
        }
        let mut separator = "  ";
        let mut column = 0;
        for (counter, event) in &configuration.counters {
            if column > 80 {
                write!(out, "\n{indent}       ")?;
                column = 0;
            }
            let riders = configuration.riders.iter();
            let riders = riders.filter(|(it, _)| it == counter).count();
            let riders = match riders {
                0 => String::new(),
                1 => " (+1 rider)".to_owned(),
                riders => format!(" (+{riders} riders)"),
            };
            write!(out, "{separator}{counter}={event}{riders}")?;
            column += counter.len() + event.len() + riders.len() + 3;
            separator = "  ";
        }
        writeln!(out)?;
    }
    if report.configurations.len() > MAX_CONFIGURATIONS {
        writeln!(
            out,
            "… and {} more (--json lists all)",
            report.configurations.len() - MAX_CONFIGURATIONS
        )?;
    }
    if !single {
        let turns: Vec<String> = report
            .turns
            .iter()
            .take(MAX_TURNS)
            .map(|turn| format!("C{}", turn + 1))
            .collect();
        writeln!(out, "In order: {} …", turns.join(" "))?;
    }
    Ok(())
}

fn causes(report: &Report, out: &mut String) -> fmt::Result {
    // Events with the same causes share a paragraph.
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for event in report
        .events
        .iter()
        .filter(|event| !event.causes.is_empty())
    {
        let mut text = String::new();
        for cause in &event.causes {
            writeln!(text, "  {:>5.1} %  {}", cause.share * 100.0, cause.text)?;
        }
        match known.get(&text) {
            Some(number) => said[*number].1.push(&event.name),
            None => {
                known.insert(text.clone(), said.len());
                said.push((text, vec![&event.name]));
            }
        }
    }
    if !said.is_empty() {
        writeln!(out, "\nWhy events do not count, by share of the time")?;
    }
    for (text, names) in said {
        write!(out, "{}\n{text}", names.join(", "))?;
    }
    Ok(())
}

fn help(report: &Report, out: &mut String) -> fmt::Result {
    let Some(runs) = &report.runs else {
        return writeln!(out, "\nEvery event counts all the time.");
    };
    writeln!(out, "\nWhat would help, cheapest first")?;
    let (avoids, helps): (Vec<&Change>, Vec<&Change>) =
        report.changes.iter().partition(|change| change.avoids);
    for change in avoids.iter().chain(&helps) {
        let effect = if change.avoids {
            "every event counts all the time".to_owned()
        } else {
            let own = report.events.iter().filter(|event| event.beside == 0);
            let all = own.count();
            let counted = match change.counted {
                counted if counted == all => "every event is counted".to_owned(),
                counted => format!("{counted} of {all} events are counted"),
            };
            let least = change.least * 100.0;
            match change.always {
                always if always == change.counted => format!("{counted}, all the time"),
                0 => format!("{counted}, at least {least:.1} % of the time"),
                always => {
                    format!("{counted}, {always} all the time, the rest at least {least:.1} %")
                }
            }
        };
        writeln!(out, "- {}: {effect}", change.what)?;
        if let Some(events) = &change.events {
            writeln!(out, "    {}", command(events))?;
        }
    }
    if !runs.never.is_empty() {
        writeln!(
            out,
            "- leave out the events that cannot be counted here: {}",
            runs.never.join(", ")
        )?;
    }
    if runs.events.is_empty() {
        return writeln!(out, "- none of the events can be counted on this machine");
    }
    if runs.events.len() > 1 || !runs.never.is_empty() {
        let fewest = if runs.minimal {
            ", and no fewer are enough"
        } else {
            " (fewer may be enough)"
        };
        let count = runs.events.len();
        let plural = if count == 1 { "" } else { "s" };
        writeln!(
            out,
            "- {count} run{plural}: every event counts all the time{fewest}"
        )?;
        for events in &runs.events {
            writeln!(out, "    {}", command(events))?;
        }
    }
    Ok(())
}
