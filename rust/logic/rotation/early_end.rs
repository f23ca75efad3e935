// SPDX-License-Identifier: GPL-2.0

//! The limit on turns that end by overflow.
//!
//! Ending a turn by overflow costs two interrupts and the placing of all groups, and no limit of
//! the perf core covers this cost. So such ends may take only a part of the time.

/// The default limit on the part of the time that ending turns by overflow may take, in percent.
/// The same as the default of `kernel.perf_cpu_time_max_percent` for samples.
pub const MAX_PERCENT: u32 = 25;

/// Returns whether an overflow may end a turn. `since` is the time since the last end of a turn by
/// overflow, or since the last overflow that was refused (unless that end is long ago); `cost` is
/// the time that the last end took; both are in nanoseconds. `max_percent` is the part of the time
/// that all such ends may take, from 1; 100 and more mean no limit.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::may_end_turn;
///
/// assert!(!may_end_turn(29_999, 10_000, 25));
/// assert!(may_end_turn(30_000, 10_000, 25));
/// assert!(may_end_turn(0, 10_000, 100));
/// ```
pub const fn may_end_turn(since: u64, cost: u64, max_percent: u32) -> bool {
    let percent = if max_percent < 100 { max_percent } else { 100 };
    let rest = 100 - percent as u64;
    since.saturating_mul(percent as u64) >= cost.saturating_mul(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_take_no_more_than_the_limit() {
        for max_percent in 1..=100 {
            for cost in [0, 1, 999, 50_000, u64::MAX] {
                let since = (0..=20_000_000)
                    .step_by(7_919)
                    .find(|&since| may_end_turn(since, cost, max_percent));
                let Some(since) = since else {
                    assert!(cost > 50_000 && max_percent < 100);
                    continue;
                };
                assert!(cost == u64::MAX || cost * 100 <= u64::from(max_percent) * (since + cost));
            }
        }
        assert!(may_end_turn(0, u64::MAX, 100) && may_end_turn(0, 1, u32::MAX));
        assert!(!may_end_turn(1_000_000, u64::MAX, 99));
    }
}
