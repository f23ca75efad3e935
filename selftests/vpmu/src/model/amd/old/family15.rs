// SPDX-License-Identifier: GPL-2.0

//! Family 15h: BKDG 42301, "Core Performance Monitor Events".
//!
//! Each core has six counters. Most events count on some of them only. Events of the northbridge
//! have separate counters, which are not modelled.
//!
//! The events marked with an asterisk are neither in the first revisions of the BKDG nor in another
//! available table. Their counters are taken from the comment "AMD family 15h event code/PMC
//! mappings" in Linux, and their meanings are made up.

use super::event;
use crate::event::amd::Meaning::{
    All,
    Cycles,
    Kinds,
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

/// Bulldozer and Piledriver.
pub(in crate::model::amd) const MODEL: Model = model(
    "Piledriver",
    0x15,
    &[0x01, 0x02, 0x10],
    6,
    Amd {
        extended: true,
        global: false,
        merge: false,
        northbridge: false,
        list: &LIST,
    },
);

/// PERF_CTL[5:0].
const ANY: u8 = 0x3f;
/// PERF_CTL[2:0].
const LOW: u8 = 0x07;
/// PERF_CTL[5:3].
const HIGH: u8 = 0x38;
/// PERF_CTL[0].
const ZERO: u8 = 0x01;
/// PERF_CTL[3].
const THREE: u8 = 0x08;
/// PERF_CTL[3,0].
const ZERO_THREE: u8 = 0x09;

#[rustfmt::skip]
static LIST: [Event; 92] = [
    event(0x000, THREE, Rate(INSTRUCTION, 0xff)), // FPU pipe assignment
    event(0x001, HIGH, Rate(INSTRUCTION, 0x00)), // FP scheduler empty
    event(0x003, THREE, Rate(INSTRUCTION, 0xff)), // retired SSE ops
    event(0x004, THREE, Rate(INSTRUCTION, 0x0f)), // move elimination
    event(0x005, HIGH, Rate(INSTRUCTION, 0x0f)), // retired serializing ops
    event(0x006, HIGH, Rate(INSTRUCTION, 0x00)), // bottom-execute uops in the scheduler
    event(0x020, ANY, Rate(MEMORY, 0x7f)), // segment register loads
    event(0x021, ANY, Rate(MEMORY, 0x00)), // restarts due to self-modifying code
    event(0x022, ANY, Rate(MEMORY, 0x00)), // restarts due to probe hits
    event(0x023, LOW, Rate(MEMORY, 0x03)), // load or store queue full
    event(0x024, ANY, Rate(MEMORY, 0x0d)), // locked operations
    event(0x026, ANY, Rate(MEMORY, 0x00)), // retired CLFLUSH
    event(0x027, ANY, Rate(MEMORY, 0x00)), // retired CPUID
    event(0x029, ANY, Kinds([LOAD, STORE, LOAD_STORE, &[], &[], &[], &[], &[]])), // LS dispatch
    event(0x02a, ANY, Rate(MEMORY, 0x01)), // canceled store to load forwards
    event(0x02b, ANY, Rate(MEMORY, 0x00)), // SMIs received
    event(0x02d, THREE, Rate(MEMORY, 0x00)), // *
    event(0x02e, ZERO_THREE, Rate(MEMORY, 0x00)), // *
    event(0x030, ANY, Rate(MEMORY, 0x00)), // executed CLFLUSH
    event(0x031, LOW, Rate(MEMORY, 0xff)), // *
    event(0x040, ANY, All(MEMORY)), // data cache accesses
    event(0x041, ANY, Parts(MEMORY, [96, 32, 0, 0, 0, 0, 0, 0])), // data cache misses
    event(0x042, ANY, Rate(MEMORY, 0x0b)), // refills from L2 or system
    event(0x043, LOW, Rate(MEMORY, 0x00)), // refills from the system
    event(0x045, LOW, Rate(WALKS, 0x77)), // unified TLB hit
    // unified TLB miss
    event(0x046, LOW, Kinds([DATA_WALKS, &[], &[], &[], FETCH_WALKS, &[], &[], &[]])),
    event(0x047, ANY, Rate(MEMORY, 0x00)), // misaligned accesses
    // prefetch instructions
    event(0x04b, ANY, Parts(PREFETCHES, [2048, 1024, 1024, 0, 0, 0, 0, 0])),
    event(0x052, ANY, Rate(MEMORY, 0x09)), // ineffective software prefetches
    event(0x054, LOW, Rate(MEMORY, 0x00)), // *
    event(0x055, LOW, Rate(MEMORY, 0x00)), // *
    event(0x065, LOW, Rate(MEMORY, 0x83)), // memory requests
    event(0x067, LOW, Rate(MEMORY, 0x02)), // data prefetcher
    event(0x068, LOW, Rate(MEMORY, 0xff)), // MAB requests
    event(0x069, LOW, Rate(MEMORY, 0xff)), // MAB wait cycles
    event(0x06c, LOW, Rate(MEMORY, 0x3f)), // system read responses
    event(0x06d, LOW, Rate(MEMORY, 0x01)), // octwords written
    event(0x076, LOW, Cycles), // CPU clocks not halted
    event(0x07d, LOW, Parts(MEMORY, [16, 128, 8, 4, 4, 0, 64, 0])), // requests to L2
    event(0x07e, LOW, Parts(MEMORY, [4, 32, 2, 0, 16, 0, 0, 0])), // L2 misses
    event(0x07f, LOW, Parts(MEMORY, [48, 24, 8, 0, 0, 0, 0, 0])), // L2 fill or writeback
    event(0x080, LOW, Part(INSTRUCTION, 1024)), // instruction cache fetches
    event(0x081, LOW, Part(INSTRUCTION, 16)), // instruction cache misses
    event(0x082, LOW, Rate(INSTRUCTION, 0x00)), // instruction cache refills from L2
    event(0x083, LOW, Rate(INSTRUCTION, 0x00)), // instruction cache refills from the system
    event(0x084, LOW, Part(FETCH_WALKS, 8192)), // L1 ITLB miss, L2 ITLB hit
    event(0x085, LOW, Parts(FETCH_WALKS, [4032, 60, 4, 0, 0, 0, 0, 0])), // L1 and L2 ITLB miss
    event(0x086, LOW, Rate(INSTRUCTION, 0x00)), // restarts due to instruction stream probes
    event(0x087, LOW, Rate(INSTRUCTION, 0x00)), // instruction fetch stall
    event(0x088, LOW, Rate(NEAR, 0x00)), // return stack hits
    event(0x089, LOW, Rate(NEAR, 0x00)), // return stack overflows
    event(0x08b, LOW, Rate(INSTRUCTION, 0x00)), // instruction cache victims
    event(0x08c, LOW, Rate(INSTRUCTION, 0x0f)), // instruction cache lines invalidated
    event(0x08f, ZERO, Rate(INSTRUCTION, 0x00)), // *
    event(0x099, LOW, Rate(INSTRUCTION, 0x00)), // ITLB reloads
    event(0x09a, LOW, Rate(INSTRUCTION, 0x00)), // ITLB reloads aborted
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
    event(0x0cd, ANY, Rate(INSTRUCTION, 0x00)), // interrupts-masked cycles
    event(0x0ce, ANY, Rate(INSTRUCTION, 0x00)), // the same, with one pending
    event(0x0cf, ANY, Rate(INSTRUCTION, 0x00)), // interrupts taken
    event(0x0d0, LOW, Rate(INSTRUCTION, 0x00)), // decoder empty
    event(0x0d1, LOW, Rate(INSTRUCTION, 0x00)), // dispatch stalls
    event(0x0d3, LOW, Rate(INSTRUCTION, 0x00)), // for serialization
    event(0x0d5, LOW, Rate(INSTRUCTION, 0x00)), // for retire queue full
    event(0x0d6, LOW, Rate(INSTRUCTION, 0x00)), // for integer scheduler full
    event(0x0d7, LOW, Rate(INSTRUCTION, 0x00)), // for FP scheduler full
    event(0x0d8, LOW, Rate(INSTRUCTION, 0x00)), // for LDQ full
    event(0x0d9, LOW, Rate(INSTRUCTION, 0x00)), // waiting for all quiet
    event(0x0db, ANY, Rate(INSTRUCTION, 0x1f)), // FPU exceptions
    event(0x0dc, ANY, Rate(INSTRUCTION, 0x00)), // DR0 matches
    event(0x0dd, ANY, Rate(INSTRUCTION, 0x00)), // DR1 matches
    event(0x0de, ANY, Rate(INSTRUCTION, 0x00)), // DR2 matches
    event(0x0df, ANY, Rate(INSTRUCTION, 0x00)), // DR3 matches
    event(0x165, LOW, Rate(MEMORY, 0x07)), // page splintering
    event(0x16c, LOW, Rate(MEMORY, 0x03)), // L2 prefetcher triggers
    event(0x187, ZERO, Rate(INSTRUCTION, 0x00)), // *
    event(0x188, ZERO, Rate(NEAR, 0x00)), // *
    event(0x1c0, HIGH, Rate(INSTRUCTION, 0xff)), // *
    event(0x1cf, ANY, Rate(INSTRUCTION, 0x07)), // tagged IBS ops
    event(0x1d6, ANY, Rate(INSTRUCTION, 0x00)), // *
    event(0x1d8, ANY, Rate(INSTRUCTION, 0x00)), // dispatch stall for STQ full
];
