// SPDX-License-Identifier: GPL-2.0

use crate::logic::{
    capabilities::{
        Capabilities,
        Cpuid, //
    },
    cores::CoreType,
    model::{
        constraint::Constraint,
        models,
        Model,
        Vendor,
        AMD_15H,
        AMD_K8,
        AMD_ZEN,
        AMD_ZEN_2,
        AMD_ZEN_4, //
    },
    pmu::PmuInfo,
    regs::{
        counter::CounterMask,
        event_select::EventSelect, //
    },
    sched::assign::Problem, //
};

/// Returns the constraint of an event on a machine with this number of counters.
fn constraint(model: &'static Model, counters: u8, event: EventSelect) -> Constraint {
    let mut capabilities = Capabilities::decode_amd(&Cpuid::default()).unwrap();
    capabilities.counters = CounterMask::first_gp(counters);
    let pmu = PmuInfo::new(model, capabilities);
    pmu.constraint(event)
}

/// Mainline refuses this set, six events on six counters: `perf_sched_restore_state()` does not
/// restore the number of general-purpose counters in use.
#[test]
fn a_set_that_mainline_refuses_fits() {
    let mut problem = Problem::new(6);
    for code in [0x02e, 0x076, 0x080, 0x07d, 0x1c0, 0x000] {
        let constraint = constraint(&AMD_15H, 6, EventSelect::amd_event(code, 0));
        problem.push(constraint, None).unwrap();
    }
    assert!(problem.solve().is_ok());
}

#[test]
fn pairs_need_their_second_counter() {
    let flops = EventSelect::amd_event(0x003, 0xff);
    for (counters, firsts) in [(6, 0b01_0101), (5, 0b00_0101), (1, 0)] {
        let found = constraint(&AMD_ZEN, counters, flops);
        assert_eq!(found.counters.bits(), firsts, "{counters}");
    }
}

#[test]
fn three_pairs_fill_six_counters() {
    let fits = |pairs: usize, singles: usize| {
        let mut problem = Problem::new(6);
        let codes = [0x003].iter().cycle().take(pairs);
        for code in codes.chain([0x076].iter().cycle().take(singles)) {
            let constraint = constraint(&AMD_ZEN, 6, EventSelect::amd_event(*code, 0x1));
            problem.push(constraint, None).unwrap();
        }
        problem.solve().is_ok()
    };
    assert!(fits(3, 0) && fits(2, 2) && fits(0, 6));
    assert!(!fits(3, 1) && !fits(2, 3) && !fits(4, 0));
}

#[test]
fn k8_counts_northbridge_events_for_the_node() {
    let northbridge = EventSelect::amd_event(0x0e9, 0x1f);
    assert!(constraint(&AMD_K8, 4, northbridge).northbridge);
    assert!(!constraint(&AMD_K8, 4, EventSelect::amd_event(0x0d0, 0)).northbridge);
    assert!(!constraint(&AMD_ZEN, 6, northbridge).northbridge);
    assert!(!constraint(&AMD_15H, 6, northbridge).is_satisfiable());
}

#[test]
fn each_generation_has_its_model() {
    for (vendor, family, number, expected) in [
        (Vendor::Amd, 0x0f, 0x41, &AMD_K8),
        (Vendor::Amd, 0x10, 0x02, &AMD_K8),
        (Vendor::Amd, 0x15, 0x02, &AMD_15H),
        (Vendor::Amd, 0x16, 0x30, &AMD_K8),
        (Vendor::Amd, 0x17, 0x01, &AMD_ZEN),
        (Vendor::Amd, 0x17, 0x31, &AMD_ZEN_2),
        (Vendor::Hygon, 0x18, 0x00, &AMD_ZEN),
        (Vendor::Amd, 0x19, 0x01, &AMD_ZEN_2),
        (Vendor::Amd, 0x19, 0x11, &AMD_ZEN_4),
        (Vendor::Amd, 0x1a, 0x02, &AMD_ZEN_4),
    ] {
        let found = models().find(|model| model.is_for(vendor, family, number, CoreType::Only));
        let name = found.map(|model| model.name);
        assert_eq!(name, Some(expected.name), "{family:#x} {number:#x}");
    }
}
