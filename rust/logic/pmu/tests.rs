// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::Interface,
    model::{
        AMD_15H,
        AMD_K8,
        AMD_ZEN,
        AMD_ZEN_2,
        GOLDEN_COVE,
        NEHALEM,
        NOT_DRIVEN,
        WESTMERE, //
    },
    regs::counter::CounterMask, //
};

fn cpuid(signature: u32, version: u32, gp: u32) -> Cpuid {
    Cpuid::intel(version, gp, 3).with_signature(signature)
}

fn haswell() -> Cpuid {
    cpuid(0x306c3, 3, 4)
}

fn skylake() -> Cpuid {
    cpuid(0x506e3, 4, 4)
}

fn probe(cpuid: &Cpuid) -> PmuInfo {
    PmuInfo::probe(cpuid, Some(0x2000)).unwrap()
}

#[test]
fn every_supported_model_is_found() {
    // Family 6, model, stepping 1 as leaf 1 EAX has them.
    for (eax, pmu_name) in [
        (0x306c1, "haswell"),
        (0x306f1, "haswell"),
        (0x40651, "haswell"),
        (0x40661, "haswell"),
        (0x306d1, "broadwell"),
        (0x40671, "broadwell"),
        (0x406f1, "broadwell"),
        (0x50661, "broadwell"),
        (0x406e1, "skylake"),
        (0x50651, "skylake"),
        (0x506e1, "skylake"),
        (0x806e1, "skylake"),
        (0x906e1, "skylake"),
        (0xa0651, "skylake"),
        (0xa0661, "skylake"),
    ] {
        let pmu = probe(&cpuid(eax, 4, 4));
        assert_eq!(pmu.model.pmu_name, pmu_name, "{eax:#x}");
    }
}

#[test]
fn a_metric_counts_all_slots_without_perf_metrics() {
    let mut pmu = probe(&cpuid(0x606a6, 5, 8));
    let fixed = pmu.capabilities.counters.fixed();
    let retiring = EventSelect::event(0x00, 0x80);
    let slots = EventSelect::event(0x00, 0x04);
    for (perf_metrics, has_slots) in [(false, true), (false, false), (true, true)] {
        pmu.capabilities.perf_metrics = perf_metrics;
        let counters = if has_slots {
            CounterId::SLOTS.mask()
        } else {
            fixed.without(CounterId::SLOTS.mask())
        };
        pmu.capabilities.counters = pmu.capabilities.counters.gp() | counters;
        let found = pmu.constraint(retiring).counters;
        let expected = if perf_metrics {
            CounterMask::EMPTY
        } else {
            pmu.constraint(slots).counters
        };
        assert_eq!(found, expected, "{perf_metrics} {has_slots}");
        assert_eq!(found.is_empty(), perf_metrics || !has_slots);
    }
}

#[test]
fn every_cpuid_model_has_a_model_or_a_refusal() {
    let mut counts = [0; 2];
    for number in 0..=0xff_u32 {
        let eax = 0x600 | ((number & 0xf) << 4) | ((number >> 4) << 16);
        // CAST: below 256.
        let number = number as u8;
        // Without leaf 0x1A, a hybrid has big cores only.
        let is_it = |model: &&&Model| {
            [CoreType::Only, CoreType::Big]
                .into_iter()
                .any(|core| model.is_for(Vendor::Intel, 6, number, core))
        };
        let with_table = models().find(is_it);
        match (PmuInfo::probe(&cpuid(eax, 4, 4), None), with_table) {
            (Ok(pmu), Some(model)) => assert_eq!(pmu.model.name, model.name),
            (Ok(pmu), None) => {
                assert_eq!(pmu.model.pmu_name, "generic_arch_v2+");
                counts[0] += 1;
            }
            (Err(Unsupported::NotDriven(cpu)), None) => {
                assert!(cpu.family == 6 && cpu.numbers.contains(&number));
                counts[1] += 1;
            }
            other => panic!("{number:#x}: {other:?}"),
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn unknown_cores_get_the_architectural_model() {
    // Family 6 model 0xfe, and a future family.
    for eax in [0xf06e0, 0x0100_0f10] {
        for (version, pmu_name) in [(2, "generic_arch_v2+"), (5, "generic_arch_v5+")] {
            let pmu = probe(&cpuid(eax, version, 4));
            assert_eq!(pmu.model.pmu_name, pmu_name, "{eax:#x}");
            let cycles = pmu.constraint(EventSelect::event(0x3c, 0));
            assert!(cycles.counters.bits() & 0xf == 0xf);
        }
    }
}

#[test]
fn unsupported_machines() {
    let via = haswell().with_vendor(b"CentaurHauls");
    // An AMD processor with Haswell's family and model.
    let old_amd = haswell().with_vendor(b"AuthenticAMD");
    let mut hybrid = haswell();
    hybrid.leaf_7.edx = 1 << 15;
    let no_pmu = cpuid(0x306c3, 0, 0);
    let mut no_virtual_pmu = no_pmu;
    no_virtual_pmu.leaf_1.ecx = 1 << 31;
    for (cpuid, text) in [
        (
            via,
            "CPU vendor CentaurHauls is not supported, only GenuineIntel, AuthenticAMD and",
        ),
        (old_amd, "family 6 model 0x3c is not"),
        (hybrid, "hybrid CPUs"),
        (no_pmu, "describes no PMU in CPUID leaf 0xA; look"),
        (no_virtual_pmu, "this virtual machine has no PMU; start"),
        (cpuid(0x306c3, 1, 4), "version 1 is too old"),
    ] {
        let refused = PmuInfo::probe(&cpuid, None).unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
}

/// Processors that mainline drives are named, with and without the hybrid bit.
#[test]
fn processors_that_are_not_driven_are_named_with_their_needs() {
    for (eax, hybrid, text) in [
        (0x6ec, false, "Core Duo is not supported yet: it needs counters without GLOBAL_CTRL"),
        (0x6fb, false, "Core 2 is not supported yet: it needs a table of its events"),
        (
            0xd06d0,
            false,
            "Clearwater Forest is not supported yet: it needs a table of its events, CPUID leaf \
             0x23 and architectural PEBS",
        ),
        (
            0x40_0f10,
            false,
            "Diamond Rapids is not supported yet: it needs a table of its events, CPUID leaf 0x23, \
             offmodule response and architectural PEBS",
        ),
        (
            0xc06c0,
            true,
            "Panther Lake is not supported yet: it needs a table of its events, CPUID leaf 0x23, \
             ten general-purpose counters and architectural PEBS",
        ),
        (
            0x30_0f10,
            true,
            "Nova Lake is not supported yet: it needs a table of its events, CPUID leaf 0x23, \
             offmodule response and architectural PEBS",
        ),
        (
            0xa06a0,
            true,
            "Meteor Lake is not supported yet: it needs CPUID leaf 0x23",
        ),
        // Panther Lake-R, which mainline does not know.
        (
            0xe0650,
            true,
            "hybrid CPUs (different kinds of cores) are not supported",
        ),
    ] {
        let mut cpuid = cpuid(eax, 5, 8);
        cpuid.leaf_7.edx = u32::from(hybrid) << 15;
        let refused = PmuInfo::probe(&cpuid, None).unwrap_err();
        let text = format!("{text}; keep the built-in driver");
        assert_eq!(refused.to_string(), text, "{eax:#x}");
    }
    // A virtual machine without a PMU says so.
    let mut none = cpuid(0x90670, 0, 0);
    none.leaf_1.ecx = 1 << 31;
    let refused = PmuInfo::probe(&none, None).unwrap_err();
    assert_eq!(refused, Unsupported::NoVirtualPmu);
}

#[test]
fn every_processor_that_is_not_driven_has_a_need() {
    for cpu in NOT_DRIVEN {
        assert!(!cpu.needs.is_empty(), "{}", cpu.name);
        let found = |number: &u8| NotDriven::find(cpu.family, *number) == Some(cpu);
        assert!(cpu.numbers.iter().all(found), "{}", cpu.name);
        assert!(cpu.to_string().len() < 220, "{cpu}");
    }
}

/// Leaf 0xA and the hybrid bit of an AMD processor are ignored.
#[test]
fn amd_processors() {
    use Interface::{
        AmdCore,
        AmdLegacy,
        AmdV2, //
    };

    const AMD: &[u8; 12] = b"AuthenticAMD";
    const HYGON: &[u8; 12] = b"HygonGenuine";
    // Vendor, leaf 1 EAX, PerfCtrExtCore, leaf 0x8000_0022 EAX and EBX; model, interface, counters.
    for (name, eax, core, v2, model, interface, counters) in [
        (AMD, 0x0083_0f10, true, (0, 0), &AMD_ZEN_2, AmdCore, 6),
        (AMD, 0x00a1_0f11, true, (1, 6), &AMD_ZEN_4, AmdV2, 6),
        (AMD, 0x00a1_0f11, true, (1, 15), &AMD_ZEN_4, AmdV2, 15),
        // Without PerfCtrExtCore, PerfMonV2 is ignored.
        (AMD, 0x00a1_0f11, false, (1, 6), &AMD_ZEN_4, AmdLegacy, 4),
        (AMD, 0x00b0_0f20, true, (1, 6), &AMD_ZEN_4, AmdV2, 6),
        // A future family.
        (AMD, 0x00f0_0f10, true, (1, 8), &AMD_ZEN_4, AmdV2, 8),
        (HYGON, 0x0090_0f01, true, (0, 0), &AMD_ZEN, AmdCore, 6),
        (AMD, 0x0010_0f42, false, (0, 0), &AMD_K8, AmdLegacy, 4),
        (AMD, 0x0060_0f12, true, (0, 0), &AMD_15H, AmdCore, 6),
    ] {
        let mut cpuid = cpuid(eax, 0, 0).with_vendor(name);
        cpuid.leaf_7.edx = 1 << 15;
        cpuid.leaf_8000_0001.ecx = u32::from(core) << 23;
        (cpuid.leaf_8000_0022.eax, cpuid.leaf_8000_0022.ebx) = v2;
        let found = probe(&cpuid);
        assert_eq!(found.model.name, model.name, "{eax:#x}");
        let Capabilities {
            interface: found_interface,
            counters: found_counters,
            width,
            ..
        } = found.capabilities;
        assert_eq!(found_interface, interface, "{eax:#x}");
        assert_eq!(found_counters, CounterMask::first_gp(counters), "{eax:#x}");
        assert_eq!(width.bits(), 48);
    }
    // PerfMonV2 without a counter.
    let mut none = cpuid(0x00a1_0f11, 0, 0).with_vendor(AMD);
    none.set_amd(true, true);
    assert_eq!(PmuInfo::probe(&none, None).unwrap_err(), Unsupported::NoPmu);
}

#[test]
fn goldmont_samples_on_counter_0_alone() {
    let cpuid = cpuid(0x506c9, 4, 4).with_debug_store();
    let pmu = PmuInfo::probe(&cpuid, Some(0x3300)).unwrap();
    assert_eq!(pmu.max_precise(), 3);
    for precise_ip in 1..=3 {
        let counters = |select| pmu.precise_constraint(select, precise_ip).counters.bits();
        for code in [0x00c0, 0x003c, 0x81d0, 0x01b7] {
            let select = EventSelect::from_bits(code);
            assert_eq!(counters(select), 1, "{code:#x}");
            assert_eq!(
                counters(select.with(EventSelect::EDGE, true)),
                0,
                "{code:#x}"
            );
        }
    }
}

#[test]
fn silvermont_has_eight_records_of_branches() {
    let cpuid = cpuid(0x406d8, 3, 2).with_debug_store();
    let pmu = PmuInfo::probe(&cpuid, Some(0x3201)).unwrap();
    // Unlike Goldmont, without the maximum precision.
    assert_eq!(pmu.max_precise(), 2);
    let lbr = pmu.lbr.unwrap();
    assert_eq!(lbr.depth, 8);
    assert!(lbr.is_in_core_2_registers());
    let select = EventSelect::from_bits(0x00c4);
    assert_eq!(pmu.precise_constraint(select, 1).counters.bits(), 1);
    assert_eq!(pmu.constraint(select).counters.bits(), 3);
}

#[test]
fn broadwell_constraints() {
    let pmu = probe(&cpuid(0x306d4, 3, 4));
    for (config, counters) in [
        (0x0000_00c0, 0x1_0000_000f),
        (0x0000_01c0, 0x2),
        (0x0000_01cd, 0x8),
        (0x0000_0148, 0x4),
        (0x0000_08a3, 0x4),
        (0x0000_0ca3, 0x4),
        (0x0000_04a3, 0xf),
        (0x0000_82d0, 0xf),
    ] {
        let constraint = pmu.constraint(EventSelect::from_bits(config));
        assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
        assert!(!constraint.corrupting, "no erratum");
    }
}

/// Returns a PMU of this model, whether the driver supports it or not.
fn pmu_of(model: &'static Model, leaf_a_ebx: u32) -> PmuInfo {
    let mut cpuid = cpuid(0, 4, 4);
    cpuid.leaf_a.ebx = leaf_a_ebx;
    PmuInfo::new(model, Capabilities::decode(&cpuid, None).unwrap())
}

#[test]
fn executed_branch_misses_stand_in_for_retired_ones() {
    for (ebx, expected) in [(0, 0x00c5), (1 << 6, 0x7f89)] {
        let found = pmu_of(&NEHALEM, ebx).hardware_event(HardwareId::BranchMisses);
        assert_eq!(found.map(EventSelect::bits), Some(expected));
    }
    let westmere = pmu_of(&WESTMERE, 1 << 6);
    assert_eq!(westmere.hardware_event(HardwareId::BranchMisses), None);
}

#[test]
fn reference_cycles_are_an_event_of_their_own_unless_absent() {
    for (ebx, expected, bus) in [(0, 0x013c, Some(0x013c)), (1 << 2, 0x0300, None)] {
        let pmu = pmu_of(&GOLDEN_COVE, ebx);
        let bits = |id| pmu.hardware_event(id).map(EventSelect::bits);
        assert_eq!(bits(HardwareId::RefCpuCycles), Some(expected));
        assert_eq!(bits(HardwareId::BusCycles), bus);
    }
}

#[test]
fn haswell_constraints() {
    let pmu = probe(&haswell());
    for (config, counters) in [
        (0x0_00c0, 0x1_0000_000f), // instructions
        (0x3_003c, 0x2_0000_000f), // cycles
        (0x0_0300, 0x4_0000_0000), // reference cycles
        (0x0_0148, 0x4),           // L1D_PEND_MISS.PENDING
        (0x0_01c0, 0x2),           // INST_RETIRED.PREC_DIST
        (0x0_02cd, 0x8),           // MEM_TRANS_RETIRED
        (0x0_08a3, 0x4),
        (0x0_0ca3, 0x4),
        (0x0_04a3, 0xf),
        (0x0_82d0, 0xf),
        (0x0_013c, 0xf),    // bus cycles, unconstrained
        (0x0_00c4, 0xf),    // branches, unconstrained
        (0x0104_003c, 0xf), // cycles with filters
    ] {
        let constraint = pmu.constraint(EventSelect::from_bits(config));
        assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
        assert_eq!(constraint.corrupting, config & 0xff == 0xd0, "{config:#x}");
    }
}

#[test]
fn haswell_constraints_with_one_thread_a_core() {
    let pmu = probe(&cpuid(0x306c3, 3, 8));
    for (config, counters, corrupting) in [
        (0x003c, 0x2_0000_00ff, false),
        (0x01a3, 0xff, false),
        (0x02a3, 0xf, false),
        (0x04a3, 0xf, false),
        (0x01b7, 0xf, false), // OFFCORE_RESPONSE
        (0x01bb, 0xf, false),
        (0x010e, 0xff, false),      // UOPS_ISSUED.ANY
        (0x0180_010e, 0xf, false),  // UOPS_ISSUED.STALL_CYCLES
        (0x01a0_010e, 0xf, false),  // the same for any thread
        (0x0280_010e, 0xff, false), // in no list
        (0x82d0, 0xf, true),
        (0x01d1, 0xf, true),
        (0x01d2, 0xf, true),
        (0x01d3, 0xf, true),
    ] {
        let constraint = pmu.constraint(EventSelect::from_bits(config));
        assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
        assert_eq!(constraint.corrupting, corrupting, "{config:#x}");
    }
}

#[test]
fn skylake_constraints_with_one_thread_a_core() {
    let pmu = probe(&cpuid(0x506e3, 4, 8));
    for (config, counters) in [
        (0x00c0, 0x1_0000_00ff),
        (0x01c0, 0x2),
        (0x0a80_01c0, 0xd), // INST_RETIRED.TOTAL_CYCLES_PS
        (0x01b7, 0xf),
        (0x01bb, 0xf),
        (0x0148, 0xff),
        (0x81d0, 0xf),
        (0x20d1, 0xf),
        (0x01d2, 0xf),
        (0x02cd, 0xf),
        (0x01c6, 0xf),
        (0x00c4, 0xff),
    ] {
        let constraint = pmu.constraint(EventSelect::from_bits(config));
        assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
        assert!(!constraint.corrupting);
    }
}

#[test]
fn events_of_user_mode_alone_stay_off_broadwells_upper_counters() {
    let broadwell = |gp: u32| probe(&cpuid(0x306d4, 3, gp));
    let haswell = probe(&cpuid(0x306c3, 3, 8));
    let (usr, os) = (EventSelect::USR, EventSelect::OS);
    for (pmu, levels, code, counters) in [
        (broadwell(8), usr, 0x00c4, 0xf),
        (broadwell(8), os, 0x00c4, 0xff),
        (broadwell(8), usr | os, 0x00c4, 0xff),
        (broadwell(8), 0, 0x00c4, 0xff),
        (broadwell(8), usr, 0x00c0, 0x1_0000_000f),
        (broadwell(8), usr, 0x0148, 0x4),
        (broadwell(4), usr, 0x00c4, 0xf),
        (haswell, usr, 0x00c4, 0xff),
    ] {
        let select = EventSelect::from_bits(code | levels);
        let found = pmu.constraint(select).counters.bits();
        assert_eq!(found, counters, "{} {levels:#x} {code:#x}", pmu.model.name);
    }
}

#[test]
fn checkpointed_events_count_on_counter_2_or_not_at_all() {
    let pmu = probe(&haswell());
    for (code, counters) in [(0x00c0, 0x4), (0x0148, 0x4), (0x01c0, 0), (0x01cd, 0)] {
        let select = EventSelect::from_bits(code | EventSelect::IN_TX_CHECKPOINTED);
        assert_eq!(
            pmu.constraint(select).counters,
            CounterMask::from_bits(counters),
            "{code:#x}"
        );
    }
}

#[test]
fn hardware_events() {
    let pmu = probe(&skylake());
    let configs = HardwareId::ALL.map(|id| pmu.hardware_event(id).map(EventSelect::bits));
    #[rustfmt::skip]
    assert_eq!(configs, [
        Some(0x003c), Some(0x00c0), Some(0x4f2e), Some(0x412e), Some(0x00c4),
        Some(0x00c5), Some(0x013c), None, None, Some(0x0300),
    ]);
}

#[test]
fn absent_events_are_not_offered() {
    for (bit, id) in [
        (0, HardwareId::CpuCycles),
        (1, HardwareId::Instructions),
        (2, HardwareId::BusCycles),
        (3, HardwareId::CacheReferences),
        (4, HardwareId::CacheMisses),
        (5, HardwareId::BranchInstructions),
        (6, HardwareId::BranchMisses),
    ] {
        let mut cpuid = skylake();
        cpuid.leaf_a.ebx = 1 << bit;
        let pmu = probe(&cpuid);
        let full = probe(&skylake());
        for other in HardwareId::ALL {
            let expected = full.hardware_event(other).filter(|_| other != id);
            assert_eq!(pmu.hardware_event(other), expected, "bit {bit} {other:?}");
        }
    }
}

/// The core types of Alder and Raptor Lake: the counters, topdown metrics and model of each.
#[test]
fn hybrids() {
    const BIG: u32 = 0x4000_0001;
    const SMALL: u32 = 0x2000_0001;
    // Leaf 1 EAX, leaf 0x1A EAX, general-purpose and fixed counters in leaf 0xA, and whether
    // IA32_PERF_CAPABILITIES has PERF_METRICS_AVAILABLE; the model, the counters, the metrics.
    for (eax, core, (gp, fixed), bit, name, counters, metrics) in [
        (0x90672, BIG, (6, 3), true, "big", 0xf_0000_00ff, 8),
        (0x90672, SMALL, (6, 3), false, "small", 0x7_0000_003f, 0),
        // The firmware has turned the small cores off.
        (0x906a3, BIG, (8, 4), true, "big", 0xf_0000_00ff, 8),
        // A hypervisor hides PERF_METRICS.
        (0x906a3, BIG, (6, 3), false, "big", 0xf_0000_00ff, 0),
        // Erratum RPL018.
        (0xb0671, BIG, (6, 3), false, "big", 0xf_0000_00ff, 8),
        (0xb06a2, BIG, (6, 3), false, "big", 0xf_0000_00ff, 8),
        (0xb06f2, SMALL, (6, 3), false, "small", 0x7_0000_003f, 0),
    ] {
        let cpuid = Cpuid::intel(5, gp, fixed)
            .with_signature(eax)
            .with_core_type(core);
        let pmu = PmuInfo::probe(&cpuid, Some(u64::from(bit) << 15)).unwrap();
        assert_eq!(pmu.model.name, format!("Alder Lake ({name} cores)"));
        assert_eq!(pmu.model.pmu_name, "alderlake_hybrid");
        assert_eq!(pmu.capabilities.counters.bits(), counters, "{eax:#x}");
        let found = pmu.capabilities.metrics.iter().count();
        assert_eq!(found, metrics, "{eax:#x}");
    }
    // A die with big cores only is no hybrid.
    let cpuid = Cpuid::intel(5, 8, 4).with_signature(0x90675);
    assert_eq!(cpuid.core_type(), Some(CoreType::Big));
    let pmu = PmuInfo::probe(&cpuid, None).unwrap();
    assert_eq!(pmu.capabilities.counters.bits(), 0xf_0000_00ff);
    assert_eq!(pmu.model.name, "Alder Lake (big cores)");
    // An unknown type of core.
    let cpuid = Cpuid::intel(5, 6, 3)
        .with_signature(0x90672)
        .with_core_type(0x6000_0001);
    let refused = PmuInfo::probe(&cpuid, None).unwrap_err();
    assert_eq!(refused, Unsupported::Hybrid);
}
