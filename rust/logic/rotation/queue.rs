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

/// A group that has counted in the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place by runtime.
    pub runtime: u64,
    /// Its counters.
    pub counters: CounterMask,
    /// Set if one of its events corrupts the sibling thread's counts.
    pub corrupting: bool,
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
    Some(requeue(group.runtime, latest, charge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_runtime_is_forgotten() {
        assert_eq!(requeue(100 * TURN, 100 * TURN, TURN), 101 * TURN);
        assert_eq!(requeue(99 * TURN, 100 * TURN, TURN), 100 * TURN);
        assert_eq!(requeue(1, 100 * TURN, TURN), 101 * TURN - MEMORY);
        // However little is charged, the group is not the first of those that wait as long.
        assert!(requeue(1, 100 * TURN, 1) > 100 * TURN - MEMORY);
    }
}
