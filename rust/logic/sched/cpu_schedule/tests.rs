// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::Cpuid,
    model::demand::Requirement,
    regs::extra_register::ExtraRegister,
    sched::register_plan::RegisterValues, //
};

const NONE: Limits = Limits::NONE;

/// Four general-purpose counters, three fixed ones.
fn schedule() -> CpuSchedule<char> {
    CpuSchedule::new(&Capabilities::decode(&Cpuid::intel(3, 4, 3), None).unwrap())
}

fn on(bits: u64) -> Constraint {
    Constraint::any_of(CounterMask::from_bits(bits))
}

fn gp(n: u8) -> CounterId {
    CounterId::gp(n).unwrap()
}

fn events(schedule: &CpuSchedule<char>) -> String {
    schedule.entries().map(|entry| entry.event).collect()
}

/// A schedule with events `a`, `b` and so on, on any general-purpose counter, programmed.
fn with_any(events: &str) -> CpuSchedule<char> {
    let mut schedule = schedule();
    for event in events.chars() {
        schedule.add(event, on(0xf), None, &NONE).unwrap();
    }
    schedule.mark_programmed();
    schedule
}

fn state(schedule: &CpuSchedule<char>) -> (Vec<Entry<char>>, bool) {
    (schedule.entries().copied().collect(), schedule.in_txn())
}

/// Returns the counters that the slow path finds.
fn solved(schedule: &CpuSchedule<char>, limits: &Limits) -> Option<Vec<Option<CounterId>>> {
    let mut schedule = *schedule;
    schedule.solve(limits).ok()?;
    Some(schedule.assignment.iter().map(Some).collect())
}

#[test]
fn closing_gaps_changes_nothing() {
    let seen = |schedule: &CpuSchedule<char>| {
        (
            state(schedule),
            schedule.leaving().collect::<Vec<_>>(),
            schedule.arriving().collect::<Vec<_>>(),
            schedule.collected().copied().collect::<Vec<_>>(),
            schedule.usage(),
        )
    };
    let mut schedule = with_any("ab");
    let (mut moved, mut last) = (0, 0);
    // Each turn removes the first event and adds it as the last one. Some turns move an event, some
    // collect one in a txn.
    for turn in 0..4 * SLOT_COUNT {
        let first = schedule.entries().next().unwrap().event;
        schedule.remove(first).unwrap();
        let wanted = on(if turn % 3 == 0 { 0x1 } else { 0xf });
        if turn % 2 == 0 {
            schedule.begin();
        }
        schedule.add(first, wanted, Some(gp(0)), &NONE).unwrap();
        last = last.max(schedule.live.end());
        for commits in [false, true] {
            if commits {
                schedule.commit(&NONE).unwrap();
            }
            moved += usize::from(schedule.leaving().next().is_some());
            let mut tidy = schedule;
            tidy.close_gaps();
            assert_eq!(tidy.live, SlotSet(0b11));
            assert_eq!(seen(&tidy), seen(&schedule), "{turn}");
        }
        if turn % 5 == 0 {
            schedule.mark_programmed();
        }
    }
    assert!(moved > 10 && last == SLOT_COUNT, "{moved} {last}");
}

#[test]
fn the_fast_paths_find_the_plan_of_the_slow_path() {
    let masks = [0x1, 0x6, 0xf, 0x1_0000_000f, 0x2_0000_0000];
    let previous = [None, Some(gp(0)), Some(gp(1)), Some(gp(3))];
    let closing = NONE.closing(CounterMask::from_bits(0b1));
    let (mut fast, mut slow, mut refused) = (0, 0, 0);
    for limits in [NONE, closing, Limits { gp: 2, ..NONE }] {
        for policy in [Policy::Rpmu, Policy::Mainline] {
            for choice in 0..5 * 5 * 5 * 5 * 4 * 4 {
                let mask = |n| on(masks[choice / 5usize.pow(n) % 5]);
                let last = |n| previous[choice / 625 / 4usize.pow(n) % 4];
                let mut schedule = schedule().with_policy(policy);
                for (n, event) in ['a', 'b'].into_iter().enumerate() {
                    let _ = schedule.add(event, mask(n as u32), None, &NONE);
                }
                schedule.begin();
                for (n, event) in ['c', 'd'].into_iter().enumerate() {
                    let n = n as u32;
                    schedule.add(event, mask(n + 2), last(n), &limits).unwrap();
                }
                let expected = solved(&schedule, &limits);
                if schedule.plan_beside(&limits) {
                    fast += 1;
                } else if let Some(refusal) = schedule.refuse_beside(&limits) {
                    // With fixed counters, the slow path may name other counters.
                    let same = schedule.plan_anew(&limits) == Err(refusal);
                    let fixed = (0..4).any(|n| !mask(n).counters.fixed().is_empty());
                    assert!(
                        same || (fixed && expected.is_none()),
                        "{choice} {refusal:?}"
                    );
                    refused += 1;
                } else {
                    slow += 1;
                }
                let committed = schedule.commit(&limits).is_ok();
                let planned = schedule.entries().map(|entry| entry.planned()).collect();
                let found = committed.then_some(planned);
                assert_eq!(found, expected, "{choice} {policy:?} {limits:?}");
            }
        }
    }
    let times = [fast, slow, refused];
    assert!(times.iter().all(|times| *times > 1000), "{times:?}");
}

#[test]
fn programmed_events_neither_leave_nor_arrive() {
    let schedule = with_any("ab");
    assert_eq!(schedule.leaving().count() + schedule.arriving().count(), 0);
    assert_eq!(schedule.get('b').unwrap().placed(), Some(gp(1)));
}

#[test]
fn a_fifth_event_is_refused_and_changes_nothing() {
    let mut schedule = with_any("abcd");
    let before = state(&schedule);
    assert!(matches!(
        schedule.add('e', on(0xf), None, &NONE),
        Err(Refusal::DoesNotFit(_))
    ));
    assert_eq!(state(&schedule), before);
}

#[test]
fn room_ends_with_the_counters() {
    let mut schedule = with_any("abcd");
    schedule.begin();
    for event in "efg".chars() {
        schedule.add(event, on(0x7_0000_0000), None, &NONE).unwrap();
    }
    let refused = schedule.add('h', on(0xf), None, &NONE);
    let counters = CounterMask::from_bits(0x7_0000_000f);
    assert_eq!(refused, Err(Shortage::more_than(counters).into()));
    assert_eq!(events(&schedule), "abcdefg");
}

#[test]
fn removal_keeps_the_order_and_the_counters() {
    let mut schedule = with_any("abcd");
    let removed = schedule.remove('b').unwrap();
    assert_eq!(removed.placed(), Some(gp(1)));
    assert_eq!(events(&schedule), "acd");
    assert_eq!(schedule.remove('b'), None);
    assert_eq!(schedule.len(), 3);
    // The others keep their counters, and the gap is used.
    schedule.add('e', on(0xf), Some(gp(1)), &NONE).unwrap();
    assert_eq!(schedule.leaving().count(), 0);
    assert_eq!(schedule.arriving().collect::<Vec<_>>(), [('e', gp(1))]);
}

#[test]
fn a_removed_event_comes_back_to_its_counter() {
    let mut schedule = with_any("abc");
    for event in "abc".chars() {
        schedule.remove(event).unwrap();
    }
    // In another order than before.
    for (event, counter) in [('c', gp(2)), ('a', gp(0)), ('b', gp(1))] {
        schedule.add(event, on(0xf), Some(counter), &NONE).unwrap();
        assert_eq!(schedule.get(event).unwrap().planned(), Some(counter));
    }
}

#[test]
fn a_group_is_placed_as_a_whole() {
    let mut schedule = with_any("a");
    schedule.begin();
    schedule.add('b', on(0x1), None, &NONE).unwrap();
    schedule.add('c', on(0x2), None, &NONE).unwrap();
    // Nothing is planned before the commit.
    assert_eq!(schedule.arriving().count(), 0);
    schedule.commit(&NONE).unwrap();
    assert!(!schedule.in_txn());
    let leaving: Vec<_> = schedule.leaving().collect();
    assert_eq!(leaving, [('a', gp(0))]);
    let arriving: Vec<_> = schedule.arriving().collect();
    assert_eq!(arriving, [('a', gp(2)), ('b', gp(0)), ('c', gp(1))]);
}

#[test]
fn a_group_that_does_not_fit_leaves_no_trace() {
    let mut schedule = with_any("ab");
    let before = state(&schedule);
    schedule.begin();
    schedule.add('c', on(0x4), None, &NONE).unwrap();
    schedule.add('d', on(0x4), None, &NONE).unwrap();
    assert!(matches!(
        schedule.commit(&NONE),
        Err(Refusal::DoesNotFit(_))
    ));
    assert!(schedule.in_txn());
    // The perf core removes the events then, in any order, and cancels.
    assert_eq!(schedule.remove('c').unwrap().placed(), None);
    schedule.cancel();
    assert_eq!(state(&schedule), before);
    schedule.cancel();
    assert_eq!(state(&schedule), before);
}

#[test]
fn an_older_event_may_leave_during_a_txn() {
    let mut schedule = with_any("ab");
    schedule.begin();
    schedule.add('c', on(0xf), None, &NONE).unwrap();
    schedule.remove('a').unwrap();
    schedule.cancel();
    assert_eq!(events(&schedule), "b");
}

#[test]
fn a_plan_may_change_before_it_is_applied() {
    let mut schedule = schedule();
    schedule.add('a', on(0xf), None, &NONE).unwrap();
    schedule.add('b', on(0x1), None, &NONE).unwrap();
    // 'a' was planned for counter 0, and never was there.
    assert_eq!(schedule.leaving().count(), 0);
    let arriving: Vec<_> = schedule.arriving().collect();
    assert_eq!(arriving, [('a', gp(1)), ('b', gp(0))]);
}

fn corrupting_on(bits: u64) -> Constraint {
    Constraint {
        corrupting: true,
        ..on(bits)
    }
}

#[test]
fn limits_decide_what_may_be_taken() {
    let mut schedule = with_any("a");
    let limits = Limits {
        closed: CounterMask::from_bits(0b0010),
        closed_to_sharing: CounterMask::from_bits(0b0110),
        ..NONE
    };
    schedule
        .add('b', corrupting_on(0xf), None, &limits)
        .unwrap();
    schedule.add('c', on(0xf), None, &limits).unwrap();
    let counters: Vec<_> = schedule.entries().map(|entry| entry.planned()).collect();
    assert_eq!(counters, [Some(gp(0)), Some(gp(3)), Some(gp(2))]);
    // Counter 1 is free, and closed.
    let refused = schedule.add('d', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    // With the limits or without, five do not fit.
    schedule.add('d', on(0xf), None, &NONE).unwrap();
    let refused = schedule.add('e', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::DoesNotFit(_))));
}

#[test]
fn an_event_keeps_its_counter() {
    let mut schedule = with_any("abc");
    let limits = Limits {
        closed: CounterMask::from_bits(0b0111),
        gp: 2,
        ..NONE
    };
    let refused = schedule.add('d', on(0xf), None, &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    // A fixed counter does not count for the limit.
    schedule.add('e', on(0x1_0000_000f), None, &limits).unwrap();
    assert_eq!(schedule.leaving().count(), 0);
    // A removed event does not get its counter back.
    schedule.remove('a').unwrap();
    let refused = schedule.add('a', on(0xf), Some(gp(0)), &limits);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
}

#[test]
fn half_of_the_counters_with_a_corrupting_event() {
    let mut schedule = with_any("a");
    let half = Limits::beside_sibling(4);
    schedule.add('b', on(0xf), None, &half).unwrap();
    let refused = schedule.add('c', corrupting_on(0xf), None, &half);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
    schedule.remove('a').unwrap();
    schedule.add('c', corrupting_on(0xf), None, &half).unwrap();
    let refused = schedule.add('d', on(0xf), None, &half);
    assert!(matches!(refused, Err(Refusal::Limited(_))));
}

#[test]
fn a_corrupting_event_does_not_join_more_than_half() {
    let half = Limits::beside_sibling(4);
    for others in ["a", "ab"] {
        let mut schedule = with_any(others);
        // An event on a general-purpose counter that could use a fixed one.
        schedule.add('x', on(1 << 32), None, &NONE).unwrap();
        let either = on(0x1_0000_000f);
        schedule.add('f', either, None, &NONE).unwrap();
        schedule.remove('x').unwrap();
        assert_eq!(schedule.taken().fixed(), CounterMask::EMPTY);
        let added = schedule.add('c', corrupting_on(0xf), None, &half);
        assert_eq!(added.is_ok(), others == "a", "{added:?}");
        assert_eq!(schedule.taken().gp().weight(), 1 + others.len() as u32);
    }
    // A corrupting event from before the limit keeps its counter, and so do the others.
    let mut schedule = with_any("ab");
    schedule.add('c', corrupting_on(0xf), None, &NONE).unwrap();
    schedule.add('f', on(1 << 32), None, &half).unwrap();
    let added = schedule.add('d', on(0x1), None, &half);
    assert!(matches!(added, Err(Refusal::Limited(_))));
}

/// A second corrupting event does not join either if the first is from before the limit, such as
/// from before the sibling came online: a counter that an event leaves for a fixed one belongs to
/// the sibling.
#[test]
fn a_second_corrupting_event_does_not_join_more_than_half() {
    let half = Limits::beside_sibling(4);
    let mut schedule = with_any("a");
    schedule.add('x', on(1 << 32), None, &NONE).unwrap();
    let either = on(0x1_0000_000f);
    schedule.add('f', either, None, &NONE).unwrap();
    schedule.add('c', corrupting_on(0xf), None, &NONE).unwrap();
    schedule.remove('x').unwrap();
    let before = state(&schedule);
    let added = schedule.add('d', corrupting_on(0xf), None, &half);
    assert!(matches!(added, Err(Refusal::Limited(_))), "{added:?}");
    assert_eq!(state(&schedule), before);
    // An event that needs no general-purpose counter makes no difference to the sibling.
    schedule.add('x', on(1 << 32), None, &half).unwrap();
    // Nor does an event that takes the counter of another.
    schedule.remove('x').unwrap();
    schedule.add('d', on(0xf), None, &half).unwrap();
    assert_eq!(schedule.taken().gp().weight(), 3);
}

#[test]
fn usage_follows_the_plan() {
    let mut schedule = with_any("a");
    let usage = |used, corrupting| ThreadUsage {
        used: CounterMask::from_bits(used),
        corrupting: CounterMask::from_bits(corrupting),
        ..ThreadUsage::default()
    };
    // 'a' moves from counter 0 to 1, and back again.
    schedule.add('b', corrupting_on(0x1), None, &NONE).unwrap();
    assert_eq!(schedule.usage(), usage(0b11, 0b01));
    schedule.remove('b').unwrap();
    assert_eq!(schedule.usage(), usage(0b10, 0));
    schedule.add('c', corrupting_on(0x2), None, &NONE).unwrap();
    assert_eq!(schedule.usage(), usage(0b11, 0b10));
}

#[test]
fn events_of_an_open_txn_use_nothing() {
    let mut schedule = with_any("a");
    let before = schedule.usage();
    schedule.begin();
    schedule.add('b', corrupting_on(0xf), None, &NONE).unwrap();
    assert_eq!(schedule.usage(), before);
    schedule.commit(&NONE).unwrap();
    assert_ne!(schedule.usage(), before);
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

use ExtraRegister::{
    OffcoreResponse0,
    OffcoreResponse1, //
};

fn register(schedule: &CpuSchedule<char>, event: char) -> Option<ExtraRegister> {
    schedule.get(event).unwrap().planned_register()
}

#[test]
fn two_values_have_registers_and_a_third_has_none() {
    let mut schedule = with_any("a");
    for (event, value) in [('b', 1), ('c', 2), ('d', 1)] {
        let demand = offcore(OffcoreResponse0, value);
        schedule.add(event, demand, None, &NONE).unwrap();
    }
    assert_eq!(register(&schedule, 'a'), None);
    assert_eq!(register(&schedule, 'b'), Some(OffcoreResponse0));
    assert_eq!(register(&schedule, 'c'), Some(OffcoreResponse1));
    assert_eq!(register(&schedule, 'd'), Some(OffcoreResponse0));
    let usage = schedule.usage().registers;
    assert_eq!(usage.get(OffcoreResponse0), Some(1));
    assert_eq!(usage.get(OffcoreResponse1), Some(2));
    assert!(!schedule.needs_counters_only());
    // The sibling need not know about registers that it cannot use.
    let mut alone = schedule;
    alone.own_registers();
    assert!(alone.needs_counters_only() && alone.usage().registers.is_none());
    schedule.remove('a');
    let before = state(&schedule);
    let third = offcore(OffcoreResponse1, 3);
    let refused = schedule.add('e', third, None, &NONE);
    assert_eq!(refused, Err(Refusal::ExtraRegisterTaken));
    assert_eq!(state(&schedule), before);
    // Without the second, there is room.
    schedule.remove('c');
    schedule.add('e', third, None, &NONE).unwrap();
    assert_eq!(register(&schedule, 'e'), Some(OffcoreResponse1));
}

#[test]
fn an_event_that_gets_another_register_is_programmed_anew() {
    let mut schedule = schedule();
    schedule
        .add('a', offcore(OffcoreResponse0, 1), None, &NONE)
        .unwrap();
    schedule.mark_programmed();
    let no_choice = Demand {
        requirement: Some(Requirement {
            value: 2,
            register: OffcoreResponse0,
            alternative: None,
        }),
        ..on(0xf).into()
    };
    schedule.add('b', no_choice, None, &NONE).unwrap();
    assert_eq!(register(&schedule, 'a'), Some(OffcoreResponse1));
    // It stays on its counter.
    assert_eq!(schedule.leaving().collect::<Vec<_>>(), [('a', gp(0))]);
    let arriving: Vec<_> = schedule.arriving().collect();
    assert_eq!(arriving, [('a', gp(0)), ('b', gp(1))]);
    schedule.mark_programmed();
    assert_eq!(schedule.leaving().count() + schedule.arriving().count(), 0);
}

#[test]
fn registers_of_the_sibling_limit_for_the_moment() {
    let mut held = RegisterValues::NONE;
    held.place(OffcoreResponse0, 1).unwrap();
    held.place(OffcoreResponse1, 2).unwrap();
    let limits = Limits {
        registers: held,
        ..NONE
    };
    let mut schedule = schedule();
    let third = offcore(OffcoreResponse0, 3);
    let refused = schedule.add('a', third, None, &limits);
    assert_eq!(refused, Err(Refusal::ExtraRegisterLimited));
    let same = offcore(OffcoreResponse0, 2);
    schedule.add('b', same, None, &limits).unwrap();
    assert_eq!(register(&schedule, 'b'), Some(OffcoreResponse1));
    // The sibling's registers are not in use by this thread.
    assert_eq!(schedule.usage().registers.get(OffcoreResponse0), None);
    // An event that can never fit waits for nothing.
    schedule.begin();
    for (event, value) in [('c', 1), ('d', 4)] {
        let demand = offcore(OffcoreResponse0, value);
        schedule.add(event, demand, None, &limits).unwrap();
    }
    assert_eq!(schedule.commit(&limits), Err(Refusal::ExtraRegisterTaken));
}

#[test]
fn a_trial_leaves_nothing_behind() {
    let mut schedule = with_any("ab");
    let before: Vec<_> = schedule.entries().copied().collect();
    schedule.begin();
    let mut trial = schedule.trial();
    // "a" would have to move for this one.
    trial.push('c', on(0x1), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    trial.push('d', on(0xf), None);
    trial.push('e', on(0x1), None);
    assert!(trial.fits(&NONE).is_err());
    // The first event of the refused group fits alone.
    trial.push('d', on(0xf), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    for event in 'f'..='z' {
        trial.push(event, on(0xf), None);
    }
    assert!(trial.fits(&NONE).is_err());
    trial.push('f', on(1 << 32), None);
    assert_eq!(trial.fits(&NONE), Ok(()));
    drop(trial);
    assert!(schedule.in_txn());
    assert!(schedule.entries().copied().eq(before));
    schedule.add('c', on(0xf), None, &NONE).unwrap();
    schedule.cancel();
    assert_eq!(events(&schedule), "ab");
}

fn with_branches(select: u32) -> Demand {
    Demand {
        lbr_select: Some(select),
        ..on(0xf).into()
    }
}

#[test]
fn events_with_the_same_branch_filter_are_on_the_cpu_together() {
    let mut schedule = schedule();
    assert_eq!(schedule.lbr_select(), None);
    schedule.add('a', with_branches(1), None, &NONE).unwrap();
    schedule.add('b', with_branches(1), None, &NONE).unwrap();
    let other = schedule.add('c', with_branches(2), None, &NONE);
    assert_eq!(other, Err(Refusal::ExtraRegisterTaken));
    assert_eq!(schedule.lbr_select(), Some(1));
    assert_eq!(
        schedule.usage().registers.get(ExtraRegister::LbrSelect),
        Some(1)
    );
    // Without these events, another filter can be used.
    schedule.remove('a');
    schedule.remove('b');
    schedule.add('c', with_branches(2), None, &NONE).unwrap();
    assert_eq!(schedule.lbr_select(), Some(2));
}

#[test]
fn an_event_can_need_two_registers() {
    let mut schedule = schedule();
    let both = Demand {
        lbr_select: Some(1),
        ..offcore(OffcoreResponse0, 1)
    };
    schedule.add('a', both, None, &NONE).unwrap();
    assert_eq!(register(&schedule, 'a'), Some(OffcoreResponse0));
    assert_eq!(schedule.lbr_select(), Some(1));
    let mut theirs = Limits::NONE;
    theirs.registers.place(ExtraRegister::LbrSelect, 2).unwrap();
    let refused = schedule.add('b', with_branches(1), None, &theirs);
    assert_eq!(refused, Err(Refusal::ExtraRegisterLimited));
}
