// SPDX-License-Identifier: GPL-2.0

//! Tests the counts, when counters count, and the effects of an overflow.

use super::*;
use vpmu::retired::*;

/// Counts of all kinds that QEMU reports, except page walks.
const MIX: [(usize, i64); 14] = [
    (INSTRUCTIONS, 100_000),
    (LOADS, 20_000),
    (STORES, 10_000),
    (UPDATES, 3000),
    (PREFETCHES, 4096),
    (TAKEN, 3000),
    (NOT_TAKEN, 2000),
    (JUMP, 500),
    (JUMP_INDIRECT, 64),
    (CALL, 700),
    (CALL_INDIRECT, 32),
    (RETURN, 640),
    (FAR, 10),
    (INTERRUPTS, 7),
];

#[test]
fn events_of_all_families() {
    for cpu in &CPUS {
        let count = |select| count(cpu, select, &MIX);
        // Exceptions and interrupts are instructions, branches and far control transfers.
        assert_eq!(count(0xc0), 100_007, "{}", cpu.name);
        assert_eq!(count(0xc2), 6953, "{}", cpu.name);
        assert_eq!(count(0xc4), 4953, "{}", cpu.name);
        assert_eq!(count(0xc6), 17, "{}", cpu.name);
        // One in 32 near branches is mispredicted, and far ones are not predicted.
        assert_eq!(count(0xc3), 6936 / 32 + 17, "{}", cpu.name);
        assert_eq!(count(0xc8), 640, "{}", cpu.name);
        assert_eq!(count(0xc9), 20, "{}", cpu.name);
        assert_eq!(count(0xca), 3, "{}", cpu.name);
        assert_eq!(count(0x76), 150_000, "{}", cpu.name);
        // The event has no units, so UnitMask makes no difference.
        assert_eq!(count(0xffc0), 100_007, "{}", cpu.name);
        // Not in any list.
        assert_eq!(count(0xf_0000_00ff), 0, "{}", cpu.name);
        assert_eq!(count(0x1_0000_00c0 | (7 << 33)), 0, "{}", cpu.name);
    }
}

#[test]
fn twelve_bits_select_an_event() {
    // Retired conditional branches, and retired fused instructions with code 1D0H.
    assert_eq!(count(ZEN2, 0xd1, &MIX), 5000);
    let fused = count(ZEN2, 0x1_0000_00d0, &MIX);
    assert!(fused != 0 && fused != 5000);
    assert_eq!(count(ZEN2, 0xd0, &MIX), 0);
    // P0 cycles
    assert_eq!(count(ZEN4, 0x1_0000_0120, &MIX), 125_000);
}

#[test]
fn units_add_up() {
    let walks = [(WALK_LOAD, 3000), (WALK_STORE, 1096), (WALK_FETCH, 4096)];
    // L2 DTLB misses are walks, of all page sizes together.
    assert_eq!(count(ZEN2, 0xf045, &walks), 4096);
    let sizes = [0x1045, 0x2045, 0x4045, 0x8045].map(|select| count(ZEN2, select, &walks));
    assert_eq!(sizes, [3520, 512, 60, 4]);
    assert_eq!(count(ZEN2, 0x0045, &walks), 0);
    assert_eq!(count(ZEN2, 0xff85, &walks), 4096);
    // LS dispatch: loads, stores, and operations that are both, which count as one
    for cpu in [ZEN2, PILEDRIVER] {
        assert_eq!(
            [0x129, 0x229, 0x429, 0x329, 0x729].map(|select| count(cpu, select, &MIX)),
            [17_000, 7000, 3000, 24_000, 27_000]
        );
    }
    assert_eq!(
        [0x14b, 0x74b].map(|select| count(ZEN2, select, &MIX)),
        [2048, 4096]
    );
    // Units that are not documented count nothing, others at rates of their own.
    assert_eq!(count(ZEN2, 0x8087, &MIX), 0);
    let stalls = [0x187, 0x287, 0x387].map(|select| count(ZEN2, select, &MIX));
    assert!(stalls[0] != 0 && stalls[1] != 0 && stalls[0] != stalls[1]);
    assert!(stalls[2].abs_diff(stalls[0] + stalls[1]) <= 1);
}

#[test]
fn counters_of_family_15h() {
    // Cycles on 2:0, FP on 5:3 or 3, instructions on all, PMCx02E on 3 and 0.
    for (select, counters) in [
        (0x76, 0x07),
        (0xc0, 0x3f),
        (0x01, 0x38),
        (0xff03, 0x08),
        (0x2e, 0x09),
        (0x7f7d, 0x07),
        (0xe0, 0x00),
    ] {
        for counter in 0..6 {
            let counts = count_on(PILEDRIVER, counter, select, &MIX) != 0;
            assert_eq!(
                counts,
                counters & (1 << counter) != 0,
                "{select:#x} on {counter}"
            );
        }
    }
}

#[test]
fn privilege_and_enable() {
    for (bits, expected) in [
        (USR | OS | EN, [30, 12]),
        (USR | EN, [30, 0]),
        (OS | EN, [0, 12]),
        (EN, [0, 0]),
        (USR | OS, [0, 0]),
    ] {
        let mut pmu = ZEN2.pmu();
        write(&mut pmu, ZEN2.ctl(1), RETIRED_INSTRUCTIONS | bits);
        retire(&mut pmu, true, &[(INSTRUCTIONS, 30)]);
        assert_eq!(read(&pmu, ZEN2.ctr(1)), expected[0]);
        retire(&mut pmu, false, &[(INSTRUCTIONS, 10), (INTERRUPTS, 2)]);
        assert_eq!(read(&pmu, ZEN2.ctr(1)), expected[0] + expected[1]);
    }
}

#[test]
fn counter_mask_and_inversion() {
    let select = |cmask: u64, inv: u64| CYCLES | (cmask << 24) | (inv << 23);
    // 1 event in each cycle.
    let counts = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)];
    let counts = counts.map(|(cmask, inv)| count(ZEN2, select(cmask, inv), &MIX));
    assert_eq!(counts, [150_000, 150_000, 0, 0, 150_000]);
}

#[test]
fn both_enable_bits_are_needed() {
    for (ctl, global, expected) in [(EN, 2, 50), (EN, 1, 0), (0, 2, 0)] {
        let mut pmu = ZEN4.pmu();
        write(&mut pmu, ZEN4.ctl(1), RETIRED_INSTRUCTIONS | USR | ctl);
        write(&mut pmu, GLOBAL_CTL, global);
        retire(&mut pmu, true, &[(INSTRUCTIONS, 50)]);
        assert_eq!(read(&pmu, ZEN4.ctr(1)), expected);
    }
}

#[test]
fn overflow() {
    for cpu in &CPUS {
        for (interrupt, expected) in [(0, false), (INT, true)] {
            let mut pmu = cpu.pmu();
            write(
                &mut pmu,
                cpu.ctl(2),
                RETIRED_INSTRUCTIONS | USR | EN | interrupt,
            );
            write(&mut pmu, cpu.ctr(2), MASK - 9);
            assert_eq!(pmu.budget(true) == 9, expected, "{}", cpu.name);
            retire(&mut pmu, true, &[(INSTRUCTIONS, 8), (INTERRUPTS, 1)]);
            assert!(!pmu.pmi(false));
            // The top bit shows an overflow.
            assert_ne!(read(&pmu, cpu.ctr(2)) >> 47, 0);
            retire(&mut pmu, true, &[(INSTRUCTIONS, 4)]);
            assert_eq!(read(&pmu, cpu.ctr(2)), 3);
            assert_eq!(pmu.pmi(false), expected, "{}", cpu.name);
            assert!(!pmu.pmi(false));
            if cpu.v2 {
                assert_eq!(read(&pmu, GLOBAL_STATUS), 1 << 2);
            }
        }
    }
}

#[test]
fn host_and_guest() {
    const GUEST_ONLY: u64 = 1 << 40;
    const HOST_ONLY: u64 = 1 << 41;
    // Without SVM; with it in the host, in a guest.
    for (bits, expected) in [
        (0, [1, 1, 1]),
        (GUEST_ONLY, [0, 0, 1]),
        (HOST_ONLY, [0, 1, 0]),
        (GUEST_ONLY | HOST_ONLY, [0, 1, 1]),
    ] {
        let counts = [(false, false), (true, false), (true, true)].map(|(enabled, guest)| {
            let mut pmu = ZEN2.pmu();
            write(&mut pmu, ZEN2.ctl(0), RETIRED_BRANCHES | USR | EN | bits);
            pmu.svm(enabled, guest);
            retire(&mut pmu, true, &[(CALL, 1)]);
            read(&pmu, ZEN2.ctr(0))
        });
        assert_eq!(counts, expected, "{bits:#x}");
    }
}

#[test]
fn merged_counters() {
    const FLOPS: u64 = 0xff03;
    const MERGE: u64 = 0xf_0000_00ff;
    let mut pmu = ZEN2.pmu();
    let work = [(INSTRUCTIONS, 1 << 20)];
    write(&mut pmu, ZEN2.ctl(2), FLOPS | USR | EN | INT);
    retire(&mut pmu, true, &work);
    let alone = read(&pmu, ZEN2.ctr(2));
    write(&mut pmu, ZEN2.ctl(3), MERGE | EN);
    write(&mut pmu, ZEN2.ctr(2), 0);
    retire(&mut pmu, true, &work);
    let all = read(&pmu, ZEN2.ctr(2));
    assert_eq!(all, 2 * alone);
    assert_eq!(read(&pmu, ZEN2.ctr(3)), 0);
    // The odd counter has bits 63:48.
    for (high, pmi, after) in [(0, false, 1), (0xffff, true, 0)] {
        write(&mut pmu, ZEN2.ctr(3), high);
        write(&mut pmu, ZEN2.ctr(2), MASK + 1 - all);
        retire(&mut pmu, true, &work);
        assert_eq!(read(&pmu, ZEN2.ctr(2)), 0);
        assert_eq!(read(&pmu, ZEN2.ctr(3)), after);
        assert_eq!(pmu.pmi(false), pmi);
    }
    // An odd counter does not merge with the even one before it. A CPU without merged counters
    // loses nothing.
    write(&mut pmu, ZEN2.ctl(5), FLOPS | USR | EN);
    write(&mut pmu, ZEN2.ctl(4), MERGE | EN);
    retire(&mut pmu, true, &work);
    assert_eq!(read(&pmu, ZEN2.ctr(5)), alone);
    assert_eq!(count_on(PILEDRIVER, 3, FLOPS, &work), all);
}
