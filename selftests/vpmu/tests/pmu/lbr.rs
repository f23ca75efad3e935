// SPDX-License-Identifier: GPL-2.0

//! Tests last branch records, based on the manuals and independently of `src/model/` and
//! `src/pmu/lbr/`.

use vpmu::branch::Branch;
use vpmu::inject::Injected;
use vpmu::model;
use vpmu::pmu::{
    Counting,
    Pmu, //
};
use vpmu::retired;
use vpmu::shared::{
    Core,
    Thread, //
};
use vpmu::Fault;

use super::{
    find,
    read,
    retire,
    select,
    write,
    BROADWELL,
    COUNTS,
    HASWELL,
    INSTRUCTIONS,
    INT, //
};
use super::{
    GLOBAL_CTRL,
    INJECT,
    IVY_BRIDGE,
    NEHALEM,
    SANDY_BRIDGE,
    SKYLAKE,
    STATUS,
    STATUS_RESET,
    WESTMERE, //
};

const ICE_LAKE: u32 = 106;
const GOLDEN_COVE: u32 = 143;
const REDWOOD_COVE: u32 = 173;
const SILVERMONT: u32 = 77;
const GOLDMONT: u32 = 95;
const GOLDMONT_PLUS: u32 = 122;
const TREMONT: u32 = 134;
const GRACEMONT: u32 = 190;
const CRESTMONT: u32 = 175;
const DEBUGCTL: u32 = 0x1d9;
const LBR: u64 = 1;
const FREEZE_LBRS_ON_PMI: u64 = 1 << 11;
const LBR_FRZ: u64 = 1 << 58;
const SELECT: u32 = 0x1c8;
const TOS: u32 = 0x1c9;
const CTL: u32 = 0x14ce;
const DEPTH: u32 = 0x14cf;
const MISPRED: u64 = 1 << 63;
const EN_CALLSTACK: u64 = 1 << 9;
/// IA32_LBR_CTL: LBREn, OS, USR, all kinds.
const ALL: u64 = 0x7f_0007;

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const USER: u64 = 0x40_0000;

/// The models, their records, and the base of the MSRs: FROM, TO, INFO.
const LEGACY: [(u32, u32, [u32; 3]); 12] = [
    (NEHALEM, 16, [0x680, 0x6c0, 0]),
    (WESTMERE, 16, [0x680, 0x6c0, 0]),
    (SANDY_BRIDGE, 16, [0x680, 0x6c0, 0]),
    (IVY_BRIDGE, 16, [0x680, 0x6c0, 0]),
    (HASWELL, 16, [0x680, 0x6c0, 0]),
    (BROADWELL, 16, [0x680, 0x6c0, 0]),
    (SKYLAKE, 32, [0x680, 0x6c0, 0xdc0]),
    (ICE_LAKE, 32, [0x680, 0x6c0, 0xdc0]),
    (SILVERMONT, 8, [0x40, 0x60, 0]),
    (GOLDMONT, 32, [0x680, 0x6c0, 0]),
    (GOLDMONT_PLUS, 32, [0x680, 0x6c0, 0xdc0]),
    (TREMONT, 32, [0x680, 0x6c0, 0xdc0]),
];

fn pmu(model: u32) -> Pmu {
    Pmu::new(find(model), 2)
}

/// Returns a PMU that records all branches.
fn recording(model: u32) -> Pmu {
    let mut pmu = pmu(model);
    if model == GOLDEN_COVE {
        write(&mut pmu, DEPTH, 32);
        write(&mut pmu, CTL, ALL);
    } else {
        write(&mut pmu, DEBUGCTL, LBR);
    }
    pmu
}

/// Returns a branch of one kind, ten instructions after the last one. The addresses determine the
/// levels.
fn branch(kind: usize, from: u64, to: u64) -> Branch {
    Branch {
        kind: kind as u32,
        from_user: from < KERNEL,
        to_user: to < KERNEL,
        next: false,
        from,
        to,
        instructions: 10,
    }
}

fn take(pmu: &mut Pmu, kind: usize, from: u64, to: u64) {
    pmu.branch(&branch(kind, from, to));
}

/// Returns TO of a branch that was recorded this many cycles after the last one: on Goldmont, the
/// cycles are in bits 63:48.
fn to_of(model: u32, to: u64, cycles: u64) -> u64 {
    match model {
        GOLDMONT => to & (u64::MAX >> 16) | (cycles << 48),
        _ => to,
    }
}

/// Returns the records with any cycles in TO removed.
fn without_cycles(model: u32, records: Vec<[u64; 2]>) -> Vec<[u64; 2]> {
    let records = records.into_iter();
    records
        .map(|[from, to]| match model {
            GOLDMONT => [from, ((to << 16) as i64 >> 16) as u64],
            _ => [from, to],
        })
        .collect()
}

/// Returns FROM and TO of the newest records of a legacy stack, the newest first.
fn newest(pmu: &Pmu, count: u64, depth: u64) -> Vec<[u64; 2]> {
    // Silvermont's eight records are where Core 2 has them.
    let first = if depth == 8 {
        [0x40, 0x60]
    } else {
        [0x680, 0x6c0]
    };
    let top = read(pmu, TOS);
    (0..count)
        .map(|age| ((top + depth - age) % depth) as u32)
        .map(|number| first.map(|msr| read(pmu, msr + number)))
        .collect()
}

#[test]
fn records_are_lost_when_that_is_injected() {
    for (model, depth, _) in LEGACY {
        let mut pmu = recording(model);
        for at in 1..=2 {
            for _ in 0..3 {
                take(&mut pmu, retired::CALL, USER, USER + 16);
            }
            assert_ne!(newest(&pmu, 1, depth.into())[0][0], 0, "{model} {at}");
            // Once at each write.
            write(&mut pmu, INJECT, Injected::LOST_RECORDS.bits());
            assert_eq!(read(&pmu, TOS), 0);
            assert_eq!(
                newest(&pmu, depth.into(), depth.into()),
                vec![[0; 2]; depth as usize]
            );
        }
    }
    let mut pmu = recording(GOLDEN_COVE);
    take(&mut pmu, retired::CALL, USER, USER + 16);
    write(&mut pmu, INJECT, Injected::LOST_RECORDS.bits());
    assert_eq!(read(&pmu, 0x1500), USER);
}

#[test]
fn registers_of_each_model() {
    for (model, depth, msrs) in LEGACY {
        let mut pmu = pmu(model);
        for index in 0..32 {
            let low = [0x40, 0x60].into_iter().filter(|_| index < 8);
            for first in [0x680, 0x6c0, 0xdc0].into_iter().chain(low) {
                let there = index < depth && msrs.contains(&first);
                let msr = first + index;
                let zero = if there { Ok(0) } else { Err(Fault) };
                assert_eq!(pmu.rdmsr(msr), Some(zero), "{model} {msr:#x}");
                assert_eq!(pmu.wrmsr(msr, 0), Some(zero.map(|_| ())), "{msr:#x}");
            }
        }
        for msr in [CTL, DEPTH, 0x1200, 0x1500, 0x1600, 0x121f, 0x151f, 0x161f] {
            assert_eq!(pmu.rdmsr(msr), Some(Err(Fault)), "{model} {msr:#x}");
            assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{model} {msr:#x}");
        }
        assert_eq!(read(&pmu, TOS), 0);
        write(&mut pmu, TOS, u64::from(depth) - 1);
        assert_eq!(pmu.wrmsr(TOS, u64::from(depth)), Some(Err(Fault)));
        assert_eq!(read(&pmu, TOS), u64::from(depth) - 1);
        assert_eq!(pmu.cpuid(7, 0, [0; 4])[3] & (1 << 19), 0);
        assert_eq!(pmu.cpuid(0x1c, 0, [0; 4]), [0; 4]);
    }
    for model in [GOLDEN_COVE, REDWOOD_COVE, GRACEMONT, CRESTMONT] {
        let mut pmu = pmu(model);
        for msr in [SELECT, TOS, 0x680, 0x6c0, 0xdc0] {
            assert_eq!(pmu.rdmsr(msr), Some(Err(Fault)), "{msr:#x}");
            assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{msr:#x}");
        }
        assert_eq!(pmu.cpuid(7, 0, [0; 4])[3] & (1 << 19), 1 << 19);
        assert_eq!(pmu.cpuid(0x1c, 0, [0; 4]), [0x4000_000b, 7, 7, 0]);
    }
}

/// Returns the bits that can be written individually.
fn writable(pmu: &mut Pmu, msr: u32) -> u64 {
    let bits = (0..64).filter(|bit| pmu.wrmsr(msr, 1 << bit) == Some(Ok(())));
    bits.fold(0, |mask, bit| mask | (1 << bit))
}

#[test]
fn reserved_bits() {
    for (model, _, [first_from, first_to, _]) in LEGACY {
        let mut pmu = pmu(model);
        let call_stack = match model {
            NEHALEM | WESTMERE | SANDY_BRIDGE | IVY_BRIDGE | SILVERMONT => 0,
            _ => EN_CALLSTACK,
        };
        assert_eq!(writable(&mut pmu, SELECT), 0x1ff | call_stack, "{model}");
        // Canonical addresses, of 57 bits on processors with five-level paging; bit 63 of FROM is a
        // flag unless INFO has it.
        let width = if matches!(model, ICE_LAKE | TREMONT) {
            57
        } else {
            48
        };
        let address = (1 << (width - 1)) - 1;
        let (from, negative) = if matches!(model, SKYLAKE | ICE_LAKE | GOLDMONT_PLUS | TREMONT) {
            // The flags of TSX are missing on small cores.
            let tsx = if matches!(model, GOLDMONT_PLUS | TREMONT) {
                0
            } else {
                3 << 61
            };
            assert_eq!(writable(&mut pmu, 0xdc0), MISPRED | tsx | 0xffff);
            (address, !address)
        } else if model == SILVERMONT {
            (address, !address)
        } else {
            (address | MISPRED, !address ^ MISPRED)
        };
        assert_eq!(writable(&mut pmu, first_from), from, "{model}");
        let to = if model == GOLDMONT { u64::MAX } else { address };
        assert_eq!(writable(&mut pmu, first_to), to, "{model}");
        write(&mut pmu, first_from, negative);
        assert_eq!(read(&pmu, first_from), negative);
        write(&mut pmu, first_to, !address);
        // Without TSX, bits 62:61 are the address's, also where they would be flags.
        for bit in [width, 61, 62] {
            let wrong = negative ^ (1 << bit);
            assert_eq!(pmu.wrmsr(first_from, wrong), Some(Err(Fault)));
        }
        assert_eq!(read(&pmu, first_from), negative);
    }
    let mut pmu = pmu(GOLDEN_COVE);
    assert_eq!(writable(&mut pmu, CTL), 0x7f_000f);
    assert_eq!(writable(&mut pmu, DEPTH), 8 | 16 | 32);
    assert_eq!(pmu.wrmsr(DEPTH, 0), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(DEPTH, 24), Some(Err(Fault)));
    assert_eq!(writable(&mut pmu, 0x1500), (1 << 56) - 1);
    assert_eq!(writable(&mut pmu, 0x1600), (1 << 56) - 1);
    // Bits 55:16 are undefined: writes do not fault.
    assert_eq!(writable(&mut pmu, 0x1200), u64::MAX);
    write(&mut pmu, 0x1200, u64::MAX);
    assert_eq!(read(&pmu, 0x1200), 0xff00_0000_0000_ffff);
    // LBR has no effect: it reads as zero.
    write(&mut pmu, DEBUGCTL, LBR | FREEZE_LBRS_ON_PMI);
    assert_eq!(read(&pmu, DEBUGCTL), FREEZE_LBRS_ON_PMI);
}

/// The record of a mispredicted branch in the kernel and of a predicted one at user level.
#[test]
fn formats() {
    // Bits 8:4 of the sums are 1FH and 0.
    let (from, to) = (KERNEL + 0x1f1, KERNEL + 1);
    for (model, depth, msrs) in LEGACY {
        let mut pmu = recording(model);
        take(&mut pmu, retired::TAKEN, USER, USER + 8);
        take(&mut pmu, retired::TAKEN, from, to);
        assert_eq!(read(&pmu, TOS), 2);
        let flagged = match model {
            // FROM has a flag, from Haswell on with the flags of TSX below.
            HASWELL | BROADWELL => from & (u64::MAX >> 3) | MISPRED,
            SILVERMONT | SKYLAKE | ICE_LAKE | GOLDMONT_PLUS | TREMONT => from,
            _ => from | MISPRED,
        };
        assert_eq!(
            newest(&pmu, 3, depth.into()),
            // 10 instructions are 15 cycles.
            [
                [flagged, to_of(model, to, 15)],
                [USER, to_of(model, USER + 8, 15)],
                [0, 0]
            ]
        );
        if msrs[2] != 0 {
            assert_eq!(
                [1, 2, 3].map(|i| read(&pmu, 0xdc0 + i)),
                [15, MISPRED | 15, 0]
            );
        }
        // A jump in the kernel, which is never mispredicted.
        take(&mut pmu, retired::JUMP, from, to);
        let has_flag = msrs[2] == 0 && model != SILVERMONT;
        let flagged = if has_flag { flagged & !MISPRED } else { from };
        assert_eq!(
            newest(&pmu, 1, depth.into()),
            [[flagged, to_of(model, to, 15)]]
        );
    }
    let mut pmu = recording(GOLDEN_COVE);
    take(&mut pmu, retired::TAKEN, USER, USER + 8);
    take(&mut pmu, retired::RETURN, from, to);
    let records = [0, 1, 2].map(|i| [0x1500, 0x1600, 0x1200].map(|msr| read(&pmu, msr + i)));
    let valid = 1 << 60;
    assert_eq!(
        records,
        [
            [from, to, MISPRED | valid | (5 << 56) | 15],
            [USER, USER + 8, valid | 15],
            [0, 0, 0]
        ]
    );
}

/// The kinds with their bits in MSR_LBR_SELECT and IA32_LBR_CTL, and their BR_TYPE.
const KINDS: [(usize, u32, u32, u64); 8] = [
    (retired::TAKEN, 2, 16, 0),
    (retired::CALL, 3, 19, 4),
    (retired::CALL_INDIRECT, 4, 20, 3),
    (retired::RETURN, 5, 21, 5),
    (retired::JUMP_INDIRECT, 6, 18, 1),
    (retired::JUMP, 7, 17, 2),
    (retired::FAR, 8, 22, 8),
    (retired::INTERRUPTS, 8, 22, 8),
];

#[test]
fn filters_by_kind() {
    for (kind, suppressed, allowed, branch_type) in KINDS {
        for (model, ..) in LEGACY {
            let mut pmu = recording(model);
            write(&mut pmu, SELECT, 0x1fc ^ (1 << suppressed));
            for (other, ..) in KINDS {
                take(&mut pmu, other, USER, USER + other as u64);
            }
            let same = KINDS.iter().filter(|other| other.1 == suppressed).count();
            assert_eq!(read(&pmu, TOS), same as u64, "{model} {kind}");
            write(&mut pmu, SELECT, 1 << suppressed);
            take(&mut pmu, kind, USER, USER);
            assert_eq!(read(&pmu, TOS), same as u64, "{model} {kind}");
        }
        let mut pmu = recording(GOLDEN_COVE);
        write(&mut pmu, CTL, 7 | (1 << allowed));
        for (other, ..) in KINDS {
            take(&mut pmu, other, USER, USER + other as u64);
        }
        let same = KINDS.iter().filter(|other| other.2 == allowed).count() as u32;
        assert_eq!((read(&pmu, 0x1200) >> 56) & 0xf, branch_type, "{kind}");
        assert_ne!(read(&pmu, 0x1600 + same - 1), 0, "{kind}");
        assert_eq!(read(&pmu, 0x1600 + same), 0, "{kind}");
    }
}

/// The target's level decides.
#[test]
fn filters_by_level() {
    let branches = [
        (USER, USER),
        (USER, KERNEL),
        (KERNEL, KERNEL),
        (KERNEL, USER),
    ];
    for (model, depth, _) in LEGACY {
        for (select, expected) in [
            (1, vec![(KERNEL, USER), (USER, USER)]),
            (2, vec![(KERNEL, KERNEL), (USER, KERNEL)]),
            (3, vec![]),
        ] {
            let mut pmu = recording(model);
            write(&mut pmu, SELECT, select);
            for (from, to) in branches {
                take(&mut pmu, retired::FAR, from, to);
            }
            let flags = if matches!(model, HASWELL | BROADWELL) {
                7 << 61
            } else {
                0
            };
            let flags = |ip| {
                if matches!(
                    model,
                    SILVERMONT | SKYLAKE | ICE_LAKE | GOLDMONT_PLUS | TREMONT
                ) {
                    ip
                } else {
                    ip & !MISPRED & !flags
                }
            };
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(from, to)| [flags(from), to])
                .collect();
            let records = newest(&pmu, expected.len() as u64, depth.into());
            assert_eq!(without_cycles(model, records), expected, "{model}");
            assert_eq!(read(&pmu, TOS), expected.len() as u64, "{model}");
        }
    }
    // The source is hidden if its level is not recorded.
    let mut pmu = recording(GOLDEN_COVE);
    write(&mut pmu, CTL, ALL & !2);
    for (from, to) in branches {
        take(&mut pmu, retired::FAR, from, to);
    }
    let records = [0, 1, 2].map(|i| [0x1500, 0x1600].map(|msr| read(&pmu, msr + i)));
    assert_eq!(records, [[0xffff_ffff, USER], [USER, USER], [0, 0]]);
    write(&mut pmu, CTL, ALL & !6);
    take(&mut pmu, retired::FAR, USER, KERNEL);
    assert_eq!(read(&pmu, 0x1600), USER);
}

#[test]
fn the_oldest_record_is_lost() {
    for (model, depth, _) in LEGACY {
        let mut pmu = recording(model);
        for i in 0..u64::from(depth) + 3 {
            take(&mut pmu, retired::JUMP, USER + i, USER + 2 * i);
        }
        assert_eq!(read(&pmu, TOS), 3);
        let expected: Vec<_> = (3..u64::from(depth) + 3)
            .rev()
            .map(|i| [USER + i, USER + 2 * i])
            .collect();
        let records = newest(&pmu, depth.into(), depth.into());
        assert_eq!(without_cycles(model, records), expected, "{model}");
    }
    for depth in [8, 16, 32] {
        let mut pmu = recording(GOLDEN_COVE);
        write(&mut pmu, DEPTH, depth);
        for i in 0..depth + 3 {
            take(&mut pmu, retired::JUMP, USER + i, USER + 2 * i);
        }
        for age in 0..32 {
            let from = (age < depth).then_some(USER + depth + 2 - age).ok_or(Fault);
            assert_eq!(pmu.rdmsr(0x1500 + age as u32), Some(from), "{depth}");
        }
        // A write of a register is to the record that it reads; a write of the depth clears all
        // records.
        write(&mut pmu, 0x1501, 77);
        assert_eq!(read(&pmu, 0x1501), 77);
        assert_eq!(read(&pmu, 0x1500), USER + depth + 2);
        write(&mut pmu, DEPTH, depth);
        assert!((0..depth as u32).all(|i| read(&pmu, 0x1500 + i) == 0));
    }
}

#[test]
fn call_stack() {
    for (model, depth) in [
        (HASWELL, 16),
        (BROADWELL, 16),
        (SKYLAKE, 32),
        (ICE_LAKE, 32),
    ] {
        let mut pmu = recording(model);
        write(&mut pmu, TOS, 5);
        // JCC, NEAR_IND_JMP, NEAR_REL_JMP, FAR_BRANCH and ring 0 are suppressed.
        write(&mut pmu, SELECT, EN_CALLSTACK | 0x1c5);
        // Nothing to remove.
        take(&mut pmu, retired::RETURN, USER, USER + 1);
        assert_eq!(read(&pmu, TOS), 5, "{model}");
        take(&mut pmu, retired::CALL, USER + 10, USER + 20);
        take(&mut pmu, retired::CALL_INDIRECT, USER + 30, USER + 40);
        take(&mut pmu, retired::JUMP, USER, USER);
        pmu.branch(&Branch {
            next: true,
            ..branch(retired::CALL, USER + 50, USER + 55)
        });
        let both = [[USER + 30, USER + 40], [USER + 10, USER + 20], [0, 0]];
        assert_eq!(newest(&pmu, 3, depth), both, "{model}");
        take(&mut pmu, retired::CALL, USER + 60, USER + 70);
        take(&mut pmu, retired::RETURN, USER + 75, USER + 65);
        assert_eq!(newest(&pmu, 3, depth), both, "{model}");
        assert_eq!(read(&pmu, 0x688), 0, "{model}");
        // Returns of the kernel do not count.
        take(&mut pmu, retired::RETURN, KERNEL, KERNEL);
        take(&mut pmu, retired::RETURN, USER + 45, USER + 35);
        assert_eq!(
            newest(&pmu, 2, depth),
            [[USER + 10, USER + 20], [0, 0]],
            "{model}"
        );
        take(&mut pmu, retired::RETURN, USER + 25, USER + 15);
        take(&mut pmu, retired::RETURN, USER + 25, USER + 15);
        assert_eq!(newest(&pmu, 1, depth), [[0, 0]], "{model}");
        assert_eq!(read(&pmu, TOS), 5, "{model}");
    }
    let mut pmu = recording(GOLDEN_COVE);
    // USR, CALL_STACK, NEAR_REL_CALL, NEAR_IND_CALL, NEAR_RET
    write(&mut pmu, CTL, 0x38_000d);
    take(&mut pmu, retired::CALL, USER + 10, USER + 20);
    pmu.branch(&Branch {
        next: true,
        ..branch(retired::CALL, USER + 50, USER + 55)
    });
    take(&mut pmu, retired::CALL_INDIRECT, USER + 30, USER + 40);
    assert_eq!(
        [0, 1, 2].map(|i| read(&pmu, 0x1500 + i)),
        [USER + 30, USER + 10, 0]
    );
    take(&mut pmu, retired::RETURN, USER + 45, USER + 35);
    assert_eq!([0, 1].map(|i| read(&pmu, 0x1500 + i)), [USER + 10, 0]);
}

/// Without call stack, a call of the next instruction is a call.
#[test]
fn calls_of_the_next_instruction() {
    let mut pmu = recording(HASWELL);
    pmu.branch(&Branch {
        next: true,
        ..branch(retired::CALL, USER + 50, USER + 55)
    });
    assert_eq!(newest(&pmu, 1, 16), [[USER + 50, USER + 55]]);
}

#[test]
fn cycles() {
    for model in [SKYLAKE, GOLDMONT, GOLDEN_COVE] {
        let mut pmu = recording(model);
        let info = |pmu: &Pmu| match model {
            SKYLAKE => read(pmu, 0xdc0 + read(pmu, TOS) as u32),
            GOLDMONT => read(pmu, 0x6c0 + read(pmu, TOS) as u32) >> 48,
            _ => read(pmu, 0x1200) & 0xffff,
        };
        // Cycles of filtered branches add up.
        let filter = |pmu: &mut Pmu, jumps: bool| match model {
            GOLDEN_COVE => write(pmu, CTL, if jumps { ALL } else { ALL & !(1 << 17) }),
            _ => write(pmu, SELECT, if jumps { 0 } else { 0x80 }),
        };
        filter(&mut pmu, false);
        take(&mut pmu, retired::JUMP, USER, USER);
        take(&mut pmu, retired::FAR, USER, USER);
        assert_eq!(info(&pmu), 30);
        filter(&mut pmu, true);
        pmu.branch(&Branch {
            instructions: 0xaaa9,
            ..branch(retired::JUMP, USER, USER)
        });
        assert_eq!(info(&pmu), 0xfffd);
        pmu.branch(&Branch {
            instructions: 0x1_0000_0000,
            ..branch(retired::JUMP, USER, USER)
        });
        assert_eq!(info(&pmu), 0xffff);
        // Cycles do not add up while nothing is recorded.
        filter(&mut pmu, false);
        take(&mut pmu, retired::JUMP, USER, USER);
        let (msr, on) = if model == GOLDEN_COVE {
            (CTL, ALL)
        } else {
            (DEBUGCTL, LBR)
        };
        write(&mut pmu, msr, 0);
        take(&mut pmu, retired::JUMP, USER, USER);
        write(&mut pmu, msr, on);
        take(&mut pmu, retired::FAR, USER, USER);
        assert_eq!(info(&pmu), 15);
    }
}

#[test]
fn qemu_reports_branches_only_while_they_are_recorded() {
    for model in LEGACY
        .map(|(model, ..)| model)
        .into_iter()
        .chain([GOLDEN_COVE])
    {
        let mut pmu = pmu(model);
        assert!(!pmu.records_branches());
        assert_eq!(pmu.counting(), Counting::Nothing);
        take(&mut pmu, retired::JUMP, USER, USER);
        let (msr, newest) = match model {
            GOLDEN_COVE => (CTL, 0x1500),
            SILVERMONT => (DEBUGCTL, 0x41),
            _ => (DEBUGCTL, 0x681),
        };
        if model == GOLDEN_COVE {
            write(&mut pmu, DEPTH, 8);
        }
        assert_eq!(read(&pmu, newest), 0);
        write(&mut pmu, msr, 1);
        assert!(pmu.records_branches());
        assert_eq!(pmu.counting(), Counting::Instructions);
        write(&mut pmu, msr, 0);
        assert!(!pmu.records_branches());
        write(&mut pmu, msr, 1);
        pmu.reset();
        assert!(!pmu.records_branches());
    }
    let mut zen = Pmu::new(model::find(0x19, 0x11).unwrap(), 1);
    take(&mut zen, retired::JUMP, USER, USER);
    assert!(!zen.records_branches());
}

#[test]
fn reset_clears_all() {
    for (model, depth, msrs) in LEGACY {
        let mut pmu = recording(model);
        write(&mut pmu, SELECT, 4);
        for _ in 0..depth {
            take(&mut pmu, retired::JUMP, USER, USER);
        }
        pmu.reset();
        for msr in [SELECT, TOS, DEBUGCTL]
            .into_iter()
            .chain(msrs)
            .filter(|&msr| msr != 0)
        {
            assert_eq!(read(&pmu, msr), 0, "{model} {msr:#x}");
        }
    }
    let mut pmu = recording(GOLDEN_COVE);
    pmu.reset();
    assert_eq!([CTL, DEPTH].map(|msr| read(&pmu, msr)), [0, 0]);
}

/// A PMI freezes: up to version 3, it clears IA32_DEBUGCTL.LBR; from version 4 on, it sets LBR_FRZ.
#[test]
fn freeze_on_pmi() {
    for model in [NEHALEM, HASWELL, SKYLAKE, ICE_LAKE, GOLDEN_COVE] {
        for freeze in [0, FREEZE_LBRS_ON_PMI] {
            let mut pmu = recording(model);
            let legacy = u64::from(model != GOLDEN_COVE);
            write(&mut pmu, DEBUGCTL, legacy | freeze);
            write(&mut pmu, GLOBAL_CTRL, 1);
            select(&mut pmu, 0, INSTRUCTIONS | COUNTS | INT);
            write(&mut pmu, 0xc1, 0xffff_ffff);
            retire(&mut pmu, 1);
            // Not before the PMI.
            assert!(pmu.records_branches(), "{model}");
            // The request freezes, not the delivery.
            assert!(!pmu.pmi(true));
            assert_eq!(pmu.records_branches(), freeze == 0, "{model}");
            let version_4 = freeze != 0 && !matches!(model, NEHALEM | HASWELL);
            let frozen = if version_4 { LBR_FRZ } else { 0 };
            assert_eq!(read(&pmu, STATUS), frozen | 1, "{model}");
            let lbr = if freeze != 0 && !version_4 { 0 } else { legacy };
            assert_eq!(read(&pmu, DEBUGCTL), lbr | freeze, "{model}");
            take(&mut pmu, retired::JUMP, USER, USER);
            let first = if model == GOLDEN_COVE { 0x1500 } else { 0x681 };
            assert_eq!(read(&pmu, first) == 0, freeze != 0, "{model}");
            write(&mut pmu, STATUS_RESET, frozen | 1);
            assert_eq!(pmu.records_branches(), freeze == 0 || version_4, "{model}");
        }
    }
    // Software can freeze.
    let mut pmu = recording(SKYLAKE);
    write(&mut pmu, 0x391, LBR_FRZ);
    assert!(!pmu.records_branches());
}

#[test]
fn freeze_while_smm() {
    for model in [HASWELL, GOLDEN_COVE] {
        let mut pmu = recording(model);
        pmu.smm(true);
        assert!(pmu.records_branches(), "{model}");
        pmu.smm(false);
        let debugctl = read(&pmu, DEBUGCTL);
        write(&mut pmu, DEBUGCTL, debugctl | (1 << 14));
        pmu.smm(true);
        assert!(!pmu.records_branches(), "{model}");
        assert_eq!(read(&pmu, DEBUGCTL), 1 << 14, "{model}");
        pmu.smm(false);
        assert!(pmu.records_branches(), "{model}");
    }
}

/// MSR_LBR_SELECT is the core's on Nehalem and Westmere, the thread's later.
#[test]
fn select_of_the_core() {
    for (model, shared) in [
        (NEHALEM, true),
        (WESTMERE, true),
        (SANDY_BRIDGE, false),
        (SKYLAKE, false),
    ] {
        let core = Core::new(2);
        let mut threads = [0, 1].map(|index| {
            let model = find(model);
            Pmu::on(
                Thread::new(core.clone(), index),
                model,
                model.defects.usual(),
            )
        });
        write(&mut threads[1], SELECT, 4);
        assert_eq!(
            read(&threads[0], SELECT),
            if shared { 4 } else { 0 },
            "{model}"
        );
        write(&mut threads[0], DEBUGCTL, LBR);
        take(&mut threads[0], retired::TAKEN, USER, USER);
        assert_eq!(read(&threads[0], TOS) == 0, shared, "{model}");
    }
}
