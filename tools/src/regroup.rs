// SPDX-License-Identifier: GPL-2.0

//! The groups that the perf tool changes before it opens a list: groups of topdown events and of
//! several PMUs.
//!
//! A group of events of several PMUs is split into one for each; software events stay with any. On
//! a CPU with PERF_METRICS, perf adds `slots` to a list that has topdown metrics without it, and
//! moves slots and metrics into one group, slots first. Events that lose their leader
//! become a separate group.
//!
//! Source: `parse_events__sort_events_and_fix_groups()`, `tools/perf/util/parse-events.c`, and
//! `arch/x86/util/{evlist,evsel,topdown}.c` in `tools/perf`.

use crate::logic::open::attr::{
    Attributes,
    EventType, //
};
use crate::logic::open::topdown::SLOTS;
use crate::machine::Machine;
use crate::names::{
    Kind,
    Wanted,
    WantedEvent, //
};
use std::cmp::Ordering;

/// The bits of attr.config that are the same for all metrics, and their value.
const METRIC: (u64, u64) = (0xffff_f8ff, 0x8000);

/// Returns whether perf treats the event as slots.
fn is_slots(event: &WantedEvent) -> bool {
    matches!(event.kind, Kind::Hardware(attr)
        if attr.event_type == EventType::Raw && (attr.config, attr.config1) == (SLOTS, 0))
}

/// Returns whether perf treats the event as a topdown metric.
fn is_metric(event: &WantedEvent) -> bool {
    matches!(event.kind, Kind::Hardware(attr)
        if attr.event_type == EventType::Raw
            && (attr.config & METRIC.0, attr.config1) == (METRIC.1, 0))
}

fn is_topdown(event: &WantedEvent) -> bool {
    is_slots(event) || is_metric(event)
}

/// Returns whether perf leaves the event in a group that it splits.
pub fn must_be_in_group(event: &WantedEvent, machine: &Machine) -> bool {
    machine.pmu.capabilities.perf_metrics && is_topdown(event)
}

/// An event of the list. Events are numbered in the order of the list.
struct Item {
    event: WantedEvent,
    /// The number of its group.
    group: usize,
    /// The number of its leader, as written.
    leader: usize,
    /// The PMU of its group, or its own.
    pmu: &'static str,
}

/// Returns the PMU of an event, and whether it may be in a group of another PMU.
fn pmu(event: &WantedEvent) -> (&'static str, bool) {
    match event.kind {
        Kind::Hardware(_) => ("cpu", false),
        Kind::Software => ("software", true),
        Kind::Other(other) => (other.name, other.is_software),
    }
}

/// Returns the PMU by which perf groups an event: its own, or for a software event its group's
/// (`evsel__compute_group_pmu_name()`).
fn group_pmu(event: &WantedEvent, group: &Wanted) -> &'static str {
    let (own, is_software) = pmu(event);
    let mut others = group.events.iter().map(pmu).filter(|pmu| !pmu.1);
    match others.next() {
        Some((other, _)) if is_software => other,
        _ => own,
    }
}

/// Returns the slots event that perf adds for a metric, with the metric's modifiers except X.
fn slots_for(metric: &WantedEvent, attr: Attributes) -> WantedEvent {
    let letters = metric.alone.rsplit_once([':', '/']);
    let letters = letters.map_or(String::new(), |(_, letters)| letters.replace('X', ""));
    let name = if letters.is_empty() {
        "slots".to_owned()
    } else {
        format!("slots:{letters}")
    };
    let attr = Attributes {
        config: SLOTS,
        ..attr
    };
    WantedEvent {
        alone: name.clone(),
        name,
        kind: Kind::Hardware(attr),
        stays: false,
        ..metric.clone()
    }
}

/// Regroups the events of a list like perf.
pub fn regroup(groups: Vec<Wanted>, machine: &Machine) -> Vec<Wanted> {
    let mut events = groups.iter().flat_map(|group| &group.events);
    let spans_pmus = |group: &Wanted| {
        let mut pmus = group.events.iter().map(|event| group_pmu(event, group));
        let first = pmus.next();
        pmus.any(|pmu| Some(pmu) != first)
    };
    if !events.any(|event| must_be_in_group(event, machine)) && !groups.iter().any(spans_pmus) {
        return groups;
    }
    let mut items = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let leader = items.len();
        items.extend(group.events.iter().map(|event| Item {
            event: event.clone(),
            group: number,
            leader,
            pmu: group_pmu(event, group),
        }));
    }
    if machine.pmu.capabilities.perf_metrics {
        add_slots(&mut items);
    }
    let order = order(&items, machine);
    let leaders = leaders(&items, &order, machine);
    let mut regrouped: Vec<(usize, Vec<usize>)> = Vec::new();
    for number in order {
        let leader = leaders[number];
        match regrouped.iter_mut().find(|(its, _)| *its == leader) {
            Some((_, members)) => members.push(number),
            None => regrouped.push((leader, vec![number])),
        }
    }
    let regrouped = regrouped.iter();
    regrouped
        .map(|(leader, members)| wanted(&groups, &items, *leader, members))
        .collect()
}

/// Adds slots to the group of the first metric, if the list has none.
fn add_slots(items: &mut Vec<Item>) {
    if items.iter().any(|item| is_slots(&item.event)) {
        return;
    }
    let Some(first) = items.iter().find(|item| is_metric(&item.event)) else {
        return;
    };
    if let Kind::Hardware(attr) = first.event.kind {
        let new = Item {
            event: slots_for(&first.event, attr),
            ..*first
        };
        items.push(new);
    }
}

/// Returns the numbers of the events in perf's order. Slots and metrics are placed where the first
/// group that has one of them is. Slots are first, and metrics of other groups precede the other
/// events of that group. Events with the modifier X keep their places.
fn order(items: &[Item], machine: &Machine) -> Vec<usize> {
    let is_forced = |item: &Item| must_be_in_group(&item.event, machine);
    let first = items.iter().find(|item| is_forced(item));
    let first = first.map_or(0, |item| item.leader);
    let place = |number: usize| {
        let item = &items[number];
        match (item.event.stays, is_forced(item)) {
            (true, _) => number,
            (false, true) => first,
            (false, false) => item.leader,
        }
    };
    // `evlist__cmp()` and `arch_evlist__cmp()`.
    let follows = |one: usize, other: usize| {
        let (one_item, other_item) = (&items[one], &items[other]);
        if place(one) != place(other) {
            return place(one) > place(other);
        }
        match one_item.pmu.cmp(other_item.pmu) {
            Ordering::Equal => {}
            order => return order == Ordering::Greater,
        }
        match (is_slots(&one_item.event), is_slots(&other_item.event)) {
            (true, _) => return false,
            (false, true) => return true,
            (false, false) => {}
        }
        match (is_metric(&one_item.event), is_metric(&other_item.event)) {
            (true, false) if one_item.leader != other_item.leader => false,
            (false, true) if one_item.leader != other_item.leader => true,
            _ => one > other,
        }
    };
    sort(items.len(), follows)
}

/// Sorts the numbers below `count` with the algorithm of `list_sort()` (`tools/lib/list_sort.c`).
/// The result depends on the algorithm, because perf's order has cycles: a metric in the group of
/// the slots may follow another event there, which follows a metric from outside, which follows the
/// first metric.
fn sort(count: usize, follows: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let merge = |one: Vec<usize>, other: Vec<usize>| {
        let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
        let mut merged = Vec::new();
        while let (Some(&first), Some(&second)) = (one.peek(), other.peek()) {
            let next = if follows(first, second) {
                other.next()
            } else {
                one.next()
            };
            merged.extend(next);
        }
        merged.extend(one.chain(other));
        merged
    };
    let mut pending: Vec<Vec<usize>> = Vec::new();
    for number in 0..count {
        // The lowest clear bit, if a bit above it is set.
        let bit = number.trailing_ones() as usize;
        if number >> bit != 0 {
            let at = pending.len() - 1 - bit;
            let newer = pending.remove(at);
            let older = std::mem::take(&mut pending[at - 1]);
            pending[at - 1] = merge(older, newer);
        }
        pending.push(vec![number]);
    }
    let newest = pending.pop().unwrap_or_default();
    pending
        .into_iter()
        .rev()
        .fold(newest, |sorted, older| merge(older, sorted))
}

/// Returns each event's leader.
fn leaders(items: &[Item], order: &[usize], machine: &Machine) -> Vec<usize> {
    let mut leaders: Vec<usize> = items.iter().map(|item| item.leader).collect();
    let is_forced = |number: usize| must_be_in_group(&items[number].event, machine);
    let moves = |number: usize| !items[number].event.stays && is_forced(number);
    // The leader of the current group, and the leader that its members have in the list.
    let mut current: Option<(usize, usize)> = None;
    // The leader of the topdown events.
    let mut topdown = None;
    let mut after_topdown_leader = false;
    for (index, &number) in order.iter().enumerate() {
        let written = leaders[number];
        let stays = items[number].event.stays;
        let (mut leader, mut of) = match current {
            Some(current) if !stays => current,
            _ => {
                if moves(number) {
                    topdown = Some(number);
                }
                let leader = if stays { written } else { number };
                (leader, leader)
            }
        };
        if items[leader].pmu != items[number].pmu {
            (leader, of) = (number, written);
            if moves(number) {
                topdown = topdown.or(Some(number));
            }
        } else if of != written {
            // If slots start a new group, the events of a group with metrics move along with the
            // metrics.
            let rest = order.iter().skip(index + 1);
            let comes_along = after_topdown_leader
                && rest
                    .filter(|other| is_forced(**other))
                    .any(|other| leaders[*other] == written);
            if !comes_along {
                (leader, of) = match topdown {
                    Some(leader) if moves(number) => (leader, leaders[leader]),
                    None if moves(number) => {
                        topdown = Some(number);
                        (number, number)
                    }
                    _ => (number, written),
                };
            }
        }
        current = Some((leader, of));
        leaders[number] = leader;
        after_topdown_leader = topdown == Some(number);
    }
    leaders
}

/// Makes the group of these events. An unchanged group stays as written.
fn wanted(groups: &[Wanted], items: &[Item], leader: usize, members: &[usize]) -> Wanted {
    let written = &groups[items[leader].group];
    let is_whole = members.len() == written.events.len();
    let in_order = members.first() == Some(&items[leader].leader)
        && members.windows(2).all(|two| two[0] + 1 == two[1]);
    if is_whole && in_order {
        return written.clone();
    }
    let events = members.iter().map(|number| {
        let event = &items[*number].event;
        WantedEvent {
            name: event.alone.clone(),
            ..event.clone()
        }
    });
    Wanted {
        events: events.collect(),
        braces: members.len() > 1,
        suffix: if written.weak { ":W" } else { "" }.to_owned(),
        weak: written.weak,
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::{
        Machine,
        Smt, //
    };
    use crate::names::{
        parse,
        text, //
    };

    fn regrouped(model: &str, events: &str) -> String {
        let machine = Machine::new(model, Smt::On, false).unwrap();
        text(&parse(events, &machine).unwrap())
    }

    /// The examples of perf's own comment, `arch_evlist__cmp()` in
    /// `tools/perf/arch/x86/util/evlist.c`.
    #[test]
    fn perfs_examples() {
        for (events, expected) in [
            (
                "{instructions,topdown-retiring,slots}",
                "{slots,instructions,topdown-retiring}",
            ),
            (
                "instructions,topdown-retiring,slots",
                "instructions,{slots,topdown-retiring}",
            ),
            (
                "{instructions,slots},topdown-retiring",
                "{slots,topdown-retiring},instructions",
            ),
            (
                "{instructions,slots},{topdown-retiring}",
                "{slots,topdown-retiring},instructions",
            ),
            (
                "{instructions,slots},cycles,topdown-retiring",
                "{slots,topdown-retiring},instructions,cycles",
            ),
        ] {
            assert_eq!(regrouped("icx", events), expected, "{events}");
        }
    }

    #[test]
    fn slots_are_added() {
        for (events, expected) in [
            ("topdown-retiring", "{slots,topdown-retiring}"),
            (
                "faults,topdown-retiring:u,cycles,topdown-bad-spec",
                "faults,{slots:u,topdown-retiring:u,topdown-bad-spec},cycles",
            ),
            (
                "{cycles,topdown-retiring}:k",
                "{slots:k,cycles:k,topdown-retiring:k}",
            ),
            (
                "{topdown-retiring,cycles},topdown-bad-spec",
                "{slots,topdown-retiring,topdown-bad-spec},cycles",
            ),
            ("{topdown-retiring}:W", "{slots,topdown-retiring}:W"),
        ] {
            assert_eq!(regrouped("spr", events), expected, "{events}");
        }
    }

    /// Groups as `perf stat -vv` of Linux 7.3 has shown them ("evlist after sorting/fixing").
    #[test]
    fn what_perf_has_shown() {
        for (events, expected) in [
            (
                "{cycles,topdown-retiring},topdown-bad-spec",
                "{slots,topdown-bad-spec},{cycles,topdown-retiring}",
            ),
            (
                "{topdown-retiring,cycles},topdown-bad-spec",
                "{slots,topdown-retiring,topdown-bad-spec},cycles",
            ),
            (
                "{slots,topdown-retiring},{slots,topdown-bad-spec}",
                "{slots,slots,topdown-retiring,topdown-bad-spec}",
            ),
            (
                "{instructions,topdown-retiring,slots,cycles}",
                "{slots,instructions,topdown-retiring,cycles}",
            ),
            (
                "topdown-retiring:X,cycles",
                "slots,topdown-retiring:X,cycles",
            ),
            (
                "{slots,cycles,topdown-retiring},{instructions,topdown-bad-spec}",
                "{slots,cycles,topdown-retiring,topdown-bad-spec},instructions",
            ),
        ] {
            assert_eq!(regrouped("icx", events), expected, "{events}");
        }
    }

    /// As `perf stat -vv` of Linux 7.3 shows them.
    #[test]
    fn groups_are_split_by_pmus() {
        for (events, expected) in [
            ("{cycles,uncore_imc/x/}", "cycles,uncore_imc/x/"),
            (
                "{cycles,uncore_imc/x/,instructions}:u",
                "{cycles:u,instructions:u},uncore_imc/x/u",
            ),
            ("{faults,uncore_imc/x/}", "{faults,uncore_imc/x/}"),
            ("{cycles,msr/tsc/,faults}", "{cycles,msr/tsc/,faults}"),
        ] {
            assert_eq!(regrouped("hsw", events), expected, "{events}");
        }
    }

    #[test]
    fn other_lists_are_as_they_were_written() {
        for events in [
            "{slots,cycles,topdown-retiring}:u,{cycles,instructions}:W",
            "slots,cycles",
            "{slots:X,topdown-retiring:X},{slots:X,topdown-bad-spec:X}",
        ] {
            assert_eq!(regrouped("icx", events), events, "{events}");
        }
        // Events of general-purpose counters, by the same names.
        let older = "topdown-slots-retired,{cycles,topdown-fetch-bubbles}";
        assert_eq!(regrouped("skl", older), older);
    }
}
