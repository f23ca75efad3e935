// SPDX-License-Identifier: GPL-2.0

//! Family 16h: BKDG 48751, "Core Performance Monitor Events".
//!
//! Each core has four counters at the old MSRs: CPUID does not report PerfCtrExtCore. The counters
//! of the northbridge and of the L2 are separate and not modelled. Any event counts on any counter.
//! The table has the events that QEMU's hooks can count, and those of perf's generic event names.

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

/// Jaguar: Kabini, Temash.
pub(in crate::model::amd) const MODEL: Model = model(
    "Jaguar",
    0x16,
    &[0x00, 0x30],
    4,
    Amd {
        extended: false,
        global: false,
        merge: false,
        northbridge: false,
        list: &LIST,
    },
);

/// The mask of all four counters.
const ANY: u8 = 0xf;

#[rustfmt::skip]
static LIST: [Event; 31] = [
    event(0x040, ANY, All(MEMORY)), // data cache accesses
    event(0x041, ANY, Part(MEMORY, 128)), // data cache misses
    // L1 DTLB miss, L2 DTLB hit
    event(0x045, ANY, Parts(DATA_WALKS, [8064, 120, 8, 0, 0, 0, 0, 0])),
    event(0x046, ANY, Parts(DATA_WALKS, [4032, 60, 4, 0, 0, 0, 0, 0])), // L1 and L2 DTLB miss
    event(0x047, ANY, Rate(MEMORY, 0x00)), // misaligned accesses
    // prefetch instructions
    event(0x04b, ANY, Parts(PREFETCHES, [2048, 1024, 1024, 0, 0, 0, 0, 0])),
    event(0x076, ANY, Cycles), // CPU clocks not halted
    event(0x080, ANY, Part(INSTRUCTION, 1024)), // instruction cache fetches
    event(0x081, ANY, Part(INSTRUCTION, 16)), // instruction cache misses
    event(0x082, ANY, Rate(INSTRUCTION, 0x00)), // instruction cache refills from L2
    event(0x083, ANY, Rate(INSTRUCTION, 0x00)), // instruction cache refills from the system
    event(0x084, ANY, Part(FETCH_WALKS, 8192)), // L1 ITLB miss, L2 ITLB hit
    event(0x085, ANY, Parts(FETCH_WALKS, [4032, 64, 0, 0, 0, 0, 0, 0])), // L1 and L2 ITLB miss
    event(0x0c0, ANY, All(RETIRED)), // retired instructions
    event(0x0c1, ANY, Rate(INSTRUCTION, 0x00)), // retired uops
    event(0x0c2, ANY, All(BRANCHES)), // retired branch instructions
    event(0x0c3, ANY, Mispredicted(NEAR, FAR_TRANSFERS)), // mispredicted ones
    event(0x0c4, ANY, All(TAKEN_BRANCHES)), // taken ones
    event(0x0c5, ANY, Mispredicted(NEAR_TAKEN, &[])), // taken, mispredicted
    event(0x0c6, ANY, All(FAR_TRANSFERS)), // far control transfers
    event(0x0c8, ANY, All(NEAR_RETURN)), // near returns
    event(0x0c9, ANY, Mispredicted(NEAR_RETURN, &[])), // near returns mispredicted
    event(0x0ca, ANY, Mispredicted(INDIRECT, &[])), // indirect branches mispredicted
    event(0x0cb, ANY, Rate(INSTRUCTION, 0x07)), // MMX and FP instructions
    event(0x0cd, ANY, Rate(INSTRUCTION, 0x00)), // interrupts-masked cycles
    event(0x0ce, ANY, Rate(INSTRUCTION, 0x00)), // the same, with one pending
    event(0x0cf, ANY, Rate(INSTRUCTION, 0x00)), // interrupts taken
    event(0x0dc, ANY, Rate(INSTRUCTION, 0x00)), // DR0 matches
    event(0x0dd, ANY, Rate(INSTRUCTION, 0x00)), // DR1 matches
    event(0x0de, ANY, Rate(INSTRUCTION, 0x00)), // DR2 matches
    event(0x0df, ANY, Rate(INSTRUCTION, 0x00)), // DR3 matches
];
