// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::{Cpuid, Leaf},
    sched::{
        extra_register::{ExtraRegister, Requirement},
        register_plan::RegisterValues,
    },
};

const NONE: Limits = Limits::NONE;

/// Four general-purpose counters, three fixed ones.
fn roster() -> Roster<char> {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0xd,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0403,
            edx: 0x603,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    Roster::new(&Capabilities::decode(&cpuid, None).unwrap())
}

fn on(bits: u64) -> Constraint {
    Constraint::any_of(CounterMask::from_bits(bits))
}

fn gp(n: u8) -> CounterId {
    CounterId::gp(n).unwrap()
}

fn events(roster: &Roster<char>) -> String {
    roster.entries().map(|entry| entry.event).collect()
}

/// `a`, `b` and so on, on any general-purpose counter, settled.
fn with_any(events: &str) -> Roster<char> {
    let mut roster = roster();
    for event in events.chars() {
        roster.add(event, on(0xf), None, &NONE).unwrap();
    }
    roster.settle();
    roster
}

fn state(roster: &Roster<char>) -> (Vec<Entry<char>>, bool) {
    (roster.entries().copied().collect(), roster.in_transaction())
}

/// The counters by the long way.
fn solved(roster: &Roster<char>, limits: &Limits) -> Option<Vec<Option<CounterId>>> {
    let (assignment, _) = roster.solve(limits).ok()?;
    Some(assignment.iter().map(Some).collect())
}

#[test]
fn closing_gaps_changes_nothing() {
    let seen = |roster: &Roster<char>| {
        (
            state(roster),
            roster.leaving().collect::<Vec<_>>(),
            roster.arriving().collect::<Vec<_>>(),
            roster.collected().copied().collect::<Vec<_>>(),
            roster.claim(),
        )
    };
    let mut roster = with_any("ab");
    let (mut moved, mut last) = (0, 0);
    // Who is first goes, and comes back as the last. On the way one moves, one is collected.
    for turn in 0..4 * SLOTS {
        let first = roster.entries().next().unwrap().event;
        roster.remove(first).unwrap();
        let wanted = on(if turn % 3 == 0 { 0x1 } else { 0xf });
        if turn % 2 == 0 {
            roster.begin();
        }
        roster.add(first, wanted, Some(gp(0)), &NONE).unwrap();
        last = last.max(roster.live.end());
        for commits in [false, true] {
            if commits {
                roster.commit(&NONE).unwrap();
            }
            moved += usize::from(roster.leaving().next().is_some());
            let mut tidy = roster.clone();
            tidy.close_gaps();
            assert_eq!(tidy.live, Slots(0b11));
            assert_eq!(seen(&tidy), seen(&roster), "{turn}");
        }
        if turn % 5 == 0 {
            roster.settle();
        }
    }
    assert!(moved > 10 && last == SLOTS, "{moved} {last}");
}

#[test]
fn the_short_ways_find_what_the_long_one_does() {
    let masks = [0x1, 0x6, 0xf, 0x1_0000_000f, 0x2_0000_0000];
    let wishes = [None, Some(gp(0)), Some(gp(1)), Some(gp(3))];
    let closing = NONE.closing(CounterMask::from_bits(0b1));
    let (mut short, mut long, mut refused) = (0, 0, 0);
    for limits in [NONE, closing, Limits { gp: 2, ..NONE }] {
        for policy in [Policy::Rpmu, Policy::Mainline] {
            for choice in 0..5 * 5 * 5 * 5 * 4 * 4 {
                let mask = |n| on(masks[choice / 5usize.pow(n) % 5]);
                let wish = |n| wishes[choice / 625 / 4usize.pow(n) % 4];
                let mut roster = roster().with_policy(policy);
                for (n, event) in ['a', 'b'].into_iter().enumerate() {
                    let _ = roster.add(event, mask(n as u32), None, &NONE);
                }
                roster.begin();
                for (n, event) in ['c', 'd'].into_iter().enumerate() {
                    let n = n as u32;
                    roster.add(event, mask(n + 2), wish(n), &limits).unwrap();
                }
                let expected = solved(&roster, &limits);
                if roster.clone().plan_beside(&limits) {
                    short += 1;
                } else if let Some(refusal) = roster.refuse_beside(&limits) {
                    // With fixed counters among them, the long way may name others.
                    let same = roster.clone().plan_anew(&limits) == Err(refusal);
                    let fixed = (0..4).any(|n| !mask(n).counters.fixed().is_empty());
                    assert!(
                        same || (fixed && expected.is_none()),
                        "{choice} {refusal:?}"
                    );
                    refused += 1;
                } else {
                    long += 1;
                }
                let committed = roster.commit(&limits).is_ok();
                let planned = roster.entries().map(|entry| entry.planned()).collect();
                let found = committed.then_some(planned);
                assert_eq!(found, expected, "{choice} {policy:?} {limits:?}");
            }
        }
    }
    let times = [short, long, refused];
    assert!(times.iter().all(|times| *times > 1000), "{times:?}");
}

#[test]
fn settled_events_neither_leave_nor_arrive() {
    let roster = with_any("ab");
    assert_eq!(roster.leaving().count() + roster.arriving().count(), 0);
    assert_eq!(roster.get('b').unwrap().placed(), Some(gp(1)));
}

#[test]
fn a_fifth_event_is_refused_and_changes_nothing() {
    let mut roster = with_any("abcd");
    let before = state(&roster);
    assert!(matches!(
        roster.add('e', on(0xf), None, &NONE),
        Err(Refusal::DoesNotFit(_))
    ));
    assert_eq!(state(&roster), before);
}

#[test]
fn room_ends_with_the_counters() {
    let mut roster = with_any("abcd");
    roster.begin();
    for event in "efg".chars() {
        roster.add(event, on(0x7_0000_0000), None, &NONE).unwrap();
    }
    let refused = roster.add('h', on(0xf), None, &NONE);
    assert_eq!(refused, Err(Refusal::TooManyEvents));
    assert_eq!(events(&roster), "abcdefg");
}

#[test]
fn removal_keeps_the_order_and_the_counters() {
    let mut roster = with_any("abcd");
    let removed = roster.remove('b').unwrap();
    assert_eq!(removed.placed(), Some(gp(1)));
    assert_eq!(events(&roster), "acd");
    assert_eq!(roster.remove('b'), None);
    assert_eq!(roster.len(), 3);
    // Who is left stays put, and the gap is used.
    roster.add('e', on(0xf), Some(gp(1)), &NONE).unwrap();
    assert_eq!(roster.leaving().count(), 0);
    assert_eq!(roster.arriving().collect::<Vec<_>>(), [('e', gp(1))]);
}

#[test]
fn a_removed_event_comes_back_to_its_counter() {
    let mut roster = with_any("abc");
    for event in "abc".chars() {
        roster.remove(event).unwrap();
    }
    // In another order than before.
    for (event, counter) in [('c', gp(2)), ('a', gp(0)), ('b', gp(1))] {
        roster.add(event, on(0xf), Some(counter), &NONE).unwrap();
        assert_eq!(roster.get(event).unwrap().planned(), Some(counter));
    }
}

#[test]
fn a_group_is_placed_as_a_whole() {
    let mut roster = with_any("a");
    roster.begin();
    roster.add('b', on(0x1), None, &NONE).unwrap();
    roster.add('c', on(0x2), None, &NONE).unwrap();
    // Nothing is planned before the commit.
    assert_eq!(roster.arriving().count(), 0);
    roster.commit(&NONE).unwrap();
    assert!(!roster.in_transaction());
    let leaving: Vec<_> = roster.leaving().collect();
    assert_eq!(leaving, [('a', gp(0))]);
    let arriving: Vec<_> = roster.arriving().collect();
    assert_eq!(arriving, [('a', gp(2)), ('b', gp(0)), ('c', gp(1))]);
}

#[test]
fn a_group_that_does_not_fit_leaves_no_trace() {
    let mut roster = with_any("ab");
    let before = state(&roster);
    roster.begin();
    roster.add('c', on(0x4), None, &NONE).unwrap();
    roster.add('d', on(0x4), None, &NONE).unwrap();
    assert!(matches!(roster.commit(&NONE), Err(Refusal::DoesNotFit(_))));
    assert!(roster.in_transaction());
    // What perf core does then: remove them, in any order, and cancel.
    assert_eq!(roster.remove('c').unwrap().placed(), None);
    roster.cancel();
    assert_eq!(state(&roster), before);
    roster.cancel();
    assert_eq!(state(&roster), before);
}

#[test]
fn an_older_event_may_go_during_a_transaction() {
    let mut roster = with_any("ab");
    roster.begin();
    roster.add('c', on(0xf), None, &NONE).unwrap();
    roster.remove('a').unwrap();
    roster.cancel();
    assert_eq!(events(&roster), "b");
}

#[test]
fn a_plan_may_change_before_it_is_applied() {
    let mut roster = roster();
    roster.add('a', on(0xf), None, &NONE).unwrap();
    roster.add('b', on(0x1), None, &NONE).unwrap();
    // 'a' was planned for counter 0, and never was there.
    assert_eq!(roster.leaving().count(), 0);
    let arriving: Vec<_> = roster.arriving().collect();
    assert_eq!(arriving, [('a', gp(1)), ('b', gp(0))]);
}

fn exclusive_on(bits: u64) -> Constraint {
    Constraint {
        exclusive: true,
        ..on(bits)
    }
}

#[test]
fn limits_decide_what_may_be_taken() {
    let mut roster = with_any("a");
    let limits = Limits {
        closed: CounterMask::from_bits(0b0010),
        closed_to_exclusive: CounterMask::from_bits(0b0110),
        ..NONE
    };
    roster.add('b', exclusive_on(0xf), None, &limits).unwrap();
    roster.add('c', on(0xf), None, &limits).unwrap();
    let counters: Vec<_> = roster.entries().map(|entry| entry.planned()).collect();
    assert_eq!(counters, [Some(gp(0)), Some(gp(3)), Some(gp(2))]);
    // Counter 1 is free, and closed.
    let refused = roster.add('d', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    // With the limits or without, five do not fit.
    roster.add('d', on(0xf), None, &NONE).unwrap();
    let refused = roster.add('e', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::DoesNotFit(_))));
}

#[test]
fn what_an_event_has_is_not_taken_from_it() {
    let mut roster = with_any("abc");
    let limits = Limits {
        closed: CounterMask::from_bits(0b0111),
        gp: 2,
        ..NONE
    };
    let refused = roster.add('d', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    // A fixed counter is not a third of two.
    roster.add('e', on(0x1_0000_000f), None, &limits).unwrap();
    assert_eq!(roster.leaving().count(), 0);
    // Who goes does not come back.
    roster.remove('a').unwrap();
    let refused = roster.add('a', on(0xf), Some(gp(0)), &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
}

#[test]
fn half_of_the_counters_with_an_exclusive_event() {
    let mut roster = with_any("a");
    let half = Limits::beside_sibling(4);
    roster.add('b', on(0xf), None, &half).unwrap();
    let refused = roster.add('c', exclusive_on(0xf), None, &half);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    roster.remove('a').unwrap();
    roster.add('c', exclusive_on(0xf), None, &half).unwrap();
    let refused = roster.add('d', on(0xf), None, &half);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
}

#[test]
fn a_claim_follows_the_plan() {
    let mut roster = with_any("a");
    let claim = |used, exclusive| Claim {
        used: CounterMask::from_bits(used),
        exclusive: CounterMask::from_bits(exclusive),
        ..Claim::default()
    };
    // 'a' moves from counter 0 to 1, and back again.
    roster.add('b', exclusive_on(0x1), None, &NONE).unwrap();
    assert_eq!(roster.claim(), claim(0b11, 0b01));
    roster.remove('b').unwrap();
    assert_eq!(roster.claim(), claim(0b10, 0));
    roster.add('c', exclusive_on(0x2), None, &NONE).unwrap();
    assert_eq!(roster.claim(), claim(0b11, 0b10));
}

#[test]
fn events_of_an_open_transaction_claim_nothing() {
    let mut roster = with_any("a");
    let before = roster.claim();
    roster.begin();
    roster.add('b', exclusive_on(0xf), None, &NONE).unwrap();
    assert_eq!(roster.claim(), before);
    roster.commit(&NONE).unwrap();
    assert_ne!(roster.claim(), before);
}

/// OFFCORE_RESPONSE_0 or _1 with a value.
fn offcore(register: ExtraRegister, value: u64) -> Demand {
    let alternative = match register {
        ExtraRegister::OffcoreResponse0 => ExtraRegister::OffcoreResponse1,
        _ => ExtraRegister::OffcoreResponse0,
    };
    Demand {
        requirement: Some(Requirement {
            value,
            register,
            alternative: Some(alternative),
        }),
        ..on(0xf).into()
    }
}

use ExtraRegister::{OffcoreResponse0, OffcoreResponse1};

fn register(roster: &Roster<char>, event: char) -> Option<ExtraRegister> {
    roster.get(event).unwrap().planned_register()
}

#[test]
fn two_values_have_registers_and_a_third_has_none() {
    let mut roster = with_any("a");
    for (event, value) in [('b', 1), ('c', 2), ('d', 1)] {
        let demand = offcore(OffcoreResponse0, value);
        roster.add(event, demand, None, &NONE).unwrap();
    }
    assert_eq!(register(&roster, 'a'), None);
    assert_eq!(register(&roster, 'b'), Some(OffcoreResponse0));
    assert_eq!(register(&roster, 'c'), Some(OffcoreResponse1));
    assert_eq!(register(&roster, 'd'), Some(OffcoreResponse0));
    let claimed = roster.claim().registers;
    assert_eq!(claimed.get(OffcoreResponse0), Some(1));
    assert_eq!(claimed.get(OffcoreResponse1), Some(2));
    roster.remove('a');
    let before = state(&roster);
    let third = offcore(OffcoreResponse1, 3);
    let refused = roster.add('e', third, None, &NONE);
    assert_eq!(refused, Err(Refusal::ExtraRegisterTaken));
    assert_eq!(state(&roster), before);
    // When the second has gone, there is room.
    roster.remove('c');
    roster.add('e', third, None, &NONE).unwrap();
    assert_eq!(register(&roster, 'e'), Some(OffcoreResponse1));
}

#[test]
fn an_event_that_gets_another_register_is_programmed_anew() {
    let mut roster = roster();
    roster
        .add('a', offcore(OffcoreResponse0, 1), None, &NONE)
        .unwrap();
    roster.settle();
    let no_choice = Demand {
        requirement: Some(Requirement {
            value: 2,
            register: OffcoreResponse0,
            alternative: None,
        }),
        ..on(0xf).into()
    };
    roster.add('b', no_choice, None, &NONE).unwrap();
    assert_eq!(register(&roster, 'a'), Some(OffcoreResponse1));
    // On the counter that it has.
    assert_eq!(roster.leaving().collect::<Vec<_>>(), [('a', gp(0))]);
    let arriving: Vec<_> = roster.arriving().collect();
    assert_eq!(arriving, [('a', gp(0)), ('b', gp(1))]);
    roster.settle();
    assert_eq!(roster.leaving().count() + roster.arriving().count(), 0);
}

#[test]
fn what_the_sibling_holds_limits_for_the_moment() {
    let mut held = RegisterValues::NONE;
    held.place(OffcoreResponse0, 1).unwrap();
    held.place(OffcoreResponse1, 2).unwrap();
    let limits = Limits {
        registers: held,
        ..NONE
    };
    let mut roster = roster();
    let third = offcore(OffcoreResponse0, 3);
    let refused = roster.add('a', third, None, &limits);
    assert_eq!(refused, Err(Refusal::ExtraRegisterLimited));
    let same = offcore(OffcoreResponse0, 2);
    roster.add('b', same, None, &limits).unwrap();
    assert_eq!(register(&roster, 'b'), Some(OffcoreResponse1));
    // The sibling's own do not become this thread's.
    assert_eq!(roster.claim().registers.get(OffcoreResponse0), None);
    // One that can never be has nobody to wait for.
    roster.begin();
    for (event, value) in [('c', 1), ('d', 4)] {
        let demand = offcore(OffcoreResponse0, value);
        roster.add(event, demand, None, &limits).unwrap();
    }
    assert_eq!(roster.commit(&limits), Err(Refusal::ExtraRegisterTaken));
}

#[test]
fn a_trial_leaves_nothing_behind() {
    let mut roster = with_any("ab");
    let before: Vec<_> = roster.entries().copied().collect();
    roster.begin();
    let mut trial = roster.trial();
    // "a" would have to move for this one.
    trial.push('c', on(0x1), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    trial.push('d', on(0xf), None);
    trial.push('e', on(0x1), None);
    assert!(trial.fits(&NONE).is_err());
    // There is room for what is left of the group that does not fit.
    trial.push('d', on(0xf), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    for event in 'f'..='z' {
        trial.push(event, on(0xf), None);
    }
    assert_eq!(trial.fits(&NONE), Err(Refusal::TooManyEvents));
    trial.push('f', on(1 << 32), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    drop(trial);
    assert!(roster.in_transaction());
    assert!(roster.entries().copied().eq(before));
    roster.add('c', on(0xf), None, &NONE).unwrap();
    roster.cancel();
    assert_eq!(events(&roster), "ab");
}
