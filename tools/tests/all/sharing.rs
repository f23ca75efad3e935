// SPDX-License-Identifier: GPL-2.0

//! Tests the prediction for commands beside each other, whose equal events share counters.

use proptest::prelude::*;
use rpmu_plan::data::lists;
use rpmu_plan::logic::model::demand::Demand;
use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::{
    parse,
    Wanted, //
};
use rpmu_plan::open::open;
use rpmu_plan::plan::{
    Plan,
    Request, //
};

/// Returns the request of `copies` commands with the same events.
fn request(machine: Machine, events: &str, copies: usize) -> Request {
    let events = parse(events, &machine).unwrap();
    Request {
        machine,
        policy: Policy::Rpmu,
        share: true,
        watchdog: false,
        beside: vec![events.clone(); copies - 1],
        events,
        sibling: Vec::new(),
        interval: 0.004,
        duration: 16.0,
    }
}

/// Returns some of the machine's events that can share a counter; no two of them are equal.
fn sharable(machine: &Machine) -> Vec<String> {
    let names = machine.list.events().map(|event| event.name.to_owned());
    let raw = [
        "r1c4", "r2c4", "r4c4", "r8c4", "r10c4", "r20c4", "r40c4", "r80c4",
    ];
    let generic = [
        "cycles",
        "instructions",
        "ref-cycles",
        "branches",
        "LLC-loads",
    ];
    let all = generic.iter().chain(&raw).map(|name| (*name).to_owned());
    let all = all.chain(names.step_by(7));
    let mut known: Vec<Demand> = Vec::new();
    let is_new = |name: &String| {
        let Ok(wanted) = parse(name, machine) else {
            return false;
        };
        let opened = open(&wanted, machine, Policy::Rpmu);
        let event = &opened.events[0];
        let demand = event.demand.filter(|_| event.refused.is_none());
        let demand = demand.filter(|demand| demand.key.shares());
        let Some(demand) = demand.filter(|_| opened.events.len() == 1) else {
            return false;
        };
        let is_new = !known.iter().any(|it| demand.can_ride_on(it));
        known.push(demand);
        is_new
    };
    let names: Vec<String> = all.filter(is_new).collect();
    assert!(names.len() >= 5, "{}: {names:?}", machine.list.name);
    names
}

/// A group by the numbers of its events. Not pinned: the perf core gives up all pinned groups after
/// one that does not fit.
type Pick = Vec<usize>;

/// Returns the list of events, each of which occurs once.
fn list(names: &[String], picks: &[Pick]) -> String {
    let mut left: Vec<&str> = names.iter().map(String::as_str).collect();
    let groups = picks.iter().map(|events| {
        let taken = events.iter().filter_map(|event| {
            let number = event.checked_rem(left.len())?;
            Some(left.swap_remove(number))
        });
        let names: Vec<&str> = taken.collect();
        format!("{{{}}}", names.join(","))
    });
    groups
        .filter(|group| group != "{}")
        .collect::<Vec<_>>()
        .join(",")
}

fn picks(sizes: &'static [usize]) -> impl Strategy<Value = Vec<Pick>> {
    let sizes = prop::sample::select(sizes);
    let group = sizes.prop_flat_map(|size| prop::collection::vec(0usize..10_000, size));
    prop::collection::vec(group, 1..9)
}

/// The lists of agents: on few models all of their events fit.
const AGENTS: [&str; 3] = [
    "cycles,instructions,branches,branch-misses,LLC-loads,LLC-load-misses",
    "cycles,r1c4,r2c4,r4c4,r8c4,r10c4,r20c4",
    "cycles,instructions,r1c4,r2c4,r4c4,r8c4,r10c4,r20c4,r40c4,r80c4,r11c4,r21c4",
];

/// Returns a number of copies of this many groups: the driver looks for no more than 64 groups that
/// can join behind one that does not fit.
fn copies_of(groups: usize) -> usize {
    (64 / groups).clamp(2, 5)
}

/// A corrupting event halves the counters of the other events, however many copies it has.
#[test]
fn copies_of_corrupting_events_count_once() {
    let machine = Machine::new("haswell", Smt::On, false).unwrap();
    let events = "r81d0,r1c4,r2c4,r4c4,r8c4";
    let alone = Plan::new(&request(machine, events, 1)).shares;
    for copies in [2, 3] {
        let together = Plan::new(&request(machine, events, copies)).shares;
        for copy in together.chunks(alone.len()) {
            let pairs = copy.iter().zip(&alone);
            let is_near = pairs.clone().all(|(one, other)| (one - other).abs() < 0.02);
            assert!(is_near, "{copies}: {together:.3?} {alone:.3?}");
        }
    }
}

#[test]
fn agents_multiplex_as_one_alone() {
    for model in lists() {
        for smt in [Smt::On, Smt::Off] {
            let machine = Machine::of_list(model, smt, false).unwrap();
            for (events, watchdog) in AGENTS.iter().flat_map(|it| [(it, false), (it, true)]) {
                let copies = copies_of(events.split(',').count());
                check_on(machine, events, copies, watchdog, (0.01, 0.01));
            }
        }
    }
}

/// Checks that copies of a list multiplex as one alone, on every model: no event has less by more
/// than `less`, none has more by more than `more`, and its copies differ by no more than a point.
///
/// Where the threads of a core limit each other, one thread: with two, the driver counts copies of
/// corrupting events as events that contend.
fn check(picks: &[Pick], copies: usize, watchdog: bool, (less, more): (f64, f64)) {
    for model in lists() {
        let machine = Machine::of_list(model, Smt::On, false).unwrap();
        let machine = match machine.pmu.model.ht_erratum {
            Some(_) => Machine::of_list(model, Smt::Off, false).unwrap(),
            None => machine,
        };
        let events = list(&sharable(&machine), picks);
        check_on(machine, &events, copies, watchdog, (less, more));
    }
}

/// As [`check`], on one machine.
fn check_on(
    machine: Machine,
    events: &str,
    copies: usize,
    watchdog: bool,
    (less, more): (f64, f64),
) {
    let plan = |copies| {
        let request = request(machine, events, copies);
        Plan::new(&Request {
            watchdog,
            ..request
        })
        .shares
    };
    let (alone, together) = (plan(1), plan(copies));
    if alone.contains(&0.0) {
        // A group that never fits takes turns, also as a copy.
        return;
    }
    let case = format!(
        "{copies} times {events} on {} (watchdog {watchdog}):\n{alone:.3?}\n{together:.3?}",
        machine.list.name
    );
    let is_within = |one: &[f64], other: &[f64], less: f64, more: f64| {
        let mut pairs = one.iter().zip(other);
        pairs.all(|(one, other)| *other >= one - less && *other <= one + more)
    };
    let first = &together[..alone.len()];
    for copy in together.chunks(alone.len()) {
        assert!(is_within(first, copy, 0.01, 0.01), "{case}");
    }
    assert!(is_within(&alone, first, less, more), "{case}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Groups of several sizes, and events that contend for few counters, can take turns in several
    /// ways.
    #[test]
    fn copies_of_groups_multiplex_about_as_one_alone(
        picks in picks(&[1, 1, 1, 2, 3]),
        watchdog in prop::bool::ANY,
    ) {
        check(&picks, copies_of(picks.len()), watchdog, (0.25, 1.0));
    }
}

#[test]
fn equal_events_need_one_counter() {
    for model in lists() {
        let machine = Machine::of_list(model, Smt::On, false).unwrap();
        for event in sharable(&machine).iter().step_by(5) {
            let plan = Plan::new(&request(machine, event, 20));
            assert!(plan.is_perfect(), "{event} on {}", model.name);
            for configuration in &plan.simulation.configurations {
                assert_eq!(configuration.heads().count(), 1);
                assert_eq!(configuration.riders().count(), 19);
            }
        }
    }
}

/// The watchdog's event counts all cycles: `cycles` rides on it, and leaves its counter to others.
#[test]
fn cycles_ride_on_the_watchdog() {
    let machine = Machine::new("icelakex", Smt::On, false).unwrap();
    let others = "r1c4,r2c4,r4c4,r8c4,r10c4,r20c4,r40c4,r80c4";
    let with_watchdog = |cycles: &str, share| {
        let events = format!("{cycles},{others}");
        let request = request(machine, &events, 1);
        let request = Request {
            watchdog: true,
            share,
            ..request
        };
        Plan::new(&request)
    };
    let plan = with_watchdog("cycles", true);
    assert!(plan.is_perfect());
    let riders: Vec<_> = plan.simulation.configurations[0].riders().collect();
    assert_eq!(riders.len(), 1);
    let (_, rider, head) = riders[0];
    assert_eq!((rider, plan.name(head)), (0, "(NMI watchdog)"));
    assert!(!with_watchdog("cycles", false).is_perfect());
    assert!(!with_watchdog("cycles:u", true).is_perfect());
}

/// Without sharing, commands beside each other are one longer list.
#[test]
fn nothing_rides_without_sharing() {
    let all = "cycles,r1c4,r2c4,r4c4,r8c4,r10c4";
    for (policy, share) in [(Policy::Rpmu, false), (Policy::Mainline, true)] {
        for model in lists() {
            let machine = Machine::of_list(model, Smt::On, false).unwrap();
            let beside = Request {
                policy,
                share,
                ..request(machine, all, 3)
            };
            let all: Vec<Wanted> = [&beside.events]
                .into_iter()
                .chain(&beside.beside)
                .flatten()
                .cloned()
                .collect();
            let list = Request {
                events: all,
                beside: Vec::new(),
                ..beside.clone()
            };
            let (beside, list) = (Plan::new(&beside), Plan::new(&list));
            assert_eq!(beside.shares, list.shares, "{}", model.name);
            assert!(!beside.is_perfect(), "{}", model.name);
            let configurations = beside.simulation.configurations.iter();
            assert_eq!(
                configurations.map(|it| it.riders().count()).sum::<usize>(),
                0
            );
        }
    }
}
