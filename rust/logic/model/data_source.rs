// SPDX-License-Identifier: GPL-2.0

//! The memory access of a sample (PERF_SAMPLE_DATA_SRC), from the data source field of a PEBS
//! record.
//!
//! For load and store latencies, the lowest four bits are a source, which a table of the model
//! decodes; the bits above them describe the TLB access, a lock prefix and blocking stores. Other
//! events have less information, in other bits: [`PebsData`] is the format of an event's field.
//!
//! Source: SDM volume 3, tables 20-5 (load latency), 20-17 (precise store), 20-30 (data linear
//! address). Mainline: `get_data_src()`, `arch/x86/events/intel/ds.c`, with the same results.
//!
//! Context: any, NMIs included.

use super::pebs_events::PebsData;

/// Fields of `union perf_mem_data_src`: `include/uapi/linux/perf_event.h`.
#[rustfmt::skip]
mod field {
    pub(super) const OP: u64 = 0x1f;
    pub(super) const OP_NA: u64 = 1 << 0;
    pub(super) const LOAD: u64 = 1 << 1;
    pub(super) const STORE: u64 = 1 << 2;

    /// The level, as a set.
    pub(super) const LEVEL: u64 = 0x3fff << 5;
    pub(super) const LEVEL_NA: u64 = 1 << 5;
    pub(super) const HIT: u64 = 1 << 6;
    pub(super) const MISS: u64 = 1 << 7;
    pub(super) const IN_L1: u64 = 1 << 8;
    pub(super) const IN_FILL_BUFFER: u64 = 1 << 9;
    pub(super) const IN_L2: u64 = 1 << 10;
    pub(super) const IN_L3: u64 = 1 << 11;
    pub(super) const IN_LOCAL_RAM: u64 = 1 << 12;
    pub(super) const IN_REMOTE_RAM: u64 = 1 << 13; // one hop away
    pub(super) const IN_REMOTE_CACHE: u64 = 1 << 15; // one hop away
    pub(super) const IN_IO: u64 = 1 << 17;
    pub(super) const UNCACHED: u64 = 1 << 18;

    pub(super) const SNOOP_NA: u64 = 1 << 19;
    pub(super) const SNOOP_NONE: u64 = 1 << 20;
    pub(super) const SNOOP_HIT: u64 = 1 << 21;
    pub(super) const SNOOP_MISS: u64 = 1 << 22;
    pub(super) const SNOOP_HIT_MODIFIED: u64 = 1 << 23;

    pub(super) const LOCK_NA: u64 = 1 << 24;
    pub(super) const LOCKED: u64 = 1 << 25;

    pub(super) const TLB_NA: u64 = 1 << 26;
    pub(super) const TLB_HIT: u64 = 1 << 27;
    pub(super) const TLB_MISS: u64 = 1 << 28;
    pub(super) const TLB_L1: u64 = 1 << 29;
    pub(super) const TLB_L2: u64 = 1 << 30;

    /// The level, as a number.
    pub(super) const L1: u64 = 0x1 << 33;
    pub(super) const L2: u64 = 0x2 << 33;
    pub(super) const L3: u64 = 0x3 << 33;
    pub(super) const L4: u64 = 0x4 << 33;
    pub(super) const ANY_CACHE: u64 = 0xb << 33;
    pub(super) const FILL_BUFFER: u64 = 0xc << 33;
    pub(super) const RAM: u64 = 0xd << 33;
    pub(super) const PERSISTENT: u64 = 0xe << 33;
    pub(super) const NUMBER_NA: u64 = 0xf << 33;

    pub(super) const REMOTE: u64 = 1 << 37;
    pub(super) const SNOOP_FORWARD: u64 = 1 << 38;

    pub(super) const BLOCK_NA: u64 = 1 << 40;
    pub(super) const BLOCKED_BY_DATA: u64 = 1 << 41;
    pub(super) const BLOCKED_BY_ADDRESS: u64 = 1 << 42;
}

use field::*;

/// The access of a sample without any information (`PERF_MEM_NA`, `include/linux/perf_event.h`).
pub const UNKNOWN: u64 = OP_NA | LEVEL_NA | SNOOP_NA | LOCK_NA | TLB_NA | NUMBER_NA;

/// The origin of a load's data, by the lowest four bits of the data source field.
type Loads = [u64; 16];

const LOAD_HIT: u64 = LOAD | HIT;

/// Mainline: `pebs_data_source`, `arch/x86/events/intel/ds.c`.
#[rustfmt::skip]
const SANDY_BRIDGE_LOADS: Loads = [
    LOAD | MISS | L3 | SNOOP_NA, // 0x0: unknown, beyond L2
    LOAD_HIT | IN_L1 | L1 | SNOOP_NONE, // 0x1: L1
    LOAD_HIT | IN_FILL_BUFFER | FILL_BUFFER | SNOOP_NONE, // 0x2: fill buffer
    LOAD_HIT | IN_L2 | L2 | SNOOP_NONE, // 0x3: L2
    LOAD_HIT | IN_L3 | L3 | SNOOP_NONE, // 0x4: L3
    LOAD_HIT | IN_L3 | L3 | SNOOP_MISS, // 0x5: L3, no other core had it
    LOAD_HIT | IN_L3 | L3 | SNOOP_HIT, // 0x6: L3, another core had it
    LOAD_HIT | IN_L3 | L3 | SNOOP_HIT_MODIFIED, // 0x7: L3, another core had modified it
    LOAD_HIT | IN_REMOTE_CACHE | REMOTE | L3 | SNOOP_HIT, // 0x8: another socket's cache
    LOAD_HIT | IN_REMOTE_CACHE | REMOTE | L3 | SNOOP_HIT_MODIFIED, // 0x9: the same, modified
    LOAD_HIT | IN_LOCAL_RAM | RAM | SNOOP_HIT, // 0xa: memory, shared
    LOAD_HIT | IN_REMOTE_RAM | REMOTE | L3 | SNOOP_HIT, // 0xb: remote memory, shared
    LOAD_HIT | IN_LOCAL_RAM | RAM | SNOOP_NONE | SNOOP_MISS, // 0xc: memory, exclusive
    // 0xd: remote memory, exclusive
    LOAD_HIT | IN_REMOTE_RAM | RAM | REMOTE | SNOOP_NONE | SNOOP_MISS,
    LOAD_HIT | IN_IO | NUMBER_NA | SNOOP_NONE, // 0xe: I/O
    LOAD_HIT | UNCACHED | NUMBER_NA | SNOOP_NONE, // 0xf: uncached memory
];

/// Mainline: `intel_pmu_pebs_data_source_nhm()`, `arch/x86/events/intel/ds.c`.
#[rustfmt::skip]
const NEHALEM_LOADS: Loads = with(SANDY_BRIDGE_LOADS, &[
    (0x5, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT), // L3, another core had it
    (0x6, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT_MODIFIED), // L3, another core had modified it
    (0x7, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT_MODIFIED), // the same
]);

/// Mainline: `intel_pmu_pebs_data_source_skl(false)`, `arch/x86/events/intel/ds.c`.
const SKYLAKE_LOADS: Loads = skylake(L4);

/// Mainline: `intel_pmu_pebs_data_source_skl(true)`.
const SKYLAKE_SERVER_LOADS: Loads = skylake(PERSISTENT);

/// Returns the loads of Skylake and later, on which the last level before memory is `last`.
#[rustfmt::skip]
const fn skylake(last: u64) -> Loads {
    with(SANDY_BRIDGE_LOADS, &[
        (0x8, LOAD_HIT | last | SNOOP_HIT), // fourth level cache or persistent memory
        (0x9, LOAD_HIT | last | REMOTE | SNOOP_HIT), // the same, remote
        (0xb, LOAD_HIT | RAM | REMOTE | SNOOP_NONE), // remote memory
        (0xc, LOAD_HIT | ANY_CACHE | REMOTE | SNOOP_FORWARD), // another socket's cache
        (0xd, LOAD_HIT | ANY_CACHE | REMOTE | SNOOP_HIT_MODIFIED), // the same, modified
    ])
}

/// Mainline: `intel_pmu_pebs_data_source_grt()`.
#[rustfmt::skip]
const GRACEMONT_LOADS: Loads = with(SANDY_BRIDGE_LOADS, &[
    (0x5, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT), // L3, another core had it
    (0x6, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT_MODIFIED), // L3, another core had modified it
    (0x8, LOAD_HIT | IN_L3 | L3 | SNOOP_FORWARD), // L3, another core forwarded it
]);

/// Mainline: `intel_pmu_pebs_data_source_cmt()`.
#[rustfmt::skip]
const CRESTMONT_LOADS: Loads = with(SANDY_BRIDGE_LOADS, &[
    (0x7, LOAD_HIT | IN_L3 | L3 | SNOOP_FORWARD), // L3, another core forwarded it
    (0x8, LOAD_HIT | IN_L3 | L3 | SNOOP_HIT_MODIFIED), // L3, another core had modified it
    (0xa, LOAD_HIT | IN_LOCAL_RAM | RAM | SNOOP_NONE), // memory
    (0xb, LOAD_HIT | RAM | REMOTE | SNOOP_NONE), // remote memory
    (0xc, LOAD_HIT | RAM | REMOTE | SNOOP_FORWARD), // the same, another core forwarded it
    (0xd, LOAD_HIT | RAM | REMOTE | SNOOP_HIT_MODIFIED), // the same, another core had modified it
]);

/// Returns `loads` with some entries replaced.
const fn with(mut loads: Loads, others: &[(usize, u64)]) -> Loads {
    let mut i = 0;
    while i < others.len() {
        loads[others[i].0] = others[i].1;
        i += 1;
    }
    loads
}

/// The information in the bits above the source, for load latencies on a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// None.
    Source,
    /// TLB and lock prefix.
    Lock,
    /// TLB, lock prefix, and what blocked the load.
    Block,
    /// Lock prefix, TLB, and whether the access was blocked, of loads and stores: three bits, of
    /// which this is the first.
    SmallCore(u32),
}

/// The meaning of the data source field on a model.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::{data_source::{DataSources, UNKNOWN}, pebs_events::PebsData};
///
/// const HIT: u64 = 1 << 6;
/// const L3: u64 = 0x3 << 33;
///
/// let source = DataSources::SKYLAKE.data_src(PebsData::LoadLatency, 0x4);
/// assert_eq!(source & (HIT | 0xf << 33), HIT | L3);
/// assert_eq!(DataSources::SKYLAKE.data_src(PebsData::None, 0x4), UNKNOWN);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSources {
    loads: &'static Loads,
    extent: Extent,
}

impl DataSources {
    /// Nehalem (`pebs_no_tlb`, `arch/x86/events/intel/core.c`).
    pub const NEHALEM: Self = Self::new(&NEHALEM_LOADS, Extent::Source);
    /// Westmere: as in mainline, with TLB and lock prefix (`intel_pmu_init()`,
    /// `arch/x86/events/intel/core.c`).
    pub const WESTMERE: Self = Self::new(&NEHALEM_LOADS, Extent::Lock);
    /// Sandy Bridge to Broadwell, client and server.
    pub const SANDY_BRIDGE: Self = Self::new(&SANDY_BRIDGE_LOADS, Extent::Lock);
    /// Skylake and Ice Lake, client.
    pub const SKYLAKE: Self = Self::new(&SKYLAKE_LOADS, Extent::Lock);
    /// Skylake and Ice Lake, server.
    pub const SKYLAKE_SERVER: Self = Self::new(&SKYLAKE_SERVER_LOADS, Extent::Lock);
    /// Golden Cove, server (`pebs_block`, `arch/x86/events/intel/core.c`).
    pub const GOLDEN_COVE: Self = Self::new(&SKYLAKE_SERVER_LOADS, Extent::Block);
    /// Golden Cove, client.
    pub const GOLDEN_COVE_CLIENT: Self = Self::new(&SKYLAKE_LOADS, Extent::Block);
    /// Gracemont (`grt_latency_data()`, `arch/x86/events/intel/ds.c`).
    pub const GRACEMONT: Self = Self::new(&GRACEMONT_LOADS, Extent::SmallCore(4));
    /// Crestmont (`cmt_latency_data()`, `arch/x86/events/intel/ds.c`).
    pub const CRESTMONT: Self = Self::new(&CRESTMONT_LOADS, Extent::SmallCore(5));

    /// For models whose records have no data source.
    pub const NONE: Self = Self::SANDY_BRIDGE;

    const fn new(loads: &'static Loads, extent: Extent) -> Self {
        Self { loads, extent }
    }

    /// Returns a sample's memory access, as `union perf_mem_data_src`, from the data source `field`
    /// of its record. `data` is the format for the sample's event.
    pub fn data_src(&self, data: PebsData, field: u64) -> u64 {
        match data {
            PebsData::None => UNKNOWN,
            PebsData::LoadLatency => self.load_latency(field),
            PebsData::StoreLatency => self.store_latency(field),
            PebsData::Store => store(field),
            PebsData::Load => UNKNOWN & !OP | LOAD,
            PebsData::StoreAddress => UNKNOWN & !(OP | LEVEL) | STORE | l1(field, 0),
            PebsData::Address => UNKNOWN,
        }
    }

    /// Mainline: `load_latency_data()`, `arch/x86/events/intel/ds.c`.
    fn load_latency(&self, field: u64) -> u64 {
        let load = self.source(field);
        match self.extent {
            Extent::Source => load | TLB_NA | LOCK_NA,
            Extent::Lock => load | tlb(field, 4) | lock(field, 5) | BLOCK_NA,
            Extent::Block => load | tlb(field, 4) | lock(field, 5) | block(field),
            Extent::SmallCore(first) => self.small_core(field, first) & !OP | LOAD,
        }
    }

    /// Mainline: `store_latency_data()`, `arch/x86/events/intel/ds.c`.
    fn store_latency(&self, field: u64) -> u64 {
        let access = match self.extent {
            Extent::SmallCore(first) => self.small_core(field, first),
            _ => self.source(field) | tlb(field, 4) | lock(field, 5) | BLOCK_NA,
        };
        access & !OP | STORE
    }

    /// Returns an access on a small core, where the flags from bit `first` on are the lock prefix,
    /// the TLB and the block: lock prefix and TLB have changed places. Mainline:
    /// `__grt_latency_data()`, `arch/x86/events/intel/ds.c`.
    fn small_core(&self, field: u64, first: u32) -> u64 {
        let block = if bit(field, first + 2) {
            BLOCKED_BY_DATA
        } else {
            BLOCK_NA
        };
        self.source(field) | tlb(field, first + 1) | lock(field, first) | block
    }

    /// Returns the source for the lowest four bits.
    fn source(&self, field: u64) -> u64 {
        // CAST: four bits.
        self.loads
            .get((field & 0xf) as usize)
            .map_or(UNKNOWN, |load| *load)
    }
}

/// Mainline: `precise_store_data()`, `arch/x86/events/intel/ds.c`.
fn store(field: u64) -> u64 {
    let tlb = if bit(field, 4) { TLB_MISS } else { TLB_HIT };
    STORE | SNOOP_NA | l1(field, 0) | TLB_L2 | tlb | lock(field, 5)
}

/// Returns the level of a store: whether it hit the first level cache.
fn l1(field: u64, hit: u32) -> u64 {
    IN_L1 | if bit(field, hit) { HIT } else { MISS }
}

/// Returns the TLB in which an access hit, or a miss of the second level. Mainline:
/// `pebs_set_tlb_lock()`, `arch/x86/events/intel/ds.c`.
fn tlb(field: u64, missed: u32) -> u64 {
    if bit(field, missed) {
        TLB_MISS | TLB_L2
    } else {
        TLB_HIT | TLB_L1 | TLB_L2
    }
}

/// Returns the lock field: set if the instruction had a lock prefix.
fn lock(field: u64, locked: u32) -> u64 {
    if bit(field, locked) {
        LOCKED
    } else {
        0
    }
}

/// Returns the reason why a load waited for an earlier store: the store's data could not be
/// forwarded, or its address might have been the same.
fn block(field: u64) -> u64 {
    match (bit(field, 6), bit(field, 7)) {
        (false, false) => BLOCK_NA,
        (true, false) => BLOCKED_BY_DATA,
        (false, true) => BLOCKED_BY_ADDRESS,
        (true, true) => BLOCKED_BY_DATA | BLOCKED_BY_ADDRESS,
    }
}

const fn bit(field: u64, bit: u32) -> bool {
    (field >> bit) & 1 != 0
}

#[cfg(test)]
mod tests;
