// SPDX-License-Identifier: GPL-2.0

use super::*;

/// A problem from masks with general-purpose counters at bit 0 and fixed ones at bit 32;
/// `+ overlap` and `+ pair` set the flags, `was n` gives the previous counter's index.
macro_rules! problem {
    ($limit:expr; $($mask:literal $(+ $flag:ident)* $(was $previous:literal)?),* $(,)?) => {{
        let mut problem = Problem::new($limit);
        $(
            let constraint = Constraint::any_of(CounterMask::from_bits($mask));
            $( let constraint = Constraint { $flag: true, ..constraint }; )*
            let previous = None $( .or(CounterId::from_index($previous)) )?;
            problem.push(constraint, previous).unwrap();
        )*
        problem
    }};
}

fn solve(problem: &Problem) -> Result<Vec<usize>, Shortage> {
    let assignment = problem.solve()?;
    Ok(assignment.iter().map(CounterId::index).collect())
}

fn solved(problem: &Problem) -> Vec<usize> {
    solve(problem).unwrap()
}

/// Solves with steps 1 and 2 only.
fn by_weight(problem: Problem) -> Result<Vec<usize>, Shortage> {
    solve(&problem.with_policy(Policy::Mainline))
}

#[test]
fn nothing_to_do() {
    assert!(solved(&Problem::new(4)).is_empty());
}

#[test]
fn all_events_keep_their_counters() {
    assert_eq!(solved(&problem![4; 0xf was 2, 0xf was 0]), [2, 0]);
}

#[test]
fn no_event_keeps_a_counter_that_two_had() {
    let problem = problem![4; 0xf was 2, 0xf was 2];
    assert_eq!(by_weight(problem), Ok(vec![0, 1]));
    assert_eq!(solved(&problem), [2, 0]);
}

#[test]
fn no_event_keeps_a_counter_that_the_constraint_rules_out() {
    let problem = problem![4; 0x3 was 2, 0xf was 3];
    assert_eq!(by_weight(problem), Ok(vec![0, 1]));
    assert_eq!(solved(&problem), [0, 3]);
}

#[test]
fn the_limit_holds_for_kept_counters() {
    let problem = problem![1; 0xf was 2, 0xf was 0];
    let shortage = Shortage::GpLimit {
        needed: 2,
        limit: 1,
    };
    assert_eq!(problem.solve().err(), Some(shortage));
}

/// KVM's event for the branch records of a guest takes no general-purpose counter, by the kernel's
/// assignment, too: its index is above those of fixed counters (`__perf_sched_find_counter()`).
#[test]
fn branch_records_are_no_general_purpose_counter() {
    // Bit 56: `CounterId::GUEST_BRANCHES`.
    let problem = problem![1; 0xf, 0x100_0000_0000_0000];
    assert_eq!(by_weight(problem), Ok(vec![0, 56]));
    assert_eq!(solved(&problem), [0, 56]);
    let problem = problem![0; 0x100_0000_0000_0000];
    assert_eq!(by_weight(problem), Ok(vec![56]));
    assert_eq!(solved(&problem), [56]);
}

#[test]
fn fixed_first_then_lowest() {
    let problem = problem![4; 0x1_0000_000f, 0x1_0000_000f, 0xf];
    assert_eq!(solved(&problem), [32, 1, 0]);
}

#[test]
fn the_most_constrained_is_placed_first() {
    // Three on 0-3, and one that can only have counter 2.
    assert_eq!(solved(&problem![4; 0xf, 0xf, 0xf, 0x4]), [0, 1, 3, 2]);
}

/// The example of overlapping constraints, with and without the flag that makes step 2 go back.
#[test]
fn overlapping_masks() {
    let with = problem![4; 0b1001 + overlap, 0b0011, 0b0111, 0b0111];
    assert_eq!(by_weight(with), Ok(vec![3, 0, 1, 2]));
    let without = problem![4; 0b1001, 0b0011, 0b0111, 0b0111];
    assert_eq!(by_weight(without), Err(Shortage::NotFound));
    assert_eq!(solved(&without)[0], 3);
}

/// Six events on the six counters of AMD family 15h: mainline refuses them, because it does
/// not restore the number of general-purpose counters in use when it goes back.
#[test]
fn going_back_restores_the_number_of_gp_counters() {
    let problem = problem![6; 0x09 + overlap, 0x07, 0x07, 0x07, 0x38, 0x38];
    assert_eq!(by_weight(problem), Ok(vec![3, 0, 1, 2, 4, 5]));
}

#[test]
fn going_back_tries_another_fixed_counter() {
    // The third event takes fixed counter 2, and the first takes 0. Then none is left for the
    // second, and the first goes on to 1.
    let problem = problem![0; 0x3_0000_0000 + overlap, 0x5_0000_0000, 0x4_0000_0000];
    assert_eq!(by_weight(problem), Ok(vec![33, 32, 34]));
}

#[test]
fn more_choices_than_are_remembered() {
    // Three overlapping constraints, whose events all have to give way.
    let problem = problem![8;
        0b0000_1001 + overlap, 0b0001_0010 + overlap, 0b0010_0100 + overlap,
        0b0000_0111, 0b0000_0111, 0b0000_0111,
    ];
    assert_eq!(solved(&problem)[..3], [3, 4, 5]);
}

#[test]
fn the_mainline_policy_stops_before_the_matching() {
    let problem = problem![4; 0b1001, 0b0011, 0b0111, 0b0111];
    assert_eq!(by_weight(problem), Err(Shortage::NotFound));
    // Events that do not fit at all have another reason.
    assert!(matches!(
        by_weight(problem![4; 0b1, 0b1]),
        Err(Shortage::Contended { .. })
    ));
}

#[test]
fn new_events_are_placed_around_the_others() {
    let problem = problem![4; 0xf was 0, 0xf, 0x1_0000_000f was 3, 0x2];
    assert_eq!(solved(&problem), [0, 2, 3, 1]);
    // By mainline's rule, all events are placed again.
    assert_eq!(by_weight(problem), Ok(vec![0, 2, 32, 1]));
}

#[test]
fn events_in_a_new_events_way_move() {
    let problem = problem![4; 0xf was 1, 0xf was 0, 0x2];
    assert_eq!(solved(&problem), [0, 2, 1]);
}

#[test]
fn the_limit_holds_for_new_events() {
    let problem = problem![2; 0xf was 0, 0xf was 1, 0x1_0000_000f];
    assert_eq!(solved(&problem), [0, 1, 32]);
    let shortage = Shortage::GpLimit {
        needed: 3,
        limit: 2,
    };
    let problem = problem![2; 0xf was 0, 0xf was 1, 0xf];
    assert_eq!(problem.solve().err(), Some(shortage));
}

#[test]
fn a_pair_takes_two_counters() {
    assert_eq!(solved(&problem![6; 0x3f + pair, 0x3f]), [0, 2]);
    assert_eq!(solved(&problem![6; 0x3f, 0x3f + pair]), [2, 0]);
    // Counter 1 is taken, so the pair cannot take counter 0.
    assert_eq!(solved(&problem![6; 0x3f + pair, 0x2]), [2, 1]);
    assert_eq!(solved(&problem![6; 0x3f + pair, 0x2 was 1]), [2, 1]);
    // The pair keeps both counters, or neither.
    assert_eq!(solved(&problem![6; 0x15 + pair was 2, 0x3f was 4]), [2, 4]);
    assert_eq!(solved(&problem![6; 0x15 + pair was 2, 0x3f was 3]), [2, 0]);
}

#[test]
fn pairs_count_twice() {
    assert_eq!(solved(&problem![4; 0x15 + pair, 0x15 + pair]), [0, 2]);
    let shortage = Shortage::GpLimit {
        needed: 4,
        limit: 3,
    };
    for problem in [
        problem![3; 0x15 + pair, 0x15 + pair],
        problem![3; 0x15 + pair was 0, 0x15 + pair was 2],
        problem![3; 0x15 + pair was 0, 0x15 + pair],
    ] {
        assert_eq!(problem.solve().err(), Some(shortage));
    }
}

#[test]
fn pairs_are_laid_out_anew_if_the_first_layout_is_wrong() {
    // By weight, the pair takes 0 and 1.
    let problem = problem![6; 0x5 + pair, 0x03, 0x0b];
    assert_eq!(by_weight(problem), Err(Shortage::NotFound));
    let counters = solved(&problem);
    assert_eq!(counters, [2, 0, 1]);
}

#[test]
fn pairs_that_leave_too_few_counters() {
    let problem = problem![6; 0x15 + pair, 0x15 + pair, 0x3f, 0x3f, 0x3f];
    let shortage = problem.solve().err().unwrap();
    assert_eq!(shortage, Shortage::Pairs { pairs: 2 });
    assert_eq!(
        shortage.to_string(),
        "2 pairs of counters leave too few for the other events"
    );
    let four = problem![8; 0x15 + pair, 0x15 + pair, 0x15 + pair, 0x15 + pair];
    assert_eq!(
        four.solve().err(),
        Some(Shortage::Contended {
            events: 4,
            counters: CounterMask::from_bits(0x15),
        })
    );
}

#[test]
fn going_back_frees_both_counters_of_a_pair() {
    // The pair goes to 0 and 1 first, where the other events have to be.
    let problem = problem![4; 0x5 + pair + overlap, 0x3, 0x3];
    assert_eq!(by_weight(problem), Ok(vec![2, 0, 1]));
}

#[test]
fn contention_names_the_events_and_counters() {
    let problem = problem![4; 0xf, 0x4, 0x4, 0xf];
    let shortage = problem.solve().err().unwrap();
    assert_eq!(
        shortage,
        Shortage::Contended {
            events: 2,
            counters: CounterMask::from_bits(0x4),
        }
    );
    assert_eq!(
        shortage.to_string(),
        "2 events compete for 1 counters (0x4)"
    );
}

#[test]
fn an_event_without_counters_does_not_fit() {
    let problem = problem![4; 0xf, 0x0];
    assert_eq!(
        problem.solve().err(),
        Some(Shortage::Contended {
            events: 1,
            counters: CounterMask::EMPTY,
        })
    );
}

#[test]
fn the_limit_is_met_by_using_fixed_counters() {
    // By weight, the first takes fixed 0 and leaves the second only counter 0.
    let problem = problem![0; 0x3_0000_0000, 0x1_0000_0001];
    assert_eq!(solved(&problem), [33, 32]);
    let problem = problem![1; 0xf, 0xf];
    let shortage = problem.solve().err().unwrap();
    assert_eq!(
        shortage.to_string(),
        "2 general-purpose counters are needed, 1 may be used"
    );
}

#[test]
fn as_many_events_as_counters() {
    let mut problem = Problem::new(32);
    let all = Constraint::any_of(CounterMask::from_bits(u64::MAX));
    for _ in 0..MAX_EVENTS {
        problem.push(all, None).unwrap();
    }
    assert_eq!(problem.push(all, None), Err(Full));
    let used: CounterMask = problem.solve().unwrap().iter().collect();
    assert_eq!(used.weight() as usize, MAX_EVENTS);
}
