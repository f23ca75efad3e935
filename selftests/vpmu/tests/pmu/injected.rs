// SPDX-License-Identifier: GPL-2.0

//! Tests errors that the guest injects.

use vpmu::inject::{
    Injected,
    LATE_BY, //
};
use vpmu::pmu::{
    Counting,
    Pmu, //
};
use vpmu::Fault;

use super::*;

/// Creates a Haswell with these errors whose counter 0 overflows at the next instruction.
fn about_to_overflow(what: Injected) -> Pmu {
    let mut pmu = Pmu::new(find(HASWELL), 2);
    write(&mut pmu, INJECT, what.bits());
    write(&mut pmu, GLOBAL_CTRL, 1);
    select(&mut pmu, 0, INSTRUCTIONS | COUNTS | INT);
    write(&mut pmu, 0x4c1, (1 << 48) - 1);
    pmu
}

#[test]
fn injected_late_pmi() {
    let mut pmu = about_to_overflow(Injected::LATE_PMI);
    retire(&mut pmu, 1);
    assert_eq!(read(&pmu, STATUS), 1);
    assert!(!pmu.pmi(false));
    // The PMI is delivered even if nothing counts any more, and a second overflow does not delay
    // it.
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
fn injected_repeated_pmi() {
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
fn injected_stuck_counters() {
    let all: Vec<u32> = (0x4c1..=0x4c4).chain(0x309..=0x30b).collect();
    for (what, stuck) in [
        (Injected::default(), &[][..]),
        (Injected::STUCK_GENERAL, &[0x4c4]),
        (Injected::STUCK_FIXED, &[0x30b]),
    ] {
        let mut pmu = Pmu::new(find(HASWELL), 2);
        write(&mut pmu, INJECT, what.bits());
        for &msr in &all {
            write(&mut pmu, msr, 42);
            let expected = if stuck.contains(&msr) { 0 } else { 42 };
            assert_eq!(read(&pmu, msr), expected, "{msr:#x}");
        }
        write(&mut pmu, 0xc4, 43);
        assert_eq!(read(&pmu, 0xc4) == 43, what != Injected::STUCK_GENERAL);
    }
}

#[test]
fn injected_stuck_status() {
    let mut pmu = about_to_overflow(Injected::STUCK_STATUS);
    retire(&mut pmu, 1);
    write(&mut pmu, STATUS_RESET, 1);
    assert_eq!(read(&pmu, STATUS), 1);
    write(&mut pmu, INJECT, 0);
    assert_eq!(read(&pmu, STATUS), 1);
    write(&mut pmu, STATUS_RESET, 1);
    assert_eq!(read(&pmu, STATUS), 0);
}

#[test]
fn injected_stuck_ctrl() {
    let mut pmu = Pmu::new(find(HASWELL), 2);
    write(&mut pmu, GLOBAL_CTRL, 0);
    write(&mut pmu, INJECT, Injected::STUCK_CTRL.bits());
    assert_eq!(read(&pmu, GLOBAL_CTRL), 1 << 3);
    select(&mut pmu, 3, INSTRUCTIONS | COUNTS);
    write(&mut pmu, GLOBAL_CTRL, 1);
    write(&mut pmu, GLOBAL_CTRL, 0);
    retire(&mut pmu, 10);
    assert_eq!(pmu.rdpmc(3), Ok(10));
    write(&mut pmu, INJECT, 0);
    write(&mut pmu, GLOBAL_CTRL, 0);
    assert_eq!(read(&pmu, GLOBAL_CTRL), 0);
}

#[test]
fn injected_reserved_status() {
    const GLOBAL_STATUS: u32 = 0xc000_0300;
    const GLOBAL_STATUS_CLR: u32 = 0xc000_0302;
    let mut pmu = Pmu::new(vpmu::model::find(0x19, 0x11).unwrap(), 1);
    assert_eq!(read(&pmu, GLOBAL_STATUS), 0);
    write(&mut pmu, INJECT, Injected::RESERVED_STATUS.bits());
    write(&mut pmu, GLOBAL_STATUS_CLR, 1 << 31);
    assert_eq!(read(&pmu, GLOBAL_STATUS), 1 << 31);
    write(&mut pmu, INJECT, 0);
    assert_eq!(read(&pmu, GLOBAL_STATUS), 0);
}

#[test]
fn injected_fewer_counters() {
    for (what, leaf_a) in [
        (Injected::default(), [0x0730_0403, 0, 0, 0x603]),
        (Injected::FEWER, [0x0730_0203, 0, 0, 0x601]),
        (Injected::MISSING, [0x0730_0403, 0, 0, 0x603]),
    ] {
        let few = what != Injected::default();
        let mut pmu = Pmu::new(find(HASWELL), 2);
        write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
        write(&mut pmu, INJECT, what.bits());
        assert_eq!(read(&pmu, INJECT), what.bits());
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
        // RESET ends it.
        pmu.reset();
        assert!(pmu.rdpmc(2).is_ok());
    }
}

#[test]
fn injected_more_counters() {
    let mut pmu = Pmu::new(find(HASWELL), 1);
    write(&mut pmu, INJECT, Injected::MORE.bits());
    assert_eq!(pmu.cpuid(0xa, 0, [0; 4])[0], 0x0730_0a03);
    assert!(pmu.rdpmc(7).is_ok() && pmu.rdpmc(8).is_err());
    assert_eq!(pmu.rdmsr(0xc9), None);
    assert_eq!(pmu.wrmsr(GLOBAL_CTRL, 1 << 8), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(GLOBAL_CTRL, 0xff), Some(Ok(())));
}

#[test]
fn injected_cpuid() {
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
        write(&mut pmu, INJECT, what.bits());
        assert_eq!(pmu.cpuid(1, 0, haswell)[0], eax, "{what:?}");
        assert_eq!(pmu.cpuid(7, 0, [0; 4]), [0, 0, 0, hybrid]);
        assert_eq!(pmu.cpuid(7, 1, [0; 4]), [0; 4]);
        assert_eq!(pmu.cpuid(0xa, 0, [0; 4])[0] & 0xff, version);
    }
    let mut pmu = Pmu::new(find(HASWELL), 2);
    for bits in [1 << 34, 1 << 35, 1 << 63] {
        assert_eq!(pmu.wrmsr(INJECT, bits), Some(Err(Fault)));
    }
}

#[test]
fn injected_no_smm_freeze() {
    const FREEZE: u64 = 1 << 14;
    let mut pmu = Pmu::new(find(HASWELL), 2);
    write(&mut pmu, 0x1d9, FREEZE | 1);
    write(&mut pmu, INJECT, Injected::NO_SMM_FREEZE.bits());
    assert_eq!(read(&pmu, 0x1d9), 1);
    assert_eq!(read(&pmu, 0x345) & (1 << 12), 0);
    assert_eq!(pmu.wrmsr(0x1d9, FREEZE), Some(Err(Fault)));
    write(&mut pmu, INJECT, 0);
    write(&mut pmu, 0x1d9, FREEZE);
    assert_ne!(read(&pmu, 0x345) & (1 << 12), 0);
}

/// Errors that are injected while the PMU is frozen do not let it run.
#[test]
fn injected_errors_leave_the_freeze() {
    const FREEZES: u64 = (1 << 58) | (1 << 59);
    let mut pmu = Pmu::new(find(SKYLAKE), 2);
    write(&mut pmu, GLOBAL_CTRL, 1);
    select(&mut pmu, 0, INSTRUCTIONS | COUNTS);
    write(&mut pmu, 0x391, FREEZES | (1 << 62) | 0b1001);
    write(&mut pmu, INJECT, Injected::FEWER.bits());
    assert_eq!(read(&pmu, STATUS), FREEZES | (1 << 62) | 1);
    retire(&mut pmu, 100);
    assert_eq!(pmu.rdpmc(0), Ok(0));
}
