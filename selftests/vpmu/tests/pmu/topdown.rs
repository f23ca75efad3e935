// SPDX-License-Identifier: GPL-2.0

//! Tests MSR_PERF_METRICS, by the rates in `README.md`.

use vpmu::inject::Injected;
use vpmu::pmu::{
    Counting,
    Pmu, //
};
use vpmu::Fault;

use super::*;

const ICE_LAKE: u32 = 106;
const GOLDEN_COVE: u32 = 143;
const REDWOOD_COVE: u32 = 173;

const FIXED_CTRL: u32 = 0x38d;
const SLOTS: u32 = 0x30c;
const METRICS: u32 = 0x329;
const RDPMC_METRICS: u32 = 1 << 29;
/// The bits of fixed counter 3 and of MSR_PERF_METRICS.
const SLOTS_BIT: u64 = 1 << 35;
const METRICS_BIT: u64 = 1 << 48;
const BOTH: u64 = SLOTS_BIT | METRICS_BIT;
const FULL: u64 = 1 << 48;

/// Fixed counter 3's field of IA32_FIXED_CTR_CTRL.
const OF_KERNEL: u64 = 0x1000;
const OF_USER: u64 = 0x2000;
const WITH_PMI: u64 = 0x8000;

const USER: bool = true;
const KERNEL: bool = false;

/// Creates a PMU whose fixed counter 3 counts at these levels, with MSR_PERF_METRICS.
fn counting(model: u32, levels: u64) -> Pmu {
    let mut pmu = Pmu::new(find(model), 2);
    write(&mut pmu, FIXED_CTRL, levels);
    write(&mut pmu, GLOBAL_CTRL, BOTH);
    pmu
}

/// Retires instructions, including this many loads and branches.
fn mix(pmu: &mut Pmu, user: bool, instructions: i64, loads: i64, branches: i64) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = instructions;
    counts[retired::LOADS] = loads;
    counts[retired::TAKEN] = branches;
    pmu.retire(user, &counts);
}

fn shares(pmu: &Pmu) -> [u64; 8] {
    read(pmu, METRICS).to_le_bytes().map(u64::from)
}

/// Writes the values that a driver saved.
fn restore(pmu: &mut Pmu, slots: u64, metrics: u64) {
    write(pmu, SLOTS, slots);
    write(pmu, METRICS, metrics);
}

/// Checks that each share is this many sixteenths of the slots, to within a step of 1/255, and that
/// the first four add up to 255.
fn assert_shares(pmu: &Pmu, sixteenths: [f64; 8], what: &str) {
    let shares = shares(pmu);
    for (index, (share, expected)) in shares.into_iter().zip(sixteenths).enumerate() {
        let expected = expected * 255.0 / 16.0;
        let off = share as f64 - expected;
        assert!(
            off.abs() < 1.0,
            "{what}: share {index} is {share}, not {expected}"
        );
    }
    assert_eq!(shares[..4].iter().sum::<u64>(), 255, "{what}");
}

#[test]
fn shares_depend_on_the_instructions_and_the_level() {
    /// Level, loads and branches of 1000 instructions, the shares in 16ths.
    struct Case(bool, i64, i64, [f64; 8]);
    for Case(user, loads, branches, expected) in [
        Case(USER, 0, 0, [9.0, 1.0, 3.0, 3.0, 1.0, 0.0, 2.0, 1.0]),
        Case(KERNEL, 0, 0, [7.0, 1.0, 5.0, 3.0, 1.0, 0.0, 4.0, 1.0]),
        Case(USER, 1000, 0, [5.0, 1.0, 3.0, 7.0, 1.0, 0.0, 2.0, 5.0]),
        Case(USER, 0, 500, [8.0, 2.0, 3.0, 3.0, 1.0, 1.0, 2.0, 1.0]),
        Case(USER, 250, 125, [7.75, 1.25, 3.0, 4.0, 1.0, 0.25, 2.0, 2.0]),
        Case(KERNEL, 1000, 1000, [1.0, 3.0, 5.0, 7.0, 1.0, 2.0, 4.0, 5.0]),
    ] {
        for (model, slots) in [(ICE_LAKE, 7500), (GOLDEN_COVE, 9000), (REDWOOD_COVE, 9000)] {
            let mut pmu = counting(model, OF_USER | OF_KERNEL);
            for round in 1..=100 {
                mix(&mut pmu, user, 1000, loads, branches);
                let mut expected = expected;
                if model == ICE_LAKE {
                    expected[4..].fill(0.0);
                }
                assert_eq!(read(&pmu, SLOTS), slots * round);
                assert_shares(&pmu, expected, &format!("{model}, {loads}, {branches}"));
            }
            let metrics = read(&pmu, METRICS);
            assert_eq!(pmu.rdpmc(RDPMC_METRICS), Ok(metrics));
        }
    }
}

#[test]
fn the_shares_of_all_code_are_the_weighted_mean() {
    let mut pmu = counting(GOLDEN_COVE, OF_USER | OF_KERNEL);
    mix(&mut pmu, USER, 30_000, 30_000, 0);
    mix(&mut pmu, KERNEL, 10_000, 0, 10_000);
    assert_shares(&pmu, [5.0, 1.5, 3.5, 6.0, 1.0, 0.5, 2.5, 4.0], "both");
}

#[test]
fn only_the_enabled_level_counts() {
    for (levels, expected) in [
        (OF_USER, [9.0, 1.0, 3.0, 3.0, 1.0, 0.0, 2.0, 1.0]),
        (OF_KERNEL, [7.0, 1.0, 5.0, 3.0, 1.0, 0.0, 4.0, 1.0]),
    ] {
        let mut pmu = counting(GOLDEN_COVE, levels);
        for user in [USER, KERNEL] {
            mix(&mut pmu, user, 10_000, 0, 0);
        }
        assert_eq!(read(&pmu, SLOTS), 90_000);
        assert_shares(&pmu, expected, "one level");
    }
}

#[test]
fn the_shares_count_while_they_and_the_slots_are_enabled() {
    for (ctrl, field, what) in [
        (BOTH, OF_USER, Counting::All),
        (SLOTS_BIT, OF_USER, Counting::Instructions),
        (METRICS_BIT, OF_USER, Counting::Nothing),
        (BOTH, WITH_PMI, Counting::Nothing),
        (0, OF_USER, Counting::Nothing),
    ] {
        let mut pmu = counting(ICE_LAKE, field);
        // Not 0, so that the shares can be read.
        restore(&mut pmu, 1 << 20, 0);
        write(&mut pmu, GLOBAL_CTRL, ctrl);
        assert_eq!(pmu.counting(), what, "{ctrl:#x} {field:#x}");
        mix(&mut pmu, USER, 100_000, 0, 0);
        let counted = read(&pmu, METRICS) != 0;
        assert_eq!(counted, what == Counting::All, "{ctrl:#x} {field:#x}");
        let slots = read(&pmu, SLOTS) != 1 << 20;
        assert_eq!(slots, what != Counting::Nothing, "{ctrl:#x} {field:#x}");
    }
    // CTR_FRZ
    let mut pmu = counting(ICE_LAKE, OF_USER);
    restore(&mut pmu, 1 << 20, 0);
    write(&mut pmu, 0x391, 1 << 59);
    assert_eq!(pmu.counting(), Counting::Nothing);
    mix(&mut pmu, USER, 100_000, 0, 0);
    assert_eq!(read(&pmu, METRICS), 0);
}

#[test]
fn without_slots_there_are_no_shares() {
    let mut pmu = counting(GOLDEN_COVE, OF_USER);
    assert_eq!(read(&pmu, METRICS), 0);
    mix(&mut pmu, USER, 1000, 0, 0);
    restore(&mut pmu, 0, 0);
    assert_eq!(read(&pmu, METRICS), 0);
    restore(&mut pmu, 0, u64::MAX);
    assert_eq!(read(&pmu, METRICS), 0);
    mix(&mut pmu, USER, 1000, 0, 0);
    write(&mut pmu, SLOTS, 0);
    assert_eq!(read(&pmu, METRICS), 0);
}

/// 5, 6 and 9 of 16 are 79.7, 95.6 and 143.4 of 255. Level 2 is rounded separately: 15.9, 31.9,
/// 79.7.
#[test]
fn shares_are_rounded_to_the_nearest() {
    let mut pmu = counting(GOLDEN_COVE, OF_USER);
    mix(&mut pmu, USER, 16_000, 16_000, 0);
    let level_1 = [80, 96 - 80, 143 - 96, 255 - 143];
    assert_eq!(shares(&pmu)[..4], level_1);
    assert_eq!(shares(&pmu)[4..], [16, 0, 32, 80]);
}

/// Restored values read back, and are weighted by their slots.
#[test]
fn a_restore_continues() {
    const SAVED: u64 = 0x1020_3040_1122_33ff - 0x66;
    for slots in [1, 2, 255, 1000, 123_456_789, FULL - 1] {
        for metrics in [SAVED, 0xff, 0xff << 24, 0x8040_2010_4040_4040, 0] {
            let mut pmu = counting(GOLDEN_COVE, OF_USER);
            mix(&mut pmu, USER, 777, 300, 200);
            restore(&mut pmu, slots, metrics);
            assert_eq!(read(&pmu, METRICS), metrics, "{slots} {metrics:#x}");
        }
    }
    // 90,000 slots of these shares, then as many of others
    let mut pmu = counting(GOLDEN_COVE, OF_USER);
    restore(&mut pmu, 90_000, 0x0000_0000_0000_00ff);
    mix(&mut pmu, USER, 10_000, 10_000, 0);
    assert_shares(&pmu, [10.5, 0.5, 1.5, 3.5, 0.5, 0.0, 1.0, 2.5], "half");
    // and twice as many of yet others
    mix(&mut pmu, USER, 20_000, 0, 0);
    assert_shares(&pmu, [9.75, 0.75, 2.25, 3.25, 0.75, 0.0, 1.5, 1.75], "half");
}

/// A thousand switches between two tasks: each has its own shares.
#[test]
fn two_tasks_take_turns() {
    let mut pmu = Pmu::new(find(ICE_LAKE), 2);
    write(&mut pmu, FIXED_CTRL, OF_USER);
    let mut saved = [(0, 0); 2];
    for turn in 0..1000 {
        let task = turn % 2;
        restore(&mut pmu, saved[task].0, saved[task].1);
        write(&mut pmu, GLOBAL_CTRL, BOTH);
        let loads = if task == 0 { 0 } else { 4096 };
        mix(&mut pmu, USER, 4096, loads, 0);
        write(&mut pmu, GLOBAL_CTRL, 0);
        saved[task] = (read(&pmu, SLOTS), read(&pmu, METRICS));
    }
    for ((slots, metrics), expected) in saved.into_iter().zip([[9, 1, 3, 3], [5, 1, 3, 7]]) {
        assert_eq!(slots, 500 * 4096 * 15 / 2);
        for (share, sixteenths) in metrics.to_le_bytes().into_iter().zip(expected) {
            let off = i64::from(share) - sixteenths * 255 / 16;
            assert!(off.abs() <= 1, "{metrics:#x}");
        }
    }
}

/// A driver that clears or restores only one of the registers, or in the wrong order, reads
/// nonsense.
#[test]
fn the_registers_belong_together() {
    let counted = || {
        let mut pmu = counting(ICE_LAKE, OF_USER);
        mix(&mut pmu, USER, 10_000, 0, 0);
        pmu
    };
    let mut pmu = counted();
    write(&mut pmu, METRICS, 0);
    mix(&mut pmu, USER, 10_000, 0, 0);
    assert!(shares(&pmu).iter().sum::<u64>() < 130);
    let mut pmu = counted();
    write(&mut pmu, SLOTS, 0);
    mix(&mut pmu, USER, 10_000, 0, 0);
    assert!(shares(&pmu).iter().sum::<u64>() > 380);
    let mut pmu = counted();
    let saved = (read(&pmu, SLOTS), read(&pmu, METRICS));
    restore(&mut pmu, 1000, 0xff);
    write(&mut pmu, METRICS, saved.1);
    write(&mut pmu, SLOTS, saved.0);
    assert_ne!(read(&pmu, METRICS), saved.1);
}

#[test]
fn overflow_sets_bit_48() {
    for (field, interrupt) in [(OF_USER, false), (OF_USER | WITH_PMI, true)] {
        let mut pmu = counting(GOLDEN_COVE, field);
        // All slots so far are retiring. 900 more retiring slots overflow; an instruction has 9 * 9
        // / 16 of them.
        restore(&mut pmu, FULL - 900, 0xff);
        assert_eq!(pmu.budget(USER) < 100, interrupt);
        mix(&mut pmu, USER, 99, 0, 0);
        assert_eq!(read(&pmu, STATUS), 0);
        mix(&mut pmu, USER, 1, 0, 0);
        assert_eq!(read(&pmu, STATUS), SLOTS_BIT, "the slots first");
        assert_eq!(pmu.pmi(false), interrupt);
        write(&mut pmu, STATUS_RESET, SLOTS_BIT);
        let mut left = 77;
        while left > 0 {
            let budget = pmu.budget(USER);
            assert!(budget >= 0);
            // QEMU calls after this many instructions.
            let next = left.min(budget.saturating_add(1));
            mix(&mut pmu, USER, next, 0, 0);
            left -= next;
            assert_eq!(read(&pmu, STATUS), 0);
        }
        assert_eq!(pmu.budget(USER) == 0, interrupt);
        mix(&mut pmu, USER, 1, 0, 0);
        assert_eq!(read(&pmu, STATUS), METRICS_BIT);
        assert_eq!(pmu.pmi(false), interrupt);
        assert!(!pmu.pmi(false));
        write(&mut pmu, STATUS_RESET, METRICS_BIT);
        assert_eq!(read(&pmu, STATUS), 0);
    }
    // Not while the shares do not count.
    let mut pmu = counting(GOLDEN_COVE, OF_USER | WITH_PMI);
    restore(&mut pmu, FULL - 900, 0xff);
    write(&mut pmu, GLOBAL_CTRL, SLOTS_BIT);
    mix(&mut pmu, USER, 10_000, 0, 0);
    assert_eq!(read(&pmu, STATUS), SLOTS_BIT);
}

#[test]
fn an_overflow_freezes() {
    let mut pmu = counting(ICE_LAKE, OF_USER | WITH_PMI);
    write(&mut pmu, 0x1d9, 1 << 12);
    restore(&mut pmu, FULL - 1, 0xff);
    write(&mut pmu, SLOTS, 0);
    mix(&mut pmu, USER, 1, 0, 0);
    assert_eq!(read(&pmu, STATUS), METRICS_BIT);
    assert!(pmu.pmi(false));
    let slots = read(&pmu, SLOTS);
    mix(&mut pmu, USER, 1000, 0, 0);
    assert_eq!(read(&pmu, STATUS), METRICS_BIT | (1 << 59));
    assert_eq!(read(&pmu, SLOTS), slots);
}

#[test]
fn smm_freezes() {
    let mut pmu = counting(ICE_LAKE, OF_KERNEL);
    write(&mut pmu, 0x1d9, 1 << 14);
    mix(&mut pmu, KERNEL, 1000, 0, 0);
    let metrics = read(&pmu, METRICS);
    pmu.smm(true);
    mix(&mut pmu, KERNEL, 1000, 1000, 1000);
    pmu.smm(false);
    assert_eq!(read(&pmu, METRICS), metrics);
    assert_eq!(read(&pmu, GLOBAL_CTRL), BOTH);
}

/// Without fixed counter 3, the register does not exist either. IA32_PERF_CAPABILITIES says so if
/// CPUID does.
#[test]
fn injected_fewer_counters_have_no_shares() {
    for what in [Injected::FEWER, Injected::MISSING] {
        let mut pmu = counting(ICE_LAKE, OF_USER);
        write(&mut pmu, 0x391, METRICS_BIT);
        write(&mut pmu, 0x4000_ff0a, what.bits());
        let available = read(&pmu, 0x345) & (1 << 15) != 0;
        assert_eq!(available, what == Injected::MISSING);
        assert_eq!(pmu.rdmsr(METRICS), Some(Err(Fault)));
        assert_eq!(pmu.rdpmc(RDPMC_METRICS), Err(Fault));
        assert_eq!(read(&pmu, GLOBAL_CTRL), 0);
        assert_eq!(read(&pmu, STATUS), 0);
        assert_eq!(pmu.counting(), Counting::Nothing);
    }
}
