// SPDX-License-Identifier: GPL-2.0

//! Tests the assignment with the models' real constraints: all sets of events that fit and all
//! minimal sets that do not, in every state of the core's other thread. The references are a
//! complete search and the copy of mainline's scheduler in `reference::mainline`.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::mainline::{
    assign_events,
    schedule_events,
    Defects,
    Want,
    AS_IS,
    MAX,
    MENDED, //
};
use reference::search::{
    is_valid,
    Placements,
    COUNTERS, //
};
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::model::constraint::Constraint;
use rpmu_logic::logic::model::{
    Model,
    GENERIC,
    GENERIC_V5,
    INTEL_MODELS, //
};
use rpmu_logic::logic::pmu::PmuInfo;
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use rpmu_logic::logic::regs::event_select::EventSelect;
use rpmu_logic::logic::sched::assign::{
    Policy,
    Problem, //
};
use rpmu_logic::logic::sched::limits::Limits;

/// A machine and the kinds of constraints of its events.
#[derive(Clone)]
struct Machine {
    name: String,
    gp: u32,
    kinds: Vec<Constraint>,
    /// Set if a sibling may have corrupting events.
    sibling: bool,
}

/// Returns a machine for each different table and each number of counters that its CPUs have, and
/// two machines with AMD's kinds of constraints that Intel does not have.
fn machines() -> Vec<Machine> {
    let mut machines: Vec<Machine> = Vec::new();
    let mut known = Vec::new();
    for model in INTEL_MODELS.iter().copied().chain([&GENERIC, &GENERIC_V5]) {
        let (gp, fixed): (&[u32], u32) = match model.pmu_name {
            // The tables of Golden Cove and Gracemont.
            "alderlake_hybrid" => continue,
            "silvermont" => (&[2], 3),
            "nehalem" | "westmere" | "goldmont" | "goldmont_plus" | "Tremont" => (&[4], 3),
            "gracemont" => (&[6], 3),
            "crestmont" => (&[8], 3),
            "icelake" | "sapphire_rapids" | "granite_rapids" => (&[8], 4),
            "generic_arch_v5+" => (&[8], 16),
            _ => (&[4, 8], 3),
        };
        if !known.contains(&model.pmu_name) {
            known.push(model.pmu_name);
            machines.extend(gp.iter().map(|gp| Machine {
                name: format!("{} {gp} + {fixed}", model.name),
                gp: *gp,
                kinds: kinds(model, *gp, fixed),
                sibling: model.ht_erratum.is_some() && *gp == 4,
            }));
        }
    }
    let any = |bits| Constraint::any_of(CounterMask::from_bits(bits));
    let overlap = Constraint {
        overlap: true,
        ..any(0x09)
    };
    let pair = Constraint {
        pair: true,
        ..any(0x15)
    };
    machines.push(Machine {
        name: "AMD family 15h".to_owned(),
        gp: 6,
        // `amd_f15_PMC0` to `amd_f15_PMC53`, `arch/x86/events/amd/core.c`
        kinds: vec![
            any(0x01),
            any(0x07),
            any(0x08),
            overlap,
            any(0x3f),
            any(0x38),
        ],
        sibling: false,
    });
    machines.push(Machine {
        name: "AMD family 17h".to_owned(),
        gp: 6,
        // `amd_get_event_constraints_f17h()` with `pair_constraint`, `arch/x86/events/amd/core.c`,
        // and events that are bound to certain counters
        kinds: vec![any(0x3f), pair, any(0x01), any(0x04), any(0x1c), any(0x23)],
        sibling: false,
    });
    machines
}

/// Returns the different constraints of the model's events: every event code and unit mask, and
/// cycles with a counter mask.
fn kinds(model: &'static Model, gp: u32, fixed: u32) -> Vec<Constraint> {
    let pmu = PmuInfo::new(
        model,
        Capabilities::decode(&Cpuid::intel(4, gp, fixed), None).unwrap(),
    );
    let mut kinds: Vec<Constraint> = Vec::new();
    for config in (0..=0xffff).chain([0x0100_003c]) {
        let constraint = pmu.constraint(EventSelect::from_bits(config));
        // The search does not support the other counters; each of them serves one kind of event
        // only.
        let few = constraint.counters.bits() & !COUNTERS == 0;
        if constraint.is_satisfiable() && few && !kinds.contains(&constraint) {
            kinds.push(constraint);
        }
    }
    kinds
}

/// The use of a counter by the core's other thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sibling {
    Unused,
    Shared,
    Corrupting,
}

/// Returns all 81 states of four counters; without a sibling, one.
fn sibling_states(machine: &Machine) -> Vec<[Sibling; 4]> {
    let states = [Sibling::Unused, Sibling::Shared, Sibling::Corrupting];
    let number = if machine.sibling { 81 } else { 1 };
    (0..number)
        .map(|n: usize| [1, 3, 9, 27].map(|place| states[n / place % 3]))
        .collect()
}

/// Returns the kinds of events of a machine whose sibling is in this state, including those without
/// a remaining counter.
fn beside(machine: &Machine, state: [Sibling; 4]) -> Vec<Constraint> {
    let which = |wanted: &dyn Fn(Sibling) -> bool| {
        let bits = (0..4).filter(|n| wanted(state[*n])).map(|n| 1 << n).sum();
        CounterMask::from_bits(bits)
    };
    let limits = Limits {
        closed: which(&|sibling| sibling == Sibling::Corrupting),
        closed_to_sharing: which(&|sibling| sibling != Sibling::Unused),
        ..Limits::NONE
    };
    let mut kinds: Vec<Constraint> = Vec::new();
    for kind in &machine.kinds {
        // Derived from the rule, not from `Limits`.
        let allowed = kind.counters.iter().filter(|counter| {
            match state.get(counter.index()).unwrap_or(&Sibling::Unused) {
                Sibling::Unused => true,
                Sibling::Shared => !kind.corrupting,
                Sibling::Corrupting => false,
            }
        });
        let counters: CounterMask = allowed.collect();
        assert_eq!(limits.counters(*kind), counters);
        // In all other respects, the solver treats corrupting events like others.
        let kind = Constraint {
            counters,
            corrupting: false,
            ..*kind
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Statistics.
#[derive(Debug, Default)]
struct Seen {
    sets: u64,
    fit: u64,
    /// The number of sets that fit but that mainline without its defects does not place.
    missed: u64,
    /// The numbers of sets for which mainline with and without its defects differs, by the defect
    /// that explains the difference.
    nr_gp: u64,
    pair: u64,
    fast_path: u64,
    /// The largest number of steps of a solution, and the number of events of that set.
    steps: u32,
    events: usize,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.sets += other.sets;
        self.fit += other.fit;
        self.missed += other.missed;
        self.nr_gp += other.nr_gp;
        self.pair += other.pair;
        self.fast_path += other.fast_path;
        if other.steps > self.steps {
            (self.steps, self.events) = (other.steps, other.events);
        }
    }
}

type Counters = [u8; MAX];

fn want(constraint: &Constraint) -> Want {
    Want {
        counters: constraint.counters.bits(),
        overlap: constraint.overlap,
        pair: constraint.pair,
    }
}

/// Returns rpmu's assignment and the number of its steps.
fn solve(
    events: &[Constraint],
    previous: &[Option<u8>],
    gp_limit: u32,
    policy: Policy,
) -> (Option<Counters>, u32) {
    let mut problem = Problem::new(gp_limit).with_policy(policy);
    for (event, previous) in events.iter().zip(previous) {
        let previous = previous.and_then(|index| CounterId::from_index(index.into()));
        problem.push(*event, previous).unwrap();
    }
    let mut steps = 0;
    let solved = problem.solve_stepwise(|| steps += 1);
    let counters = solved.ok().map(|assignment| {
        let mut counters = [u8::MAX; MAX];
        for (slot, counter) in counters.iter_mut().zip(assignment.iter()) {
            *slot = counter.index() as u8;
        }
        counters
    });
    (counters, steps)
}

/// Returns whether the last of `wants` has no counter, all others have one, and it fits while they
/// keep theirs.
fn has_room(wants: &[Want], previous: &[Option<u8>], gp_limit: u32) -> bool {
    let taken = |pair, counter: u8| (1u64 << counter) * if pair { 3 } else { 1 };
    let Some((newcomer, others)) = wants.split_last() else {
        return false;
    };
    let had: Vec<u8> = previous.iter().copied().map_while(|had| had).collect();
    if had.len() != others.len() || !is_valid(others, gp_limit, &had) {
        return false;
    }
    let used = others.iter().zip(previous).fold(0, |used, (want, had)| {
        used | had.map_or(0, |counter| taken(want.pair, counter))
    });
    (0..48).any(|counter| {
        let takes = taken(newcomer.pair, counter);
        let gp = ((used | takes) as u32).count_ones();
        newcomer.counters & (1 << counter) != 0 && used & takes == 0 && gp <= gp_limit
    })
}

/// Checks the assignment of a set of events. `previous` are the counters of those that had one.
/// Returns the new counters.
fn check(
    name: &str,
    events: &[Constraint],
    previous: &[Option<u8>],
    placements: &Placements,
    gp_limit: u32,
    seen: &mut Seen,
) -> Option<Counters> {
    let wants: Vec<Want> = events.iter().map(want).collect();
    let fits = placements.within(gp_limit);
    let what = || format!("{name}: {wants:x?}, had {previous:?}, limit {gp_limit}");

    // The verdict is that of the search, and the assignment is valid.
    let none = vec![None; events.len()];
    for previous in [previous, &none] {
        let (counters, steps) = solve(events, previous, gp_limit, Policy::Rpmu);
        assert_eq!(counters.is_some(), fits, "{}", what());
        if let Some(counters) = counters {
            assert!(
                is_valid(&wants, gp_limit, &counters),
                "{}: {counters:?}",
                what()
            );
        }
        if steps > seen.steps {
            (seen.steps, seen.events) = (steps, events.len());
        }
    }
    // No event moves for one that fits beside it.
    let (counters, _) = solve(events, previous, gp_limit, Policy::Rpmu);
    if has_room(&wants, previous, gp_limit) {
        let counters = counters.expect("has a counter");
        let stayed = |(counter, had): (&u8, &Option<u8>)| *had == Some(*counter);
        let others = counters.iter().zip(previous).take(events.len() - 1);
        assert!(others.into_iter().all(stayed), "{}: {counters:?}", what());
    }

    // The other policy is mainline without its defects.
    for previous in [previous, &none] {
        let (counters, _) = solve(events, previous, gp_limit, Policy::Mainline);
        let by = |defects| schedule_events(&wants, previous, gp_limit, defects);
        let mended = by(MENDED);
        assert_eq!(counters, mended, "{}", what());
        assert!(fits || mended.is_none(), "{}", what());
        seen.sets += 1;
        seen.fit += u64::from(fits);
        seen.missed += u64::from(fits && mended.is_none());
        // One defect alone explains each difference to mainline as it is.
        let as_is = by(AS_IS);
        if as_is != mended {
            let with = |nr_gp, pair, fast_path| {
                by(Defects {
                    nr_gp,
                    pair,
                    fast_path,
                })
            };
            if with(true, false, false) == as_is {
                seen.nr_gp += 1;
            } else if with(false, true, false) == as_is {
                seen.pair += 1;
            } else if with(false, false, true) == as_is {
                seen.fast_path += 1;
            } else {
                panic!("{}: no one defect explains {as_is:?}", what());
            }
        }
    }
    counters
}

/// Visits every multiset of `kinds` that fits, and every one that does not fit because of its last
/// event. A superset of one that does not fit does not fit either, so these are all that need a
/// check.
fn multisets(name: &str, kinds: &[Constraint], gp_limit: u32, seen: &mut Seen) {
    struct Walk<'a> {
        name: &'a str,
        gp_limit: u32,
        seen: &'a mut Seen,
    }

    impl Walk<'_> {
        fn extend(
            &mut self,
            kinds: &[Constraint],
            chosen: &mut Vec<Constraint>,
            previous: &[Option<u8>],
            placements: &Placements,
        ) {
            for (i, kind) in kinds.iter().enumerate() {
                chosen.push(*kind);
                let placements = placements.and(&want(kind));
                let had = [previous, &[None]].concat();
                let counters = check(
                    self.name,
                    chosen,
                    &had,
                    &placements,
                    self.gp_limit,
                    self.seen,
                );
                if let Some(counters) = counters {
                    let had: Vec<_> = counters[..chosen.len()].iter().copied().map(Some).collect();
                    self.extend(&kinds[i..], chosen, &had, &placements);
                }
                chosen.pop();
            }
        }
    }

    let mut walk = Walk {
        name,
        gp_limit,
        seen,
    };
    walk.extend(kinds, &mut Vec::new(), &[], &Placements::none());
}

/// Every machine, state of its sibling, and limit.
#[test]
fn all_multisets_of_every_model() {
    let mut total = Seen::default();
    for machine in machines() {
        let mut seen = Seen::default();
        let states = sibling_states(&machine);
        for state in &states {
            let kinds = beside(&machine, *state);
            for gp_limit in [machine.gp, machine.gp / 2] {
                multisets(&machine.name, &kinds, gp_limit, &mut seen);
            }
        }
        println!(
            "{}: {} kinds of events, {} states of the sibling: {seen:?}",
            machine.name,
            machine.kinds.len(),
            states.len()
        );
        // Mainline places all sets that fit on Intel's CPUs, but not on AMD family 15h.
        let family_15h = machine.name == "AMD family 15h";
        assert_eq!(seen.nr_gp > 0, family_15h, "{}", machine.name);
        if !machine.name.starts_with("AMD") {
            assert_eq!(seen.missed, 0, "{}", machine.name);
        }
        total.add(&seen);
    }
    println!("in all: {total:?}");
    assert!(total.sets > 1_000_000 && total.fit > 500_000, "{total:?}");
    assert!(total.missed > 0, "the two policies are the same");
    assert!(total.steps <= 100, "{total:?}");
}

proptest! {
    #![proptest_config(cases(1024))]

    /// More events than the complete enumeration has, up to more than there are counters, with and
    /// without previous counters.
    #[test]
    fn many_events_of_every_model(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..14),
        had in prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 14),
        state in any::<prop::sample::Index>(),
        limit in 0u32..9,
    ) {
        thread_local! {
            static MACHINES: Vec<Machine> = machines();
        }
        MACHINES.with(|machines| {
            for machine in machines {
                let states = sibling_states(machine);
                let kinds = beside(machine, states[state.index(states.len())]);
                let events: Vec<Constraint> =
                    choices.iter().map(|choice| kinds[choice.index(kinds.len())]).collect();
                let previous: Vec<Option<u8>> = events
                    .iter()
                    .zip(&had)
                    .map(|(event, had)| {
                        let counters: Vec<CounterId> = event.counters.iter().collect();
                        let had = had.as_ref().filter(|_| !counters.is_empty())?;
                        Some(counters[had.index(counters.len())].index() as u8)
                    })
                    .collect();
                let placements = events
                    .iter()
                    .fold(Placements::none(), |some, event| some.and(&want(event)));
                let mut seen = Seen::default();
                check(
                    &machine.name,
                    &events,
                    &previous,
                    &placements,
                    limit.min(machine.gp),
                    &mut seen,
                );
            }
        });
    }

    /// Pairs together with overlapping counters, which no CPU has.
    #[test]
    fn pairs_and_overlaps(
        events in prop::collection::vec((1u64..1 << 8, any::<bool>(), any::<bool>()), 1..8),
        gp_limit in 0u32..9,
    ) {
        let events: Vec<Constraint> = events
            .into_iter()
            .map(|(bits, pair, overlap)| Constraint {
                pair,
                overlap,
                ..Constraint::any_of(CounterMask::from_bits(if pair { bits & 0x55 } else { bits }))
            })
            .collect();
        let wants: Vec<Want> = events.iter().map(want).collect();
        let placements = wants.iter().fold(Placements::none(), |some, want| some.and(want));
        let none = vec![None; events.len()];
        let (counters, _) = solve(&events, &none, gp_limit, Policy::Rpmu);
        prop_assert_eq!(counters.is_some(), placements.within(gp_limit));
        if let Some(counters) = counters {
            prop_assert!(is_valid(&wants, gp_limit, &counters));
        }
        let (counters, _) = solve(&events, &none, gp_limit, Policy::Mainline);
        prop_assert_eq!(counters, assign_events(&wants, gp_limit, MENDED));
    }
}
