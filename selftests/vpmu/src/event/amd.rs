// SPDX-License-Identifier: GPL-2.0

//! The types of AMD's event tables: the meanings of events, and their counters.
//!
//! A bit of UnitMask selects a unit: a part of the event. The event counts the sum of the
//! selected units.

use crate::retired::{
    CALL,
    CALL_INDIRECT,
    FAR,
    INSTRUCTIONS,
    INTERRUPTS,
    JUMP,
    JUMP_INDIRECT,
    LOADS,
    NOT_TAKEN,
    PLAIN_LOADS,
    PLAIN_STORES,
    RETURN,
    STORES,
    TAKEN,
    UPDATES,
    WALK_FETCH,
    WALK_LOAD,
    WALK_STORE, //
};

/// An event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    /// PERF_CTL.EventSelect, 12 bits.
    pub(crate) event: u16,
    /// Mask of the counters that count it.
    pub(crate) counters: u8,
    /// The meaning of the event.
    pub(crate) meaning: Meaning,
}

/// The meaning of an event. `kinds` are indices of [`crate::retired::Retired`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Cycles,
    /// Cycles at the frequency of the TSC.
    ReferenceCycles,
    /// Every occurrence of these kinds; there are no units.
    All(&'static [usize]),
    /// Mispredicted occurrences of the first kinds, and every occurrence of the second; there are
    /// no units.
    Mispredicted(&'static [usize], &'static [usize]),
    /// Every occurrence of the kinds of each unit.
    Kinds([&'static [usize]; 8]),
    /// This many of each [`crate::event::WHOLE`] occurrences of the kinds; there are no units.
    Part(&'static [usize], u32),
    /// The same for each unit.
    Parts(&'static [usize], [u32; 8]),
    /// An event that the emulated machine does not model: counts each unit of the mask at its own
    /// rate or, if the mask is 0, the whole event ([`crate::select::amd::declared_rate`]).
    Rate(&'static [usize], u8),
}

/// Instructions. "This count includes exceptions and interrupts: each is counted as one
/// instruction" (PMCx0C0 in the BKDGs).
pub(crate) const RETIRED: &[usize] = &[INSTRUCTIONS, INTERRUPTS];
/// Instructions only, to which the declared rates and parts of instructions refer.
pub(crate) const INSTRUCTION: &[usize] = &[INSTRUCTIONS];
/// Loads and stores; an instruction that does both counts twice.
pub(crate) const MEMORY: &[usize] = &[LOADS, STORES];
/// Operations that are dispatched to the load-store unit: loads, stores, and those that do both to
/// the same address (PMCx029).
pub(crate) const LOAD: &[usize] = &[PLAIN_LOADS];
pub(crate) const STORE: &[usize] = &[PLAIN_STORES];
pub(crate) const LOAD_STORE: &[usize] = &[UPDATES];
/// Branches: "all types of architectural control flow changes, including exceptions and interrupts"
/// (PMCx0C2).
pub(crate) const BRANCHES: &[usize] = &[
    TAKEN,
    NOT_TAKEN,
    JUMP,
    JUMP_INDIRECT,
    CALL,
    CALL_INDIRECT,
    RETURN,
    FAR,
    INTERRUPTS,
];
/// The predicted ones among these: near branches.
pub(crate) const NEAR: &[usize] = &[
    TAKEN,
    NOT_TAKEN,
    JUMP,
    JUMP_INDIRECT,
    CALL,
    CALL_INDIRECT,
    RETURN,
];
pub(crate) const NEAR_TAKEN: &[usize] = &[TAKEN, JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN];
/// Taken branches, including far ones and interrupts (PMCx0C4).
pub(crate) const TAKEN_BRANCHES: &[usize] = &[
    TAKEN,
    JUMP,
    JUMP_INDIRECT,
    CALL,
    CALL_INDIRECT,
    RETURN,
    FAR,
    INTERRUPTS,
];
pub(crate) const UNCONDITIONAL: &[usize] = &[JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN];
pub(crate) const CONDITIONAL: &[usize] = &[TAKEN, NOT_TAKEN];
pub(crate) const INDIRECT: &[usize] = &[JUMP_INDIRECT, CALL_INDIRECT];
pub(crate) const NEAR_RETURN: &[usize] = &[RETURN];
/// Far control transfers, exceptions and interrupts (PMCx0C6).
pub(crate) const FAR_TRANSFERS: &[usize] = &[FAR, INTERRUPTS];
pub(crate) const PREFETCHES: &[usize] = &[crate::retired::PREFETCHES];
pub(crate) const DATA_WALKS: &[usize] = &[WALK_LOAD, WALK_STORE];
pub(crate) const FETCH_WALKS: &[usize] = &[WALK_FETCH];
pub(crate) const WALKS: &[usize] = &[WALK_LOAD, WALK_STORE, WALK_FETCH];
