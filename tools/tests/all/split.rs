// SPDX-License-Identifier: GPL-2.0

//! Tests the split into runs against an exhaustive search for up to ten units.

use proptest::prelude::*;
use rpmu_plan::logic::model::demand::Demand;
use rpmu_plan::logic::sched::assign::Policy;
use rpmu_plan::machine::{
    Machine,
    Smt, //
};
use rpmu_plan::names::parse;
use rpmu_plan::open::open;
use rpmu_plan::plan::watchdog;
use rpmu_plan::split::{
    Place,
    Unit, //
};

/// Returns the fewest fitting sets that cover all units, by dynamic programming over all subsets.
fn fewest(place: &Place<'_>, units: &[Unit]) -> usize {
    let all = 1usize << units.len();
    let members = |set: usize| (0..units.len()).filter(move |unit| (set >> unit) & 1 != 0);
    let fits: Vec<bool> = (0..all)
        .map(|set| place.fits(&members(set).map(|unit| &units[unit]).collect::<Vec<_>>()))
        .collect();
    let mut fewest = vec![usize::MAX; all];
    fewest[0] = 0;
    for set in 1..all {
        let mut part = set;
        while part > 0 {
            if fits[part] && fewest[set & !part] != usize::MAX {
                fewest[set] = fewest[set].min(fewest[set & !part] + 1);
            }
            part = (part - 1) & set;
        }
    }
    fewest[all - 1]
}

/// Returns the needs of a model's events as single events and as groups of two to four, if they
/// fit.
fn units(place: &Place<'_>, picks: &[(usize, usize)]) -> Vec<Unit> {
    let machine = place.machine;
    let names = [
        "cycles",
        "instructions",
        "ref-cycles",
        "LLC-loads",
        "LLC-load-misses",
        "LLC-stores",
        "r1c4",
        "r2c4",
        "l1d_pend_miss.pending",
        "r4d1",
        "r8d1",
        "r81d0",
        "r1d2",
        "cpu/event=0xa3,umask=0x8/",
        "cpu/event=0xc5/",
        "mem_trans_retired.load_latency_gt_4",
    ];
    let demand = |name: &str| -> Option<Demand> {
        let wanted = parse(name, machine).ok()?;
        let opened = open(&wanted, machine, place.policy);
        let event = &opened.events[0];
        event.demand.filter(|_| event.refused.is_none())
    };
    let demands: Vec<Demand> = names.iter().filter_map(|name| demand(name)).collect();
    let unit = |(first, size): &(usize, usize)| -> Unit {
        (0..*size)
            .map(|step| demands[(first + step * 5) % demands.len()])
            .collect()
    };
    picks
        .iter()
        .map(unit)
        .filter(|unit| place.fits(&[unit]))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn as_few_runs_as_there_can_be(
        model in prop::sample::select(vec!["nehalem", "sandybridge", "haswell", "skylake", "icelakex", "sapphirerapids"]),
        threads in prop::bool::ANY,
        with_watchdog in prop::bool::ANY,
        picks in prop::collection::vec(
            (0usize..16, prop::sample::select(vec![1usize, 1, 1, 2, 3, 4])),
            1..=10,
        ),
    ) {
        let smt = if threads { Smt::On } else { Smt::Off };
        let machine = Machine::new(model, smt, false).unwrap();
        let place = Place {
            machine: &machine,
            policy: Policy::Rpmu,
            always: with_watchdog.then(|| watchdog(&machine)).flatten(),
        };
        let units = units(&place, &picks);
        let split = place.split(&units);
        let mut seen: Vec<usize> = split.runs.iter().flatten().copied().collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..units.len()).collect::<Vec<_>>());
        for run in &split.runs {
            let members: Vec<&Unit> = run.iter().map(|unit| &units[*unit]).collect();
            prop_assert!(place.fits(&members));
        }
        prop_assert!(split.is_minimal);
        prop_assert_eq!(split.runs.len(), fewest(&place, &units));
    }
}
