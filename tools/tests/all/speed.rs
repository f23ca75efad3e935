// SPDX-License-Identifier: GPL-2.0

//! The CPU time of planning: the shortest of several tries, to be independent of other load. The
//! tests allow three times the promised time, because a busy sibling thread slows everything down.
//! They are built with optimization.

use rpmu_plan::data::lists;
use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::parse;
use rpmu_plan::open::open;
use rpmu_plan::plan::Request;
use rpmu_plan::report::Report;
use rpmu_plan::simulate::{
    simulate,
    Setting, //
};
use rpmu_plan::{
    svg,
    text, //
};
use std::time::Duration;

/// Returns the CPU time of one call: the average of `times` calls, in the shortest of several
/// attempts.
fn shortest(times: u32, mut call: impl FnMut()) -> Duration {
    let goes = (0..3).map(|_| {
        let start = cpu_time();
        (0..times).for_each(|_| call());
        (cpu_time() - start) / times
    });
    goes.min().unwrap()
}

/// Returns this thread's CPU time. The kernel updates it with every tick, so a measurement must
/// last several ticks.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Returns this many events, evenly spread over the machine's list.
fn some_events(machine: &Machine, count: usize) -> String {
    let names: Vec<&str> = machine.list.events().map(|event| event.name).collect();
    let step = names.len() / count;
    let names: Vec<&str> = names.into_iter().step_by(step).take(count).collect();
    names.join(",")
}

fn request(machine: Machine, count: usize, policy: Policy) -> Request {
    Request {
        machine,
        policy,
        share: true,
        watchdog: true,
        events: parse(&some_events(&machine, count), &machine).unwrap(),
        beside: Vec::new(),
        sibling: Vec::new(),
        interval: 0.004,
        duration: 1.0,
    }
}

#[test]
fn fifty_events_are_planned_in_50_ms_on_every_model() {
    // Without names, there is nothing to choose from.
    for list in lists().filter(|list| list.version != "none") {
        for policy in [Policy::Mainline, Policy::Rpmu] {
            let machine = Machine::of_list(list, Smt::On, false).unwrap();
            let took = shortest(1, || {
                let report = Report::new(&request(machine, 50, policy));
                assert_eq!(report.events.len(), 50);
            });
            println!("{}, {policy:?}: {took:?}", list.name);
            assert!(
                took < 3 * Duration::from_millis(50),
                "{}: {took:?}",
                list.name
            );
        }
    }
}

#[test]
fn a_second_of_turns_is_simulated_in_1_ms() {
    for count in [8, 16] {
        for policy in [Policy::Mainline, Policy::Rpmu] {
            let machine = Machine::new("haswell", Smt::On, false).unwrap();
            let request = request(machine, count, policy);
            let opened = open(&request.events, &machine, policy);
            let setting = Setting {
                machine: &machine,
                policy,
                watchdog: None,
                sibling: None,
                intervals: 250.0,
            };
            let took = shortest(100, || {
                let simulation = simulate(&setting, &opened);
                // 4 ms each.
                assert_eq!(
                    simulation.intervals(250.0).iter().sum::<f64>().round() as u64,
                    250
                );
            });
            println!("{count} events, {policy:?}: {took:?}");
            assert!(
                took < 3 * Duration::from_millis(1),
                "{count} events: {took:?}"
            );
        }
    }
}

/// The output about events that share counters grows linearly with their number, not quadratically.
#[test]
fn two_hundred_events_are_reported_briefly() {
    let machine = Machine::new("skylake", Smt::On, false).unwrap();
    let sizes = |count| {
        let report = Report::new(&request(machine, count, Policy::Rpmu));
        let json = serde_json::to_string_pretty(&report).unwrap();
        [
            text::text(&report).len(),
            json.len(),
            svg::page(&report).len(),
        ]
    };
    let (few, many) = (sizes(50), sizes(200));
    println!("50 events: {few:?} bytes, 200 events: {many:?} bytes");
    assert!(many[0] < 100_000 && many[1] < 1_000_000, "{many:?}");
    for (few, many) in few.into_iter().zip(many) {
        assert!(many < 6 * few, "{few}, {many}");
    }
}

#[test]
fn ten_thousand_events_are_planned_in_3_s() {
    let machine = Machine::new("skylake", Smt::On, false).unwrap();
    let events: Vec<String> = (0..10_000).map(|number| format!("r{number:x}c4")).collect();
    let names = events.join(",");
    let took = shortest(1, || {
        let request = Request {
            events: parse(&names, &machine).unwrap(),
            ..request(machine, 1, Policy::Rpmu)
        };
        let report = Report::new(&request);
        println!("{} bytes", text::text(&report).len());
    });
    println!("{took:?}");
    assert!(took < 3 * Duration::from_secs(3), "{took:?}");
}
