// SPDX-License-Identifier: GPL-2.0

//! Tests the state that the threads of a core share.

use vpmu::defect::Defects;
use vpmu::model::INTEL_MODELS;
use vpmu::pmu::{
    Counting,
    Pmu, //
};

use super::*;

#[test]
fn the_offcore_registers_belong_to_the_core_or_to_the_thread() {
    for (model, shared) in [
        (NEHALEM, true),
        (WESTMERE, true),
        (SANDY_BRIDGE, false),
        (HASWELL, false),
        (SKYLAKE, false),
        (106, false),
        (143, false),
        (173, false),
        (77, false),
        (95, false),
        (122, false),
        (134, false),
        (190, false),
        (175, false),
    ] {
        let model = find(model);
        let registers = model.offcore.registers as u32;
        let event = if matches!(model.name, "Golden Cove" | "Redwood Cove") {
            0x12a
        } else {
            0x1b7
        };
        let value = if shared { 0x0101 } else { 0x1_0001 };
        for (writer, reader) in [(0, 1), (1, 0)] {
            let mut pmus = core(model, model.defects.usual());
            select(&mut pmus[reader], 0, event | COUNTS);
            for msr in 0x1a6..0x1a6 + registers {
                write(&mut pmus[writer], msr, value);
                assert_eq!(read(&pmus[writer], msr), value);
                let expected = if shared { value } else { 0 };
                assert_eq!(read(&pmus[reader], msr), expected, "{}", model.name);
            }
            retire(&mut pmus[reader], 1 << 20);
            let counts = pmus[reader].rdpmc(0) != Ok(0);
            assert_eq!(counts, shared, "{}", model.name);
            pmus[0].reset();
            pmus[1].reset();
            for pmu in &pmus {
                assert_eq!(read(pmu, 0x1a6), 0, "{}", model.name);
            }
        }
    }
}

/// Counters, their control registers, IA32_DEBUGCTL and MSR_PEBS_LD_LAT are per thread on all
/// models.
#[test]
fn the_other_registers_belong_to_the_thread() {
    for model in &INTEL_MODELS {
        let [mut a, b] = core(model, model.defects.usual());
        // Without an event of load latency, there is no MSR_PEBS_LD_LAT.
        let latency = (model.list.load_latency != 0).then_some(0x3f6);
        for msr in [0xc1, 0x186, 0x1d9, 0x309, 0x38d]
            .into_iter()
            .chain(latency)
        {
            write(&mut a, msr, 2);
            assert_eq!(read(&b, msr), 0, "{} {msr:#x}", model.name);
        }
    }
}

const ANY_THREAD: u64 = 1 << 21;
const FIXED_CTRL: u32 = 0x38d;

#[test]
fn any_thread_counts_both_threads() {
    const OS: u64 = 1 << 17;
    for model in INTEL_MODELS.iter().filter(|model| model.any_thread) {
        let [mut a, mut b] = core(model, Defects::NONE);
        // Silvermont has two counters, and no cores with two threads.
        if a.rdpmc(3).is_err() {
            continue;
        }
        write(&mut a, GLOBAL_CTRL, 0x1_0000_000f);
        assert_eq!(b.counting(), Counting::Nothing, "{}", model.name);
        for (counter, levels) in [(0, USR | OS), (1, USR), (2, OS)] {
            select(&mut a, counter, INSTRUCTIONS | levels | EN | ANY_THREAD);
        }
        select(&mut a, 3, INSTRUCTIONS | USR | OS | EN);
        write(&mut a, FIXED_CTRL, 0x7);
        // QEMU asks the sibling again, once, and then counts everything for it.
        assert!(a.sibling_must_ask());
        assert!(!a.sibling_must_ask());
        assert_eq!(b.counting(), Counting::All, "{}", model.name);
        for (user, count) in [(true, 1000), (false, 200)] {
            retire_at(&mut a, user, count);
            retire_at(&mut b, user, 10 * count);
        }
        assert!(b.budget(true) < 1 << 12 && a.budget(true) < 1 << 12);
        retire_at(&mut a, true, 1);
        let counts = [0, 1, 2, 3].map(|counter| a.rdpmc(counter).unwrap());
        assert_eq!(counts, [13_201, 11_001, 2200, 1201], "{}", model.name);
        assert_eq!(a.rdpmc(1 << 30), Ok(13_201), "{}", model.name);
        assert_eq!(b.rdpmc(0), Ok(0), "{}", model.name);
        // Events that retired while no counter had AnyThread are not counted.
        write(&mut a, GLOBAL_CTRL, 0);
        assert!(a.sibling_must_ask());
        retire_at(&mut b, true, 5000);
        assert_eq!(b.counting(), Counting::Nothing, "{}", model.name);
        write(&mut a, GLOBAL_CTRL, 1);
        retire_at(&mut a, true, 1);
        assert_eq!(a.rdpmc(0), Ok(13_202), "{}", model.name);
        a.reset();
        assert_eq!(b.counting(), Counting::Nothing, "{}", model.name);
    }
}

#[test]
fn any_thread_has_no_effect_with_one_thread_per_core() {
    let mut pmu = Pmu::new(find(HASWELL), 1);
    write(&mut pmu, GLOBAL_CTRL, 1);
    select(&mut pmu, 0, INSTRUCTIONS | COUNTS | ANY_THREAD);
    assert!(!pmu.sibling_must_ask());
    retire(&mut pmu, 1000);
    assert_eq!(pmu.rdpmc(0), Ok(1000));
}

/// A rare event with AnyThread counts its share of the loads of both threads.
#[test]
fn any_thread_has_its_share_of_both() {
    let [mut a, mut b] = core(find(BROADWELL), Defects::NONE);
    select(&mut a, 0, 0x20d1 | COUNTS | ANY_THREAD); // MEM_LOAD_UOPS_RETIRED.L3_MISS
    for step in 0..1000 {
        retire_at(&mut a, true, 100 + step % 7);
        retire_at(&mut b, true, 300 + step % 11);
    }
    let truth = 1000 * (103 + 305) * 8 / 4096;
    let count = a.rdpmc(0).unwrap();
    assert!(count.abs_diff(truth) <= 4, "{count}, not {truth}");
}
