// SPDX-License-Identifier: GPL-2.0

//! Tests the shares of rotating events: no event starves. Equal events have counters of their own.

use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::parse;
use rpmu_plan::plan::{
    Plan,
    Request, //
};

/// A list of events on a model with two threads per core.
struct Case {
    models: &'static [&'static str],
    watchdog: bool,
    events: &'static str,
    sibling: &'static str,
    /// The least share of each event that is expected, in percent.
    least: &'static [f64],
}

/// Checks the shares of each case.
fn check(cases: &[Case]) {
    for case in cases {
        for model in case.models {
            let machine = Machine::new(model, Smt::On, false).unwrap();
            let parsed = |events: &str| match events {
                "" => Vec::new(),
                _ => parse(events, &machine).unwrap(),
            };
            let plan = Plan::new(&Request {
                machine,
                policy: Policy::Rpmu,
                share: false,
                watchdog: case.watchdog,
                events: parsed(case.events),
                beside: Vec::new(),
                sibling: parsed(case.sibling),
                interval: 0.004,
                duration: 4.0,
            });
            assert_eq!(plan.shares.len(), case.least.len(), "{}", case.events);
            for (share, least) in plan.shares.iter().zip(case.least) {
                assert!(
                    100.0 * share >= *least,
                    "{} beside {} on {model}: {:.3?}",
                    case.events,
                    case.sibling,
                    plan.shares
                );
            }
        }
    }
}

const WITH_ERRATUM: &[&str] = &["sandybridge", "ivybridge", "haswell"];

/// An event on a fixed counter never yields, and does not need to: corrupting events do not wait
/// for it.
#[test]
fn corrupting_events_beside_fixed_counters() {
    const MANY: &str = "r1c4,r2c4,r4c4,r8c4,r10c4,r20c4";
    const FIXED: &str = "instructions,cycles,ref-cycles,r81d0,r82d0";
    check(&[
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: "instructions,r81d0,r20c4,r2c2",
            sibling: "",
            least: &[100.0, 65.0, 65.0, 65.0],
        },
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: FIXED,
            sibling: "",
            least: &[100.0; 5],
        },
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: FIXED,
            sibling: MANY,
            least: &[100.0, 100.0, 100.0, 45.0, 45.0],
        },
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: MANY,
            sibling: FIXED,
            least: &[45.0; 6],
        },
        // The pinned event halves the counters for all.
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: "r81d0:D,r1c4,r2c4,r82d0",
            sibling: "",
            least: &[100.0, 32.0, 32.0, 32.0],
        },
        // A group that does not fit stays in front.
        Case {
            models: WITH_ERRATUM,
            watchdog: true,
            events: "{r1c4,r2c4,r4c4,r8c4,cycles},r1c4,r2c4,r4c4,r8c4,r10c4,r82d0",
            sibling: "",
            least: &[0.0, 0.0, 0.0, 0.0, 0.0, 45.0, 45.0, 45.0, 45.0, 45.0, 30.0],
        },
    ]);
}

/// A corrupting event cannot use counters that events keep beyond the limit, for example when one
/// of them moves to the fixed counter.
#[test]
fn corrupting_events_join_half_of_the_counters() {
    check(&[Case {
        models: WITH_ERRATUM,
        watchdog: false,
        events: "instructions,instructions,instructions,{r20c4,r8c1},r40d1",
        sibling: "",
        least: &[82.0, 82.0, 82.0, 49.0, 49.0, 49.0],
    }]);
}

/// A group that a fixed counter counts does not wait for corrupting or other events: it counts
/// beside both, whatever its leader is.
#[test]
fn groups_on_fixed_counters_beside_corrupting_events() {
    let case = |watchdog, events, least| Case {
        models: WITH_ERRATUM,
        watchdog,
        events,
        sibling: "",
        least,
    };
    check(&[
        case(
            false,
            "r4c4,r81d0,{cpu-clock,r4c4},{branches,r8d1},r4c4:e,r8d1,{cpu-clock,instructions}",
            &[24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 74.0, 74.0],
        ),
        case(
            true,
            "r2c2,{cpu-clock,r81d0},r81d0,r2c2:e,r2c2,r81d0,{cpu-clock,rc0},r81d0",
            &[24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 74.0, 74.0, 24.0],
        ),
    ]);
}

/// A pinned event that yields its counter to a group takes a counter from another event: these
/// contend.
#[test]
fn groups_that_contend_by_way_of_a_pinned_event() {
    check(&[Case {
        models: &["westmereep-dp"],
        watchdog: false,
        events: "r10004b3,r10b:D,{r152,r1b3},r251,{r126,r485}",
        sibling: "",
        least: &[39.0, 100.0, 39.0, 39.0, 39.0, 39.0, 39.0],
    }]);
}

/// A group that must leave its counters in the middle of each interval, for the sibling, is not
/// first forever.
#[test]
fn groups_that_leave_before_the_end_of_an_interval() {
    const EVENTS: &str = "{r1bb,r1bb,r20c4},r81d0,r81d0,r1bb:D,{r20c4,r1bb}";
    const BESIDE: &str = "r4c4,r8d1,r4c4";
    check(&[
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: EVENTS,
            sibling: BESIDE,
            least: &[20.0, 20.0, 20.0, 20.0, 20.0, 100.0, 20.0, 20.0],
        },
        Case {
            models: WITH_ERRATUM,
            watchdog: false,
            events: BESIDE,
            sibling: EVENTS,
            least: &[75.0, 33.0, 75.0],
        },
    ]);
}

/// A group that never fits does not keep counters from groups that may not pass it: exclusive
/// groups and groups led by a software event.
#[test]
fn groups_behind_those_that_never_fit() {
    const INTEL: &[&str] = &["haswell", "skylake"];
    let five = |events, least| Case {
        models: INTEL,
        watchdog: true,
        events,
        sibling: "",
        least,
    };
    let pinned = |models, events, least| Case {
        models,
        watchdog: false,
        events,
        sibling: "",
        least,
    };
    check(&[
        five(
            "{r1c4,r2c4,r4c4,r8c4,cycles},r20c4:e",
            &[0.0, 0.0, 0.0, 0.0, 0.0, 99.0],
        ),
        five(
            "{r1c4,r2c4,r4c4,r8c4,cycles},{cpu-clock,r20c4}",
            &[0.0, 0.0, 0.0, 0.0, 0.0, 99.0, 99.0],
        ),
        five(
            "{r1c4,r2c4,r4c4,r8c4,cycles},r1c4,r20c4:e",
            &[0.0, 0.0, 0.0, 0.0, 0.0, 49.0, 49.0],
        ),
        // Two of them.
        five(
            "{r1c4,r2c4,r4c4,r8c4,cycles},{cycles,r1c4,r2c4,r4c4,r8c4},{cpu-clock,r20c4},r20c4:e",
            &[
                0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 49.0, 49.0, 49.0,
            ],
        ),
        pinned(
            INTEL,
            "{r1c4,r2c4,r4c4,r8c4,cycles},cycles:D,r20c4:e",
            &[0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 99.0],
        ),
        pinned(
            &["amdzen4"],
            "{r1c0,r2c0,r4c0,r8c0,r10c0,r20c0},cycles:D,r20c4:e",
            &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0, 99.0],
        ),
        pinned(
            &["amdfam16h"],
            "{r1c0,r2c0,r4c0,r8c0},cycles:D,r20c4:e",
            &[0.0, 0.0, 0.0, 0.0, 100.0, 99.0],
        ),
    ]);
}
