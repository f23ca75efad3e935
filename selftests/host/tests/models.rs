// SPDX-License-Identifier: GPL-2.0

//! The assignment with the counters that the models' events really have, against a complete
//! search.

mod reference;

use proptest::prelude::*;
use reference::{fits_by_sets, mainline, Want, GP};
use rpmu_logic::logic::assign::Problem;
use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::constraint::Constraint;
use rpmu_logic::logic::counter::CounterId;
use rpmu_logic::logic::event_select::EventSelect;
use rpmu_logic::logic::model::{Model, GENERIC, GENERIC_V5, MODELS};
use rpmu_logic::logic::pmu::Pmu;

/// The models whose tables differ, and the numbers of counters that their machines have.
fn machines() -> Vec<(&'static Model, u32, u32)> {
    let mut machines: Vec<(&'static Model, u32, u32)> = Vec::new();
    for model in MODELS.iter().copied().chain([&GENERIC, &GENERIC_V5]) {
        let (gp, fixed): (&[u32], u32) = match model.pmu_name {
            "core2" | "silvermont" => (&[2], 3),
            "nehalem" | "westmere" | "goldmont" | "goldmont_plus" => (&[4], 3),
            "icelake" | "sapphire_rapids" => (&[8], 4),
            "generic_arch_v5+" => (&[8], 16),
            _ => (&[4, 8], 3),
        };
        let known = |(other, ..): &(&Model, u32, u32)| other.pmu_name == model.pmu_name;
        if !machines.iter().any(known) {
            machines.extend(gp.iter().map(|gp| (model, *gp, fixed)));
        }
    }
    machines
}

/// What the model's events want, each kind once: every event code and unit mask, with and without
/// a counter mask.
fn constraints(model: &'static Model, gp: u32, fixed: u32) -> Vec<Constraint> {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0xa,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0004 | (gp << 8),
            edx: fixed,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    let pmu = Pmu {
        model,
        capabilities: Capabilities::decode(&cpuid, None).unwrap(),
    };
    let mut kinds: Vec<Constraint> = Vec::new();
    for config in (0..=0xffff).chain([0x0100_003c]) {
        let constraint = Constraint {
            exclusive: false,
            ..pmu.constraint(EventSelect::from_bits(config))
        };
        if constraint.is_satisfiable() && !kinds.contains(&constraint) {
            kinds.push(constraint);
        }
    }
    kinds
}

/// The verdict is that of a complete search, what is given is valid, and mainline's rule without
/// any overlap flag places the set too: the flags that the tables do not have are not missing.
fn check(name: &str, events: &[Constraint], gp_limit: u32) {
    let masks: Vec<u64> = events.iter().map(|event| event.counters.bits()).collect();
    let mut problem = Problem::new(gp_limit);
    for event in events {
        problem.push(*event, None).unwrap();
    }
    let fits = fits_by_sets(&masks, gp_limit);
    match problem.solve() {
        Ok(assignment) => {
            let counters: Vec<usize> = assignment.iter().map(CounterId::index).collect();
            let used = counters
                .iter()
                .fold(0u64, |used, counter| used | (1 << counter));
            assert_eq!(counters.len(), masks.len());
            assert_eq!(used.count_ones() as usize, masks.len(), "{name} {masks:x?}");
            assert!((used & GP).count_ones() <= gp_limit, "{name} {masks:x?}");
            let allowed = |(mask, counter): (&u64, &usize)| mask & (1 << counter) != 0;
            assert!(
                masks.iter().zip(&counters).all(allowed),
                "{name} {masks:x?}"
            );
            assert!(fits, "{name} {masks:x?}");
        }
        Err(_) => assert!(!fits, "{name}: {masks:x?} fits, limit {gp_limit}"),
    }
    let wants: Vec<Want> = events
        .iter()
        .map(|event| Want {
            counters: event.counters.bits(),
            overlap: false,
        })
        .collect();
    if !wants.is_empty() {
        let greedy = mainline(&wants, gp_limit).is_some();
        assert_eq!(
            greedy, fits,
            "{name}: {masks:x?}, limit {gp_limit}, greedily"
        );
    }
}

/// All multisets of up to `size` of `kinds`.
fn multisets(kinds: &[Constraint], size: usize, visit: &mut impl FnMut(&[Constraint])) {
    fn extend(
        kinds: &[Constraint],
        left: usize,
        chosen: &mut Vec<Constraint>,
        visit: &mut impl FnMut(&[Constraint]),
    ) {
        visit(chosen);
        if left == 0 {
            return;
        }
        for (i, kind) in kinds.iter().enumerate() {
            chosen.push(*kind);
            extend(&kinds[i..], left - 1, chosen, visit);
            chosen.pop();
        }
    }
    extend(kinds, size, &mut Vec::new(), visit);
}

#[test]
fn all_small_multisets_of_every_model() {
    let mut sets = 0;
    for (model, gp, fixed) in machines() {
        let kinds = constraints(model, gp, fixed);
        // Fixed counters that only one kind of event has add nothing but themselves.
        let kinds: Vec<Constraint> = kinds
            .into_iter()
            .filter(|kind| kind.counters.bits() >> 36 == 0)
            .collect();
        let size = if kinds.len() > 9 { 5 } else { 6 };
        multisets(&kinds, size, &mut |events| {
            check(model.name, events, gp);
            check(model.name, events, gp / 2);
            sets += 2;
        });
    }
    println!("{sets} sets of events");
    assert!(sets > 50_000, "{sets}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// More events than the complete enumeration has, up to more than there are counters.
    #[test]
    fn many_events_of_every_model(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..13),
        limit in 0u32..9,
    ) {
        thread_local! {
            static MACHINES: Vec<(&'static str, u32, Vec<Constraint>)> = machines()
                .into_iter()
                .map(|(model, gp, fixed)| (model.name, gp, constraints(model, gp, fixed)))
                .collect();
        }
        MACHINES.with(|machines| {
            for (name, gp, kinds) in machines {
                let events: Vec<Constraint> =
                    choices.iter().map(|choice| kinds[choice.index(kinds.len())]).collect();
                check(name, &events, limit.min(*gp));
            }
        });
    }
}
