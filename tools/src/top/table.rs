// SPDX-License-Identifier: GPL-2.0

//! The facts as a table of text.

use super::facts::{
    EventFacts,
    Facts, //
};
use super::screen::{
    rows,
    Filter,
    Sort, //
};
use std::fmt::Write;

/// Formats a share: `49.9 %`, or `-` if it is not known.
pub fn share(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        // Otherwise the tool would say 100 for an event that has missed something.
        Some(share) if share >= 0.9995 => "100 %".to_owned(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// Formats the facts as a table, with a line for each CPU and one for each wanted event.
pub fn table(facts: &Facts, filter: &Filter, sort: Sort) -> String {
    let mut out = facts.head() + "\n\n";
    for cpu in &facts.cpus {
        if filter.cpu.is_some_and(|wanted| wanted != cpu.cpu) {
            continue;
        }
        let used = cpu.counters.iter().filter(|it| it.event.is_some());
        let names: Vec<String> = used
            .map(|it| match it.share {
                None => it.name.clone(),
                Some(part) => format!("{} {}", it.name, share(Some(part))),
            })
            .collect();
        let (all, used) = (cpu.counters.len(), names.len());
        // Writing to a string does not fail.
        let _ = write!(out, "CPU {}: {used} of {all} counters in use", cpu.cpu);
        if used != 0 {
            let _ = write!(out, ": {}", names.join(", "));
        }
        if cpu.waiting != 0 {
            let _ = write!(out, "; {} wait", cpu.waiting);
        }
        if cpu.unlisted != 0 {
            let _ = write!(out, "; {} more are not listed", cpu.unlisted);
        }
        out.push('\n');
    }
    let rows = rows(facts, filter, sort);
    if rows.is_empty() {
        out += if facts.events.is_empty() {
            "\nNo event is open.\n"
        } else {
            "\nNo event matches the filter.\n"
        };
        return out;
    }
    let width = |title: &str, of: fn(&EventFacts) -> usize| {
        let widest = rows.iter().map(|it| of(it)).max();
        widest.unwrap_or(0).max(title.len())
    };
    let (event, opener) = (
        width("EVENT", |it| it.event.name.len()),
        width("OPENED BY", |it| it.opener().len()),
    );
    let _ = writeln!(
        out,
        "\n{:>4} {:<8} {:>7}  {:<event$}  {:<opener$}  COUNTS",
        "CPU", "COUNTER", "SHARE", "EVENT", "OPENED BY"
    );
    let mut said = None;
    for it in rows {
        let _ = writeln!(
            out,
            "{:>4} {:<8} {:>7}  {:<event$}  {:<opener$}  {}{}",
            it.cpu,
            it.place(),
            share(it.share),
            it.event.name,
            it.opener(),
            it.counts(),
            if it.event.pinned { ", pinned" } else { "" },
        );
        // A group waits as a whole: say why once.
        let group = (it.cpu, it.event.group);
        if let Some(why) = it.event.why.as_ref().filter(|_| said != Some(group)) {
            let _ = writeln!(out, "{:>13}{why}", "");
            said = Some(group);
        }
    }
    out
}
