// SPDX-License-Identifier: GPL-2.0

//! Tests hybrid processors: Alder Lake and Raptor Lake.

use vpmu::defect::Defects;
use vpmu::model;
use vpmu::pmu::Pmu;
use vpmu::shared::{
    Core,
    Thread, //
};
use vpmu::Fault;

use super::{
    read,
    retire,
    select,
    write,
    COUNTS,
    GLOBAL_CTRL, //
};

const ALDER_LAKE: u32 = 151;
const RAPTOR_LAKE: u32 = 183;
const HYBRID: u32 = 1 << 15;
const CAPABILITIES: u32 = 0x345;

/// Creates the PMU of a core.
fn core(model: u32, stepping: u32, core: u32) -> Pmu {
    let (model, core_type) = model::find_core(6, model, stepping, core).unwrap();
    Pmu::on(Thread::new(Core::new(1), 0), model, Defects::NONE).of_type(core_type)
}

/// Leaf 0AH of an Alder Lake with both types of cores: six general counters, three fixed counters,
/// seven architectural events, no AnyThread.
#[test]
fn cpuid_has_the_type_and_what_the_types_have_in_common() {
    for (model, stepping) in [
        (ALDER_LAKE, 2),
        (154, 3),
        (RAPTOR_LAKE, 1),
        (186, 2),
        (191, 2),
    ] {
        for (number, native_id) in [
            (0, 0x4000_0001),
            (1, 0x4000_0001),
            (2, 0x2000_0001),
            (9, 0x2000_0001),
        ] {
            let pmu = core(model, stepping, number);
            assert_eq!(pmu.cpuid(0x1a, 0, [0; 4]), [native_id, 0, 0, 0]);
            assert_eq!(pmu.cpuid(0xa, 0, [0; 4]), [0x0730_0605, 0, 7, 0x8603]);
            assert_eq!(pmu.cpuid(7, 0, [0; 4])[3] & HYBRID, HYBRID);
            assert_eq!(pmu.cpuid(7, 1, [0; 4]), [0; 4]);
        }
    }
}

/// Dies with big cores only are not hybrid, and neither are other processors.
#[test]
fn other_processors_are_not_hybrid() {
    for (model, stepping, name) in [
        (ALDER_LAKE, 5, "Golden Cove (client)"),
        (191, 5, "Golden Cove (client)"),
        (190, 0, "Gracemont"),
        (143, 5, "Golden Cove"),
    ] {
        for number in [0, 2] {
            let (found, core_type) = model::find_core(6, model, stepping, number).unwrap();
            assert_eq!(found.name, name);
            assert!(core_type.is_none());
            let pmu = core(model, stepping, number);
            assert_eq!(pmu.cpuid(0x1a, 0, [0; 4]), [0; 4]);
            assert_eq!(pmu.cpuid(7, 0, [0; 4])[3] & HYBRID, 0);
        }
    }
    let pmu = core(ALDER_LAKE, 5, 2);
    assert_eq!(pmu.cpuid(0xa, 0, [0; 4]), [0x0830_0805, 0, 0xf, 0x8604]);
    assert!(model::find_core(6, 1, 0, 0).is_none());
    // A test that looks for a processor with one type must not find half of one.
    assert!(model::find(6, ALDER_LAKE).is_none());
}

/// Each type has its own counters and registers, whatever leaf 0AH of CPUID has.
#[test]
fn each_type_has_its_own_registers() {
    for (number, generals, fixed, capabilities, big) in
        [(0, 8, 4, 0xb03f, true), (2, 6, 3, 0x303f, false)]
    {
        let pmu = &mut core(ALDER_LAKE, 2, number);
        for index in 0..8 {
            let there = index < generals;
            for first in [0xc1, 0x186, 0x4c1] {
                assert_eq!(pmu.rdmsr(first + index).unwrap().is_ok(), there);
            }
            assert_eq!(pmu.rdpmc(index).is_ok(), there);
        }
        for index in 0..4 {
            let there = index < fixed;
            assert_eq!(pmu.rdmsr(0x309 + index).unwrap().is_ok(), there);
        }
        // MSR_PERF_METRICS, MSR_PEBS_FRONTEND
        for msr in [0x329, 0x3f7] {
            assert_eq!(pmu.rdmsr(msr).unwrap().is_ok(), big, "{msr:#x}");
        }
        assert_eq!(read(pmu, CAPABILITIES), capabilities);
        let metrics = u64::from(big) << 48;
        let all = ((1 << generals) - 1) | (((1 << fixed) - 1) << 32) | metrics;
        write(pmu, GLOBAL_CTRL, all);
        assert_eq!(
            pmu.wrmsr(GLOBAL_CTRL, all | (1 << generals)),
            Some(Err(Fault))
        );
    }
}

/// Each type has its own event list: LSD.UOPS and TOPDOWN_FE_BOUND.ALL are in one of them each,
/// MEM_INST_RETIRED.ALL_LOADS or MEM_UOPS_RETIRED.ALL_LOADS is for four or for all counters, and
/// TOPDOWN.BAD_SPEC_SLOTS for the first.
#[test]
fn each_type_has_its_own_events() {
    for (event, big, small) in [
        (0x01a8, 0xff, 0),
        (0x0071, 0, 0x3f),
        (0x81d0, 0x0f, 0x3f),
        (0x04a4, 0x01, 0),
    ] {
        for (number, generals, counters) in [(0, 8, big), (2, 6, small)] {
            for index in 0..generals {
                let pmu = &mut core(ALDER_LAKE, 2, number);
                write(pmu, GLOBAL_CTRL, 1 << index);
                select(pmu, index, event | COUNTS);
                retire(pmu, 1 << 20);
                let counts = pmu.rdpmc(index) != Ok(0);
                assert_eq!(
                    counts,
                    counters & (1 << index) != 0,
                    "{event:#x} {number} {index}"
                );
            }
        }
    }
}

/// Otherwise perf's named events could not be programmed.
#[test]
fn the_registers_take_all_values_in_intels_lists() {
    for number in [0, 2] {
        let (model, _) = model::find_core(6, ALDER_LAKE, 2, number).unwrap();
        assert_eq!(model.list.offcore & !model.offcore.bits(0), 0);
        assert_ne!(model.list.offcore, 0);
        assert_eq!(model.list.frontend & !model.frontend, 0);
        assert_eq!(model.list.frontend == 0, model.frontend == 0);
        assert_ne!(model.list.load_latency, 0);
    }
}

/// The types have PEBS, with the formats of their cores.
#[test]
fn pebs_exists_on_request() {
    for number in [0, 2] {
        let pmu = core(ALDER_LAKE, 2, number).with_pebs().unwrap();
        assert_eq!((read(&pmu, CAPABILITIES) >> 8) & 0xf, 4, "{number}");
    }
}
