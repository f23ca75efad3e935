// SPDX-License-Identifier: GPL-2.0

//! Tests of overflow, PMIs and freezing.

use super::*;

#[test]
fn overflow_sets_status_and_raises_a_pmi_with_int() {
    for (select, expected) in [(0, false), (INT, true)] {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x187, INST_RETIRED | USR | EN | select);
        write(&mut pmu, 0x4c2, MASK - 9);
        assert_eq!(pmu.budget(USER) == 9, expected);
        retire(&mut pmu, USER, 9);
        assert_eq!(read(&pmu, STATUS), 0);
        retire(&mut pmu, USER, 1);
        assert_eq!(read(&pmu, STATUS), 1 << 1);
        assert_eq!(pmu.budget(USER) < 0, expected);
        assert_eq!(pmu.pmi(false), expected);
        assert!(!pmu.pmi(false));
        assert!(pmu.budget(USER) > 1 << 40);
        write(&mut pmu, STATUS_RESET, 1 << 1);
        assert_eq!(read(&pmu, STATUS), 0);
    }
}

#[test]
fn fixed_counters_overflow_too() {
    for (field, expected) in [(0x3, false), (0xb, true)] {
        for index in 0..3 {
            let mut pmu = pmu(SKYLAKE);
            write(&mut pmu, 0x38d, field << (4 * index));
            write(&mut pmu, 0x309 + index, MASK - 2);
            let budget = pmu.budget(KERNEL);
            assert_eq!(budget < 3, expected);
            retire(&mut pmu, KERNEL, 3);
            assert_eq!(read(&pmu, STATUS), 1 << (32 + index));
            assert_eq!(pmu.pmi(false), expected);
        }
    }
}

/// QEMU runs until the budget is below zero. The PMI is due then, and not an instruction earlier.
#[test]
fn the_budget_is_exact() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x38d, 0x0b0); // cycles, CPI 3/2
    write(&mut pmu, 0x30a, MASK + 1 - 3000);
    assert_eq!(pmu.budget(KERNEL), 1999);
    retire(&mut pmu, KERNEL, 1999);
    assert!(!pmu.pmi(false));
    assert_eq!(pmu.budget(KERNEL), 0);
    retire(&mut pmu, KERNEL, 1);
    assert!(pmu.pmi(false));
}

#[test]
fn the_budget_depends_on_the_privilege() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x186, INST_RETIRED | USR | EN | INT);
    write(&mut pmu, 0x4c1, MASK);
    assert_eq!(pmu.budget(USER), 0);
    assert!(pmu.budget(KERNEL) > 1 << 40);
}

#[test]
fn a_masked_pmi_is_lost() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x38d, 0x00b);
    write(&mut pmu, 0x309, MASK);
    retire(&mut pmu, KERNEL, 1);
    assert!(!pmu.pmi(true));
    // QEMU does not keep asking, and the PMI is not delivered later.
    assert!(pmu.budget(KERNEL) >= 0);
    pmu.lvtpc_write();
    assert!(!pmu.pmi(false));
    // The status bit stays.
    assert_eq!(read(&pmu, STATUS), 1 << 32);
    let counts = [&pmu.accounting.pmis, &pmu.accounting.lost];
    assert_eq!(counts.map(|count| count.load(Relaxed)), [0, 1]);
}

/// The APIC has the interrupt by then.
#[test]
fn clearing_the_status_does_not_cancel_the_pmi() {
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x38d, 0x00b);
    write(&mut pmu, 0x309, MASK);
    retire(&mut pmu, KERNEL, 1);
    write(&mut pmu, STATUS_RESET, 1 << 32);
    assert!(pmu.pmi(false));
}

#[test]
fn freeze_on_pmi() {
    for (model, frozen, masked) in [
        (HASWELL, false, false),
        (HASWELL, false, true),
        (SKYLAKE, true, false),
        (SKYLAKE, true, true),
    ] {
        let mut pmu = pmu(model);
        write(&mut pmu, 0x1d9, FREEZE_PERFMON_ON_PMI);
        write(&mut pmu, 0x38d, 0x00b);
        write(&mut pmu, 0x309, MASK);
        retire(&mut pmu, KERNEL, 1);
        assert_eq!(pmu.pmi(masked), !masked);
        retire(&mut pmu, KERNEL, 100);
        assert_eq!(pmu.rdpmc(1 << 30), Ok(0));
        let status = read(&pmu, STATUS);
        if frozen {
            assert_eq!(status, CTR_FRZ | (1 << 32));
            assert_eq!(read(&pmu, GLOBAL_CTRL), 0x7_0000_000f);
            write(&mut pmu, STATUS_RESET, CTR_FRZ);
        } else {
            assert_eq!(status, 1 << 32);
            assert_eq!(read(&pmu, GLOBAL_CTRL), 0);
            write(&mut pmu, GLOBAL_CTRL, 1 << 32);
        }
        retire(&mut pmu, KERNEL, 100);
        assert_eq!(pmu.rdpmc(1 << 30), Ok(100));
    }
}

/// An SMI at user level, whose handler retires 1000 instructions at CPL 0.
#[test]
fn freeze_while_smm() {
    const FREEZE: u64 = FREEZE_WHILE_SMM | FREEZE_PERFMON_ON_PMI | BTF;
    for (debugctl, counted, inside) in
        [(0, 1107, 0), (BTF, 1107, BTF), (FREEZE, 107, FREEZE & !BTF)]
    {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x1d9, debugctl);
        write(&mut pmu, 0x186, INST_RETIRED | OS | USR | EN);
        write(&mut pmu, 0x187, LOADS | OS | USR | EN);
        write(&mut pmu, 0x38d, 0x003);
        let ctrl = 0x1_0000_0003;
        write(&mut pmu, GLOBAL_CTRL, ctrl);
        retire(&mut pmu, USER, 100);
        pmu.smm(true);
        let frozen = debugctl == FREEZE;
        assert_eq!(pmu.counting() == Counting::Nothing, frozen);
        assert_eq!(read(&pmu, GLOBAL_CTRL), if frozen { 0 } else { ctrl });
        assert_eq!(read(&pmu, 0x1d9), inside);
        retire(&mut pmu, KERNEL, 1000);
        pmu.smm(false);
        assert_eq!(
            [GLOBAL_CTRL, 0x1d9].map(|msr| read(&pmu, msr)),
            [ctrl, debugctl]
        );
        retire(&mut pmu, USER, 7);
        for ecx in [0, 1, 1 << 30] {
            assert_eq!(pmu.rdpmc(ecx), Ok(counted), "{debugctl:#x} {ecx:#x}");
        }
    }
    // RESET ends SMM.
    let mut pmu = pmu(HASWELL);
    write(&mut pmu, 0x1d9, FREEZE_WHILE_SMM);
    pmu.smm(true);
    pmu.reset();
    pmu.smm(false);
    assert_eq!(read(&pmu, 0x1d9), 0);
}
