// SPDX-License-Identifier: GPL-2.0

//! LbrExtV2: last branch records, and freezing on a PMI.

use super::*;
use vpmu::branch::Branch;
use vpmu::Fault;

const SELECT: u32 = 0xc000_010e;
const DBG_EXTN_CFG: u32 = 0xc000_010f;
const LBRV2EN: u64 = 1 << 6;
const FROM: u32 = 0xc001_0300;
const TO: u32 = 0xc001_0301;
const DEBUGCTL: u32 = 0x1d9;
const FREEZE_LBRS: u64 = 1 << 11;
const FREEZE_PMCS: u64 = 1 << 12;
const MISPREDICT: u64 = 1 << 63;
const VALID: u64 = 1 << 63;
const SPEC: u64 = 1 << 62;
const USER: u64 = 0x40_0000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn take(pmu: &mut Pmu, kind: usize, from: u64, to: u64) {
    pmu.branch(&Branch {
        kind: kind as u32,
        from_user: from < KERNEL,
        to_user: to < KERNEL,
        next: false,
        from,
        to,
        instructions: 1,
    });
}

fn recording(cpu: &Cpu) -> Pmu {
    let mut pmu = cpu.pmu();
    write(&mut pmu, DBG_EXTN_CFG, LBRV2EN);
    pmu
}

#[test]
fn only_with_perfmon_v2() {
    for cpu in &CPUS {
        let mut pmu = cpu.pmu();
        for msr in [SELECT, DBG_EXTN_CFG].into_iter().chain(FROM..FROM + 32) {
            let result = if cpu.v2 { Ok(0) } else { Err(Fault) };
            assert_eq!(pmu.rdmsr(msr), Some(result), "{} {msr:#x}", cpu.name);
            assert_eq!(pmu.wrmsr(msr, 0), Some(result.map(|_| ())), "{msr:#x}");
        }
        // Without PerfMonV2, the PMU has no DebugCtl.
        assert_eq!(pmu.rdmsr(DEBUGCTL), cpu.v2.then_some(Ok(0)), "{}", cpu.name);
        assert!(!pmu.records_branches());
    }
}

#[test]
fn reserved_bits_of_lbr_are_ignored() {
    for (msr, bits) in [(SELECT, 0x1ff), (DBG_EXTN_CFG, LBRV2EN), (DEBUGCTL, 0x1803)] {
        let mut pmu = ZEN4.pmu();
        write(&mut pmu, msr, !0);
        assert_eq!(read(&pmu, msr), bits, "{msr:#x}");
        pmu.reset();
        assert_eq!(read(&pmu, msr), 0, "{msr:#x}");
    }
}

#[test]
fn format() {
    let mut pmu = recording(ZEN4);
    // Bits 8:4 of the sum are ones.
    take(&mut pmu, retired::TAKEN, USER + 0x1f0, USER);
    take(&mut pmu, retired::FAR, USER, KERNEL);
    take(&mut pmu, retired::RETURN, KERNEL + 0x100, KERNEL);
    let records = [0, 2, 4, 6].map(|i| (read(&pmu, FROM + i), read(&pmu, TO + i)));
    let ip = |ip: u64| ip & (u64::MAX >> 3);
    assert_eq!(
        records,
        [
            ((KERNEL + 0x100) & !MISPREDICT, ip(KERNEL) | VALID | SPEC),
            (USER, ip(KERNEL) | VALID),
            ((USER + 0x1f0) | MISPREDICT, USER | VALID | SPEC),
            (0, 0)
        ]
    );
    for i in 0..20 {
        take(&mut pmu, retired::JUMP, USER + i, USER);
    }
    assert_eq!(read(&pmu, FROM), USER + 19);
    assert_eq!(read(&pmu, FROM + 30), USER + 4);
}

#[test]
fn filters() {
    let kinds = [
        retired::TAKEN,
        retired::CALL,
        retired::CALL_INDIRECT,
        retired::RETURN,
        retired::JUMP_INDIRECT,
        retired::JUMP,
        retired::FAR,
    ];
    for (bit, &kind) in (2..).zip(&kinds) {
        let mut pmu = recording(ZEN4);
        write(&mut pmu, SELECT, 0x1fc ^ (1 << bit));
        for (i, &kind) in kinds.iter().enumerate() {
            take(&mut pmu, kind, USER + i as u64, USER);
        }
        assert_eq!(read(&pmu, FROM), USER + bit - 2, "{kind}");
        assert_eq!(read(&pmu, FROM + 2), 0, "{kind}");
    }
    for (select, from) in [(1, KERNEL & !MISPREDICT), (2, USER)] {
        let mut pmu = recording(ZEN4);
        write(&mut pmu, SELECT, select);
        take(&mut pmu, retired::FAR, KERNEL, USER);
        take(&mut pmu, retired::FAR, USER, KERNEL);
        // The level of the target.
        assert_eq!([read(&pmu, FROM), read(&pmu, FROM + 2)], [from, 0]);
    }
}

#[test]
fn freeze_on_pmi() {
    for (debugctl, status) in [(0, 0), (FREEZE_LBRS, 1 << 58), (FREEZE_PMCS, 1 << 59)] {
        let mut pmu = recording(ZEN4);
        write(&mut pmu, DEBUGCTL, debugctl);
        write(&mut pmu, ZEN4.ctl(0), RETIRED_INSTRUCTIONS | USR | INT | EN);
        write(&mut pmu, ZEN4.ctr(0), MASK);
        retire(&mut pmu, true, &[(retired::INSTRUCTIONS, 1)]);
        assert_eq!(read(&pmu, GLOBAL_STATUS), 1);
        assert!(pmu.pmi(false));
        assert_eq!(read(&pmu, GLOBAL_STATUS), status | 1);
        assert_eq!(pmu.records_branches(), debugctl != FREEZE_LBRS);
        retire(&mut pmu, true, &[(retired::INSTRUCTIONS, 1)]);
        let counted = u64::from(debugctl != FREEZE_PMCS);
        assert_eq!(read(&pmu, ZEN4.ctr(0)), counted);
        write(&mut pmu, GLOBAL_STATUS_CLR, status | 1);
        assert!(pmu.records_branches());
        retire(&mut pmu, true, &[(retired::INSTRUCTIONS, 1)]);
        assert_eq!(read(&pmu, ZEN4.ctr(0)), counted + 1);
        // Software can freeze.
        write(&mut pmu, GLOBAL_STATUS_SET, status);
        assert_eq!(read(&pmu, GLOBAL_STATUS), status);
    }
}
