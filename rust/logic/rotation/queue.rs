// SPDX-License-Identifier: GPL-2.0

//! The order of the groups, by runtime.

use super::Wants;
use crate::logic::{regs::counter::CounterMask, sched::limits::Limits};

/// The charge for an interval on the counters. More than the distance of new groups in the perf core's order.
pub const TURN: u64 = 1 << 16;

/// The largest distance from the last place of the order that a group keeps when it is charged. A larger one
/// is forgotten, since the group would come first for as long.
const MEMORY: u64 = 8 * TURN;

/// Returns a group's new place in the order after an interval on the counters, for which it is charged
/// `charge`. Its place by runtime was `runtime`; the last place of the order is `latest`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::{requeue, TURN};
///
/// // The groups are numbered as they come, and the first goes behind all others.
/// assert!(requeue(1, 8, TURN) > 8);
/// ```
pub const fn requeue(runtime: u64, latest: u64, charge: u64) -> u64 {
    let floor = latest.saturating_sub(MEMORY);
    let runtime = if runtime > floor { runtime } else { floor };
    runtime.saturating_add(charge)
}

/// Returns the part of a [`TURN`] to charge a group for: it has counted for `ran` nanoseconds since it was charged
/// last, where an interval lasts `interval` nanoseconds. At least 1, and no more than a turn.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::{part_of_turn, TURN};
///
/// assert_eq!(part_of_turn(1_000_000, 4_000_000), TURN / 4);
/// assert_eq!(part_of_turn(9_000_000, 4_000_000), TURN);
/// ```
pub const fn part_of_turn(ran: u64, interval: u64) -> u64 {
    if ran >= interval {
        return TURN;
    }
    // Less than a turn, as the interval exceeds `ran`.
    match ran.checked_mul(TURN) {
        Some(part) => match part.checked_div(interval) {
            Some(0) | None => 1,
            Some(part) => part,
        },
        None => TURN,
    }
}

/// A group that has counted in the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place by runtime.
    pub runtime: u64,
    /// Its counters.
    pub counters: CounterMask,
    /// Set if one of its events corrupts the sibling thread's counts.
    pub corrupting: bool,
    /// The part of a [`TURN`] that it has counted ([`part_of_turn`]).
    ///
    /// A whole turn, unless the threads of a core contend: they make each other schedule again, and a group that
    /// is on the counters for the end of each interval only would starve.
    pub part: u64,
}

/// Returns the new place in the order of a group that has counted in the last interval; [`None`] if no other
/// group contends for its counters, so that it stays where it is. `latest` is the last place of the order,
/// `wants` sums up the groups of the context, `counters` are the thread's, and `limits` hold now.
#[inline]
pub fn place_after_interval(
    group: &Counted,
    latest: u64,
    wants: &Wants,
    counters: CounterMask,
    limits: impl FnOnce() -> Limits,
) -> Option<u64> {
    if !wants.contend_for(group.counters) {
        return None;
    }
    let charge = match group.corrupting {
        false => wants.charge(false, 0, &Limits::NONE),
        true => wants.charge(true, counters.gp().weight(), &limits()),
    };
    let charge = match group.part {
        TURN => charge,
        // A charge is less than two turns.
        part => charge.wrapping_mul(part).max(TURN) / TURN,
    };
    Some(requeue(group.runtime, latest, charge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{rotation::GroupWants, sched::constraint::Constraint};

    #[test]
    fn old_runtime_is_forgotten() {
        assert_eq!(requeue(100 * TURN, 100 * TURN, TURN), 101 * TURN);
        assert_eq!(requeue(99 * TURN, 100 * TURN, TURN), 100 * TURN);
        assert_eq!(requeue(1, 100 * TURN, TURN), 101 * TURN - MEMORY);
        // However little is charged, the group is not the first of those that wait as long.
        assert!(requeue(1, 100 * TURN, 1) > 100 * TURN - MEMORY);
    }

    #[test]
    fn parts_of_turns_cost_parts() {
        let context = {
            let mut group = GroupWants::default();
            group.add(Constraint::any_of(CounterMask::first_gp(4)));
            let mut wants = Wants::NOTHING;
            wants.add(&group, false);
            wants.add(&group, false);
            wants
        };
        let place = |part| {
            let counted = Counted {
                runtime: 100 * TURN,
                counters: CounterMask::first_gp(1),
                corrupting: false,
                part,
            };
            let all = CounterMask::first_gp(4);
            place_after_interval(&counted, 100 * TURN, &context, all, || Limits::NONE)
        };
        assert_eq!(place(TURN), Some(101 * TURN));
        assert_eq!(place(TURN / 2), Some(100 * TURN + TURN / 2));
        // A group that has hardly counted stays in front of those that have.
        assert_eq!(place(part_of_turn(0, 4_000_000)), Some(100 * TURN + 1));
        assert_eq!(part_of_turn(u64::MAX - 1, u64::MAX), TURN);
        assert_eq!(part_of_turn(0, 0), TURN);
    }
}
