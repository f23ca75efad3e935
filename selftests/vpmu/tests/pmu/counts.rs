// SPDX-License-Identifier: GPL-2.0

//! Tests the counts of events on each model.

use vpmu::model;
use vpmu::pmu::Pmu;
use vpmu::retired;

use super::{
    read,
    retire,
    write, //
};

#[test]
fn the_fourth_fixed_counter_counts_slots() {
    for (model, slots_in_two_instructions) in [(106, 15), (125, 15), (143, 18)] {
        let mut pmu = Pmu::new(model::find(6, model).unwrap(), 2);
        write(&mut pmu, 0x38d, 0x2000);
        write(&mut pmu, 0x38f, 1 << 35);
        retire(&mut pmu, 200);
        assert_eq!(read(&pmu, 0x30c), 100 * slots_in_two_instructions);
        write(&mut pmu, 0x30c, (1 << 48) - 1);
        retire(&mut pmu, 2);
        assert_eq!(read(&pmu, 0x38e), 1 << 35);
    }
}

#[test]
fn events_of_the_lower_counters() {
    struct Case(u32, u64, [u64; 2]);
    // Instructions count everywhere, event 0xD1 umask 1 (L1 hits) and, up to Skylake,
    // OFFCORE_RESPONSE on the lower four counters alone.
    const LOADS: u64 = 0x1d1;
    const INSTRUCTIONS: u64 = 0xc0;
    const OFFCORE_0: u64 = 0x1b7;
    const OFFCORE_1: u64 = 0x1bb;
    // Demand reads with any response.
    const REQUESTS: u64 = 0x1_0001;
    for Case(model, select, [lower, upper]) in [
        Case(42, INSTRUCTIONS, [1, 1]),
        Case(42, LOADS, [1, 0]),
        Case(58, LOADS, [1, 0]),
        Case(60, LOADS, [1, 0]),
        Case(61, LOADS, [1, 0]),
        Case(94, LOADS, [1, 0]),
        Case(94, INSTRUCTIONS, [1, 1]),
        Case(106, LOADS, [1, 0]),
        Case(106, INSTRUCTIONS, [1, 1]),
        Case(143, LOADS, [1, 0]),
        Case(42, OFFCORE_0, [1, 0]),
        Case(42, OFFCORE_1, [1, 0]),
        Case(58, OFFCORE_0, [1, 0]),
        Case(58, OFFCORE_1, [1, 0]),
        Case(60, OFFCORE_0, [1, 0]),
        Case(60, OFFCORE_1, [1, 0]),
        Case(61, OFFCORE_0, [1, 0]),
        Case(61, OFFCORE_1, [1, 0]),
        Case(94, OFFCORE_0, [1, 0]),
        Case(94, OFFCORE_1, [1, 0]),
    ] {
        let mut pmu = Pmu::new(model::find(6, model).unwrap(), 1);
        write(&mut pmu, 0x38f, 0xff);
        write(&mut pmu, 0x1a6, REQUESTS);
        write(&mut pmu, 0x1a7, REQUESTS);
        for counter in 0..8 {
            write(&mut pmu, 0x186 + counter, select | (1 << 16) | (1 << 22));
        }
        retire(&mut pmu, 1 << 20);
        for counter in 0..8 {
            let expected = if counter < 4 { lower } else { upper };
            let counts = pmu.rdpmc(counter) != Ok(0);
            assert_eq!(counts, expected != 0, "{model} {select:#x} on {counter}");
        }
    }
}

#[test]
fn nehalem_has_one_offcore_register() {
    let mut pmu = Pmu::new(model::find(6, 26).unwrap(), 2);
    write(&mut pmu, 0x38f, 0xf);
    for counter in 0..4 {
        write(&mut pmu, 0x186 + counter, 0x1b7 | (1 << 16) | (1 << 22));
    }
    for (value, counts) in [(0x0001, false), (0x0100, false), (0x0101, true)] {
        write(&mut pmu, 0x1a6, value);
        retire(&mut pmu, 1 << 20);
        for counter in 0..4 {
            let counted = pmu.rdpmc(counter) != Ok(0);
            assert_eq!(counted, counts, "{value:#x} on {counter}");
        }
    }
}

#[test]
fn events_with_a_register() {
    /// Model, event select, its register, and the count for each value of that register.
    struct Case(u32, u64, u32, [(u64, u64); 2]);
    for Case(model, select, msr, values) in [
        Case(94, 0x1c6, 0x3f7, [(0, 0), (0x11, 30 << 10)]), // FRONTEND_RETIRED.DSB_MISS
        Case(143, 0x40ad, 0x3f7, [(0, 0), (0x7, 50 << 10)]), // INT_MISC.UNKNOWN_BRANCH_CYCLES
        Case(26, 0x100b, 0x3f6, [(4, 17 << 10), (16, 17 << 8)]), // LATENCY_ABOVE_THRESHOLD_*
        Case(175, 0x127, 0x1328, [(0, 0), (0xf, 4 << 7)]),  // snoop responses
        Case(175, 0x227, 0x1329, [(1, 1 << 7), (u64::MAX, 64 << 7)]),
        Case(94, 0x1cd, 0x3f6, [(4, 37 << 10), (8, 37 << 9)]), // LOAD_LATENCY_GT_*
    ] {
        let mut pmu = Pmu::new(model::find(6, model).unwrap(), 2);
        write(&mut pmu, 0x38f, 1 << 3);
        write(&mut pmu, 0x189, select | (1 << 16) | (1 << 22));
        for (value, expected) in values {
            write(&mut pmu, msr, value);
            write(&mut pmu, 0xc4, 0);
            retire(&mut pmu, 1 << 20);
            assert_eq!(pmu.rdpmc(3), Ok(expected), "{model} {select:#x} {value:#x}");
        }
    }
}

/// Loads above a latency are counted by counter 3 alone.
#[test]
fn nehalem_and_westmere_have_one_counter_for_load_latency() {
    for model in [26, 44] {
        let mut pmu = Pmu::new(model::find(6, model).unwrap(), 2);
        write(&mut pmu, 0x38f, 0xf);
        write(&mut pmu, 0x3f6, 4);
        for counter in 0..4 {
            write(&mut pmu, 0x186 + counter, 0x100b | (1 << 16) | (1 << 22));
        }
        retire(&mut pmu, 1 << 20);
        for counter in 0..4 {
            let counts = pmu.rdpmc(counter) != Ok(0);
            assert_eq!(counts, counter == 3, "{model} on {counter}");
        }
    }
}

/// Returns the counts of these events, each on a separate counter, for the same retired `counts`.
fn counts<const N: usize>(model: u32, selects: [u64; N], counts: &[(usize, i64)]) -> [u64; N] {
    let mut pmu = Pmu::new(model::find(6, model).unwrap(), 1);
    write(&mut pmu, 0x38f, (1 << N) - 1);
    for (counter, select) in (0..).zip(selects) {
        write(&mut pmu, 0x186 + counter, select | (1 << 16) | (1 << 22));
    }
    let mut retired = [0; retired::COUNTS];
    for &(kind, count) in counts {
        retired[kind] = count;
    }
    // In unequal parts, so that shares must be carried over.
    for part in [3, 7, 1] {
        pmu.retire(true, &retired.map(|count| count / part));
    }
    std::array::from_fn(|counter| pmu.rdpmc(counter as u32).unwrap())
}

const LOADED: [(usize, i64); 3] = [
    (retired::INSTRUCTIONS, 1_000_003),
    (retired::LOADS, 300_007),
    (retired::STORES, 100_003),
];

/// Returns the total that [`counts`] retires.
fn total(count: i64) -> u64 {
    (count / 3 + count / 7 + count) as u64
}

#[test]
fn loads_and_stores_are_exact() {
    for model in [42, 58, 60, 61, 94, 106, 143] {
        let [loads, stores] = counts(model, [0x81d0, 0x82d0], &LOADED);
        assert_eq!(loads, total(300_007), "{model}");
        assert_eq!(stores, total(100_003), "{model}");
    }
    let both = counts(26, [0x010b, 0x020b], &LOADED);
    assert_eq!(both, [total(300_007), total(100_003)]);
}

/// Prefetches are neither loads nor served anywhere, but by Intel's lists ALL_LOADS counts them
/// from Haswell on and L1_HIT from Broadwell on.
#[test]
fn prefetches_count_where_the_list_says_so() {
    const PREFETCHES: i64 = 4096;
    let prefetches = [(retired::PREFETCHES, PREFETCHES)];
    for (model, all_loads, l1_hit) in [
        (42, 0, 0),
        (45, 0, 0),
        (58, 0, 0),
        (62, 0, 0),
        (60, PREFETCHES, 0),
        (61, PREFETCHES, PREFETCHES),
        (94, PREFETCHES, PREFETCHES),
        (106, PREFETCHES, PREFETCHES),
        (125, PREFETCHES, PREFETCHES),
        (143, PREFETCHES, PREFETCHES),
    ] {
        // ALL_LOADS, ALL_STORES; L1_HIT, L1_HIT with E; L1_MISS, HIT_LFB
        let got = counts(model, [0x81d0, 0x82d0, 0x1d1, 0x0104_01d1], &prefetches);
        let [all_loads, l1_hit] = [all_loads, l1_hit].map(total);
        assert_eq!(got, [all_loads, 0, l1_hit, l1_hit / 2], "{model}");
        assert_eq!(
            counts(model, [0x8d1, 0x40d1], &prefetches),
            [0, 0],
            "{model}"
        );
    }
    // Nehalem's and Westmere's MEM_INST_RETIRED.LOADS; MEM_INST_RETIRED.ANY
    for (model, select, expected) in [(26, 0x010b, 0), (44, 0x010b, 0), (106, 0x83d0, PREFETCHES)] {
        assert_eq!(
            counts(model, [select], &prefetches),
            [total(expected)],
            "{model}"
        );
    }
}

#[test]
fn hits_and_misses_make_a_whole() {
    for model in [60, 61, 94, 106, 143] {
        // MEM_LOAD_*RETIRED.L1_HIT, FB_HIT, L1_MISS; L2_HIT, L2_MISS
        let [l1, fb, l1_miss, all] = counts(model, [0x1d1, 0x40d1, 0x8d1, 0x81d0], &LOADED);
        assert_eq!(l1 + fb + l1_miss, all, "{model}");
        let [l1_miss, l2, l2_miss] = counts(model, [0x8d1, 0x2d1, 0x10d1], &LOADED);
        assert_eq!(l2 + l2_miss, l1_miss, "{model}");
        let [l2_miss, l3, l3_miss] = counts(model, [0x10d1, 0x4d1, 0x20d1], &LOADED);
        assert_eq!(l3 + l3_miss, l2_miss, "{model}");
        assert!(0 < l3_miss && l3_miss < l3);
    }
}

#[test]
fn caches_and_offcore_responses_follow_memory() {
    // L1D.REPLACEMENT, L2_RQSTS.RFO_MISS, LONGEST_LAT_CACHE.MISS
    let none = counts(60, [0x151, 0x2224, 0x412e], &[LOADED[0]]);
    assert_eq!(none, [0; 3]);
    let once = counts(60, [0x151, 0x2224, 0x412e], &LOADED);
    let twice = LOADED.map(|(kind, count)| (kind, 2 * count));
    for (once, twice) in once
        .into_iter()
        .zip(counts(60, [0x151, 0x2224, 0x412e], &twice))
    {
        assert!(once > 0 && twice.abs_diff(2 * once) <= 2, "{once} {twice}");
    }
}

#[test]
fn walks_are_exact_and_last() {
    let walks = [
        (retired::WALK_LOAD, 2100),
        (retired::WALK_STORE, 4200),
        (retired::WALK_FETCH, 8400),
    ];
    // DTLB_LOAD_MISSES, DTLB_STORE_MISSES, ITLB_MISSES: .MISS_CAUSES_A_WALK, .WALK_DURATION
    for (event, all) in [(0x08, 2100), (0x49, 4200), (0x85, 8400)] {
        for (model, duration) in [(42, 0x0400), (60, 0x1000), (61, 0x1000)] {
            let completed = counts(model, [event | 0x100, event | duration], &walks);
            assert_eq!(
                completed,
                [total(all), 24 * total(all)],
                "{model} {event:#x}"
            );
        }
        // .WALK_COMPLETED; with CMASK 1, .WALK_ACTIVE
        let [completed, active] = counts(94, [event | 0x0e00, event | 0x1000 | (1 << 24)], &walks);
        assert_eq!(completed, total(all), "{event:#x}");
        assert_eq!(active, 24 * completed, "{event:#x}");
    }
}

/// For any mix of instructions, QEMU calls before a counter overflows.
#[test]
fn the_budget_is_never_too_large() {
    // MEM_INST_RETIRED.ANY counts an instruction that loads and stores twice; the range of L1_HIT
    // does not begin at 0, so the first loads may not count.
    for select in [
        0x83d0,
        0x1d1,
        0x1d1 | (1 << 18) | (1 << 24),
        0x81d0,
        0x40d1,
        0x108,
        0x1008,
        0x81d0 | (1 << 24) | (1 << 23),
    ] {
        let mut pmu = Pmu::new(model::find(6, 94).unwrap(), 2);
        write(&mut pmu, 0x38f, 1);
        write(&mut pmu, 0x186, select | (1 << 16) | (1 << 20) | (1 << 22));
        write(&mut pmu, 0x4c1, (1 << 48) - 1000);
        let mut steps = 0;
        loop {
            // The overflow must not come before the budget is used up.
            let budget = pmu.budget(true);
            assert_eq!(read(&pmu, 0x38e) & 1, 0, "{select:#x}");
            assert!(budget >= 0);
            // Use it up by walks, prefetches or instructions that load and store; then one more.
            for count in [budget, 1] {
                let mut retired = [0; retired::COUNTS];
                match steps % 3 {
                    0 => {
                        retired[retired::INSTRUCTIONS] = count;
                        retired[retired::LOADS] = count;
                        retired[retired::STORES] = count;
                    }
                    1 => {
                        retired[retired::INSTRUCTIONS] = count;
                        retired[retired::PREFETCHES] = count;
                    }
                    _ => retired[retired::WALK_LOAD] = count,
                }
                pmu.retire(true, &retired);
                let overflowed = read(&pmu, 0x38e) & 1 != 0;
                assert!(!overflowed || count == 1, "{select:#x}: within the budget");
                if overflowed {
                    break;
                }
            }
            if read(&pmu, 0x38e) & 1 != 0 {
                break;
            }
            steps += 1;
            assert!(steps < 100_000, "{select:#x} never overflows");
        }
        assert!(pmu.pmi(false), "{select:#x}");
    }
}

/// Multiplexes like perf: five events of loads rotate on four counters, and each rotation rewrites
/// selects and counters. The counts, scaled by the time, are right even for the rarest event.
#[test]
fn multiplexed_counts_scale_to_the_truth() {
    // MEM_LOAD_UOPS_RETIRED.L1_HIT, L2_HIT, L3_MISS; L3_MISS from DRAM; MEM_UOPS_RETIRED.LOCK_LOADS
    const EVENTS: [(u64, u64); 5] = [
        (0x01d1, 3840),
        (0x02d1, 96),
        (0x20d1, 8),
        (0x01d3, 5),
        (0x21d0, 64),
    ];
    const LOADS: i64 = 3_000_000;
    // Loads per rotation: many, or far fewer than the rarest event needs.
    for turn in [50_000, 4096, 300, 37] {
        let turns = (LOADS / turn) as usize;
        let mut pmu = Pmu::new(model::find(6, 61).unwrap(), 2);
        write(&mut pmu, 0x38f, 0xf);
        let mut values = [0; EVENTS.len()];
        for first in 0..turns {
            let on: [usize; 4] = std::array::from_fn(|counter| (first + counter) % EVENTS.len());
            for (counter, &event) in (0..).zip(&on) {
                write(
                    &mut pmu,
                    0x186 + counter,
                    EVENTS[event].0 | (1 << 16) | (1 << 22),
                );
                write(&mut pmu, 0x4c1 + counter, values[event]);
            }
            // Of varying length.
            retire(&mut pmu, turn + (first as i64 * 7) % (turn / 4));
            for (counter, &event) in (0..).zip(&on) {
                values[event] = pmu.rdpmc(counter).unwrap();
            }
        }
        let loads = (0..turns as i64).map(|first| turn + first * 7 % (turn / 4));
        let loads = loads.sum::<i64>() as u64;
        for (value, (event, share)) in values.into_iter().zip(EVENTS) {
            let (scaled, truth) = (value * 5 / 4, loads * share / 4096);
            assert!(
                scaled.abs_diff(truth) * 20 <= truth,
                "{event:#x}, turns of {turn}: {scaled}, not {truth}"
            );
        }
    }
}
