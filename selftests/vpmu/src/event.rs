// SPDX-License-Identifier: GPL-2.0

//! What an event counts, and on which counters.
//!
//! - Instructions, branches, loads, stores and page walks are exact.
//! - Cycles are [`CYCLES`], reference cycles [`REFERENCE_CYCLES`] per instruction.
//! - What happens to loads, stores, branches and walks is a declared share of them ([`Meaning::Part`]).
//! - Every other event of Intel's list counts at a rate of its own, see [`Select::declared_rate`].
//! - What the list does not have, or has for other counters only, counts nothing.

use crate::counter::{self, Share, Source};
use crate::model::Model;
use crate::retired::*;

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
    fn with_code(&self, event: u8, umask: u8) -> &'static [Listed] {
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
    const fn kinds(self) -> &'static [usize] {
        match self {
            Of::Instructions => &[INSTRUCTIONS_INDEX],
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

    const fn whole(self) -> Share {
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

include!(concat!(env!("OUT_DIR"), "/event_lists.rs"));

/// The architectural events, by their bit in CPUID.0AH:EBX: event, umask and what they count (SDM
/// vol. 3, 20.2.1.2). They count on every general counter, listed or not.
const ARCHITECTURAL: [(u8, u8, Meaning); 8] = [
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
pub const CYCLES: Source = Source::Share(counter::CYCLES);
/// Cycles at the rate of the TSC, 6/5 of them for each core cycle's turbo.
pub const REFERENCE_CYCLES: Source = Source::rate(5, 4);
/// Cycles of the 100 MHz crystal reference, of a TSC at 2.5 GHz.
const CRYSTAL_CYCLES: Source = Source::rate(5, 100);

/// Retired instructions.
pub const INSTRUCTIONS: Source = Of::Instructions.all();
const INSTRUCTIONS_INDEX: usize = crate::retired::INSTRUCTIONS;

/// Pipeline slots, of which a cycle has so many.
pub const fn slots(slots_per_cycle: u32) -> Source {
    CYCLES.times(slots_per_cycle, 1)
}

/// An event of loads that took longer than MSR_PEBS_LD_LAT says. No threshold below 4 exists (Intel's
/// lists; SDM vol. 3, 20.3.1.1.2); each doubling halves the count.
pub fn load_latency(source: Source, threshold: u64) -> Source {
    const LEAST: u32 = 4;
    source.times(LEAST, LEAST.max(threshold as u16 as u32))
}

/// The fields of an event select that say what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Select {
    /// EVENT_SELECT.
    pub event: u8,
    /// UMASK.
    pub umask: u8,
    /// CMASK.
    pub cmask: u8,
    /// INV.
    pub inv: bool,
    /// E.
    pub edge: bool,
}

impl Select {
    /// The fields of IA32_PERFEVTSELx.
    pub fn from_register(value: u64) -> Self {
        Select {
            event: value as u8,
            umask: (value >> 8) as u8,
            cmask: (value >> 24) as u8,
            inv: (value >> 23) & 1 != 0,
            edge: (value >> 18) & 1 != 0,
        }
    }

    /// What it means on this model, and the general counters that count it.
    fn look_up(self, model: &Model) -> LookedUp {
        let code = model.list.with_code(self.event, self.umask);
        let with = |cmask, inv, edge| {
            code.iter()
                .find(|line| (line.cmask, line.inv, line.edge) == (cmask, inv, edge))
        };
        let architectural = ARCHITECTURAL
            .iter()
            .zip(0..)
            .filter(|(_, bit)| model.has_architectural(*bit))
            .find(|((event, umask, _), _)| (*event, *umask) == (self.event, self.umask));
        let line = with(self.cmask, self.inv, self.edge);
        let plain = match (with(0, false, false), architectural) {
            (Some(line), _) => Some(line.meaning),
            (None, Some(((_, _, meaning), _))) => Some(*meaning),
            (None, None) => None,
        };
        // Those of its line, else of all lines with its code.
        let counters = line.map_or_else(
            || code.iter().fold(0, |mask, line| mask | line.counters),
            |line| line.counters,
        );
        let counters = match counters {
            0 if architectural.is_some() => 0xff,
            some => some,
        };
        LookedUp {
            plain,
            own: line.map(|line| line.meaning),
            register: code.iter().find_map(|line| line.register),
            counters,
        }
    }

    /// What general counter `counter` counts, and the register that it hangs on beside.
    pub fn source(self, model: &Model, counter: usize) -> (Source, Option<Register>) {
        let found = self.look_up(model);
        if (found.counters >> counter) & 1 == 0 {
            return (Source::Nothing, None);
        }
        let plain = found.plain.unwrap_or(Meaning::Rate(Of::Instructions));
        let source = match (self.masked(self.plain().meant(plain, model)), found.own) {
            // The fields are part of the event's name, so it happens in bursts.
            (Source::Nothing, Some(own)) => self.meant(own, model),
            (_, Some(own)) if found.plain.is_none() => self.meant(own, model),
            (source, _) => source,
        };
        (source, found.register)
    }

    /// Without what only says in which cycles to count.
    fn plain(self) -> Self {
        Select {
            cmask: 0,
            inv: false,
            edge: false,
            ..self
        }
    }

    fn meant(self, meaning: Meaning, model: &Model) -> Source {
        match meaning {
            Meaning::Cycles => CYCLES,
            Meaning::ReferenceCycles => REFERENCE_CYCLES,
            Meaning::CrystalCycles => CRYSTAL_CYCLES,
            Meaning::Slots => slots(model.slots),
            Meaning::Part(of, 0, WHOLE) => of.all(),
            Meaning::Part(of, low, high) => of.part(low, high, WHOLE),
            Meaning::PartAndPrefetches(of, 0, WHOLE) => {
                Source::Share(of.whole().and_all(&[PREFETCHES]))
            }
            Meaning::PartAndPrefetches(of, low, high) => {
                let share = Share::of(of.kinds(), low, high, WHOLE);
                Source::Share(share.and_all(&[PREFETCHES]))
            }
            Meaning::Rate(of) => self.declared_rate(of),
        }
    }

    /// CMASK, INV and E of an event that counts `source` without them: the cycles in which at least
    /// CMASK of it came about; with INV those in which fewer did. Without CMASK, INV is ignored (SDM
    /// vol. 3, 20.2.1.1), and E takes CMASK for 1.
    ///
    /// What comes at a fixed rate is spread evenly: of 5/3 a cycle, each cycle has one and two of
    /// three have two. Of all else a cycle has one at most. With E, the condition begins to hold in
    /// half of the cycles in which it holds, unless it holds always.
    fn masked(self, source: Source) -> Source {
        let Source::Share(share) = source else {
            return source;
        };
        let holds = match (self.cmask, self.edge) {
            (0, false) => return source,
            (0, true) => at_least(share, 1),
            (cmask, _) => at_least(share, u32::from(cmask)),
        };
        let inverted = self.inv && self.cmask != 0;
        match (holds, inverted, self.edge) {
            (Holds::Always, false, false) | (Holds::Never, true, false) => CYCLES,
            (Holds::Sometimes(share), false, false) => Source::Share(share),
            (Holds::Sometimes(share), true, false) => Source::CyclesWithout(share),
            (Holds::Sometimes(share), _, true) => Source::Share(share.times(1, 2)),
            (Holds::Always | Holds::Never, _, _) => Source::Nothing,
        }
    }

    /// An arbitrary rate that is fixed for each event: 1/1024 to 63/1024 of what it is about, different
    /// for most.
    pub fn declared_rate(self, of: Of) -> Source {
        let Select {
            event,
            umask,
            cmask,
            inv,
            edge,
        } = self;
        let mix = 37 * u32::from(event)
            + 11 * u32::from(umask)
            + 7 * u32::from(cmask)
            + 5 * u32::from(inv)
            + 3 * u32::from(edge);
        of.part(0, mix % 63 + 1, 1024)
    }
}

/// What a model has for an event select.
struct LookedUp {
    /// What its code means without CMASK, INV and E, if the list or the architecture says so.
    plain: Option<Meaning>,
    /// What the line with just these fields means.
    own: Option<Meaning>,
    register: Option<Register>,
    counters: u8,
}

/// In which cycles a condition holds.
enum Holds {
    Never,
    Sometimes(Share),
    Always,
}

/// The cycles in which at least `cmask` of it come about.
fn at_least(share: Share, cmask: u32) -> Holds {
    if !share.is_steady() {
        return match cmask {
            1 => Holds::Sometimes(share),
            _ => Holds::Never,
        };
    }
    // In a cycle, `whole` and `rest` / `denominator`.
    let events = (share.high - share.low) * counter::CYCLES.denominator;
    let denominator = share.denominator * counter::CYCLES.high;
    let (whole, rest) = (events / denominator, events % denominator);
    match cmask {
        cmask if cmask <= whole => Holds::Always,
        cmask if cmask == whole + 1 && whole == 0 => Holds::Sometimes(share),
        cmask if cmask == whole + 1 && rest != 0 => Holds::Sometimes(Share {
            low: 0,
            high: rest,
            denominator: share.denominator * counter::CYCLES.denominator,
            ..share
        }),
        _ => Holds::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{find, MODELS};

    fn select(event: u8, umask: u8) -> Select {
        Select {
            event,
            umask,
            cmask: 0,
            inv: false,
            edge: false,
        }
    }

    fn source(model: u32, select: Select, counter: usize) -> Source {
        select.source(find(6, model).unwrap(), counter).0
    }

    fn counters(model: u32, select: Select) -> u8 {
        select.look_up(find(6, model).unwrap()).counters
    }

    #[test]
    fn every_listed_event_counts_on_its_counters_and_on_no_other() {
        for model in &MODELS {
            for line in model.list.events {
                let select = Select {
                    event: line.event,
                    umask: line.umask,
                    cmask: line.cmask,
                    inv: line.inv,
                    edge: line.edge,
                };
                for counter in 0..8 {
                    let listed = (line.counters >> counter) & 1 != 0;
                    let counts = select.source(model, counter).0 != Source::Nothing;
                    assert_eq!(counts, listed, "{} {line:x?}", model.name);
                }
            }
        }
    }

    #[test]
    fn events_tied_to_a_counter() {
        struct Case(u32, Select, u8);
        let stalls_l1d_pending = Select {
            cmask: 12,
            ..select(0xa3, 0x0c)
        };
        let stalls_issued = Select {
            cmask: 1,
            inv: true,
            ..select(0x0e, 0x01)
        };
        let total_cycles = Select {
            cmask: 10,
            inv: true,
            ..select(0xc0, 0x01)
        };
        for Case(model, select, expected) in [
            Case(NEHALEM, select(0xb7, 0x01), 0b1111), // the list says 2
            Case(NEHALEM, select(0x40, 0x01), 0b0011), // L1D_CACHE_LD
            Case(NEHALEM, select(0x0b, 0x10), 0b1000), // LATENCY_ABOVE_*
            Case(WESTMERE, select(0x0b, 0x10), 0b1000),
            Case(NEHALEM, select(0x53, 0x01), 0b0011), // L1D_CACHE_LOCK_FB_HIT
            Case(WESTMERE, select(0x60, 0x01), 0b0001), // OFFCORE_REQUESTS_OUTSTANDING
            Case(WESTMERE, select(0x40, 0x01), 0),     // Nehalem's
            Case(SANDY_BRIDGE, select(0xd1, 0x01), 0b1111), // MEM_LOAD_UOPS_RETIRED.L1_HIT
            Case(IVY_BRIDGE, select(0x9c, 0x01), 0b1111), // IDQ_UOPS_NOT_DELIVERED.CORE
            Case(SANDY_BRIDGE, select(0x48, 0x02), 0xff), // L1D_PEND_MISS.FB_FULL
            Case(HASWELL, select(0x9c, 0x01), 0b1111),
            Case(HASWELL, select(0x0e, 0x01), 0xff), // UOPS_ISSUED.ANY
            Case(HASWELL, stalls_issued, 0b1111),
            Case(HASWELL, select(0xd1, 0x01), 0b1111),
            Case(HASWELL, select(0x48, 0x01), 0b0100), // L1D_PEND_MISS.PENDING
            Case(SKYLAKE, select(0x48, 0x01), 0xff),
            Case(HASWELL, stalls_l1d_pending, 0b0100),
            Case(HASWELL, select(0xcd, 0x01), 0b1000), // MEM_TRANS_RETIRED.LOAD_LATENCY_*
            Case(BROADWELL, select(0xd3, 0x01), 0b1111),
            Case(SKYLAKE, select(0xcd, 0x01), 0b1111),
            Case(SKYLAKE, select(0xc6, 0x01), 0b1111), // FRONTEND_RETIRED.*
            Case(HASWELL, select(0xc0, 0x01), 0b0010), // INST_RETIRED.PREC_DIST
            Case(SKYLAKE, select(0xc0, 0x01), 0b0010),
            Case(SKYLAKE, total_cycles, 0b1101), // INST_RETIRED.TOTAL_CYCLES_PS
            Case(SANDY_BRIDGE, select(0xb7, 0x01), 0b1111), // OFFCORE_RESPONSE
            Case(HASWELL, select(0xbb, 0x01), 0b1111),
            Case(SKYLAKE, select(0xb7, 0x01), 0b1111),
            Case(SKYLAKE, select(0xbb, 0x01), 0b1111),
            Case(ICE_LAKE, select(0xd1, 0x01), 0b1111), // as listed
            Case(ICE_LAKE, select(0xc6, 0x01), 0xff),
            Case(ICE_LAKE_CLIENT, select(0x2e, 0x4f), 0xff), // not listed, but architectural
            Case(GOLDEN_COVE, select(0xcd, 0x01), 0xfe),     // MEM_TRANS_RETIRED.LOAD_LATENCY_*
            Case(GOLDEN_COVE, select(0xcd, 0x02), 0x01),     // MEM_TRANS_RETIRED.STORE_SAMPLE
            Case(GOLDEN_COVE, select(0xb7, 0x01), 0),        // Ice Lake's
            Case(GOLDEN_COVE, select(0x2b, 0x01), 0b1111),   // OCR
        ] {
            assert_eq!(counters(model, select), expected, "{model} {select:x?}");
        }
    }

    const NEHALEM: u32 = 26;
    const WESTMERE: u32 = 44;
    const SANDY_BRIDGE: u32 = 42;
    const IVY_BRIDGE: u32 = 58;
    const HASWELL: u32 = 60;
    const BROADWELL: u32 = 61;
    const SKYLAKE: u32 = 94;
    const ICE_LAKE: u32 = 106;
    const ICE_LAKE_CLIENT: u32 = 125;
    const GOLDEN_COVE: u32 = 143;

    #[test]
    fn one_code_means_different_things() {
        for (model, umask, expected) in [
            (NEHALEM, 0x01, Of::Conditional.all()),
            (NEHALEM, 0x00, Of::Branches.all()), // architectural
            (NEHALEM, 0x04, Of::Branches.all()),
            (SKYLAKE, 0x01, Of::Conditional.all()),
            (SKYLAKE, 0x10, Of::NotTaken.all()),
            (ICE_LAKE, 0x01, Of::ConditionalTaken.all()),
            (ICE_LAKE, 0x11, Of::Conditional.all()),
            (GOLDEN_COVE, 0x80, Of::Indirect.all()),
            (SKYLAKE, 0x80, Source::Nothing),
        ] {
            assert_eq!(
                source(model, select(0xc4, umask), 0),
                expected,
                "{model} {umask:#x}"
            );
        }
        // MEM_UOPS_RETIRED with all of the second half
        for model in [SANDY_BRIDGE, 45, IVY_BRIDGE, 62] {
            assert_eq!(source(model, select(0xd0, 0xf1), 0), Of::Loads.all());
            assert_eq!(source(model, select(0xd0, 0xf2), 3), Of::Stores.all());
        }
        assert_eq!(source(NEHALEM, select(0xc0, 0x01), 0), INSTRUCTIONS);
        assert_eq!(source(GOLDEN_COVE, select(0x3c, 0x01), 0), REFERENCE_CYCLES);
        assert_eq!(source(ICE_LAKE, select(0x3c, 0x01), 0), CRYSTAL_CYCLES);
        assert_eq!(source(ICE_LAKE, select(0xa4, 0x01), 0), Source::rate(15, 2));
        assert_eq!(
            source(GOLDEN_COVE, select(0xa4, 0x01), 0),
            Source::rate(18, 2)
        );
    }

    #[test]
    fn architectural_events_count_unless_cpuid_says_that_they_are_missing() {
        for model in &MODELS {
            for ((event, umask, _), bit) in ARCHITECTURAL.into_iter().zip(0..) {
                // Reference cycles are not architectural on Nehalem and Westmere, but in the list.
                let expected = model.has_architectural(bit) || bit == 2;
                for counter in 0..4 {
                    let (source, _) = select(event, umask).source(model, counter);
                    assert_eq!(source != Source::Nothing, expected, "{} {bit}", model.name);
                }
            }
        }
    }

    #[test]
    fn events_outside_the_list_count_nothing() {
        assert_eq!(source(HASWELL, select(0xff, 0xff), 0), Source::Nothing);
        assert_eq!(source(SKYLAKE, select(0x00, 0x00), 0), Source::Nothing);
        // CORE_POWER.LVL0_TURBO_LICENSE: a server's.
        assert_eq!(source(SKYLAKE, select(0x28, 0x07), 0), Source::Nothing);
        // Mispredicted branches, erratum AAJ80.
        assert_eq!(source(NEHALEM, select(0xc5, 0x00), 0), Source::Nothing);
        assert_ne!(source(WESTMERE, select(0xc5, 0x00), 0), Source::Nothing);
    }

    #[test]
    fn registers_beside_the_event_select() {
        let register =
            |model, event, umask| select(event, umask).source(find(6, model).unwrap(), 3).1;
        assert_eq!(register(NEHALEM, 0xb7, 0x01), Some(Register::Offcore(0)));
        assert_eq!(register(NEHALEM, 0xbb, 0x01), None);
        assert_eq!(register(NEHALEM, 0x0b, 0x10), Some(Register::LoadLatency));
        assert_eq!(register(SKYLAKE, 0xbb, 0x01), Some(Register::Offcore(1)));
        assert_eq!(register(SKYLAKE, 0xc6, 0x01), Some(Register::Frontend));
        assert_eq!(
            register(GOLDEN_COVE, 0x2a, 0x01),
            Some(Register::Offcore(0))
        );
        assert_eq!(
            register(GOLDEN_COVE, 0x2b, 0x01),
            Some(Register::Offcore(1))
        );
        assert_eq!(register(GOLDEN_COVE, 0xad, 0x40), Some(Register::Frontend));
        assert_eq!(register(GOLDEN_COVE, 0xc2, 0x04), Some(Register::Frontend));
        assert_eq!(
            register(GOLDEN_COVE, 0xcd, 0x01),
            Some(Register::LoadLatency)
        );
        assert_eq!(register(GOLDEN_COVE, 0xc0, 0x00), None);
    }

    #[test]
    fn a_higher_latency_is_rarer() {
        let rate = Source::rate(7, 1024);
        let count = |threshold| {
            let mut retired = [0; COUNTS];
            retired[0] = 1 << 20;
            let mut counter = crate::counter::Counter::default();
            counter.count(load_latency(rate, threshold), &[0; COUNTS], &retired);
            counter.value()
        };
        assert_eq!([0, 3, 4, 8, 512].map(count), [7168, 7168, 7168, 3584, 56]);
    }

    /// The fields and how many of 600 cycles, in which 400 instructions, 100 loads and no walks.
    #[test]
    fn counter_mask_inversion_and_edge() {
        struct Case(u32, u8, u8, u8, bool, bool, u64);
        for Case(model, event, umask, cmask, inv, edge, expected) in [
            Case(HASWELL, 0x3c, 0x00, 0, false, false, 600), // CPU_CLK_UNHALTED.THREAD_P
            Case(HASWELL, 0x3c, 0x00, 1, false, false, 600),
            Case(HASWELL, 0x3c, 0x00, 1, true, false, 0),
            Case(HASWELL, 0x3c, 0x00, 2, false, false, 0),
            Case(HASWELL, 0x3c, 0x00, 2, true, false, 600),
            Case(HASWELL, 0x3c, 0x00, 1, false, true, 0),
            Case(HASWELL, 0xc0, 0x00, 0, true, false, 400), // INST_RETIRED.ANY_P
            Case(HASWELL, 0xc0, 0x00, 1, false, false, 400),
            Case(HASWELL, 0xc0, 0x00, 1, true, false, 200),
            Case(HASWELL, 0xc0, 0x00, 2, false, false, 0),
            Case(HASWELL, 0xc0, 0x00, 16, true, false, 600),
            Case(HASWELL, 0xc0, 0x00, 1, false, true, 200),
            Case(HASWELL, 0xc0, 0x00, 0, false, true, 200),
            Case(HASWELL, 0xd0, 0x81, 1, false, false, 100), // MEM_UOPS_RETIRED.ALL_LOADS
            Case(HASWELL, 0xd0, 0x81, 1, true, false, 500),
            Case(HASWELL, 0xd0, 0x81, 2, false, false, 0),
            Case(HASWELL, 0xd0, 0x81, 2, true, false, 600),
            Case(ICE_LAKE, 0xa4, 0x01, 0, false, false, 3000), // TOPDOWN.SLOTS_P
            Case(ICE_LAKE, 0xa4, 0x01, 5, false, false, 600),
            Case(ICE_LAKE, 0xa4, 0x01, 6, false, false, 0),
            Case(SKYLAKE, 0x3c, 0x00, 1, true, true, 0),
            Case(SKYLAKE, 0xc2, 0x02, 10, true, false, 600), // UOPS_RETIRED.TOTAL_CYCLES
        ] {
            let select = Select {
                cmask,
                inv,
                edge,
                ..select(event, umask)
            };
            let mut retired = [0; COUNTS];
            retired[INSTRUCTIONS_INDEX] = 400;
            retired[LOADS] = 100;
            let mut counter = crate::counter::Counter::default();
            counter.count(source(model, select, 0), &[0; COUNTS], &retired);
            assert_eq!(counter.value(), expected, "{model} {select:x?}");
        }
    }

    #[test]
    fn what_happens_more_than_once_a_cycle_holds_in_the_rest_of_them() {
        // 5/2 an instruction, 5/3 a cycle: each has one, two of three have two.
        let Source::Share(share) = Source::rate(5, 2) else {
            unreachable!()
        };
        assert!(matches!(at_least(share, 1), Holds::Always));
        assert!(matches!(at_least(share, 3), Holds::Never));
        let Holds::Sometimes(two) = at_least(share, 2) else {
            panic!("never, or always");
        };
        let mut retired = [0; COUNTS];
        retired[INSTRUCTIONS_INDEX] = 400;
        let mut counter = crate::counter::Counter::default();
        counter.count(Source::Share(two), &[0; COUNTS], &retired);
        assert_eq!(counter.value(), 400);
    }

    #[test]
    fn declared_rates_are_never_zero() {
        for line in MODELS.iter().flat_map(|model| model.list.events) {
            let rate = select(line.event, line.umask).declared_rate(Of::Memory);
            let Source::Share(share) = rate else {
                panic!("{line:?} has no rate");
            };
            assert!((1..=63).contains(&share.high));
        }
    }
}
