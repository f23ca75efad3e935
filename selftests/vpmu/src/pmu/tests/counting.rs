// SPDX-License-Identifier: GPL-2.0

//! Tests of counting.

use super::*;

#[test]
fn privilege_split() {
    let mut pmu = pmu(HASWELL);
    for (index, levels) in [OS | USR, OS, USR, 0].into_iter().enumerate() {
        write(&mut pmu, 0x186 + index as u32, INST_RETIRED | EN | levels);
    }
    write(&mut pmu, 0x38d, 0x123); // F0: all, F1: user, F2: kernel
    retire(&mut pmu, KERNEL, 1000);
    retire(&mut pmu, USER, 40);
    let counts = [0, 1, 2, 3].map(|index| pmu.rdpmc(index).unwrap());
    assert_eq!(counts, [1040, 1000, 40, 0]);
    let counts = [0, 1, 2].map(|index| pmu.rdpmc((1 << 30) | index).unwrap());
    assert_eq!(counts, [1040, 60, 1250]);
}

#[test]
fn an_idle_pmu_needs_no_calls() {
    let idle = || {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
        assert_eq!(pmu.counting(), Counting::Nothing);
        pmu
    };
    // Enabled in the counter's control register, then disabled in GLOBAL_CTRL.
    for (msr, value, counting) in [
        (0x186, INST_RETIRED | EN | USR, Counting::Instructions),
        (0x186, INST_RETIRED | EN | OS, Counting::Instructions),
        (0x186, UOPS_ISSUED_ANY | EN | OS, Counting::Instructions),
        (0x186, WALKS | EN | OS, Counting::Instructions),
        (0x186, BR_INST_RETIRED | EN | OS, Counting::All),
        (0x186, LOADS | EN | USR, Counting::All),
        (
            0x186,
            LOADS | (1 << 24) | (1 << 23) | EN | USR,
            Counting::All,
        ),
        (0x186, OFFCORE_RESPONSE_0 | EN | USR, Counting::All),
        (0x186, LOADS | USR, Counting::Nothing),
        (0x38d, 0x200, Counting::Instructions),
        (0x38d, 0x008, Counting::Nothing),
    ] {
        let mut pmu = idle();
        write(&mut pmu, msr, value);
        assert_eq!(pmu.counting(), counting, "{msr:#x} {value:#x}");
        write(&mut pmu, GLOBAL_CTRL, 0);
        assert_eq!(pmu.counting(), Counting::Nothing);
    }
    // A PMI is pending.
    let mut pmu = idle();
    write(&mut pmu, 0x38d, 0x00b);
    write(&mut pmu, 0x309, MASK);
    retire(&mut pmu, KERNEL, 1);
    write(&mut pmu, 0x38d, 0);
    assert_eq!(pmu.counting(), Counting::Instructions);
    assert!(pmu.pmi(false));
    assert_eq!(pmu.counting(), Counting::Nothing);
    // Reading the number of calls does not start the accounting, reading the instructions does.
    assert_eq!(read(&pmu, 0x4000_ff05), 1);
    assert_eq!(pmu.counting(), Counting::Nothing);
    read(&pmu, 0x4000_ff06);
    assert_eq!(pmu.counting(), Counting::Instructions);
}

#[test]
fn nothing_counts_unless_enabled_twice() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, INST_RETIRED | USR);
    retire(&mut pmu, USER, 1);
    write(&mut pmu, 0x186, INST_RETIRED | USR | EN);
    write(&mut pmu, GLOBAL_CTRL, 0xe);
    retire(&mut pmu, USER, 1);
    assert_eq!(pmu.rdpmc(0), Ok(0));
    write(&mut pmu, GLOBAL_CTRL, 0x1);
    retire(&mut pmu, USER, 1);
    assert_eq!(pmu.rdpmc(0), Ok(1));
}

/// Retires 500 instructions at user level, including this many branches of each kind.
fn retire_branches(pmu: &mut Pmu, kinds: [i64; 8]) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = 500;
    counts[retired::TAKEN..=retired::FAR].copy_from_slice(&kinds);
    pmu.retire(USER, &counts);
}

#[test]
fn branches_by_class() {
    let cases = [
        (0x00, 1 + 4 + 8 + 16 + 32 + 64 + 128),
        (0x01, 1),
        (0x02, 16 + 32),
        (0x04, 1 + 4 + 8 + 16 + 32 + 64 + 128),
        (0x08, 64),
        (0x10, 1 - 1),
        (0x20, 1 + 4 + 8 + 16 + 32 + 64),
        (0x40, 128),
    ];
    for (umask, expected) in cases {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, BR_INST_RETIRED | (umask << 8) | USR | EN);
        retire_branches(&mut pmu, [1, 0, 4, 8, 16, 32, 64, 128]);
        assert_eq!(pmu.rdpmc(0), Ok(expected), "umask {umask:#x}");
    }
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, BR_INST_RETIRED | (0x10 << 8) | USR | EN);
    retire_branches(&mut pmu, [4, 5, 0, 0, 0, 0, 0, 0]);
    assert_eq!(pmu.rdpmc(0), Ok(5));
}

#[test]
fn negative_counts_are_subtracted_later() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, INST_RETIRED | USR | OS | EN);
    retire(&mut pmu, USER, 10);
    retire(&mut pmu, USER, -4);
    assert_eq!(pmu.rdpmc(0), Ok(10));
    // Only at the same privilege level.
    retire(&mut pmu, KERNEL, 3);
    assert_eq!(pmu.rdpmc(0), Ok(13));
    retire(&mut pmu, USER, 1);
    assert_eq!(pmu.rdpmc(0), Ok(13));
    retire(&mut pmu, USER, 5);
    assert_eq!(pmu.rdpmc(0), Ok(15));
}

#[test]
fn writes_to_a_running_counter() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, INST_RETIRED | USR | EN);
    retire(&mut pmu, USER, 7);
    write(&mut pmu, 0x4c1, 100);
    retire(&mut pmu, USER, 7);
    assert_eq!(read(&pmu, 0xc1), 107);
    // Another event continues from there.
    write(&mut pmu, 0x186, L1D_PEND_MISS | USR | EN);
    retire(&mut pmu, USER, 1 << 20);
    assert_eq!(read(&pmu, 0xc1), 107);
}

#[test]
fn events_count_on_their_counters_alone() {
    let mut pmu = pmu(HASWELL);
    for index in 0..4 {
        write(&mut pmu, 0x186 + index, L1D_PEND_MISS | USR | EN);
    }
    retire(&mut pmu, USER, 1 << 20);
    let counts = [0, 1, 2, 3].map(|index| pmu.rdpmc(index).unwrap() != 0);
    assert_eq!(counts, [false, false, true, false]);
}

#[test]
fn offcore_responses_need_their_register() {
    for (event, own, other) in [
        (OFFCORE_RESPONSE_0, 0x1a6, 0x1a7),
        (OFFCORE_RESPONSE_1, 0x1a7, 0x1a6),
    ] {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, event | USR | EN);
        for (msr, value, counts) in [
            (other, 0x10001, false),
            (own, 0x00001, false), // no response
            (own, 0x10000, false), // no request
            (own, 0x10001, true),
        ] {
            write(&mut pmu, msr, value);
            retire(&mut pmu, USER, 1 << 20);
            assert_eq!(pmu.rdpmc(0).unwrap() != 0, counts, "{msr:#x} {value:#x}");
        }
    }
}

#[test]
fn both_offcore_registers_count_alike() {
    let mut pmu = pmu(SKYLAKE);
    for (index, event, msr) in [
        (0, OFFCORE_RESPONSE_0, 0x1a6),
        (1, OFFCORE_RESPONSE_1, 0x1a7),
    ] {
        write(&mut pmu, 0x186 + index, event | USR | EN);
        write(&mut pmu, msr, 0x3f_8001_0003);
    }
    retire(&mut pmu, USER, 1 << 20);
    assert_eq!(pmu.rdpmc(0), pmu.rdpmc(1));
    assert_ne!(pmu.rdpmc(0), Ok(0));
}

/// The remainder of one event's share is not carried over to the next event.
#[test]
fn a_new_event_has_its_own_share() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, UOPS_ISSUED_ANY | USR | EN);
    retire(&mut pmu, USER, 15);
    // The next whole is 20; 15 would be left.
    write(&mut pmu, 0x186, REF_XCLK | USR | EN);
    write(&mut pmu, 0x4c1, 0);
    retire(&mut pmu, USER, 4);
    assert_eq!(pmu.rdpmc(0), Ok(0));
    retire(&mut pmu, USER, 1);
    assert_eq!(pmu.rdpmc(0), Ok(1));
}
