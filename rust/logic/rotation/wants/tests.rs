// SPDX-License-Identifier: GPL-2.0

use super::*;

fn on(bits: u64) -> Constraint {
    Constraint::any_of(CounterMask::from_bits(bits))
}

fn wants(groups: &[&[Constraint]]) -> Wants {
    let mut wants = Wants::NOTHING;
    for group in groups {
        let mut is = GroupWants::default();
        group.iter().for_each(|it| is.add(*it));
        wants.add(&is, false);
    }
    wants
}

#[test]
fn groups_that_could_use_the_remaining_counters() {
    let (any, fixed, both) = (on(0xf), on(0x1_0000_0000), on(0x1_0000_000f));
    let (gp, all) = (
        CounterMask::from_bits(0x8),
        CounterMask::from_bits(0x1_0000_0008),
    );
    let pairs = wants(&[&[any, any], &[any, any, fixed]]);
    let could_use = |wants: &Wants, reach, room| wants.could_use(&Wants::NOTHING, reach, room);
    assert!(!could_use(&pairs, gp, 1) && could_use(&pairs, gp, 2));
    // A fixed counter is of no use to a group that needs another counter as well.
    assert!(!could_use(&pairs, all.fixed(), 0));
    assert!(could_use(&wants(&[&[any, any], &[fixed]]), all.fixed(), 0));
    assert!(could_use(&wants(&[&[both]]), all.fixed(), 0));
    assert!(!could_use(&Wants::NOTHING, CounterMask::ALL, 8));
    // A group that is on the CPU does not wait.
    let mixed = wants(&[&[any], &[any, any], &[any, any]]);
    assert!(could_use(&mixed, gp, 1) && !mixed.could_use(&wants(&[&[any]]), gp, 1));
    assert!(mixed.could_use(&wants(&[&[any], &[any, any]]), gp, 2));
}

#[test]
fn a_counter_that_one_group_wants_is_not_contended_for() {
    let (any, fixed) = (on(0xf), on(0x1_0000_0000));
    let wants = wants(&[&[any], &[any], &[fixed]]);
    assert!(wants.contend_for(CounterMask::from_bits(0x2)));
    assert!(!wants.contend_for(fixed.counters));
    let mut alone = wants;
    alone.add(&GroupWants::default(), true);
    assert!(alone.contend_for(fixed.counters));
}

#[test]
fn groups_that_need_no_general_purpose_counter() {
    let (any, fixed, both) = (on(0xf), on(0x3_0000_0000), on(0x1_0000_000f));
    let guest = Constraint::any_of(CounterId::GUEST_BRANCHES.mask());
    for (events, taken, needs_none) in [
        (vec![guest], 0xf, true),
        (vec![guest], guest.counters.bits(), false),
        (vec![guest, fixed], 0, true),
        (vec![guest, any], 0, false),
        (vec![both], 0, true),
        (vec![both], 0xf, true),
        (vec![both], 0x1_0000_0000, false),
        (vec![both, both], 0, false),
        (vec![both, fixed], 0, true),
        (vec![both, fixed], 0x2_0000_0000, false),
        (vec![both, any], 0, false),
        (vec![any], 0, false),
    ] {
        let mut group = GroupWants::default();
        events.iter().for_each(|it| group.add(*it));
        let it = group.needs_no_gp(CounterMask::from_bits(taken));
        assert_eq!(it, needs_none, "{events:?} {taken:#x}");
    }
}

#[test]
fn corrupting_events_wait_for_one_another() {
    let corrupting = Constraint {
        corrupting: true,
        ..on(0xf)
    };
    let (any, limits) = (on(0xf), Limits::beside_sibling(4));
    let wants = wants(&[&[corrupting], &[corrupting], &[any], &[any], &[any], &[any]]);
    let beside = |corrupting, others| Beside { corrupting, others };
    for (is_corrupting, beside, waits) in [
        (true, beside(0, 0), false),
        (true, beside(0, 1), true),
        (true, beside(1, 0), false),
        (false, beside(0, 1), false),
        (false, beside(1, 0), true),
        (false, beside(2, 0), false),
    ] {
        let it = wants.waits_for_its_kind(is_corrupting, beside, 4, &limits);
        assert_eq!(it, waits, "{is_corrupting} {beside:?}");
        // Alone in a core, they leave no counter unused.
        assert!(!wants.waits_for_its_kind(is_corrupting, beside, 4, &Limits::NONE));
    }
    assert_eq!(wants.charge(false, 4, &limits), TURN);
    for (others, charge) in [(4, TURN), (5, TURN + TURN / 6), (7, TURN + TURN / 3)] {
        let wants = Wants { others, ..wants };
        assert_eq!(wants.charge(true, 4, &limits), charge);
        assert_eq!(wants.charge(true, 4, &Limits::NONE), TURN);
    }
}
