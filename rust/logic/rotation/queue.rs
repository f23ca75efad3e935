// SPDX-License-Identifier: GPL-2.0

//! The order of the groups by runtime, and their charges.

use super::{
    OnCounter,
    Wants,
    TURN, //
};
use crate::logic::{
    regs::counter::CounterMask,
    sched::limits::Limits, //
};

/// The largest distance from the last place of the order that a group keeps when it is charged. A
/// larger distance is cut to this one; otherwise the group would stay first until it has counted
/// for all of that distance.
const MEMORY: u64 = 8 * TURN;

/// Returns whether a group lags far behind, by its distance by runtime from the last place of the
/// order. Such a group does not wait for others of its kind. Where all groups contend for the same
/// counters and count for whole intervals, the distance is at most a turn and a charge. When a
/// group pays for several intervals at once ([`turns`]), the others lag far behind for some
/// intervals.
pub const fn lags_far_behind(lag: u64) -> bool {
    lag >= 3 * TURN
}

/// Returns a group's new place in the order after an interval on the counters. `charge` is the
/// charge for the interval, `runtime` the group's old place, and `latest` the last place of the
/// order.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::{requeue, TURN};
///
/// // New groups have places in the order in which they were added. The first goes behind all
/// // others.
/// assert!(requeue(1, 8, TURN) > 8);
/// ```
pub const fn requeue(runtime: u64, latest: u64, charge: u64) -> u64 {
    let floor = latest.saturating_sub(MEMORY);
    let runtime = if runtime > floor { runtime } else { floor };
    runtime.saturating_add(charge)
}

/// The most turns that a group is charged for at a time. Groups are not charged while no others
/// contend, and the bound keeps that time from counting against them afterwards.
const MOST_TURNS: u64 = 4;

/// The interval divided by this is the tolerance: a time that differs from the interval by no more
/// is charged as one turn. The timer is not exact, and groups that have counted equally often must
/// keep their order.
const TOLERANCE: u64 = 16;

/// Returns the charge for a group that has counted for `ran` nanoseconds since the last charge: a
/// [`TURN`] for each `interval`, also in nanoseconds; at least 1, and at most four turns.
///
/// A group has counted for less than an interval if its task or control group was switched in
/// within the interval, or if the threads of a core made each other schedule again. It has counted
/// for more if it was switched out before the end of earlier intervals.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::{turns, TURN};
///
/// assert_eq!(turns(1_000_000, 4_000_000), TURN / 4);
/// assert_eq!(turns(3_999_000, 4_000_000), TURN);
/// assert_eq!(turns(6_000_000, 4_000_000), TURN * 3 / 2);
/// ```
pub const fn turns(ran: u64, interval: u64) -> u64 {
    const MOST: u64 = TURN * MOST_TURNS;
    if ran.abs_diff(interval) <= interval / TOLERANCE {
        return TURN;
    }
    if ran / MOST_TURNS >= interval {
        return MOST;
    }
    match ran.checked_mul(TURN) {
        // No more than `MOST`, as the interval exceeds a fourth of `ran`.
        Some(turns) => match turns.checked_div(interval) {
            Some(0) | None => 1,
            Some(turns) => turns,
        },
        None => MOST,
    }
}

/// The most groups that are charged at the end of an interval although they wait ([`owes_turns`]).
pub const MOST_DISPLACED: usize = 4;

/// The most groups at the front of the order that are checked for such a charge; bounds the time.
pub const MOST_LOOKED_AT: usize = 64;

/// Returns whether a group that waits at the end of an interval is to be charged. `ran` is the time
/// for which it has counted since the last charge, `interval` the length of an interval; both are
/// in nanoseconds.
///
/// Where the threads of a core contend, one thread can make the other schedule again within each of
/// the other's intervals. Groups that count only before that moment would never be charged, and so
/// be first for ever.
pub const fn owes_turns(ran: u64, interval: u64) -> bool {
    ran > interval / TOLERANCE
}

/// A group that has counted in the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place by runtime.
    pub runtime: u64,
    /// Its counters; all counters of the thread for a group that [waits](owes_turns), since others
    /// have taken its own.
    pub counters: CounterMask,
    /// Set if one of its events corrupts the sibling thread's counts.
    pub corrupting: bool,
    /// Its time on counters since the last charge ([`turns`]); a [`TURN`] for a group whose turns
    /// end by overflow.
    pub turns: u64,
}

/// Returns the new place in the order of a group that has counted in the last interval; [`None`] if
/// no other group contends for its counters, so that it keeps its place. `latest` is the last place
/// of the order, `wants` the demand of all groups of the context, `counters` are the thread's
/// counters, and `limits` returns the present limits.
///
/// Some of the `events` on the CPU do not rotate. A group that needs the counter of such an event
/// makes the event move to another counter, and so contends for both counters.
#[inline]
pub fn place_after_interval(
    group: &Counted,
    latest: u64,
    wants: &Wants,
    counters: CounterMask,
    events: impl Iterator<Item = OnCounter> + Clone,
    limits: impl FnOnce() -> Limits,
) -> Option<u64> {
    if !wants.contend_for(group.counters) && !wants.contend_by_way_of(events, group.counters) {
        return None;
    }
    let charge = match group.corrupting {
        false => wants.charge(false, 0, &Limits::NONE),
        true => wants.charge(true, counters.gp().weight(), &limits()),
    };
    let charge = match group.turns {
        TURN => charge,
        // Does not overflow: a charge is less than two turns, and the number of turns is small.
        turns => charge.wrapping_mul(turns).max(TURN) / TURN,
    };
    Some(requeue(group.runtime, latest, charge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        model::constraint::Constraint,
        regs::counter::CounterId,
        rotation::GroupWants, //
    };

    #[test]
    fn old_runtime_is_forgotten() {
        assert_eq!(requeue(100 * TURN, 100 * TURN, TURN), 101 * TURN);
        assert_eq!(requeue(99 * TURN, 100 * TURN, TURN), 100 * TURN);
        assert_eq!(requeue(1, 100 * TURN, TURN), 101 * TURN - MEMORY);
        // However small the charge, the group goes behind those that have waited as long.
        assert!(requeue(1, 100 * TURN, 1) > 100 * TURN - MEMORY);
    }

    #[test]
    fn waiting_groups_are_charged_for_the_time_that_they_have_counted() {
        let interval = 4_000_000;
        assert!(owes_turns(interval / 2, interval) && owes_turns(u64::MAX, interval));
        // The time that the sibling needs to make way is not charged.
        assert!(!owes_turns(10_000, interval) && !owes_turns(0, 0));
    }

    #[test]
    fn groups_contend_by_way_of_lasting_events() {
        let on = |bits| CounterMask::from_bits(bits);
        let mut wants = Wants::NOTHING;
        for counters in [0x3, 0xc] {
            let mut group = GroupWants::default();
            group.add(Constraint::any_of(on(counters)));
            wants.add(&group, false);
        }
        let counted = Counted {
            runtime: 1,
            counters: on(0x4),
            corrupting: false,
            turns: TURN,
        };
        // An event: its counter, the counters that it may use, and whether it rotates.
        let event = |counter, may_use, rotates| OnCounter {
            constraint: Constraint::any_of(on(may_use)),
            counter: CounterId::from_index(counter).unwrap(),
            rotates,
        };
        let moves = |events: &[OnCounter]| {
            let events = events.iter().copied();
            place_after_interval(&counted, 2, &wants, on(0xf), events, || Limits::NONE).is_some()
        };
        // A group that needs the event's counter makes the event move to the counter of the group
        // that has counted.
        assert!(moves(&[event(0, 0xf, false)]) && moves(&[event(1, 0x6, false)]));
        // The event cannot move to that counter, or rotates with the groups.
        assert!(!moves(&[event(0, 0x3, false)]) && !moves(&[event(3, 0x8, false)]));
        assert!(!moves(&[]) && !moves(&[event(0, 0xf, true)]));
        // No group wants the event's counter, so the event is in no group's way.
        assert!(!moves(&[event(33, 0x2_0000_000f, false)]));
        // Unless another event that is in the way may use that counter.
        let chain = [
            event(33, 0x2_0000_000f, false),
            event(1, 0x2_0000_0003, false),
        ];
        assert!(moves(&chain));
        // Or unless the event is corrupting, which leaves the groups fewer general-purpose
        // counters.
        let mut elsewhere = event(4, 0x10, false);
        assert!(!moves(&[elsewhere]));
        elsewhere.constraint.corrupting = true;
        assert!(moves(&[elsewhere]));
    }

    #[test]
    fn a_part_of_a_turn_costs_a_part_of_the_charge() {
        let context = {
            let mut group = GroupWants::default();
            group.add(Constraint::any_of(CounterMask::first_gp(4)));
            let mut wants = Wants::NOTHING;
            wants.add(&group, false);
            wants.add(&group, false);
            wants
        };
        let place = |turns| {
            let counted = Counted {
                runtime: 100 * TURN,
                counters: CounterMask::first_gp(1),
                corrupting: false,
                turns,
            };
            let all = CounterMask::first_gp(4);
            let none = core::iter::empty();
            place_after_interval(&counted, 100 * TURN, &context, all, none, || Limits::NONE)
        };
        assert_eq!(place(TURN), Some(101 * TURN));
        assert_eq!(place(TURN / 2), Some(100 * TURN + TURN / 2));
        // A group that has hardly counted stays in front of groups that have.
        assert_eq!(place(turns(0, 4_000_000)), Some(100 * TURN + 1));
        // A group that was switched out before the end of intervals pays for these later.
        assert_eq!(place(turns(12_000_000, 4_000_000)), Some(103 * TURN));
        for (ran, interval, charge) in [
            (u64::MAX - 1, u64::MAX, TURN),
            (u64::MAX / 2, u64::MAX, MOST_TURNS * TURN),
            (u64::MAX, 4_000_000, MOST_TURNS * TURN),
            (0, 0, TURN),
            (1, 0, MOST_TURNS * TURN),
        ] {
            assert_eq!(turns(ran, interval), charge, "{ran} {interval}");
        }
    }
}
