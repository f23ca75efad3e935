// SPDX-License-Identifier: GPL-2.0

//! The order of the groups, by runtime.

use super::Wants;
use crate::logic::{regs::counter::CounterMask, sched::limits::Limits};

/// What an interval on the counters costs a group. More than the perf core numbers new groups by.
pub const TURN: u64 = 1 << 16;

/// How far behind the last group of the order another can be when it is charged. What it had less
/// than that before is forgotten: it would be served first for as long.
const MEMORY: u64 = 8 * TURN;

/// Returns a group's new place in the order, after an interval on the counters that costs it
/// `charge`. Its place by runtime was `had`; the last place of the order is `latest`.
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
pub const fn requeue(had: u64, latest: u64, charge: u64) -> u64 {
    let floor = latest.saturating_sub(MEMORY);
    let had = if had > floor { had } else { floor };
    had.saturating_add(charge)
}

/// A group that has counted in the interval that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its place by runtime.
    pub had: u64,
    /// The counters that it is on.
    pub counters: CounterMask,
    /// Whether one of its events corrupts the sibling thread's counts.
    pub corrupting: bool,
}

/// Returns the new place in the order of a group that has counted in the interval that is over;
/// [`None`] if it shares with no other, so that it may stay where it is. `latest` is the last place,
/// `wants` what all groups of the context want, on a thread with `counters`, under `limits`.
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
    Some(requeue(group.had, latest, charge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_had_long_ago_is_forgotten() {
        assert_eq!(requeue(100 * TURN, 100 * TURN, TURN), 101 * TURN);
        assert_eq!(requeue(99 * TURN, 100 * TURN, TURN), 100 * TURN);
        assert_eq!(requeue(1, 100 * TURN, TURN), 101 * TURN - MEMORY);
        // However little is charged, the group is not the first of those that wait as long.
        assert!(requeue(1, 100 * TURN, 1) > 100 * TURN - MEMORY);
    }
}
