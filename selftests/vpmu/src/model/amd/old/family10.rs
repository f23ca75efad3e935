// SPDX-License-Identifier: GPL-2.0

//! Family 10h: BKDG 31116, "Performance Counter Events".
//!
//! Each core has four counters at the old MSRs, and any event counts on any of them. For events of
//! the northbridge, whose codes end in E0h to FFh, all cores of a node share the counters with the
//! same number: only the last such event that any core has selected counts. In this model, such an
//! event counts only the accesses of the core that selected it.

use super::event;
use crate::event::amd::Meaning::{
    All,
    Cycles,
    Mispredicted,
    Part,
    Parts,
    Rate, //
};
use crate::event::amd::*;
use crate::model::amd::model;
use crate::model::spec::{
    Amd,
    Model, //
};

/// K10: Barcelona, Shanghai, Istanbul, Phenom.
pub(in crate::model::amd) const MODEL: Model = model(
    "K10",
    0x10,
    &[0x02, 0x04, 0x06, 0x08],
    4,
    Amd {
        extended: false,
        global: false,
        merge: false,
        northbridge: true,
        list: &LIST,
    },
);

/// The mask of all four counters.
const ANY: u8 = 0xf;

#[rustfmt::skip]
static LIST: [Event; 123] = [
    event(0x000, ANY, Rate(INSTRUCTION, 0x3f)), // Dispatched FPU operations
    event(0x001, ANY, Rate(INSTRUCTION, 0x00)), // FPU empty cycles
    event(0x002, ANY, Rate(INSTRUCTION, 0x00)), // fast flag FPU operations
    event(0x003, ANY, Rate(INSTRUCTION, 0x7f)), // retired SSE operations
    event(0x004, ANY, Rate(INSTRUCTION, 0x0f)), // retired move ops
    event(0x005, ANY, Rate(INSTRUCTION, 0x0f)), // retired serializing ops
    event(0x006, ANY, Rate(INSTRUCTION, 0x03)), // serializing ops in the FP scheduler
    event(0x020, ANY, Rate(MEMORY, 0x7f)), // segment register loads
    event(0x021, ANY, Rate(MEMORY, 0x00)), // restarts due to self-modifying code
    event(0x022, ANY, Rate(MEMORY, 0x00)), // restarts due to probe hits
    event(0x023, ANY, Rate(MEMORY, 0x00)), // LS buffer 2 full
    event(0x024, ANY, Rate(MEMORY, 0x0f)), // locked operations
    event(0x026, ANY, Rate(MEMORY, 0x00)), // retired CLFLUSH
    event(0x027, ANY, Rate(MEMORY, 0x00)), // retired CPUID
    event(0x02a, ANY, Rate(MEMORY, 0x07)), // canceled store to load forwards
    event(0x02b, ANY, Rate(MEMORY, 0x00)), // SMIs received
    event(0x040, ANY, All(MEMORY)), // data cache accesses
    event(0x041, ANY, Part(MEMORY, 128)), // data cache misses
    event(0x042, ANY, Rate(MEMORY, 0x1f)), // refills from L2 or northbridge
    event(0x043, ANY, Rate(MEMORY, 0x1f)), // refills from the northbridge
    event(0x044, ANY, Rate(MEMORY, 0x7f)), // lines evicted
    // L1 DTLB miss, L2 DTLB hit
    event(0x045, ANY, Parts(DATA_WALKS, [8064, 120, 8, 0, 0, 0, 0, 0])),
    event(0x046, ANY, Parts(DATA_WALKS, [4032, 60, 4, 0, 0, 0, 0, 0])), // L1 and L2 DTLB miss
    event(0x047, ANY, Rate(MEMORY, 0x00)), // misaligned accesses
    event(0x048, ANY, Rate(MEMORY, 0x00)), // late cancels
    event(0x049, ANY, Rate(MEMORY, 0x00)), // early cancels
    event(0x04a, ANY, Rate(MEMORY, 0x0f)), // ECC errors
    // prefetch instructions
    event(0x04b, ANY, Parts(PREFETCHES, [2048, 1024, 1024, 0, 0, 0, 0, 0])),
    event(0x04c, ANY, Rate(MEMORY, 0x02)), // locked instructions that missed
    event(0x04d, ANY, Rate(MEMORY, 0x07)), // L1 DTLB hit
    event(0x052, ANY, Rate(MEMORY, 0x09)), // ineffective software prefetches
    event(0x054, ANY, Rate(MEMORY, 0x00)), // global TLB flushes
    event(0x065, ANY, Rate(MEMORY, 0x83)), // memory requests
    event(0x067, ANY, Rate(MEMORY, 0x03)), // data prefetcher
    event(0x068, ANY, Rate(MEMORY, 0xff)), // MAB requests
    event(0x069, ANY, Rate(MEMORY, 0xff)), // MAB wait cycles
    event(0x06c, ANY, Rate(MEMORY, 0x1f)), // northbridge read responses
    event(0x06d, ANY, Rate(MEMORY, 0x01)), // octwords written
    event(0x076, ANY, Cycles), // CPU clocks not halted
    event(0x07d, ANY, Parts(MEMORY, [16, 128, 8, 4, 4, 64, 0, 0])), // requests to L2
    event(0x07e, ANY, Parts(MEMORY, [4, 32, 2, 16, 0, 0, 0, 0])), // L2 misses
    event(0x07f, ANY, Parts(MEMORY, [48, 24, 0, 0, 0, 0, 0, 0])), // L2 fill or writeback
    event(0x080, ANY, Part(INSTRUCTION, 1024)), // instruction cache fetches
    event(0x081, ANY, Part(INSTRUCTION, 16)), // instruction cache misses
    event(0x082, ANY, Rate(INSTRUCTION, 0x00)), // instruction cache refills from L2
    event(0x083, ANY, Rate(INSTRUCTION, 0x00)), // instruction cache refills from the system
    event(0x084, ANY, Part(FETCH_WALKS, 8192)), // L1 ITLB miss, L2 ITLB hit
    event(0x085, ANY, Parts(FETCH_WALKS, [4032, 64, 0, 0, 0, 0, 0, 0])), // L1 and L2 ITLB miss
    event(0x086, ANY, Rate(INSTRUCTION, 0x00)), // restarts due to instruction stream probes
    event(0x087, ANY, Rate(INSTRUCTION, 0x00)), // instruction fetch stall
    event(0x088, ANY, Rate(NEAR, 0x00)), // return stack hits
    event(0x089, ANY, Rate(NEAR, 0x00)), // return stack overflows
    event(0x08b, ANY, Rate(INSTRUCTION, 0x00)), // instruction cache victims
    event(0x08c, ANY, Rate(INSTRUCTION, 0x03)), // instruction cache lines invalidated
    event(0x099, ANY, Rate(INSTRUCTION, 0x00)), // ITLB reloads
    event(0x09a, ANY, Rate(INSTRUCTION, 0x00)), // ITLB reloads aborted
    event(0x0c0, ANY, All(RETIRED)), // retired instructions
    event(0x0c1, ANY, Rate(INSTRUCTION, 0x00)), // retired uops
    event(0x0c2, ANY, All(BRANCHES)), // retired branch instructions
    event(0x0c3, ANY, Mispredicted(NEAR, FAR_TRANSFERS)), // mispredicted ones
    event(0x0c4, ANY, All(TAKEN_BRANCHES)), // taken ones
    event(0x0c5, ANY, Mispredicted(NEAR_TAKEN, &[])), // taken, mispredicted
    event(0x0c6, ANY, All(FAR_TRANSFERS)), // far control transfers
    event(0x0c7, ANY, Rate(NEAR, 0x00)), // branch resyncs
    event(0x0c8, ANY, All(NEAR_RETURN)), // near returns
    event(0x0c9, ANY, Mispredicted(NEAR_RETURN, &[])), // near returns mispredicted
    event(0x0ca, ANY, Mispredicted(INDIRECT, &[])), // indirect branches mispredicted
    event(0x0cb, ANY, Rate(INSTRUCTION, 0x07)), // MMX and FP instructions
    event(0x0cc, ANY, Rate(INSTRUCTION, 0x07)), // fastpath double op instructions
    event(0x0cd, ANY, Rate(INSTRUCTION, 0x00)), // interrupts-masked cycles
    event(0x0ce, ANY, Rate(INSTRUCTION, 0x00)), // the same, with one pending
    event(0x0cf, ANY, Rate(INSTRUCTION, 0x00)), // interrupts taken
    event(0x0d0, ANY, Rate(INSTRUCTION, 0x00)), // decoder empty
    event(0x0d1, ANY, Rate(INSTRUCTION, 0x00)), // dispatch stalls
    event(0x0d2, ANY, Rate(INSTRUCTION, 0x00)), // for branch abort
    event(0x0d3, ANY, Rate(INSTRUCTION, 0x00)), // for serialization
    event(0x0d4, ANY, Rate(INSTRUCTION, 0x00)), // for segment load
    event(0x0d5, ANY, Rate(INSTRUCTION, 0x00)), // for reorder buffer full
    event(0x0d6, ANY, Rate(INSTRUCTION, 0x00)), // for reservation station full
    event(0x0d7, ANY, Rate(INSTRUCTION, 0x00)), // for FPU full
    event(0x0d8, ANY, Rate(INSTRUCTION, 0x00)), // for LS full
    event(0x0d9, ANY, Rate(INSTRUCTION, 0x00)), // waiting for all quiet
    event(0x0da, ANY, Rate(INSTRUCTION, 0x00)), // for far transfer or resync
    event(0x0db, ANY, Rate(INSTRUCTION, 0x0f)), // FPU exceptions
    event(0x0dc, ANY, Rate(INSTRUCTION, 0x00)), // DR0 matches
    event(0x0dd, ANY, Rate(INSTRUCTION, 0x00)), // DR1 matches
    event(0x0de, ANY, Rate(INSTRUCTION, 0x00)), // DR2 matches
    event(0x0df, ANY, Rate(INSTRUCTION, 0x00)), // DR3 matches
    event(0x0e0, ANY, Rate(MEMORY, 0x3f)), // DRAM accesses
    event(0x0e1, ANY, Rate(MEMORY, 0x03)), // DRAM page table overflows
    event(0x0e2, ANY, Rate(MEMORY, 0x03)), // DRAM command slots missed
    event(0x0e3, ANY, Rate(MEMORY, 0x3f)), // DRAM turnarounds
    event(0x0e4, ANY, Rate(MEMORY, 0x0f)), // DRAM bypass saturation
    event(0x0e8, ANY, Rate(MEMORY, 0x7c)), // thermal status
    event(0x0e9, ANY, Rate(MEMORY, 0xff)), // CPU and IO requests to memory or IO
    event(0x0ea, ANY, Rate(MEMORY, 0x3d)), // cache block commands
    event(0x0eb, ANY, Rate(MEMORY, 0x3f)), // sized commands
    event(0x0ec, ANY, Rate(MEMORY, 0xff)), // probe responses, upstream requests
    event(0x0ee, ANY, Rate(MEMORY, 0xff)), // GART events
    event(0x0f6, ANY, Rate(MEMORY, 0xbf)), // link 0 transmit bandwidth
    event(0x0f7, ANY, Rate(MEMORY, 0xbf)), // link 1
    event(0x0f8, ANY, Rate(MEMORY, 0xbf)), // link 2
    event(0x165, ANY, Rate(MEMORY, 0x07)), // page size mismatches
    event(0x1c0, ANY, Rate(INSTRUCTION, 0x07)), // x87 operations
    event(0x1cf, ANY, Rate(INSTRUCTION, 0x00)), // IBS ops tagged
    event(0x1d3, ANY, Rate(INSTRUCTION, 0x00)), // LFENCE
    event(0x1d4, ANY, Rate(INSTRUCTION, 0x00)), // SFENCE
    event(0x1d5, ANY, Rate(INSTRUCTION, 0x00)), // MFENCE
    event(0x1e0, ANY, Rate(MEMORY, 0xff)), // CPU to DRAM requests by node
    event(0x1e1, ANY, Rate(MEMORY, 0xff)), // IO to DRAM requests by node
    event(0x1e2, ANY, Rate(MEMORY, 0xff)), // CPU read latency, nodes 0 to 3
    event(0x1e3, ANY, Rate(MEMORY, 0xff)), // CPU read requests, nodes 0 to 3
    event(0x1e4, ANY, Rate(MEMORY, 0xff)), // CPU read latency, nodes 4 to 7
    event(0x1e5, ANY, Rate(MEMORY, 0xff)), // CPU read requests, nodes 4 to 7
    event(0x1e6, ANY, Rate(MEMORY, 0xf7)), // CPU command latency
    event(0x1e7, ANY, Rate(MEMORY, 0xf7)), // CPU command requests
    event(0x1f0, ANY, Rate(MEMORY, 0xff)), // memory controller requests
    event(0x1f9, ANY, Rate(MEMORY, 0xbf)), // link 3 transmit bandwidth
    event(0x4e0, ANY, Rate(MEMORY, 0x07)), // read requests to L3
    event(0x4e1, ANY, Rate(MEMORY, 0x07)), // L3 misses
    event(0x4e2, ANY, Rate(MEMORY, 0x0f)), // L3 fills by L2 evictions
    event(0x4e3, ANY, Rate(MEMORY, 0x0f)), // L3 evictions
    event(0x4ed, ANY, Rate(MEMORY, 0x07)), // non-canceled L3 reads
];
