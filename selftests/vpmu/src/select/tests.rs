// SPDX-License-Identifier: GPL-2.0

//! Tests of decoding event selects.

use super::*;
use crate::event::INSTRUCTIONS;
use crate::model::{
    find,
    INTEL_MODELS, //
};
use crate::retired::{
    self,
    COUNTS,
    LOADS, //
};

fn select(event: u16, umask: u8) -> Select {
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
    for model in &INTEL_MODELS {
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
        Case(GOLDEN_COVE, select(0xc6, 0x03), 0),        // Redwood Cove's
        Case(REDWOOD_COVE, select(0xc6, 0x01), 0),       // Golden Cove's
        Case(REDWOOD_COVE, select(0xc6, 0x02), 0xff),    // FRONTEND_RETIRED.MISP_ANT
        Case(REDWOOD_COVE, select(0xc6, 0x03), 0xff),    // FRONTEND_RETIRED.*
        Case(REDWOOD_COVE, select(0xcd, 0x01), 0xfe),    // MEM_TRANS_RETIRED.LOAD_LATENCY_*
        Case(REDWOOD_COVE, select(0xa4, 0x04), 0x01),    // TOPDOWN.BAD_SPEC_SLOTS
        Case(REDWOOD_COVE, select(0xd0, 0x09), 0b1111),  // MEM_INST_RETIRED.STLB_HIT_LOADS
        Case(GOLDEN_COVE, select(0x27, 0x01), 0b1111),   // CORE_SNOOP_RESPONSE.MISS
        Case(REDWOOD_COVE, select(0x27, 0x01), 0),       // not listed
        Case(SILVERMONT, select(0xb7, 0x02), 0b11),      // OFFCORE_RESPONSE, second register
        Case(SILVERMONT, select(0x04, 0x40), 0b11),      // MEM_UOPS_RETIRED.ALL_LOADS
        Case(SILVERMONT, select(0xd0, 0x81), 0),         // not listed
        Case(GOLDMONT, select(0xb7, 0x02), 0b1111),      // OFFCORE_RESPONSE, second register
        Case(GOLDMONT, select(0x08, 0x0e), 0),           // not listed
        Case(GOLDMONT_PLUS, select(0xb7, 0x02), 0b1111), // OFFCORE_RESPONSE, second register
        Case(GOLDMONT_PLUS, select(0xd0, 0x81), 0b1111), // MEM_UOPS_RETIRED.ALL_LOADS
        Case(GOLDMONT_PLUS, select(0x08, 0x0e), 0b1111), // page walks, as the kernel has them
        Case(TREMONT, select(0xb7, 0x01), 0b1111),       // OCR
        Case(TREMONT, select(0xb7, 0x02), 0b1111),       // the same with the other register
        Case(TREMONT, select(0xd0, 0x81), 0b1111),       // MEM_UOPS_RETIRED.ALL_LOADS
        Case(TREMONT, select(0xd0, 0x05), 0),            // Gracemont's
        Case(GRACEMONT, select(0xd0, 0x05), 0b11),       // MEM_UOPS_RETIRED.LOAD_LATENCY_*
        Case(GRACEMONT, select(0xd0, 0x06), 0b11_1111),  // MEM_UOPS_RETIRED.STORE_LATENCY
        Case(GRACEMONT, select(0xb7, 0x01), 0b11_1111),  // OCR
        Case(GRACEMONT, select(0xb7, 0x02), 0b11_1111),  // the same with the other register
        Case(GRACEMONT, select(0x2a, 0x01), 0),          // Golden Cove's
        Case(GRACEMONT, select(0xcd, 0x01), 0b11_1111),  // ARITH.IDIV_OCCUPANCY
        Case(GRACEMONT, select(0x27, 0x01), 0),          // Crestmont's
        Case(CRESTMONT, select(0xd0, 0x05), 0b11),       // MEM_UOPS_RETIRED.LOAD_LATENCY_*
        Case(CRESTMONT, select(0xd0, 0x06), 0xff),       // MEM_UOPS_RETIRED.STORE_LATENCY
        Case(CRESTMONT, select(0xb7, 0x02), 0xff),       // OCR
        Case(CRESTMONT, select(0x27, 0x01), 0xff),       // snoop responses
        Case(CRESTMONT, select(0x27, 0x02), 0xff),       // the same with the other register
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
const REDWOOD_COVE: u32 = 173;
const SILVERMONT: u32 = 77;
const GOLDMONT: u32 = 92;
const GOLDMONT_PLUS: u32 = 122;
const TREMONT: u32 = 134;
const GRACEMONT: u32 = 190;
const CRESTMONT: u32 = 175;

#[test]
fn one_code_has_different_meanings() {
    for (model, umask, expected) in [
        (NEHALEM, 0x01, Activity::Conditional.all()),
        (NEHALEM, 0x00, Activity::Branches.all()), // architectural
        (NEHALEM, 0x04, Activity::Branches.all()),
        (SKYLAKE, 0x01, Activity::Conditional.all()),
        (SKYLAKE, 0x10, Activity::NotTaken.all()),
        (ICE_LAKE, 0x01, Activity::ConditionalTaken.all()),
        (ICE_LAKE, 0x11, Activity::Conditional.all()),
        (GOLDEN_COVE, 0x80, Activity::Indirect.all()),
        (REDWOOD_COVE, 0x11, Activity::Conditional.all()),
        (GOLDMONT, 0x80, Activity::Taken.all()),
        (GOLDMONT_PLUS, 0x80, Activity::Taken.all()),
        (TREMONT, 0x7e, Activity::Conditional.all()),
        (TREMONT, 0xf9, Activity::NearCall.all()),
        (TREMONT, 0xc0, Source::Nothing),
        (GRACEMONT, 0x7e, Activity::Conditional.all()),
        (GRACEMONT, 0xdf, Activity::DirectJump.all()),
        (GRACEMONT, 0xeb, Activity::Indirect.all()),
        (GRACEMONT, 0xef, Activity::IndirectJump.all()),
        (GRACEMONT, 0xfd, Activity::DirectCall.all()),
        (CRESTMONT, 0x7e, Activity::Conditional.all()),
        (CRESTMONT, 0xc0, Activity::NearTaken.all()),
        (SKYLAKE, 0x80, Source::Nothing),
    ] {
        assert_eq!(
            source(model, select(0xc4, umask), 0),
            expected,
            "{model} {umask:#x}"
        );
    }
    // MEM_UOPS_RETIRED with all bits of the upper half of the umask
    for model in [SANDY_BRIDGE, 45, IVY_BRIDGE, 62] {
        assert_eq!(source(model, select(0xd0, 0xf1), 0), Activity::Loads.all());
        assert_eq!(source(model, select(0xd0, 0xf2), 3), Activity::Stores.all());
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
    for model in &INTEL_MODELS {
        for ((event, umask, _), bit) in ARCHITECTURAL.into_iter().zip(0..) {
            // Reference cycles are not architectural on Nehalem and Westmere, but in the list.
            let expected = model.has_architectural(bit) || bit == 2;
            for counter in 0..model.general_counters(2).min(4) {
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
    // CORE_POWER.LVL0_TURBO_LICENSE: of servers.
    assert_eq!(source(SKYLAKE, select(0x28, 0x07), 0), Source::Nothing);
    // Mispredicted branches, erratum AAJ80.
    assert_eq!(source(NEHALEM, select(0xc5, 0x00), 0), Source::Nothing);
    assert_ne!(source(WESTMERE, select(0xc5, 0x00), 0), Source::Nothing);
}

#[test]
fn registers_of_events() {
    let register = |model, event, umask| select(event, umask).source(find(6, model).unwrap(), 3).1;
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
    assert_eq!(register(GOLDEN_COVE, 0xc6, 0x03), None);
    for umask in [0x02, 0x03] {
        assert_eq!(
            register(REDWOOD_COVE, 0xc6, umask),
            Some(Register::Frontend)
        );
    }
    for umask in [1, 2] {
        let silvermont = find(6, SILVERMONT).unwrap();
        let (_, register) = select(0xb7, umask).source(silvermont, 0);
        assert_eq!(register, Some(Register::Offcore(umask as usize - 1)));
    }
    for model in [GOLDMONT, GOLDMONT_PLUS] {
        assert_eq!(register(model, 0xb7, 1), Some(Register::Offcore(0)));
        assert_eq!(register(model, 0xb7, 2), Some(Register::Offcore(1)));
    }
    assert_eq!(register(TREMONT, 0xb7, 1), Some(Register::Offcore(0)));
    assert_eq!(register(TREMONT, 0xb7, 2), Some(Register::Offcore(1)));
    assert_eq!(register(GRACEMONT, 0xb7, 1), Some(Register::Offcore(0)));
    assert_eq!(register(GRACEMONT, 0xb7, 2), Some(Register::Offcore(1)));
    let latency = select(0xd0, 0x05).source(find(6, GRACEMONT).unwrap(), 0).1;
    assert_eq!(latency, Some(Register::LoadLatency));
    assert_eq!(register(GRACEMONT, 0xd0, 6), None);
    assert_eq!(register(CRESTMONT, 0x27, 1), Some(Register::Snoop(0)));
    assert_eq!(register(CRESTMONT, 0x27, 2), Some(Register::Snoop(1)));
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

/// A case has the model, the fields of the event select and the count of 400 instructions, 100 of
/// them loads, which take 600 cycles.
#[test]
fn counter_mask_inversion_and_edge() {
    struct Case(u32, u16, u8, u8, bool, bool, u64);
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
        retired[retired::INSTRUCTIONS] = 400;
        retired[LOADS] = 100;
        let mut counter = crate::counter::Counter::default();
        counter.count(source(model, select, 0), &[0; COUNTS], &retired);
        assert_eq!(counter.value(), expected, "{model} {select:x?}");
    }
}

#[test]
fn cmask_of_rates_above_one_per_cycle() {
    // 5/2 per instruction, 5/3 per cycle: every cycle has one, two of three have two.
    let Source::Share(share) = Source::rate(5, 2) else {
        unreachable!()
    };
    assert!(matches!(at_least(share, 1), Holds::Always));
    assert!(matches!(at_least(share, 3), Holds::Never));
    let Holds::Sometimes(two) = at_least(share, 2) else {
        panic!("never, or always");
    };
    let mut retired = [0; COUNTS];
    retired[retired::INSTRUCTIONS] = 400;
    let mut counter = crate::counter::Counter::default();
    counter.count(Source::Share(two), &[0; COUNTS], &retired);
    assert_eq!(counter.value(), 400);
}

#[test]
fn declared_rates_are_never_zero() {
    for line in INTEL_MODELS.iter().flat_map(|model| model.list.events) {
        let rate = select(line.event, line.umask).declared_rate(Activity::Memory);
        let Source::Share(share) = rate else {
            panic!("{line:?} has no rate");
        };
        assert!((1..=63).contains(&share.high));
    }
}

#[test]
fn offcore_requests_above_the_responses() {
    let offcore = crate::model::find(6, GRACEMONT).unwrap().offcore;
    let count = |register| offcore_response(offcore, register);
    let one = count(0x1_0001);
    assert_ne!(one, Source::Nothing);
    // OCR.FULL_STREAMING_WR.ANY_RESPONSE; outstanding requests
    assert_eq!(count(0x8000_0001_0000), one);
    assert_eq!(count(0x8000_0000_0001_0001), one);
    assert_eq!(count(0x8000_0000_0000_0001), Source::Nothing);
    assert_eq!(count(0x8000_0000_0000), Source::Nothing);
}
