// SPDX-License-Identifier: GPL-2.0

//! Tests the hardware's defects, each on and off.

use vpmu::defect::Defects;
use vpmu::model::{
    Model,
    INTEL_MODELS, //
};
use vpmu::pmu::Pmu;
use vpmu::shared::{
    Core,
    Thread, //
};
use vpmu::Fault;

use super::*;

/// One event of each code that leaks; the first is MEM_UOPS_RETIRED.ALL_LOADS.
const CORRUPTING: [u64; 4] = [0x81d0, 0x1d1, 0x1d2, 0x1d3];

const LOADS: u64 = CORRUPTING[0];
const TSX_FORCE_ABORT: u32 = 0x10f;

/// Returns the count of an event for these instructions if nothing leaks.
fn truth(model: &'static Model, event: u64, instructions: i64) -> u64 {
    let mut pmu = Pmu::new(model, 2);
    write(&mut pmu, GLOBAL_CTRL, 0xf);
    select(&mut pmu, 1, event | COUNTS);
    retire(&mut pmu, instructions);
    let count = pmu.rdpmc(1).unwrap();
    assert!(count > 50, "{event:#x}");
    count
}

#[test]
fn every_fourth_corrupting_event_leaks() {
    const N: i64 = 100_003;
    for (model, usual, events) in [
        (SANDY_BRIDGE, true, &CORRUPTING[..3]), // the list has no 0xD3
        (IVY_BRIDGE, true, &CORRUPTING),
        (HASWELL, true, &CORRUPTING),
        (BROADWELL, false, &CORRUPTING),
    ] {
        let model = find(model);
        for &event in events {
            let counted = truth(model, event, N);
            for (defects, leaks) in [(model.defects.usual(), usual), (Defects::NONE, false)] {
                let [mut a, mut b] = core(model, defects);
                select(&mut a, 1, event | COUNTS);
                for counter in 0..3 {
                    select(&mut b, counter, INSTRUCTIONS | COUNTS);
                }
                // In pieces, between which nothing may get lost.
                for _ in 0..N / 7 {
                    retire(&mut a, 7);
                }
                retire(&mut a, N % 7);
                retire(&mut b, 10);
                let leaked = if leaks { counted / 4 } else { 0 };
                assert_eq!(
                    a.rdpmc(1),
                    Ok(counted - leaked),
                    "{} {event:#x}",
                    model.name
                );
                let counts = [0, 1, 2].map(|counter| b.rdpmc(counter).unwrap());
                assert_eq!(counts, [10, 10 + leaked, 10], "{} {event:#x}", model.name);
            }
        }
    }
}

#[test]
fn corrupting_events_leak_in_both_directions() {
    let model = find(HASWELL);
    let [mut a, mut b] = core(model, model.defects.usual());
    select(&mut a, 2, CORRUPTING[1] | COUNTS);
    select(&mut b, 2, CORRUPTING[3] | COUNTS);
    retire(&mut a, 1_000_000);
    retire(&mut b, 3_000_000);
    retire(&mut a, 0);
    let of_a = truth(model, CORRUPTING[1], 1_000_000);
    let of_b = truth(model, CORRUPTING[3], 3_000_000);
    // Events from the sibling do not leak back.
    assert_eq!(a.rdpmc(2), Ok(of_a - of_a / 4 + of_b / 4));
    assert_eq!(b.rdpmc(2), Ok(of_b - of_b / 4 + of_a / 4));
}

#[test]
fn nothing_leaks_unless_the_sibling_counts() {
    const N: i64 = 1_000_000;
    let model = find(HASWELL);
    let all = truth(model, LOADS, N);
    // The sibling's event select 1 and IA32_PERF_GLOBAL_CTRL.
    for (selected, global, leaks) in [
        (0, 0xf, false),
        (INSTRUCTIONS | USR, 0xf, false), // not enabled
        (INSTRUCTIONS | EN, 0xf, false),  // at no privilege level
        (INSTRUCTIONS | COUNTS, 0xd, false),
        (INSTRUCTIONS | COUNTS, 0x2, true),
        (INSTRUCTIONS | EN | (1 << 17), 0x2, true), // OS only: counts nothing in user mode
    ] {
        let [mut a, mut b] = core(model, model.defects.usual());
        select(&mut a, 1, LOADS | COUNTS);
        select(&mut b, 1, selected);
        write(&mut b, GLOBAL_CTRL, global);
        retire(&mut a, N);
        retire(&mut b, 0);
        let leaked = if leaks { all / 4 } else { 0 };
        assert_eq!(a.rdpmc(1), Ok(all - leaked), "{selected:#x} {global:#x}");
        assert_eq!(b.rdpmc(1), Ok(leaked), "{selected:#x} {global:#x}");
    }
}

#[test]
fn events_of_another_kind_do_not_leak() {
    let model = find(HASWELL);
    for event in [INSTRUCTIONS, 0x3c, 0x4c4, 0x1cd, 0x2d0] {
        let [mut a, mut b] = core(model, model.defects.usual());
        select(&mut a, 3, event | COUNTS);
        select(&mut b, 3, INSTRUCTIONS | COUNTS);
        retire(&mut a, 1 << 20);
        retire(&mut b, 0);
        assert_eq!(b.rdpmc(3), Ok(0), "{event:#x}");
    }
}

#[test]
fn nothing_leaks_between_cores_or_with_one_thread_a_core() {
    let model = find(HASWELL);
    for threads in [1, 2] {
        let [mut a, mut b] = [0, 1].map(|index| {
            let thread = match threads {
                // Two cores in both cases, with two threads each or with one each.
                2 => Thread::new(Core::new(2), index),
                _ => Thread::new(Core::new(1), 0),
            };
            let mut pmu = Pmu::on(thread, model, model.defects.usual());
            write(&mut pmu, GLOBAL_CTRL, 0xf);
            pmu
        });
        select(&mut a, 1, LOADS | COUNTS);
        select(&mut b, 1, INSTRUCTIONS | COUNTS);
        retire(&mut a, 1 << 20);
        retire(&mut b, 0);
        assert_eq!(a.rdpmc(1), Ok(truth(model, LOADS, 1 << 20)));
        assert_eq!(b.rdpmc(1), Ok(0));
    }
}

#[test]
fn a_leak_can_overflow_the_siblings_counter() {
    for (int, pmi) in [(0, false), (INT, true)] {
        let model = find(HASWELL);
        let [mut a, mut b] = core(model, model.defects.usual());
        select(&mut a, 0, LOADS | COUNTS);
        select(&mut b, 0, INSTRUCTIONS | COUNTS | int);
        write(&mut b, 0x4c1, (1 << 48) - 10);
        retire(&mut a, 1 << 20);
        assert!(!b.pmi(false));
        retire(&mut b, 0);
        assert_eq!(read(&b, STATUS), 1);
        assert_eq!(b.pmi(false), pmi);
    }
}

#[test]
fn a_leak_into_a_disabled_counter_is_lost() {
    let model = find(HASWELL);
    let [mut a, mut b] = core(model, model.defects.usual());
    select(&mut a, 0, LOADS | COUNTS);
    select(&mut b, 0, INSTRUCTIONS | COUNTS);
    retire(&mut a, 1 << 20);
    select(&mut b, 0, 0);
    retire(&mut b, 0);
    select(&mut b, 0, INSTRUCTIONS | COUNTS);
    retire(&mut b, 1);
    assert_eq!(b.rdpmc(0), Ok(1));
    // RESET disables it as well.
    b.reset();
    retire(&mut a, 1 << 20);
    write(&mut b, GLOBAL_CTRL, 0xf);
    select(&mut b, 0, INSTRUCTIONS | COUNTS);
    retire(&mut b, 1);
    assert_eq!(b.rdpmc(0), Ok(1));
}

#[test]
fn concurrent_threads_lose_nothing() {
    const N: i64 = 20_000;
    let model = find(HASWELL);
    let [mut a, mut b] = core(model, model.defects.usual());
    for pmu in [&mut a, &mut b] {
        select(pmu, 0, LOADS | COUNTS);
    }
    std::thread::scope(|scope| {
        for pmu in [&mut a, &mut b] {
            scope.spawn(move || (0..N).for_each(|_| retire(pmu, 50)));
        }
    });
    retire(&mut a, 0);
    retire(&mut b, 0);
    let each = truth(model, LOADS, 50 * N);
    assert_eq!(a.rdpmc(0), Ok(each));
    assert_eq!(b.rdpmc(0), Ok(each));
}

const SCHEDULE: i64 = 1 << 20;

fn with_tfa() -> Pmu {
    let [mut pmu, _] = core(find(SKYLAKE), find(SKYLAKE).defects.listed("tfa").unwrap());
    for counter in 0..4 {
        select(&mut pmu, counter, INSTRUCTIONS | COUNTS);
    }
    pmu
}

#[test]
fn transactions_corrupt_counter_3_on_schedule() {
    let mut pmu = with_tfa();
    for round in 1..4 {
        retire(&mut pmu, SCHEDULE - 1);
        let before = pmu.rdpmc(0).unwrap();
        assert_eq!(before, round * SCHEDULE as u64 - 1);
        if round == 1 {
            assert_eq!(pmu.rdpmc(3), Ok(before));
            assert_eq!(read(&pmu, 0x189), INSTRUCTIONS | COUNTS);
        } else {
            // The previous round restarted counter 3 from 0.
            assert_eq!(pmu.rdpmc(3), Ok(SCHEDULE as u64 - 1));
        }
        retire(&mut pmu, 1);
        assert_eq!(pmu.rdpmc(3), Ok(0x5a5a_5a5a_5a5a));
        assert_eq!(read(&pmu, 0x189), 0x5a5a);
        for counter in 0..3 {
            assert_eq!(pmu.rdpmc(counter), Ok(before + 1));
            assert_eq!(read(&pmu, 0x186 + counter), INSTRUCTIONS | COUNTS);
        }
        select(&mut pmu, 3, INSTRUCTIONS | COUNTS);
        write(&mut pmu, 0x4c4, 0);
    }
}

#[test]
fn force_abort_protects_counter_3() {
    let mut pmu = with_tfa();
    write(&mut pmu, TSX_FORCE_ABORT, 1);
    retire(&mut pmu, 5 * SCHEDULE / 2);
    assert_eq!(pmu.rdpmc(3), Ok(5 * SCHEDULE as u64 / 2));
    // Instructions that retired under force abort count towards the schedule.
    write(&mut pmu, TSX_FORCE_ABORT, 0);
    retire(&mut pmu, SCHEDULE / 2 - 1);
    assert_eq!(read(&pmu, 0x189), INSTRUCTIONS | COUNTS);
    retire(&mut pmu, 1);
    assert_eq!(read(&pmu, 0x189), 0x5a5a);
}

#[test]
fn nothing_is_in_a_transaction() {
    const IN_TX: u64 = 1 << 32;
    const IN_TXCP: u64 = 1 << 33;

    let mut pmu = with_tfa();
    select(&mut pmu, 1, INSTRUCTIONS | COUNTS | IN_TX);
    select(&mut pmu, 2, INSTRUCTIONS | COUNTS | IN_TXCP);
    retire(&mut pmu, 1000);
    assert_eq!([0, 1, 2].map(|i| pmu.rdpmc(i).unwrap()), [1000, 0, 1000]);
    select(&mut pmu, 2, INSTRUCTIONS | COUNTS | IN_TX | IN_TXCP);
    retire(&mut pmu, 1000);
    assert_eq!([0, 1, 2].map(|i| pmu.rdpmc(i).unwrap()), [2000, 0, 1000]);
    for counter in [0, 1, 3] {
        assert_eq!(pmu.wrmsr(0x186 + counter, IN_TXCP), Some(Err(Fault)));
    }
    // Without TSX the bits are reserved.
    let mut pmu = Pmu::new(find(SKYLAKE), 2);
    assert_eq!(pmu.wrmsr(0x188, IN_TX), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(0x188, IN_TXCP), Some(Err(Fault)));
}

#[test]
fn tsx_force_abort_exists_only_with_the_defect() {
    for model in &INTEL_MODELS {
        let mut pmu = Pmu::new(model, 2);
        assert_eq!(
            pmu.rdmsr(TSX_FORCE_ABORT),
            Some(Err(Fault)),
            "{}",
            model.name
        );
        let result = pmu.wrmsr(TSX_FORCE_ABORT, 0);
        assert_eq!(result, Some(Err(Fault)), "{}", model.name);
        let [eax, ebx, ecx, edx] = pmu.cpuid(7, 0, [1, 2, 4, 8]);
        // Except for ARCH_LBR.
        let leaf = [eax, ebx, ecx, edx & !(1 << 19)];
        assert_eq!(leaf, [1, 2, 4, 8], "{}", model.name);
    }
    let mut pmu = with_tfa();
    assert_eq!(pmu.cpuid(7, 0, [1, 2, 4, 8]), [1, 2, 4, 8 | (1 << 13)]);
    assert_eq!(pmu.cpuid(7, 1, [1, 2, 4, 8]), [1, 2, 4, 8]);
    assert_eq!(read(&pmu, TSX_FORCE_ABORT), 0);
    for bit in 1..64 {
        let result = pmu.wrmsr(TSX_FORCE_ABORT, 1 << bit);
        assert_eq!(result, Some(Err(Fault)), "bit {bit}");
    }
    write(&mut pmu, TSX_FORCE_ABORT, 1);
    assert_eq!(read(&pmu, TSX_FORCE_ABORT), 1);
    pmu.reset();
    assert_eq!(read(&pmu, TSX_FORCE_ABORT), 0);
}

#[test]
fn without_the_defect_counter_3_is_like_the_others() {
    let [mut pmu, _] = core(find(SKYLAKE), find(SKYLAKE).defects.usual());
    select(&mut pmu, 3, INSTRUCTIONS | COUNTS);
    retire(&mut pmu, 3 * SCHEDULE);
    assert_eq!(pmu.rdpmc(3), Ok(3 * SCHEDULE as u64));
}

#[test]
fn defects_of_each_model() {
    for model in &INTEL_MODELS {
        let name = model.name;
        let leaks = ["Sandy Bridge", "Ivy Bridge", "Haswell"]
            .iter()
            .any(|start| name.starts_with(start));
        assert_eq!(model.defects.usual().ht_leak, leaks, "{name}");
        assert_eq!(model.defects.listed("ht-leak").is_ok(), leaks, "{name}");
        assert!(!model.defects.usual().tfa, "{name}");
        let tfa = model.defects.listed("tfa");
        assert_eq!(
            tfa.is_ok_and(|defects| defects.tfa),
            name == "Skylake",
            "{name}"
        );
        assert_eq!(model.defects.listed("none"), Ok(Defects::NONE), "{name}");
        for list in [
            "",
            "tsx",
            "none+ht-leak",
            "ht-leak,tfa",
            "HT-LEAK",
            "ht-leak+",
        ] {
            assert!(model.defects.listed(list).is_err(), "{name} {list}");
        }
    }
}

#[test]
fn a_counter_is_left_running() {
    let defects = Defects::NONE.listed("left-running").unwrap();
    let thread = || Thread::new(Core::new(1), 0);
    let mut haswell = Pmu::on(thread(), find(HASWELL), defects);
    for _ in 0..2 {
        retire(&mut haswell, 10);
        assert_eq!(haswell.rdpmc(7), Ok(10));
        assert_eq!(haswell.rdpmc(6), Ok(0));
        haswell.reset();
    }
    let mut zen_2 = Pmu::on(thread(), vpmu::model::find(0x17, 0x31).unwrap(), defects);
    retire(&mut zen_2, 10);
    assert_eq!([4, 5].map(|counter| zen_2.rdpmc(counter)), [Ok(0), Ok(10)]);
}
