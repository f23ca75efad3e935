// SPDX-License-Identifier: GPL-2.0

//! Tests the assignment of events to counters against a complete search, and against mainline.

mod cases;
mod reference;

use cases::cases;
use proptest::prelude::*;
use reference::mainline::{
    assign_events,
    Defects,
    Want,
    AS_IS,
    MENDED, //
};
use reference::{
    fewest_gp,
    fits,
    GP, //
};
use rpmu_logic::logic::model::constraint::Constraint;
use rpmu_logic::logic::refusal::Shortage;
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterMask, //
};
use rpmu_logic::logic::sched::assign::{
    Problem,
    MAX_EVENTS, //
};

/// An event and its previous counter.
type Event = (Want, Option<CounterId>);

fn problem(events: &[Event], gp_limit: u32) -> Problem {
    let mut problem = Problem::new(gp_limit);
    for (want, previous) in events {
        let constraint = Constraint {
            overlap: want.overlap,
            ..Constraint::any_of(CounterMask::from_bits(want.counters))
        };
        problem.push(constraint, *previous).unwrap();
    }
    problem
}

fn solve(events: &[Event], gp_limit: u32) -> Result<Vec<usize>, Shortage> {
    let assignment = problem(events, gp_limit).solve()?;
    Ok(assignment.iter().map(CounterId::index).collect())
}

fn masks(events: &[Event]) -> Vec<u64> {
    events.iter().map(|(want, _)| want.counters).collect()
}

/// Returns whether `counters` gives each event an allowed counter of its own, within the limit.
fn is_valid(events: &[Event], gp_limit: u32, counters: &[usize]) -> bool {
    let mut used = 0u64;
    counters.len() == events.len()
        && events.iter().zip(counters).all(|((want, _), counter)| {
            let bit = 1u64 << counter;
            let valid = want.counters & bit != 0 && used & bit == 0;
            used |= bit;
            valid
        })
        && (used & GP).count_ones() <= gp_limit
}

/// Returns whether the reason for a refusal is true.
fn is_true(shortage: Shortage, events: &[Event], gp_limit: u32) -> bool {
    let masks = masks(events);
    match shortage {
        Shortage::Contended { events, counters } => {
            let competing = masks.iter().filter(|mask| *mask & !counters.bits() == 0);
            events > counters.weight() && competing.count() >= events as usize
        }
        Shortage::GpLimit { needed, limit } => {
            limit == gp_limit && needed > limit && fewest_gp(&masks, 0) == Some(needed)
        }
        Shortage::NotFound | Shortage::Pairs { .. } => false,
    }
}

/// Returns masks of six general-purpose counters and two fixed ones: few enough for the search,
/// many enough for mistakes.
fn mask() -> impl Strategy<Value = u64> {
    (0u64..1 << 6, 0u64..1 << 2).prop_map(|(gp, fixed)| gp | (fixed << 32))
}

fn event() -> impl Strategy<Value = Event> {
    let previous = prop::option::of(prop::sample::select(vec![0, 1, 2, 3, 4, 5, 32, 33]));
    (mask(), any::<bool>(), previous).prop_map(|(counters, overlap, previous)| {
        let previous = previous.and_then(CounterId::from_index);
        (want(counters, overlap), previous)
    })
}

fn fresh(counters: u64, overlap: bool) -> Event {
    (want(counters, overlap), None)
}

fn want(counters: u64, overlap: bool) -> Want {
    Want {
        counters,
        overlap,
        pair: false,
    }
}

/// Returns the indices of mainline's counters, or `None` if an event gets none.
fn mainline(wants: &[Want], gp_limit: u32, defects: Defects) -> Option<Vec<usize>> {
    let counters = assign_events(wants, gp_limit, defects)?;
    Some(
        counters[..wants.len()]
            .iter()
            .map(|counter| usize::from(*counter))
            .collect(),
    )
}

proptest! {
    #![proptest_config(cases(2048))]

    /// Events are refused if and only if they do not fit; an assignment is valid, and a reason
    /// true.
    #[test]
    fn the_verdict_agrees_with_a_complete_search(
        events in prop::collection::vec(event(), 0..7),
        gp_limit in 0u32..7,
    ) {
        match solve(&events, gp_limit) {
            Ok(counters) => prop_assert!(is_valid(&events, gp_limit, &counters), "{counters:?}"),
            Err(shortage) => {
                prop_assert!(!fits(&masks(&events), gp_limit));
                prop_assert!(is_true(shortage, &events, gp_limit), "{shortage:?}");
            }
        }
    }

    /// If all events can keep their counters, all keep them.
    #[test]
    fn counters_that_can_be_kept_are_kept(
        slots in prop::collection::vec(mask(), 8),
        had in Just(vec![0usize, 1, 2, 3, 4, 5, 32, 33]).prop_shuffle(),
        count in 0usize..9,
        overlap in any::<bool>(),
    ) {
        let had = &had[..count];
        let events: Vec<Event> = had
            .iter()
            .zip(slots)
            .map(|(counter, others)| {
                let counters = others | (1 << counter);
                (want(counters, overlap), CounterId::from_index(*counter))
            })
            .collect();
        prop_assert_eq!(solve(&events, 6).unwrap(), had);
    }

    /// A set with as many events as there are counters is placed if any assignment exists.
    #[test]
    fn a_full_pmu_that_fits_is_never_refused(
        hidden in Just((0..MAX_EVENTS).collect::<Vec<_>>()).prop_shuffle(),
        others in prop::collection::vec((0..MAX_EVENTS, 0..MAX_EVENTS), MAX_EVENTS),
    ) {
        let events: Vec<Event> = hidden
            .iter()
            .zip(others)
            .map(|(counter, (a, b))| fresh((1 << counter) | (1 << a) | (1 << b), false))
            .collect();
        let counters = solve(&events, 32).unwrap();
        prop_assert!(is_valid(&events, 32, &counters));
    }

    /// The assignment is mainline's if mainline finds one without back-tracking.
    #[test]
    fn mainlines_greedy_choice_is_kept(
        counters in prop::collection::vec(mask(), 1..7),
        gp_limit in 0u32..7,
    ) {
        let events: Vec<Event> = counters.iter().map(|mask| fresh(*mask, false)).collect();
        let wants: Vec<Want> = events.iter().map(|(want, _)| *want).collect();
        if let Some(expected) = mainline(&wants, gp_limit, AS_IS) {
            prop_assert_eq!(solve(&events, gp_limit).unwrap(), expected);
        }
    }

    /// The assignment is mainline's if mainline finds one with back-tracking: under a limit so
    /// large that mainline's miscount has no effect, and without the miscount.
    #[test]
    fn mainlines_back_tracking_is_kept(
        wants in prop::collection::vec((1u64..1 << 6, any::<bool>()), 1..7),
        gp_limit in 0u32..7,
    ) {
        let wants: Vec<Want> = wants
            .into_iter()
            .map(|(counters, overlap)| want(counters, overlap))
            .collect();
        let events: Vec<Event> = wants.iter().map(|want| (*want, None)).collect();
        if let Some(expected) = mainline(&wants, 1000, AS_IS) {
            prop_assert_eq!(solve(&events, 32).unwrap(), expected);
        }
        if let Some(expected) = mainline(&wants, gp_limit, MENDED) {
            prop_assert_eq!(solve(&events, gp_limit).unwrap(), expected);
        }
    }
}

/// All sets of up to four events on three general-purpose counters and a fixed one.
#[test]
fn exhaustively_on_four_counters() {
    let masks: Vec<u64> = (0..16u64)
        .map(|bits| (bits & 7) | ((bits >> 3) << 32))
        .collect();
    for number in 0..16usize.pow(4) {
        let events: Vec<Event> = (0..4)
            .map(|place| number / 16usize.pow(place) % 16)
            // Mask 0 means no event.
            .filter(|index| *index != 0)
            .map(|index| fresh(masks[index], index % 3 == 0))
            .collect();
        let wants: Vec<u64> = events.iter().map(|(want, _)| want.counters).collect();
        for gp_limit in 0..=3 {
            match solve(&events, gp_limit) {
                Ok(counters) => assert!(is_valid(&events, gp_limit, &counters), "{wants:x?}"),
                Err(shortage) => {
                    assert!(!fits(&wants, gp_limit), "{wants:x?} limit {gp_limit}");
                    assert!(is_true(shortage, &events, gp_limit), "{wants:x?}");
                }
            }
        }
    }
}

/// Overlapping masks: the other events have counters only if the first one is on counter 3.
#[test]
fn overlapping_masks_of_the_reference_case() {
    for overlap in [true, false] {
        let events = [0b1001, 0b0011, 0b0111, 0b0111].map(|mask| fresh(mask, overlap));
        let counters = solve(&events, 4).unwrap();
        assert!(is_valid(&events, 4, &counters));
        assert_eq!(counters[0], 3);
    }
    // Placing by weight without back-tracking refuses this set.
    let wants = [0b1001, 0b0011, 0b0111, 0b0111].map(|counters| want(counters, false));
    assert_eq!(mainline(&wants, 4, AS_IS), None);
}

/// Six events on the six counters of AMD family 15h, which mainline refuses: 0x02e on {0, 3}, three
/// on {0, 1, 2} and two on {3, 4, 5}. With a limit of seven, mainline accepts them.
#[test]
fn mainlines_counterexample() {
    let wants = [
        (0x09, true),
        (0x07, false),
        (0x07, false),
        (0x07, false),
        (0x38, false),
        (0x38, false),
    ]
    .map(|(counters, overlap)| want(counters, overlap));
    let expected = vec![3, 0, 1, 2, 4, 5];
    assert_eq!(mainline(&wants, 6, AS_IS), None);
    assert_eq!(mainline(&wants, 7, AS_IS), Some(expected.clone()));
    assert_eq!(mainline(&wants, 6, MENDED), Some(expected.clone()));
    let events = wants.map(|want| (want, None));
    assert_eq!(solve(&events, 6), Ok(expected));
}
