// SPDX-License-Identifier: GPL-2.0

use super::*;

/// Returns the words of a record in an old format: RFLAGS, RIP and the general registers, each with
/// the value 100 plus its place, then the `rest`.
fn old(rest: &[u64]) -> Vec<u64> {
    (100..118).chain(rest.iter().copied()).collect()
}

/// The same words as a buffer.
fn buffer(words: &[u64]) -> Vec<AtomicU64> {
    words.iter().copied().map(AtomicU64::new).collect()
}

fn values(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Relaxed)).collect()
}

/// The parts of a record, except XMM and branches.
type Parts = (
    u64,
    Option<u64>,
    Option<(u64, u64)>,
    Option<[u64; 16]>,
    Option<Access>,
    Option<u64>,
);

fn parts(record: &Record<'_>) -> Parts {
    assert_eq!(record.retire_latency(), 0);
    assert!(record.xmm().is_none() && record.branches().is_empty());
    (
        record.counters(),
        record.ip(),
        record.flags_and_next_ip(),
        record.general(),
        record.access(),
        record.tsc(),
    )
}

fn one(format: PebsFormat, buffer: &[AtomicU64]) -> Record<'_> {
    let mut records = Records::new(format, buffer);
    let record = records.next().unwrap();
    assert!(records.next().is_none() && records.left() == 0);
    record
}

/// The first word of an adaptive record.
fn layout(groups: u64, words: u64) -> u64 {
    groups | ((words * 8) << 48)
}

#[test]
fn old_formats_grow() {
    // RBX, RCX and RDX, RSI, RDI, RBP and RSP are in another order than their numbers.
    let general = [
        102, 104, 105, 103, 109, 108, 106, 107, 110, 111, 112, 113, 114, 115, 116, 117,
    ];
    let access = Access {
        address: 8,
        source: 9,
        latency: 10,
    };
    let (flags, general, access) = (Some((100, 101)), Some(general), Some(access));
    let check = |format: PebsFormat, rest: &[u64], expected: Parts| {
        let words = buffer(&old(rest));
        assert_eq!(format.words(Groups::default()), words.len());
        assert_eq!(parts(&one(format, &words)), expected);
    };
    let nehalem = (7, None, flags, general, access, None);
    check(PebsFormat::Nehalem, &[7, 8, 9, 10], nehalem);
    let haswell = (7, Some(11), flags, general, access, None);
    check(PebsFormat::Haswell, &[7, 8, 9, 10, 11, 12], haswell);
    let skylake = (7, Some(11), flags, general, access, Some(13));
    check(PebsFormat::Skylake, &[7, 8, 9, 10, 11, 12, 13], skylake);
    // Several records, and a rest that is not a record.
    let words = old(&[7, 8, 9, 10, 11, 12, 13]);
    let words = buffer(&[&words[..], &words, &words[..24]].concat());
    let mut records = Records::new(PebsFormat::Skylake, &words);
    let found: Vec<_> = records.by_ref().map(|record| parts(&record)).collect();
    assert_eq!(found, [skylake, skylake]);
    assert_ne!(records.left(), 0);
}

#[test]
fn groups_come_in_their_order() {
    let basic = |groups, words| vec![layout(groups, words) | (5 << 32), 1, 2, 3];
    assert_eq!(
        one(PebsFormat::Adaptive, &buffer(&basic(0, 4))).counters(),
        2
    );
    let mut all = basic(0xf | (1 << 24), 4 + 4 + 18 + 32 + 6);
    all.extend(10..14);
    all.extend(20..38);
    all.extend(100..132);
    all.extend(200..206);
    let groups = Groups::new(Groups::MEMORY | Groups::REGISTERS | Groups::XMM).with_branches(2);
    assert_eq!(groups.bits(), 0xf | (1 << 24));
    assert_eq!(PebsFormat::Adaptive.words(groups), all.len());
    let all = buffer(&all);
    let record = one(PebsFormat::Adaptive, &all);
    assert_eq!((record.ip(), record.counters()), (Some(1), 2));
    assert_eq!((record.tsc(), record.retire_latency()), (Some(3), 5));
    let access = record.access().unwrap();
    assert_eq!(
        (access.address, access.source, access.latency),
        (10, 11, 12)
    );
    assert_eq!(record.transaction_cycles(), 13);
    assert_eq!(record.flags_and_next_ip(), Some((20, 21)));
    let general = record.general().unwrap();
    assert_eq!((general[0], general[15]), (22, 37));
    assert_eq!(values(record.xmm().unwrap()), Vec::from_iter(100..132));
    assert_eq!(values(record.branches()), [200, 201, 202, 203, 204, 205]);
}

#[test]
fn wrong_records_end_the_walk() {
    let good = [layout(0, 4), 1, 2, 3];
    for bad in [
        // A size of 0, sizes below and above that of the groups, and an unknown group.
        [layout(0, 0), 1, 2, 3],
        [layout(0, 3), 1, 2, 3],
        [layout(0, 5), 1, 2, 3],
        [layout(0, 4) | (1 << 52), 1, 2, 3],
        [layout(1 << 4, 4), 1, 2, 3],
        // Groups that do not fit.
        [layout(1, 8), 1, 2, 3],
        [layout((1 << 3) | (0xff << 24), 4 + 3 * 256), 1, 2, 3],
    ] {
        let words = buffer(&[good, bad].concat());
        let mut records = Records::new(PebsFormat::Adaptive, &words);
        assert_eq!(records.by_ref().count(), 1, "{bad:x?}");
        assert_ne!(records.left(), 0);
    }
    assert!(Records::new(PebsFormat::Adaptive, &[]).next().is_none());
}

#[test]
fn a_record_has_owners() {
    let counters = CounterMask::from_bits;
    let owners = |format: PebsFormat, status: u64, precise: u64| {
        let mut words = old(&[0; 7]);
        words[18] = status;
        words.truncate(format.words(Groups::default()));
        one(format, &buffer(&words)).owners(format, counters(precise))
    };
    for format in [PebsFormat::Nehalem, PebsFormat::Haswell] {
        // The record's own counter, among others of both kinds that are not precise.
        assert_eq!(
            owners(format, (1 << 62) | (1 << 32) | 0b0111, 0b0001),
            Owners::Of(counters(1))
        );
        // No precise counter: the owner is only certain if there is one precise event.
        assert_eq!(
            owners(format, (1 << 62) | 0b1000, 0b0010),
            Owners::Of(counters(2))
        );
        assert_eq!(owners(format, 1 << 62, 0b0011), Owners::Of(counters(0)));
        // Several precise counters.
        assert_eq!(owners(format, 0b1011, 0b0011), Owners::OneOf(counters(3)));
    }
    assert_eq!(
        owners(PebsFormat::Skylake, 0b1011, 0b0011),
        Owners::Of(counters(3))
    );
    assert_eq!(
        owners(PebsFormat::Skylake, 0, 0b0010),
        Owners::Of(counters(0))
    );
}

#[test]
fn formats_are_those_of_the_capabilities() {
    for (value, format) in [
        (0, None),
        (0x100, Some(PebsFormat::Nehalem)),
        (0x2c2, Some(PebsFormat::Haswell)),
        (0x33c5, Some(PebsFormat::Skylake)),
        (0x400, None),
        (0x4400, Some(PebsFormat::Adaptive)),
        (0x4500, None),
        (0x4f00, None),
    ] {
        assert_eq!(PebsFormat::from_capabilities(value), format, "{value:#x}");
    }
}

#[test]
fn aborts_have_reasons() {
    let transaction = |tsx: u64, ax: u64| {
        let mut words = old(&[0, 0, 0, 0, 0, tsx]);
        words[2] = ax;
        let words = buffer(&words);
        let record = one(PebsFormat::Haswell, &words);
        (record.transaction_cycles(), record.transaction())
    };
    assert_eq!(transaction(0, 0xff00_0001), (0, 0));
    assert_eq!(transaction(0x42_0000_0007, 0xab00_0000), (7, 0x42));
    assert_eq!(
        transaction(0x42_0000_0007, 0xab00_0001),
        (7, 0xab_0000_0042)
    );
    // An abort of HLE has no code.
    assert_eq!(transaction(0x41_0000_0007, 0xab00_0001), (7, 0x41));
}
