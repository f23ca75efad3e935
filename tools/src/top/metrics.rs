// SPDX-License-Identifier: GPL-2.0

//! The facts as metrics, for Prometheus and what else reads its text format.
//!
//! The names and units follow Prometheus' conventions. Labels have few values: CPUs, states, kinds
//! of reasons and errnos, and neither events nor tasks.

use super::facts::{
    Facts,
    State, //
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The state of rpmu besides the schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Refusals in the last minute, by errno; the driver remembers the last 64.
    pub refusals: BTreeMap<String, u64>,
    /// Set if rpmu has given the PMU up.
    pub given_up: bool,
}

impl Health {
    /// Parses the files `refusals` and `breaker`.
    pub fn parse(refusals: &str, breaker: &str) -> Self {
        let mut health = Self {
            given_up: breaker.lines().any(|it| it.starts_with("# given up")),
            ..Self::default()
        };
        for line in refusals.lines() {
            let mut words = line.split_whitespace();
            let age = words.next().and_then(|it| it.parse::<f64>().ok());
            // The PID and the name, which has no blanks, come before the errno.
            let errno = words.nth(2);
            if let (Some(0.0..60.0), Some(errno)) = (age, errno) {
                *health.refusals.entry(errno.to_owned()).or_default() += 1;
            }
        }
        health
    }
}

/// The kinds of reasons of events that wait, with a part of the driver's text.
const REASONS: &[(&str, &str)] = &[
    ("turn", "waits for its turn"),
    ("pinned", "gets no turn while pinned events count"),
    ("behind", "behind a group that got no counter"),
    ("error", "it got no counter, some time ago"),
    ("register", "extra register"),
    // This text follows one about counters.
    ("sibling", "the core's other thread"),
    ("counters", "events compete for"),
    ("counters", "counters are needed"),
];

/// Returns the kind of a reason.
fn kind(why: &str) -> &'static str {
    let mut reasons = REASONS.iter();
    let found = reasons.find(|(_, text)| why.contains(text));
    found.map_or("other", |(kind, _)| kind)
}

/// Writes the head of a metric.
fn head(out: &mut String, name: &str, help: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// Formats the facts as metrics; without facts, only says that rpmu is not loaded.
pub fn metrics(found: Option<(&Facts, &Health)>) -> String {
    let mut out = String::new();
    let loaded = u8::from(found.is_some());
    head(&mut out, "rpmu_loaded", "1 if rpmu drives the PMU.");
    let _ = writeln!(out, "rpmu_loaded {loaded}");
    let Some((facts, health)) = found else {
        return out;
    };
    head(&mut out, "rpmu_given_up", "1 if rpmu has given the PMU up.");
    let _ = writeln!(out, "rpmu_given_up {}", u8::from(health.given_up));

    head(&mut out, "rpmu_counters", "Counters of a CPU.");
    for cpu in &facts.cpus {
        let _ = writeln!(
            out,
            "rpmu_counters{{cpu=\"{}\"}} {}",
            cpu.cpu,
            cpu.counters.len()
        );
    }
    head(
        &mut out,
        "rpmu_counters_used",
        "Counters of a CPU that have an event.",
    );
    for cpu in &facts.cpus {
        let used = cpu.counters.iter().filter(|it| it.event.is_some()).count();
        let _ = writeln!(out, "rpmu_counters_used{{cpu=\"{}\"}} {used}", cpu.cpu);
    }

    let name = "rpmu_events";
    head(&mut out, name, "Events on a CPU, by state.");
    let states = [State::Counts, State::Rides, State::Waits, State::Error];
    for cpu in &facts.cpus {
        for state in states {
            let events = facts.events.iter();
            let number = events.filter(|it| it.cpu == cpu.cpu && it.state == state);
            let (cpu, number) = (cpu.cpu, number.count());
            let _ = writeln!(
                out,
                "{name}{{cpu=\"{cpu}\",state=\"{}\"}} {number}",
                state.word()
            );
        }
    }

    let name = "rpmu_event_share_min_ratio";
    head(
        &mut out,
        name,
        "Smallest share of the last interval in which an event of a CPU counted.",
    );
    for cpu in &facts.cpus {
        let events = facts.events.iter().filter(|it| it.cpu == cpu.cpu);
        let least = events.filter_map(|it| it.share).min_by(f64::total_cmp);
        if let Some(least) = least {
            let _ = writeln!(out, "{name}{{cpu=\"{}\"}} {least}", cpu.cpu);
        }
    }

    let name = "rpmu_waiting_events";
    head(
        &mut out,
        name,
        "Events without a counter on all CPUs, by the kind of the reason.",
    );
    let mut reasons: BTreeMap<&str, u64> = REASONS.iter().map(|(kind, _)| (*kind, 0)).collect();
    reasons.insert("other", 0);
    for event in facts.events.iter().filter(|it| it.state >= State::Waits) {
        let why = event.event.why.as_deref().unwrap_or_default();
        *reasons.entry(kind(why)).or_default() += 1;
    }
    for (reason, number) in reasons {
        let _ = writeln!(out, "{name}{{reason=\"{reason}\"}} {number}");
    }

    let name = "rpmu_recent_refusals";
    head(
        &mut out,
        name,
        "Refused events in the last minute, at most 64, by errno.",
    );
    for (errno, number) in &health.refusals {
        let _ = writeln!(out, "{name}{{errno=\"{errno}\"}} {number}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::model::constraint::Constraint;
    use crate::logic::refusal::{
        Refusal,
        Shortage, //
    };
    use crate::logic::regs::counter::CounterMask;
    use crate::logic::sched::explanation::Explanation;
    use crate::logic::sched::limits::Limits;

    /// The driver's own texts have the kinds that they should have.
    #[test]
    fn reasons_have_kinds() {
        let counters = CounterMask::from_bits(0b100);
        let contended = Shortage::Contended {
            events: 2,
            counters,
        };
        let explain = |refusal, limits| Explanation {
            refusal,
            constraint: Constraint::any_of(counters),
            limits,
            tfa: CounterMask::EMPTY,
        };
        let closed = Limits {
            closed: counters,
            ..Limits::NONE
        };
        for (refusal, limits, expected) in [
            (Refusal::DoesNotFit(contended), Limits::NONE, "counters"),
            (Refusal::Limited(contended), closed, "sibling"),
            (Refusal::ExtraRegisterLimited, Limits::NONE, "register"),
        ] {
            let text = explain(refusal, limits).to_string();
            assert_eq!(kind(&text), expected, "{text}");
        }
        assert_eq!(kind("waits for its turn behind PMC2: cycles"), "turn");
        assert_eq!(kind("something new"), "other");
    }
}
