// SPDX-License-Identifier: GPL-2.0

//! What an event counts, and on which counters: the tables' vocabulary.

use crate::share::{self, Share, Source};

/// One line of Intel's list.
#[derive(Debug)]
pub struct Listed {
    /// IA32_PERFEVTSELx.EVENT_SELECT.
    pub event: u8,
    /// IA32_PERFEVTSELx.UMASK.
    pub umask: u8,
    /// IA32_PERFEVTSELx.CMASK.
    pub cmask: u8,
    /// IA32_PERFEVTSELx.INV.
    pub inv: bool,
    /// IA32_PERFEVTSELx.E.
    pub edge: bool,
    /// The general counters that it counts on where a core has one thread; the lower half of them
    /// are those where it has two.
    pub counters: u8,
    /// What it counts.
    pub meaning: Meaning,
    /// The register beside the event select that it hangs on.
    pub register: Option<Register>,
}

/// Intel's list for a model.
#[derive(Debug)]
pub struct List {
    /// The events, in the order of event and umask.
    pub events: &'static [Listed],
    /// The bits of MSR_OFFCORE_RSP_x that its events set.
    pub offcore: u64,
    /// The same of MSR_PEBS_FRONTEND.
    pub frontend: u64,
    /// The same of MSR_PEBS_LD_LAT.
    pub load_latency: u64,
}

impl List {
    /// The lines with this code.
    pub(crate) fn with_code(&self, event: u8, umask: u8) -> &'static [Listed] {
        let code = |line: &Listed| (line.event, line.umask);
        let start = self
            .events
            .partition_point(|line| code(line) < (event, umask));
        let rest = &self.events[start..];
        &rest[..rest.partition_point(|line| code(line) == (event, umask))]
    }
}

/// What an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // They are the manual's names.
pub enum Meaning {
    Cycles,
    ReferenceCycles,
    CrystalCycles,
    Slots,
    /// From the first to below the second of each [`WHOLE`] of these. Twice or more of the whole: so
    /// many for each of them.
    Part(Of, u32, u32),
    /// The same, and each software prefetch.
    PartAndPrefetches(Of, u32, u32),
    /// Anything that this model of a CPU has no notion of: [`Select::declared_rate`] of these.
    Rate(Of),
}

/// What a CPU does, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // They are the manual's names.
pub enum Of {
    Instructions,
    Loads,
    Stores,
    /// Loads and stores; what does both counts twice.
    Memory,
    LoadWalks,
    StoreWalks,
    DataWalks,
    FetchWalks,
    Walks,
    Branches,
    Conditional,
    ConditionalTaken,
    NotTaken,
    NearTaken,
    NearCall,
    NearReturn,
    Far,
    Indirect,
    IndirectCall,
}

/// In how many parts [`Meaning::Part`] counts.
pub const WHOLE: u32 = 4096;

impl Of {
    pub(crate) const fn kinds(self) -> &'static [usize] {
        use crate::retired::*;
        match self {
            Of::Instructions => &[INSTRUCTIONS],
            Of::Loads => &[LOADS],
            Of::Stores => &[STORES],
            Of::Memory => &[LOADS, STORES],
            Of::LoadWalks => &[WALK_LOAD],
            Of::StoreWalks => &[WALK_STORE],
            Of::DataWalks => &[WALK_LOAD, WALK_STORE],
            Of::FetchWalks => &[WALK_FETCH],
            Of::Walks => &[WALK_LOAD, WALK_STORE, WALK_FETCH],
            Of::Branches => &[
                TAKEN,
                NOT_TAKEN,
                JUMP,
                JUMP_INDIRECT,
                CALL,
                CALL_INDIRECT,
                RETURN,
                FAR,
            ],
            Of::Conditional => &[TAKEN, NOT_TAKEN],
            Of::ConditionalTaken => &[TAKEN],
            Of::NotTaken => &[NOT_TAKEN],
            Of::NearTaken => &[TAKEN, JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN],
            Of::NearCall => &[CALL, CALL_INDIRECT],
            Of::NearReturn => &[RETURN],
            Of::Far => &[FAR],
            Of::Indirect => &[JUMP_INDIRECT, CALL_INDIRECT],
            Of::IndirectCall => &[CALL_INDIRECT],
        }
    }

    /// From `low` to below `high` of each `denominator` of these.
    pub const fn part(self, low: u32, high: u32, denominator: u32) -> Source {
        Source::Share(Share::of(self.kinds(), low, high, denominator))
    }

    /// All of these.
    pub const fn all(self) -> Source {
        Source::Share(self.whole())
    }

    pub(crate) const fn whole(self) -> Share {
        Share::of(self.kinds(), 0, 1, 1)
    }
}

/// A register beside the event select that an event hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// MSR_OFFCORE_RSP_0 or _1.
    Offcore(usize),
    /// MSR_PEBS_LD_LAT.
    LoadLatency,
    /// MSR_PEBS_FRONTEND.
    Frontend,
}

/// The architectural events, by their bit in CPUID.0AH:EBX: event, umask and what they count (SDM
/// vol. 3, 20.2.1.2). They count on every general counter, listed or not.
pub(crate) const ARCHITECTURAL: [(u8, u8, Meaning); 8] = [
    (0x3c, 0x00, Meaning::Cycles),
    (0xc0, 0x00, Meaning::Part(Of::Instructions, 0, WHOLE)),
    (0x3c, 0x01, Meaning::CrystalCycles),
    (0x2e, 0x4f, Meaning::Part(Of::Memory, 0, 32)), // last-level cache references
    (0x2e, 0x41, Meaning::Part(Of::Memory, 0, 8)),  // last-level cache misses
    (0xc4, 0x00, Meaning::Part(Of::Branches, 0, WHOLE)),
    (0xc5, 0x00, Meaning::Part(Of::Branches, 0, 128)), // mispredicted branches
    (0xa4, 0x01, Meaning::Slots),
];

/// Core cycles.
pub const CYCLES: Source = Source::Share(share::CYCLES);
/// Cycles at the rate of the TSC, 6/5 of them for each core cycle's turbo.
pub const REFERENCE_CYCLES: Source = Source::rate(5, 4);
/// Cycles of the 100 MHz crystal reference, of a TSC at 2.5 GHz.
pub(crate) const CRYSTAL_CYCLES: Source = Source::rate(5, 100);

/// Retired instructions.
pub const INSTRUCTIONS: Source = Of::Instructions.all();

/// Pipeline slots, of which a cycle has so many.
pub const fn slots(slots_per_cycle: u32) -> Source {
    CYCLES.times(slots_per_cycle, 1)
}
