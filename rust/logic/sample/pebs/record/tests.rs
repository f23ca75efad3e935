// SPDX-License-Identifier: GPL-2.0

use super::*;

/// RFLAGS, RIP, and general registers that are their place in the record of an old format.
fn old(rest: &[u64]) -> Vec<u64> {
    (100..118).chain(rest.iter().copied()).collect()
}

fn one(format: Format, buffer: &[u64]) -> Record<'_> {
    let mut records = Records::new(format, buffer);
    let record = records.next().unwrap();
    assert!(records.next().is_none() && records.is_whole());
    record
}

/// The first word of an adaptive record.
fn layout(groups: u64, words: u64) -> u64 {
    groups | (words * 8) << 48
}

#[test]
fn old_formats_grow() {
    // RBX, RCX and RDX, RSI, RDI, RBP and RSP are in another order than their numbers.
    let general = [
        102, 104, 105, 103, 109, 108, 106, 107, 110, 111, 112, 113, 114, 115, 116, 117,
    ];
    let registers = Registers {
        flags: 100,
        next_ip: 101,
        general,
    };
    let access = Access {
        address: 8,
        source: 9,
        latency: 10,
    };
    let nehalem = Record {
        counters: 7,
        ip: None,
        registers: Some(registers),
        access: Some(access),
        tsx: 0,
        tsc: None,
        retire_latency: 0,
        xmm: &[],
        branches: &[],
    };
    assert_eq!(one(Format::Nehalem, &old(&[7, 8, 9, 10])), nehalem);
    let haswell = Record {
        ip: Some(11),
        tsx: 12,
        ..nehalem
    };
    assert_eq!(one(Format::Haswell, &old(&[7, 8, 9, 10, 11, 12])), haswell);
    let skylake = Record {
        tsc: Some(13),
        ..haswell
    };
    let buffer = old(&[7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(one(Format::Skylake, &buffer), skylake);
    // Several of them, and a rest that is none.
    let buffer = [&buffer[..], &buffer, &buffer[..24]].concat();
    let mut records = Records::new(Format::Skylake, &buffer);
    assert_eq!(records.by_ref().collect::<Vec<_>>(), [skylake, skylake]);
    assert!(!records.is_whole());
}

#[test]
fn groups_come_in_their_order() {
    let basic = |groups, words| vec![layout(groups, words) | 5 << 32, 1, 2, 3];
    let record = one(Format::Adaptive, &basic(0, 4)).counters;
    assert_eq!(record, 2);
    let mut all = basic(0xf | 1 << 24, 4 + 4 + 18 + 32 + 6);
    all.extend(10..14);
    all.extend(20..38);
    all.extend(100..132);
    all.extend(200..206);
    let record = one(Format::Adaptive, &all);
    assert_eq!((record.ip, record.counters), (Some(1), 2));
    assert_eq!((record.tsc, record.retire_latency), (Some(3), 5));
    let access = record.access.unwrap();
    assert_eq!((access.address, access.source, access.latency), (10, 11, 12));
    assert_eq!(record.tsx, 13);
    let registers = record.registers.unwrap();
    assert_eq!((registers.flags, registers.next_ip), (20, 21));
    assert_eq!(registers.general[0], 22);
    assert_eq!(registers.general[15], 37);
    assert_eq!(record.xmm, Vec::from_iter(100..132));
    assert_eq!(record.branches, [200, 201, 202, 203, 204, 205]);
}

#[test]
fn wrong_records_end_the_walk() {
    let good = [layout(0, 4), 1, 2, 3];
    for bad in [
        // A size of nothing, of less or of more than the groups, and a group that is not known.
        [layout(0, 0), 1, 2, 3],
        [layout(0, 3), 1, 2, 3],
        [layout(0, 5), 1, 2, 3],
        [layout(0, 4) | 1 << 52, 1, 2, 3],
        [layout(1 << 4, 4), 1, 2, 3],
        // Groups that do not fit.
        [layout(1, 8), 1, 2, 3],
        [layout(1 << 3 | 0xff << 24, 4 + 3 * 256), 1, 2, 3],
    ] {
        let buffer = [good, bad].concat();
        let mut records = Records::new(Format::Adaptive, &buffer);
        assert_eq!(records.by_ref().count(), 1, "{bad:x?}");
        assert!(!records.is_whole());
    }
    assert!(Records::new(Format::Adaptive, &[]).is_whole());
}
