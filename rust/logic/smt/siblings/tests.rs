// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::sched::{constraint::Constraint, extra_register::ExtraRegister};

fn mask(bits: u64) -> CounterMask {
    CounterMask::from_bits(bits)
}

fn full_core() -> Core {
    let mut core = Core::new(4);
    assert_eq!(core.join(0), Some(Thread::First));
    assert_eq!(core.join(4), Some(Thread::Second));
    core
}

#[test]
fn a_core_has_two_threads() {
    let mut core = full_core();
    assert_eq!(core.join(8), None);
    core.leave(Thread::First);
    assert_eq!(core.join(0), Some(Thread::First));
}

#[test]
fn registers_are_shared_where_the_core_has_them() {
    for (mut core, register, shared) in [
        (full_core(), ExtraRegister::OffcoreResponse0, false),
        (
            full_core().sharing_registers(),
            ExtraRegister::OffcoreResponse0,
            true,
        ),
        (
            full_core().sharing_registers(),
            ExtraRegister::LoadLatency,
            false,
        ),
    ] {
        let mut claim = Claim::default();
        claim.registers.place(register, 1).unwrap();
        core.claim(Thread::First, claim);
        let held = core.limits(Thread::Second).registers.get(register);
        assert_eq!(held.is_some(), shared);
        core.wait(Thread::Second);
        core.claim(Thread::First, Claim::default());
        assert_eq!(core.wakes_sibling(Thread::First), shared.then_some(4));
    }
}

#[test]
fn a_thread_alone_has_no_limits() {
    let mut core = full_core();
    assert_eq!(core.limits(Thread::First), Limits::beside_sibling(4));
    core.leave(Thread::Second);
    assert_eq!(core.limits(Thread::First), Limits::NONE);
}

#[test]
fn the_claim_goes_with_the_thread() {
    let mut core = full_core();
    let claim = Claim {
        used: mask(0b11),
        exclusive: mask(0b10),
        ..Claim::default()
    };
    core.claim(Thread::Second, claim);
    core.wait(Thread::First);
    assert_eq!(core.limits(Thread::First).closed, mask(0b10));
    assert_eq!(core.limits(Thread::First).closed_to_exclusive, mask(0b11));
    core.leave(Thread::Second);
    assert_eq!(core.limits(Thread::First), Limits::NONE);
    assert_eq!(core.wakes_sibling(Thread::Second), Some(0));
    // Who comes in its place starts anew.
    assert_eq!(core.join(4), Some(Thread::Second));
    assert_eq!(core.limits(Thread::First), Limits::beside_sibling(4));
}

#[test]
fn what_is_plain_is_settled_at_once() {
    let used = |bits| Claim {
        used: mask(bits),
        ..Claim::default()
    };
    let exclusive = Claim {
        exclusive: mask(0b10),
        ..used(0b10)
    };
    let mut needs = Needs::default();
    assert!(needs.is_empty());
    needs.refuse(1, Some(exclusive));
    assert!(!needs.is_empty());

    // What the other thread has changes nothing, as long as it lacks nothing.
    for other in [Claim::default(), used(0b1), exclusive] {
        let mut core = full_core();
        core.claim(Thread::First, used(0b111));
        core.claim(Thread::Second, other);
        let mut long = core.clone();
        for bits in [0b11, 0, 0b1000] {
            let woken = long.settle(Thread::First, used(bits), &Needs::default(), true, || {
                panic!("no time is needed")
            });
            assert_eq!(woken, None);
            assert!(core.settle_plain(Thread::First, mask(bits)));
            assert_eq!(format!("{core:?}"), format!("{long:?}"));
        }
    }

    let mut waits = full_core();
    waits.wait(Thread::Second);
    let mut wants = full_core();
    wants.claim(Thread::First, used(0b111));
    wants.settle(Thread::Second, Claim::default(), &needs, false, || 1);
    let mut has_way = wants.clone();
    has_way.settle(Thread::Second, Claim::default(), &needs, true, || 2);
    for mut core in [waits, wants, has_way] {
        let before = format!("{core:?}");
        assert!(!core.settle_plain(Thread::First, mask(0)));
        assert_eq!(format!("{core:?}"), before);
    }
}

#[test]
fn counters_in_use_do_not_limit_the_sibling_in_number() {
    let mut core = full_core();
    let claim = Claim {
        used: mask(0b1111),
        ..Claim::default()
    };
    core.claim(Thread::First, claim);
    let limits = core.limits(Thread::Second);
    assert_eq!(limits.gp, u32::MAX);
    assert_eq!(limits.closed, mask(0));
    assert_eq!(limits.closed_to_exclusive, mask(0b1111));
}

#[test]
fn who_is_not_exclusive_is_limited_by_those_who_are_alone() {
    let plain = Constraint::any_of(mask(0b1111));
    for exclusive in [0, 0b1] {
        let mut core = full_core();
        let claim = Claim {
            used: mask(0b1),
            exclusive: mask(exclusive),
            ..Claim::default()
        };
        core.claim(Thread::First, claim);
        let limits = core.limits(Thread::Second);
        let cut = limits.counters(plain) != plain.counters || limits.gp(false) != u32::MAX;
        assert_eq!(core.leaves_all_to(Thread::Second), !cut);
        assert_eq!(cut, exclusive != 0);
        assert!(core.leaves_all_to(Thread::First));

        core.use_counters(Thread::First, mask(0b101));
        let limits = core.limits(Thread::Second);
        assert_eq!(limits.closed_to_exclusive, mask(0b101));
        assert_eq!(limits.closed, mask(exclusive));
    }
}

fn using(bits: u64) -> Claim {
    Claim {
        used: mask(bits),
        ..Claim::default()
    }
}

fn exclusive(bits: u64) -> Claim {
    Claim {
        exclusive: mask(bits),
        ..using(bits)
    }
}

/// A group with that `share` was refused, and the thread would use `wish`.
fn wanting(wish: Claim, share: u64) -> Needs {
    let mut needs = Needs {
        contends: true,
        ..Needs::default()
    };
    needs.refuse(share, Some(wish));
    needs
}

const FIRST: Thread = Thread::First;
const SECOND: Thread = Thread::Second;

#[test]
fn the_sibling_makes_way_at_the_end_of_an_interval() {
    let mut core = full_core();
    let needs = wanting(exclusive(0b1), 0);
    core.claim(SECOND, using(0b1111));
    // Not in between.
    assert_eq!(core.settle(FIRST, using(0), &needs, false, || 1), None);
    assert!(!core.yields(SECOND));
    assert_eq!(core.settle(FIRST, using(0), &needs, true, || 1), Some(4));
    assert!(core.yields(SECOND));
    assert!(!core.leaves_all_to(SECOND) && core.has_way(FIRST));
    // What is wanted limits it, though it is not taken yet; but no pinned groups.
    let limits = core.limits(SECOND);
    assert_eq!((limits.closed, limits.gp), (mask(0b1), 2));
    let limits = core.limits_of_pinned(SECOND);
    assert_eq!((limits.closed, limits.gp), (mask(0), u32::MAX));
    // As long as the hardware counts there, the counters are claimed.
    assert_eq!(core.limits(FIRST).closed_to_exclusive, mask(0b1111));

    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    assert_eq!(
        core.settle(SECOND, using(0b110), &yields, false, || 1),
        Some(0)
    );
    assert_eq!(core.limits(FIRST).closed_to_exclusive, mask(0b110));
    // It has what it wants, and the right of way is over.
    let needs = Needs::default();
    assert_eq!(
        core.settle(FIRST, exclusive(0b1), &needs, false, || 1),
        None
    );
    assert!(!core.yields(SECOND) && !core.has_way(FIRST));
    assert_eq!(core.limits(SECOND).closed, mask(0b1));
}

#[test]
fn who_has_had_less_goes_first_but_not_for_ever() {
    let mut core = full_core();
    // Two of the other's events wait.
    let mut needs = wanting(using(0b1111), 30);
    core.settle(SECOND, using(0b1111), &needs, false, || 1);
    needs = wanting(exclusive(0b1), 40);
    for denials in 0.. {
        if core.settle(FIRST, using(0), &needs, true, || 1).is_some() {
            assert_eq!(denials, MOST_DENIALS);
            break;
        }
    }
    let mut core = full_core();
    core.settle(
        SECOND,
        using(0b1111),
        &wanting(using(0b1111), 30),
        false,
        || 1,
    );
    needs = wanting(exclusive(0b1), 20);
    assert_eq!(core.settle(FIRST, using(0), &needs, true, || 1), Some(4));
}

#[test]
fn threads_that_want_nothing_more_do_not_contend_for_long() {
    let mut core = full_core();
    core.claim(SECOND, using(0b1111));
    let needs = wanting(exclusive(0b1), 0);
    core.settle(FIRST, using(0), &needs, true, || 1);
    core.settle(
        SECOND,
        using(0b1111),
        &wanting(using(0b1111), 0),
        false,
        || 1,
    );
    let mut times = 0;
    while core.is_contended() {
        let needs = Needs {
            contends: true,
            ..Needs::default()
        };
        for (thread, claim) in [(FIRST, using(0b1)), (SECOND, using(0b10))] {
            core.settle(thread, claim, &needs, false, || 1);
        }
        times += 1;
    }
    assert_eq!(times, u32::from(LONG_CALM) / 2 + 1);
}

#[test]
fn more_than_half_leaves_no_exclusive_event() {
    let mut core = full_core();
    core.claim(SECOND, exclusive(0b1));
    let needs = wanting(using(0b1110), 0);
    assert_eq!(
        core.settle(FIRST, using(0b110), &needs, true, || 1),
        Some(4)
    );
    assert_eq!(core.limits(SECOND).closed_to_exclusive, CounterMask::ALL);
    // Two are half.
    let mut core = full_core();
    core.claim(SECOND, exclusive(0b1));
    let needs = wanting(using(0b11), 0);
    assert_eq!(core.settle(FIRST, using(0b10), &needs, true, || 1), Some(4));
    assert_eq!(core.limits(SECOND).closed_to_exclusive, mask(0b11));
}

#[test]
fn a_pinned_group_waits_for_no_interval() {
    let mut core = full_core();
    core.claim(SECOND, exclusive(0b100));
    let mut needs = Needs {
        contends: true,
        ..Needs::default()
    };
    needs.refuse_pinned(Some(using(0b100)));
    assert_eq!(core.settle(FIRST, using(0), &needs, false, || 1), Some(4));
    // It is not tried again before there is place, whatever else happens here.
    core.settle(FIRST, using(0b1), &Needs::default(), false, || 1);
    assert!(core.yields(SECOND));
    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    let woken = core.settle(SECOND, exclusive(0b10), &yields, false, || 1);
    assert_eq!(woken, Some(0));
    core.settle(FIRST, using(0b101), &Needs::default(), false, || 1);
    assert!(!core.yields(SECOND));
}

#[test]
fn the_right_of_way_ends_with_the_thread() {
    for leaves in [FIRST, SECOND] {
        let mut core = full_core();
        core.claim(SECOND, using(0b1111));
        let needs = wanting(exclusive(0b1), 0);
        core.settle(FIRST, using(0), &needs, true, || 1);
        assert!(core.yields(SECOND));
        core.leave(leaves);
        assert!(!core.yields(SECOND) && core.leaves_all_to(SECOND));
    }
}

#[test]
fn nobody_is_woken_by_a_claim_that_grows_or_stays() {
    let mut core = full_core();
    let claim = |bits| Claim {
        used: mask(bits),
        exclusive: mask(bits),
        ..Claim::default()
    };
    core.claim(Thread::First, claim(0b01));
    core.wait(Thread::Second);
    for (bits, wakes) in [(0b01, false), (0b11, false), (0b10, true), (0, false)] {
        core.claim(Thread::First, claim(bits));
        let woken = core.wakes_sibling(Thread::First);
        assert_eq!(woken, wakes.then_some(4), "{bits:#b}");
    }
}
