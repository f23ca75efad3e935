// SPDX-License-Identifier: GPL-2.0

//! The types of the event tables: the meanings of events, and their counters.
//!
//! The rates of events per instruction are declared here ([`CYCLES`] and below) and in the tables;
//! `README.md` describes them.

pub(crate) mod amd;
pub(crate) mod topdown;

use crate::share::{
    self,
    Share,
    Source, //
};

/// One line of an event list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// IA32_PERFEVTSELx.EVENT_SELECT.
    pub(crate) event: u16,
    /// IA32_PERFEVTSELx.UMASK.
    pub(crate) umask: u8,
    /// IA32_PERFEVTSELx.CMASK.
    pub(crate) cmask: u8,
    /// IA32_PERFEVTSELx.INV.
    pub(crate) inv: bool,
    /// IA32_PERFEVTSELx.E.
    pub(crate) edge: bool,
    /// Mask of the general counters that count it on a core with one thread. With two threads, the
    /// lower half of the counters exist.
    pub(crate) counters: u8,
    /// Mask of the counters that sample it precisely (PEBS).
    pub(crate) precise: u8,
    /// The meaning of the event.
    pub(crate) meaning: Meaning,
    /// The register that further selects the counted occurrences.
    pub(crate) register: Option<Register>,
}

/// The event list of a model.
#[derive(Debug)]
pub struct List {
    /// The events, sorted by event code and umask.
    pub(crate) events: &'static [Listed],
    /// All bits that its events set in MSR_OFFCORE_RSP_x.
    pub offcore: u64,
    /// All bits that its events set in MSR_PEBS_FRONTEND.
    pub frontend: u64,
    /// All bits that its events set in MSR_PEBS_LD_LAT.
    pub load_latency: u64,
}

impl List {
    /// Returns the lines with this event code and umask.
    pub(crate) fn with_code(&self, event: u16, umask: u8) -> &'static [Listed] {
        let code = |line: &Listed| (line.event, line.umask);
        let start = self
            .events
            .partition_point(|line| code(line) < (event, umask));
        let rest = &self.events[start..];
        &rest[..rest.partition_point(|line| code(line) == (event, umask))]
    }
}

/// The meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Cycles,
    ReferenceCycles,
    CrystalCycles,
    Slots,
    /// Of each [`WHOLE`] occurrences of the activity, those from the first number up to, but not
    /// including, the second. Multiples of [`WHOLE`] count several events per occurrence.
    Part(Activity, u32, u32),
    /// The same, and every software prefetch.
    PartAndPrefetches(Activity, u32, u32),
    /// An event that the emulated machine does not model: counts the activity at its own rate
    /// ([`crate::select::Select::declared_rate`]).
    Rate(Activity),
}

/// The activities that events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Instructions,
    Loads,
    Stores,
    /// Loads and stores; an instruction that does both counts twice.
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
    Taken,
    NearCall,
    NearReturn,
    Far,
    Indirect,
    IndirectCall,
    IndirectJump,
    DirectCall,
    DirectJump,
}

/// The denominator of [`Meaning::Part`].
pub(crate) const WHOLE: u32 = 4096;

impl Activity {
    pub(crate) const fn kinds(self) -> &'static [usize] {
        use crate::retired::*;
        match self {
            Activity::Instructions => &[INSTRUCTIONS],
            Activity::Loads => &[LOADS],
            Activity::Stores => &[STORES],
            Activity::Memory => &[LOADS, STORES],
            Activity::LoadWalks => &[WALK_LOAD],
            Activity::StoreWalks => &[WALK_STORE],
            Activity::DataWalks => &[WALK_LOAD, WALK_STORE],
            Activity::FetchWalks => &[WALK_FETCH],
            Activity::Walks => &[WALK_LOAD, WALK_STORE, WALK_FETCH],
            Activity::Branches => &[
                TAKEN,
                NOT_TAKEN,
                JUMP,
                JUMP_INDIRECT,
                CALL,
                CALL_INDIRECT,
                RETURN,
                FAR,
            ],
            Activity::Conditional => &[TAKEN, NOT_TAKEN],
            Activity::ConditionalTaken => &[TAKEN],
            Activity::NotTaken => &[NOT_TAKEN],
            Activity::NearTaken => &[TAKEN, JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN],
            Activity::Taken => &[TAKEN, JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN, FAR],
            Activity::NearCall => &[CALL, CALL_INDIRECT],
            Activity::NearReturn => &[RETURN],
            Activity::Far => &[FAR],
            Activity::Indirect => &[JUMP_INDIRECT, CALL_INDIRECT],
            Activity::IndirectCall => &[CALL_INDIRECT],
            Activity::IndirectJump => &[JUMP_INDIRECT],
            Activity::DirectCall => &[CALL],
            Activity::DirectJump => &[JUMP],
        }
    }

    /// Counts, of each `denominator` occurrences, those from `low` up to, but not including,
    /// `high`.
    pub(crate) const fn part(self, low: u32, high: u32, denominator: u32) -> Source {
        Source::Share(Share::new(self.kinds(), low, high, denominator))
    }

    /// Counts every occurrence.
    pub(crate) const fn all(self) -> Source {
        Source::Share(self.whole())
    }

    pub(crate) const fn whole(self) -> Share {
        Share::new(self.kinds(), 0, 1, 1)
    }
}

/// A register that selects the counted occurrences, besides the event select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    /// MSR_OFFCORE_RSP_0 or _1.
    Offcore(usize),
    /// MSR_PEBS_LD_LAT.
    LoadLatency,
    /// MSR_PEBS_FRONTEND.
    Frontend,
    /// MSR_SNOOP_RSP_0 or _1.
    Snoop(usize),
}

/// The architectural events by their bit in CPUID.0AH:EBX: event code, umask and meaning (SDM vol.
/// 3, 20.2.1.2). Those that a list lacks count on every general counter.
pub(crate) const ARCHITECTURAL: [(u16, u8, Meaning); 8] = [
    (0x3c, 0x00, Meaning::Cycles),
    (0xc0, 0x00, Meaning::Part(Activity::Instructions, 0, WHOLE)),
    (0x3c, 0x01, Meaning::CrystalCycles),
    (0x2e, 0x4f, Meaning::Part(Activity::Memory, 0, 32)), // last-level cache references
    (0x2e, 0x41, Meaning::Part(Activity::Memory, 0, 8)),  // last-level cache misses
    (0xc4, 0x00, Meaning::Part(Activity::Branches, 0, WHOLE)),
    (0xc5, 0x00, Meaning::Part(Activity::Branches, 0, 128)), // mispredicted branches
    (0xa4, 0x01, Meaning::Slots),
];

/// Core cycles.
pub(crate) const CYCLES: Source = Source::Share(share::CYCLES);
/// Cycles at the rate of the TSC. The core runs at 6/5 of it.
pub(crate) const REFERENCE_CYCLES: Source = Source::rate(5, 4);
/// Cycles of the 100 MHz crystal, where the TSC runs at 2.5 GHz.
pub(crate) const CRYSTAL_CYCLES: Source = Source::rate(5, 100);

/// Retired instructions.
pub(crate) const INSTRUCTIONS: Source = Activity::Instructions.all();

/// Pipeline slots.
pub(crate) const fn slots(slots_per_cycle: u32) -> Source {
    CYCLES.times(slots_per_cycle, 1)
}
