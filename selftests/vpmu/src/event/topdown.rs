// SPDX-License-Identifier: GPL-2.0

//! The declared shares of pipeline slots, which MSR_PERF_METRICS reports.

use super::Activity;
use crate::retired::{
    Retired,
    INSTRUCTIONS,
    LOADS, //
};

/// The maximum number of shares: four of level 1, which add up to the whole, and four of level 2,
/// each a part of one of those.
pub(crate) const SHARES: usize = 8;
/// Number of shares of level 1.
pub(crate) const LEVEL_1: usize = 4;

/// Number of equal parts into which the slots of an instruction are divided. Each share is a whole
/// number of parts.
pub(crate) const PARTS: u64 = 16;

/// Divides the slots of what retired at CPL 0 or, if `user`, above. Returns the shares, in units of
/// 1 / [`PARTS`] of an instruction's slots, in the order of MSR_PERF_METRICS: retiring, bad
/// speculation, frontend bound, backend bound; heavy operations, branch mispredicts, fetch latency,
/// memory bound.
///
/// Loads, branches and CPL 0 take slots from the retiring ones, so that the shares differ
/// between programs and between privilege levels.
pub(crate) fn shares(user: bool, retired: &Retired) -> [u64; SHARES] {
    let count = |kinds: &[usize]| kinds.iter().map(|&kind| retired[kind] as u64).sum::<u64>();
    let all = count(&[INSTRUCTIONS]);
    // A faulted instruction is taken back from later counts, each kind by itself
    // (`Totals::balance`), so there may be more loads or branches than instructions.
    let loads = count(&[LOADS]).min(all);
    let branches = count(Activity::Branches.kinds()).min(all);
    let kernel = if user { 0 } else { all };
    [
        9 * all - 4 * loads - 2 * branches - 2 * kernel,
        all + 2 * branches,
        3 * all + 2 * kernel,
        3 * all + 4 * loads,
        all,
        2 * branches,
        2 * all + 2 * kernel,
        all + 4 * loads,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retired::{
        COUNTS,
        RETURN, //
    };

    /// Instructions, loads, returns, whether above CPL 0, and the shares.
    struct Case(i64, i64, i64, bool, [u64; SHARES]);

    #[test]
    fn level_1_is_the_whole_and_level_2_a_part() {
        for Case(instructions, loads, returns, user, expected) in [
            Case(1, 0, 0, true, [9, 1, 3, 3, 1, 0, 2, 1]),
            Case(1, 0, 0, false, [7, 1, 5, 3, 1, 0, 4, 1]),
            Case(1, 1, 0, true, [5, 1, 3, 7, 1, 0, 2, 5]),
            Case(1, 1, 1, true, [3, 3, 3, 7, 1, 2, 2, 5]),
            Case(1, 1, 1, false, [1, 3, 5, 7, 1, 2, 4, 5]),
            Case(10, 2, 3, true, [76, 16, 30, 38, 10, 6, 20, 18]),
            // The instruction has been taken back; its load and its branch have not yet.
            Case(0, 1, 1, true, [0; SHARES]),
        ] {
            let mut retired = [0; COUNTS];
            retired[INSTRUCTIONS] = instructions;
            retired[LOADS] = loads;
            retired[RETURN] = returns;
            let shares = shares(user, &retired);
            assert_eq!(shares, expected);
            let level_1 = shares[..LEVEL_1].iter().sum::<u64>();
            assert_eq!(level_1, PARTS * instructions as u64);
            for (part, whole) in shares[LEVEL_1..].iter().zip(shares) {
                assert!(*part <= whole);
            }
        }
    }
}
