// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    model::constraint::Constraint,
    regs::extra_register::ExtraRegister, //
};

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
        let mut usage = ThreadUsage::default();
        usage.registers.place(register, 1).unwrap();
        core.set_usage(Thread::First, usage);
        let held = core.limits(Thread::Second).registers.get(register);
        assert_eq!(held.is_some(), shared);
        core.wait(Thread::Second);
        core.set_usage(Thread::First, ThreadUsage::default());
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
fn usage_ends_with_the_thread() {
    let mut core = full_core();
    let usage = ThreadUsage {
        used: mask(0b11),
        corrupting: mask(0b10),
        ..ThreadUsage::default()
    };
    core.set_usage(Thread::Second, usage);
    core.wait(Thread::First);
    assert_eq!(core.limits(Thread::First).closed, mask(0b10));
    assert_eq!(core.limits(Thread::First).closed_to_sharing, mask(0b11));
    core.leave(Thread::Second);
    assert_eq!(core.limits(Thread::First), Limits::NONE);
    assert_eq!(core.wakes_sibling(Thread::Second), Some(0));
    // Its successor starts without a state.
    assert_eq!(core.join(4), Some(Thread::Second));
    assert_eq!(core.limits(Thread::First), Limits::beside_sibling(4));
}

#[test]
fn usage_of_counters_only_is_released_at_once() {
    let used = |bits| ThreadUsage {
        used: mask(bits),
        ..ThreadUsage::default()
    };
    let corrupting = ThreadUsage {
        corrupting: mask(0b10),
        ..used(0b10)
    };
    let mut needs = Needs::default();
    assert!(needs.is_empty());
    needs.refuse(1, Some(corrupting));
    assert!(!needs.is_empty());

    // The other thread's usage changes nothing, as long as it lacks nothing.
    for other in [ThreadUsage::default(), used(0b1), corrupting] {
        let mut core = full_core();
        core.set_usage(Thread::First, used(0b111));
        core.set_usage(Thread::Second, other);
        let mut long = core;
        for bits in [0b11, 0, 0b1000] {
            let woken = long.release(Thread::First, used(bits), &Needs::default(), true, || {
                panic!("no time is needed")
            });
            assert_eq!(woken, None);
            assert!(core.release_counters_only(Thread::First, mask(bits)));
            assert_eq!(format!("{core:?}"), format!("{long:?}"));
        }
    }

    let mut waits = full_core();
    waits.wait(Thread::Second);
    let mut has_wish = full_core();
    has_wish.set_usage(Thread::First, used(0b111));
    has_wish.release(Thread::Second, ThreadUsage::default(), &needs, false, || 1);
    let mut has_way = has_wish;
    has_way.release(Thread::Second, ThreadUsage::default(), &needs, true, || 2);
    for mut core in [waits, has_wish, has_way] {
        let before = format!("{core:?}");
        assert!(!core.release_counters_only(Thread::First, mask(0)));
        assert_eq!(format!("{core:?}"), before);
    }
}

#[test]
fn counters_in_use_do_not_limit_the_sibling_in_number() {
    let mut core = full_core();
    let usage = ThreadUsage {
        used: mask(0b1111),
        ..ThreadUsage::default()
    };
    core.set_usage(Thread::First, usage);
    let limits = core.limits(Thread::Second);
    assert_eq!(limits.gp, u32::MAX);
    assert_eq!(limits.closed, mask(0));
    assert_eq!(limits.closed_to_sharing, mask(0b1111));
}

#[test]
fn other_events_are_limited_by_corrupting_ones_alone() {
    let any = Constraint::any_of(mask(0b1111));
    for corrupting in [0, 0b1] {
        let mut core = full_core();
        let usage = ThreadUsage {
            used: mask(0b1),
            corrupting: mask(corrupting),
            ..ThreadUsage::default()
        };
        core.set_usage(Thread::First, usage);
        let limits = core.limits(Thread::Second);
        let cut = limits.counters(any) != any.counters || limits.gp(false) != u32::MAX;
        assert_eq!(core.leaves_all_to(Thread::Second), !cut);
        assert_eq!(cut, corrupting != 0);
        assert!(core.leaves_all_to(Thread::First));

        core.use_counters(Thread::First, mask(0b101));
        let limits = core.limits(Thread::Second);
        assert_eq!(limits.closed_to_sharing, mask(0b101));
        assert_eq!(limits.closed, mask(corrupting));
    }
}

fn using(bits: u64) -> ThreadUsage {
    ThreadUsage {
        used: mask(bits),
        ..ThreadUsage::default()
    }
}

fn corrupting(bits: u64) -> ThreadUsage {
    ThreadUsage {
        corrupting: mask(bits),
        ..using(bits)
    }
}

/// Returns the needs after a group with this `share` and this `wish` was refused.
fn wishing(wish: ThreadUsage, share: u64) -> Needs {
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
    let needs = wishing(corrupting(0b1), 0);
    core.set_usage(SECOND, using(0b1111));
    // Not within an interval.
    assert_eq!(core.release(FIRST, using(0), &needs, false, || 1), None);
    assert!(!core.yields(SECOND));
    assert_eq!(core.release(FIRST, using(0), &needs, true, || 1), Some(4));
    assert!(core.yields(SECOND));
    assert!(!core.leaves_all_to(SECOND) && core.has_way(FIRST));
    // The wish limits the sibling before it is met, except for pinned groups.
    let limits = core.limits(SECOND);
    assert_eq!((limits.closed, limits.gp), (mask(0b1), 2));
    let limits = core.limits_of_pinned(SECOND);
    assert_eq!((limits.closed, limits.gp), (mask(0), u32::MAX));
    // The counters are in use as long as the hardware counts on them.
    assert_eq!(core.limits(FIRST).closed_to_sharing, mask(0b1111));

    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    assert_eq!(
        core.release(SECOND, using(0b110), &yields, false, || 1),
        Some(0)
    );
    assert_eq!(core.limits(FIRST).closed_to_sharing, mask(0b110));
    // The wish is met, and the right of way is over.
    let needs = Needs::default();
    assert_eq!(
        core.release(FIRST, corrupting(0b1), &needs, false, || 1),
        None
    );
    assert!(!core.yields(SECOND) && !core.has_way(FIRST));
    assert_eq!(core.limits(SECOND).closed, mask(0b1));
}

/// The sibling's wish delays the wake of a pinned group, until the right of way is over.
#[test]
fn a_pinned_group_is_woken_after_the_right_of_way() {
    let mut core = full_core();
    let needs = wishing(corrupting(0b11), 0);
    core.set_usage(SECOND, using(0b101));
    let woken = core.release(FIRST, corrupting(0b10), &needs, true, || 1);
    assert_eq!(woken, Some(4));
    // For a pinned group that needs counter 1.
    core.wait(SECOND);
    assert_eq!(core.limits_of_pinned(SECOND).closed, mask(0b10));
    assert_eq!(core.release(FIRST, using(0), &needs, false, || 1), None);
    assert_eq!(core.limits_of_pinned(SECOND).closed, mask(0));
    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    core.wait(SECOND);
    let woken = core.release(SECOND, using(0b100), &yields, false, || 1);
    assert_eq!(woken, Some(0));
    let needs = Needs::default();
    let woken = core.release(FIRST, using(0), &needs, false, || 1);
    assert_eq!(woken, Some(4));
}

#[test]
fn the_smaller_share_goes_first_but_not_for_ever() {
    let mut core = full_core();
    // A group of the sibling waits.
    let mut needs = wishing(using(0b1111), 30);
    core.release(SECOND, using(0b1111), &needs, false, || 1);
    needs = wishing(corrupting(0b1), 40);
    for denials in 0.. {
        if core.release(FIRST, using(0), &needs, true, || 1).is_some() {
            assert_eq!(denials, MOST_DENIALS);
            break;
        }
    }
    let mut core = full_core();
    core.release(
        SECOND,
        using(0b1111),
        &wishing(using(0b1111), 30),
        false,
        || 1,
    );
    needs = wishing(corrupting(0b1), 20);
    assert_eq!(core.release(FIRST, using(0), &needs, true, || 1), Some(4));
}

#[test]
fn threads_that_want_nothing_more_do_not_contend_for_long() {
    let mut core = full_core();
    core.set_usage(SECOND, using(0b1111));
    let needs = wishing(corrupting(0b1), 0);
    core.release(FIRST, using(0), &needs, true, || 1);
    core.release(
        SECOND,
        using(0b1111),
        &wishing(using(0b1111), 0),
        false,
        || 1,
    );
    let mut times = 0;
    while core.is_contended() {
        let needs = Needs {
            contends: true,
            ..Needs::default()
        };
        for (thread, usage) in [(FIRST, using(0b1)), (SECOND, using(0b10))] {
            core.release(thread, usage, &needs, false, || 1);
        }
        times += 1;
    }
    assert_eq!(times, u32::from(LONG_CALM) / 2 + 1);
}

#[test]
fn more_than_half_leaves_no_corrupting_event() {
    let mut core = full_core();
    core.set_usage(SECOND, corrupting(0b1));
    let needs = wishing(using(0b1110), 0);
    assert_eq!(
        core.release(FIRST, using(0b110), &needs, true, || 1),
        Some(4)
    );
    assert_eq!(core.limits(SECOND).closed_to_sharing, CounterMask::ALL);
    // Two are half.
    let mut core = full_core();
    core.set_usage(SECOND, corrupting(0b1));
    let needs = wishing(using(0b11), 0);
    assert_eq!(
        core.release(FIRST, using(0b10), &needs, true, || 1),
        Some(4)
    );
    assert_eq!(core.limits(SECOND).closed_to_sharing, mask(0b11));
}

#[test]
fn a_pinned_group_does_not_wait_for_the_end_of_an_interval() {
    let mut core = full_core();
    core.set_usage(SECOND, corrupting(0b100));
    let mut needs = Needs {
        contends: true,
        ..Needs::default()
    };
    needs.refuse_pinned(Some(using(0b100)));
    assert_eq!(core.release(FIRST, using(0), &needs, false, || 1), Some(4));
    // It is not tried again before the sibling has made way, whatever else happens on this thread.
    core.release(FIRST, using(0b1), &Needs::default(), false, || 1);
    assert!(core.yields(SECOND));
    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    let woken = core.release(SECOND, corrupting(0b10), &yields, false, || 1);
    assert_eq!(woken, Some(0));
    core.release(FIRST, using(0b101), &Needs::default(), false, || 1);
    assert!(!core.yields(SECOND));
}

#[test]
fn the_right_of_way_ends_with_the_thread() {
    for leaves in [FIRST, SECOND] {
        let mut core = full_core();
        core.set_usage(SECOND, using(0b1111));
        let needs = wishing(corrupting(0b1), 0);
        core.release(FIRST, using(0), &needs, true, || 1);
        assert!(core.yields(SECOND));
        core.leave(leaves);
        assert!(!core.yields(SECOND) && core.leaves_all_to(SECOND));
    }
}

/// Returns the number of releases of the first thread, which lacks nothing, until it wakes the
/// second one.
fn releases_until_the_sibling_is_woken(core: &mut Core) -> u32 {
    let usages = [using(0b1), using(0b11)].into_iter().cycle();
    let mut wakes = |usage| core.release(FIRST, usage, &Needs::default(), false, || 1) == Some(4);
    u32::try_from(usages.take(100_000).take_while(|it| !wakes(*it)).count()).unwrap() + 1
}

#[test]
fn the_state_of_a_silent_thread_is_dropped() {
    let refused = wishing(using(0b1110), 0);
    let mut waits = full_core();
    waits.set_usage(FIRST, corrupting(0b1));
    waits.wait(SECOND);
    let mut has_wish = full_core();
    has_wish.set_usage(FIRST, corrupting(0b1));
    has_wish.release(SECOND, using(0), &refused, false, || 1);
    // The thread's events disappear after the sibling has made way, before the thread schedules
    // again.
    let mut has_way = has_wish;
    has_way.release(SECOND, using(0), &refused, true, || 1);
    let yields = Needs {
        yields: true,
        ..Needs::default()
    };
    has_way.release(FIRST, corrupting(0b1), &yields, false, || 1);
    assert!(has_way.yields(FIRST));

    for mut core in [waits, has_wish, has_way] {
        // Keep looser limits from waking it.
        core.entry_mut(SECOND).waiting = Some(Limits::NONE);
        let releases = releases_until_the_sibling_is_woken(&mut core);
        assert_eq!(releases, u32::from(LONG_SILENCE));
        assert!(!core.yields(FIRST) && !core.is_contended());
        assert!(core.release_counters_only(FIRST, mask(0b1)));
    }
}

#[test]
fn a_thread_ends_its_own_waiting_but_not_that_of_pinned_groups() {
    for has_pinned in [false, true] {
        let mut core = full_core();
        core.set_usage(SECOND, corrupting(0b1));
        core.wait(FIRST);
        let needs = Needs {
            has_pinned,
            ..Needs::default()
        };
        for i in 0..LONG_SILENCE {
            assert!(!core.release_counters_only(FIRST, mask(0b10)), "{i}");
            core.release(FIRST, using(0b10), &needs, false, || 1);
        }
        assert_eq!(core.release_counters_only(FIRST, mask(0b10)), !has_pinned);
    }
}

#[test]
fn a_thread_that_waits_for_long_is_woken_ever_more_rarely() {
    let mut core = full_core();
    for doubts in (0..=MOST_DOUBTS).chain([MOST_DOUBTS]) {
        core.wait(SECOND);
        core.entry_mut(SECOND).waiting = Some(Limits::NONE);
        let releases = releases_until_the_sibling_is_woken(&mut core);
        assert_eq!(releases, u32::from(LONG_SILENCE) << doubts);
    }
    // A thread that waits anew each time is not woken.
    core.wait(SECOND);
    for _ in 0..100_000 {
        core.entry_mut(SECOND).waiting = Some(Limits::NONE);
        assert_eq!(
            core.release(FIRST, using(0b1), &Needs::default(), false, || 1),
            None
        );
        core.wait(SECOND);
    }
}

#[test]
fn usage_that_grows_or_stays_wakes_no_thread() {
    let mut core = full_core();
    let usage = |bits| ThreadUsage {
        used: mask(bits),
        corrupting: mask(bits),
        ..ThreadUsage::default()
    };
    core.set_usage(Thread::First, usage(0b01));
    core.wait(Thread::Second);
    for (bits, wakes) in [(0b01, false), (0b11, false), (0b10, true), (0, false)] {
        core.set_usage(Thread::First, usage(bits));
        let woken = core.wakes_sibling(Thread::First);
        assert_eq!(woken, wakes.then_some(4), "{bits:#b}");
    }
}
