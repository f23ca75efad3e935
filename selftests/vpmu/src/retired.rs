// SPDX-License-Identifier: GPL-2.0

//! The counted kinds of occurrences in a CPU: the indices of [`Retired`]. The first [`REPORTED`]
//! mirror `enum vpmu_retired`.

/// Instructions.
pub const INSTRUCTIONS: usize = 0;
/// Instructions that read memory.
pub const LOADS: usize = 1;
/// Instructions that write memory. An instruction that does both is in both counts.
pub const STORES: usize = 2;
/// Instructions that do both to the same operand, such as INC of memory.
pub const UPDATES: usize = 3;
/// Software prefetches, which are not loads.
pub const PREFETCHES: usize = 4;
/// Taken conditional branches.
pub const TAKEN: usize = 5;
/// Conditional branches not taken.
pub const NOT_TAKEN: usize = 6;
/// Near direct jumps.
pub const JUMP: usize = 7;
/// Near indirect jumps.
pub const JUMP_INDIRECT: usize = 8;
/// Near direct calls.
pub const CALL: usize = 9;
/// Near indirect calls.
pub const CALL_INDIRECT: usize = 10;
/// Near returns.
pub const RETURN: usize = 11;
/// Far branches.
pub const FAR: usize = 12;
/// Page walks for loads.
pub const WALK_LOAD: usize = 13;
/// Page walks for stores.
pub const WALK_STORE: usize = 14;
/// Page walks for instruction fetches.
pub const WALK_FETCH: usize = 15;
/// Interrupts and exceptions delivered, at the privilege level of the handler.
pub const INTERRUPTS: usize = 16;
/// Number of counts that QEMU reports.
pub const REPORTED: usize = 17;

/// Loads that are not updates. This and the next one follow from those above ([`derive`]).
pub const PLAIN_LOADS: usize = 17;
/// Stores that are not updates.
pub const PLAIN_STORES: usize = 18;
/// Number of counts.
pub const COUNTS: usize = 19;

/// Counts of what was retired.
pub type Retired = [i64; COUNTS];

/// Adds `retired` to `sum`.
pub(crate) fn add_to(sum: &mut Retired, retired: &Retired) {
    for (sum, count) in sum.iter_mut().zip(retired) {
        *sum += count;
    }
}

/// Returns the counts, including those that follow from others.
pub(crate) fn derive(counts: &Retired) -> Retired {
    let mut counts = *counts;
    counts[PLAIN_LOADS] = counts[LOADS] - counts[UPDATES];
    counts[PLAIN_STORES] = counts[STORES] - counts[UPDATES];
    counts
}
