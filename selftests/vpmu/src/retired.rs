// SPDX-License-Identifier: GPL-2.0

//! What a CPU retires and does: the indices of [`Retired`]. Mirrors `enum vpmu_retired`.

/// Instructions.
pub const INSTRUCTIONS: usize = 0;
/// Instructions that read memory.
pub const LOADS: usize = 1;
/// Instructions that write memory. An instruction that does both is in both counts.
pub const STORES: usize = 2;
/// Software prefetches, which are not loads.
pub const PREFETCHES: usize = 3;
/// Taken conditional branches.
pub const TAKEN: usize = 4;
/// Conditional branches not taken.
pub const NOT_TAKEN: usize = 5;
/// Near direct jumps.
pub const JUMP: usize = 6;
/// Near indirect jumps.
pub const JUMP_INDIRECT: usize = 7;
/// Near direct calls.
pub const CALL: usize = 8;
/// Near indirect calls.
pub const CALL_INDIRECT: usize = 9;
/// Near returns.
pub const RETURN: usize = 10;
/// Far branches.
pub const FAR: usize = 11;
/// Page walks for loads.
pub const WALK_LOAD: usize = 12;
/// Page walks for stores.
pub const WALK_STORE: usize = 13;
/// Page walks for instruction fetches.
pub const WALK_FETCH: usize = 14;
/// Interrupts and exceptions delivered, at the privilege level of the handler.
pub const INTERRUPTS: usize = 15;
/// Number of counts.
pub const COUNTS: usize = 16;

/// Counts of what was retired.
pub type Retired = [i64; COUNTS];

/// Adds `retired` to `sum`.
pub(crate) fn add_to(sum: &mut Retired, retired: &Retired) {
    for (sum, count) in sum.iter_mut().zip(retired) {
        *sum += count;
    }
}
