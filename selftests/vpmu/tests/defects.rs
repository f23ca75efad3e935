// SPDX-License-Identifier: GPL-2.0

//! What the hardware gets wrong, each defect on and off, be it by order; and what the threads of a core
//! share.

use vpmu::defect::Defects;
use vpmu::inject::{Injected, LATE_BY};
use vpmu::model::{self, Model, MODELS};
use vpmu::pmu::{Counting, Pmu};
use vpmu::shared::{Core, Thread};
use vpmu::{retired, Fault};

const NEHALEM: u32 = 26;
const WESTMERE: u32 = 44;
const SANDY_BRIDGE: u32 = 42;
const IVY_BRIDGE: u32 = 58;
const HASWELL: u32 = 60;
const BROADWELL: u32 = 61;
const SKYLAKE: u32 = 94;

const USR: u64 = 1 << 16;
const INT: u64 = 1 << 20;
const EN: u64 = 1 << 22;
const COUNTS: u64 = USR | EN;

const INSTRUCTIONS: u64 = 0xc0;
/// MEM_UOPS_RETIRED.ALL_LOADS and three more: one of each event that leaks.
const CORRUPTING: [u64; 4] = [0x81d0, 0x1d1, 0x1d2, 0x1d3];
const LOADS: u64 = CORRUPTING[0];

const STATUS: u32 = 0x38e;
const STATUS_RESET: u32 = 0x390;
const GLOBAL_CTRL: u32 = 0x38f;
const TSX_FORCE_ABORT: u32 = 0x10f;
/// Where what is to be wrong is written.
const ORDER: u32 = 0x4000_ff0a;

fn find(model: u32) -> &'static Model {
    model::find(6, model).unwrap()
}

/// The threads of a core, with all counters enabled in IA32_PERF_GLOBAL_CTRL.
fn core(model: &'static Model, defects: Defects) -> [Pmu; 2] {
    let core = Core::new(2);
    [0, 1].map(|index| {
        let mut pmu = Pmu::on(Thread::new(core.clone(), index), model, defects);
        write(&mut pmu, GLOBAL_CTRL, 0xf);
        pmu
    })
}

fn write(pmu: &mut Pmu, msr: u32, value: u64) {
    pmu.wrmsr(msr, value).unwrap().unwrap();
}

fn read(pmu: &Pmu, msr: u32) -> u64 {
    pmu.rdmsr(msr).unwrap().unwrap()
}

fn select(pmu: &mut Pmu, counter: u32, select: u64) {
    write(pmu, 0x186 + counter, select);
}

/// In user mode; all of them load.
fn retire(pmu: &mut Pmu, instructions: i64) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = instructions;
    counts[retired::LOADS] = instructions;
    pmu.retire(true, &counts);
}

/// What an event counts in so many instructions where nothing leaks.
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
        (SANDY_BRIDGE, true, &CORRUPTING[..3]), // its list has no 0xD3
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
                // In pieces: nothing gets lost between them.
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
    // What came from the sibling does not leak back.
    assert_eq!(a.rdpmc(2), Ok(of_a - of_a / 4 + of_b / 4));
    assert_eq!(b.rdpmc(2), Ok(of_b - of_b / 4 + of_a / 4));
}

#[test]
fn nothing_leaks_unless_the_sibling_counts() {
    const N: i64 = 1_000_000;
    let model = find(HASWELL);
    let all = truth(model, LOADS, N);
    // What the sibling's counter 1 is set to, and its IA32_PERF_GLOBAL_CTRL.
    for (selected, global, leaks) in [
        (0, 0xf, false),
        (INSTRUCTIONS | USR, 0xf, false), // not enabled
        (INSTRUCTIONS | EN, 0xf, false),  // at no level
        (INSTRUCTIONS | COUNTS, 0xd, false),
        (INSTRUCTIONS | COUNTS, 0x2, true),
        (INSTRUCTIONS | EN | (1 << 17), 0x2, true), // elsewhere at the moment
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
                // Two cores; or both numbers of a core that has one thread.
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
fn a_leak_into_a_counter_that_was_switched_off_is_gone() {
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
    // RESET switches it off, too.
    b.reset();
    retire(&mut a, 1 << 20);
    write(&mut b, GLOBAL_CTRL, 0xf);
    select(&mut b, 0, INSTRUCTIONS | COUNTS);
    retire(&mut b, 1);
    assert_eq!(b.rdpmc(0), Ok(1));
}

#[test]
fn threads_that_run_at_once_lose_nothing() {
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
            // It has been written anew and counts from there.
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
    // The schedule went on.
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
    // Where there are no transactions, there are no such bits.
    let mut pmu = Pmu::new(find(SKYLAKE), 2);
    assert_eq!(pmu.wrmsr(0x188, IN_TX), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(0x188, IN_TXCP), Some(Err(Fault)));
}

#[test]
fn tsx_force_abort_is_there_only_with_the_defect() {
    for model in &MODELS {
        let mut pmu = Pmu::new(model, 2);
        assert_eq!(
            pmu.rdmsr(TSX_FORCE_ABORT),
            Some(Err(Fault)),
            "{}",
            model.name
        );
        let result = pmu.wrmsr(TSX_FORCE_ABORT, 0);
        assert_eq!(result, Some(Err(Fault)), "{}", model.name);
        assert_eq!(
            pmu.cpuid(7, 0, [1, 2, 4, 8]),
            [1, 2, 4, 8],
            "{}",
            model.name
        );
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
fn without_the_defect_counter_3_is_as_the_others() {
    let [mut pmu, _] = core(find(SKYLAKE), find(SKYLAKE).defects.usual());
    select(&mut pmu, 3, INSTRUCTIONS | COUNTS);
    retire(&mut pmu, 3 * SCHEDULE);
    assert_eq!(pmu.rdpmc(3), Ok(3 * SCHEDULE as u64));
}

#[test]
fn which_models_have_which_defects() {
    for model in &MODELS {
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
fn the_offcore_registers_belong_to_the_core_or_to_the_thread() {
    for (model, shared) in [
        (NEHALEM, true),
        (WESTMERE, true),
        (SANDY_BRIDGE, false),
        (HASWELL, false),
        (SKYLAKE, false),
        (106, false),
        (143, false),
    ] {
        let model = find(model);
        let registers = model.offcore.registers as u32;
        let event = if model.name == "Golden Cove" {
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

/// The other registers are a thread's own on all models.
#[test]
fn what_the_threads_do_not_share() {
    for model in &MODELS {
        let [mut a, b] = core(model, model.defects.usual());
        for msr in [0xc1, 0x186, 0x1d9, 0x309, 0x38d, 0x3f6] {
            write(&mut a, msr, 2);
            assert_eq!(read(&b, msr), 0, "{} {msr:#x}", model.name);
        }
    }
}

const ANY_THREAD: u64 = 1 << 21;
const FIXED_CTRL: u32 = 0x38d;

/// Instructions that load, at one level.
fn retire_at(pmu: &mut Pmu, user: bool, instructions: i64) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = instructions;
    counts[retired::LOADS] = instructions;
    pmu.retire(user, &counts);
}

#[test]
fn any_thread_counts_both_threads() {
    const OS: u64 = 1 << 17;
    for model in MODELS.iter().filter(|model| model.any_thread) {
        let [mut a, mut b] = core(model, Defects::NONE);
        write(&mut a, GLOBAL_CTRL, 0x1_0000_000f);
        assert_eq!(b.counting(), Counting::Nothing, "{}", model.name);
        for (counter, levels) in [(0, USR | OS), (1, USR), (2, OS)] {
            select(&mut a, counter, INSTRUCTIONS | levels | EN | ANY_THREAD);
        }
        select(&mut a, 3, INSTRUCTIONS | USR | OS | EN);
        write(&mut a, FIXED_CTRL, 0x7);
        // The other thread is told to ask, once, and then has something to tell.
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
        // No more of it than there was while somebody asked.
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
fn any_thread_makes_no_difference_where_there_is_one() {
    let mut pmu = Pmu::new(find(HASWELL), 1);
    write(&mut pmu, GLOBAL_CTRL, 1);
    select(&mut pmu, 0, INSTRUCTIONS | COUNTS | ANY_THREAD);
    assert!(!pmu.sibling_must_ask());
    retire(&mut pmu, 1000);
    assert_eq!(pmu.rdpmc(0), Ok(1000));
}

/// A rare event of both threads' has its share of the loads of both.
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

/// A Haswell whose counter 0 overflows with the next instruction, with that wrong.
fn about_to_overflow(what: Injected) -> Pmu {
    let mut pmu = Pmu::new(find(HASWELL), 2);
    write(&mut pmu, ORDER, what.bits());
    write(&mut pmu, GLOBAL_CTRL, 1);
    select(&mut pmu, 0, INSTRUCTIONS | COUNTS | INT);
    write(&mut pmu, 0x4c1, (1 << 48) - 1);
    pmu
}

#[test]
fn a_pmi_is_late_by_order() {
    let mut pmu = about_to_overflow(Injected::LATE_PMI);
    retire(&mut pmu, 1);
    assert_eq!(read(&pmu, STATUS), 1);
    assert!(!pmu.pmi(false));
    // Also where nothing counts any more, and a second overflow does not put it off.
    write(&mut pmu, 0x4c1, (1 << 48) - 1);
    assert_eq!(pmu.budget(true), 0);
    retire(&mut pmu, 1);
    write(&mut pmu, GLOBAL_CTRL, 0);
    assert_ne!(pmu.counting(), Counting::Nothing);
    let left = LATE_BY as i64 - 1;
    assert_eq!(pmu.budget(true), left - 1);
    retire(&mut pmu, left - 1);
    assert!(!pmu.pmi(false));
    retire(&mut pmu, 1);
    assert!(pmu.budget(true) < 0);
    assert!(pmu.pmi(false));
    assert!(!pmu.pmi(false));
    assert_eq!(pmu.counting(), Counting::Nothing);
}

#[test]
fn a_pmi_comes_once_more_by_order() {
    for (what, masked, second) in [
        (Injected::default(), false, false),
        (Injected::REPEATED_PMI, true, false),
        (Injected::REPEATED_PMI, false, true),
    ] {
        let mut pmu = about_to_overflow(what);
        retire(&mut pmu, 1);
        assert_eq!(pmu.pmi(masked), !masked);
        retire(&mut pmu, 100);
        assert!(!pmu.pmi(false), "not before LVTPC is written");
        for expected in [second, false] {
            pmu.lvtpc_write();
            retire(&mut pmu, 1);
            assert_eq!(pmu.pmi(false), expected, "{what:?}");
        }
    }
}

#[test]
fn counters_are_deaf_by_order() {
    let all: Vec<u32> = (0x4c1..=0x4c4).chain(0x309..=0x30b).collect();
    for (what, deaf) in [
        (Injected::default(), &[][..]),
        (Injected::STUCK_GENERAL, &[0x4c4]),
        (Injected::STUCK_FIXED, &[0x30b]),
    ] {
        let mut pmu = Pmu::new(find(HASWELL), 2);
        write(&mut pmu, ORDER, what.bits());
        for &msr in &all {
            write(&mut pmu, msr, 42);
            let expected = if deaf.contains(&msr) { 0 } else { 42 };
            assert_eq!(read(&pmu, msr), expected, "{msr:#x}");
        }
        write(&mut pmu, 0xc4, 43);
        assert_eq!(read(&pmu, 0xc4) == 43, what != Injected::STUCK_GENERAL);
    }
}

#[test]
fn overflows_cannot_be_acknowledged_by_order() {
    let mut pmu = about_to_overflow(Injected::STUCK_STATUS);
    retire(&mut pmu, 1);
    write(&mut pmu, STATUS_RESET, 1);
    assert_eq!(read(&pmu, STATUS), 1);
    write(&mut pmu, ORDER, 0);
    assert_eq!(read(&pmu, STATUS), 1);
    write(&mut pmu, STATUS_RESET, 1);
    assert_eq!(read(&pmu, STATUS), 0);
}

#[test]
fn there_are_fewer_counters_by_order() {
    for (what, leaf_a) in [
        (Injected::default(), [0x0730_0403, 0, 0, 0x603]),
        (Injected::FEWER, [0x0730_0203, 0, 0, 0x601]),
        (Injected::MISSING, [0x0730_0403, 0, 0, 0x603]),
    ] {
        let few = what != Injected::default();
        let mut pmu = Pmu::new(find(HASWELL), 2);
        write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
        write(&mut pmu, ORDER, what.bits());
        assert_eq!(read(&pmu, ORDER), what.bits());
        assert_eq!(pmu.cpuid(0xa, 0, [0; 4]), leaf_a);
        let enabled = if few { 0x1_0000_0003 } else { 0x7_0000_000f };
        assert_eq!(read(&pmu, GLOBAL_CTRL), enabled);
        write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
        assert_eq!(read(&pmu, GLOBAL_CTRL), enabled);
        assert_eq!(pmu.wrmsr(GLOBAL_CTRL, 1 << 8), Some(Err(Fault)));
        for msr in [0xc3, 0x188, 0x4c3, 0x30a] {
            assert_eq!(pmu.rdmsr(msr) == Some(Err(Fault)), few, "{msr:#x}");
        }
        assert_eq!(pmu.rdpmc(2).is_err(), few);
        assert_eq!(pmu.rdpmc((1 << 30) | 1).is_err(), few);
        assert!(pmu.rdpmc(1).is_ok() && pmu.rdpmc(1 << 30).is_ok());
        // It is right again.
        pmu.reset();
        assert!(pmu.rdpmc(2).is_ok());
    }
}

#[test]
fn cpuid_tells_of_more_counters_by_order() {
    let mut pmu = Pmu::new(find(HASWELL), 1);
    write(&mut pmu, ORDER, Injected::MORE.bits());
    assert_eq!(pmu.cpuid(0xa, 0, [0; 4])[0], 0x0730_0a03);
    assert!(pmu.rdpmc(7).is_ok() && pmu.rdpmc(8).is_err());
    assert_eq!(pmu.rdmsr(0xc9), None);
    assert_eq!(pmu.wrmsr(GLOBAL_CTRL, 1 << 8), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(GLOBAL_CTRL, 0xff), Some(Ok(())));
}

#[test]
fn cpuid_is_wrong_by_order() {
    let haswell = [0x0003_06c3, 1, 2, 3];
    for (what, eax, hybrid, version) in [
        (Injected::default(), 0x306c3, 0, 3),
        (Injected::model(0x5c), 0x506c3, 0, 3),
        (Injected::model(0x0f), 0x006f3, 0, 3),
        (Injected::HYBRID, 0x306c3, 1 << 15, 3),
        (Injected::version(1), 0x306c3, 0, 1),
        (Injected::version(255), 0x306c3, 0, 0),
        (Injected::MORE, 0x306c3, 0, 3),
    ] {
        let mut pmu = Pmu::new(find(HASWELL), 2);
        write(&mut pmu, ORDER, what.bits());
        assert_eq!(pmu.cpuid(1, 0, haswell)[0], eax, "{what:?}");
        assert_eq!(pmu.cpuid(7, 0, [0; 4]), [0, 0, 0, hybrid]);
        assert_eq!(pmu.cpuid(7, 1, [0; 4]), [0; 4]);
        assert_eq!(pmu.cpuid(0xa, 0, [0; 4])[0] & 0xff, version);
    }
    let mut pmu = Pmu::new(find(HASWELL), 2);
    for bits in [1 << 25, 1 << 26, 1 << 63] {
        assert_eq!(pmu.wrmsr(ORDER, bits), Some(Err(Fault)));
    }
}
