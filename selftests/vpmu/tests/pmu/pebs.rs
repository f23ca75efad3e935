// SPDX-License-Identifier: GPL-2.0

//! Tests precise sampling, based on the manuals and independently of `src/model/` and
//! `src/pmu/pebs/`.

use vpmu::branch::Branch;
use vpmu::inject::Injected;
use vpmu::model;
use vpmu::pmu::{
    Counting,
    Pmu, //
};
use vpmu::retired;
use vpmu::sample::{
    Memory,
    Sample, //
};
use vpmu::Fault;

use super::{
    find,
    read,
    select,
    write,
    BROADWELL,
    COUNTS,
    EN,
    GLOBAL_CTRL,
    HASWELL,
    INJECT,
    INSTRUCTIONS, //
};
use super::{
    INT,
    IVY_BRIDGE,
    NEHALEM,
    SANDY_BRIDGE,
    SKYLAKE,
    STATUS,
    USR,
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

const DS_AREA: u32 = 0x600;
const PEBS_ENABLE: u32 = 0x3f1;
const DATA_CFG: u32 = 0x3f2;
const LD_LAT: u32 = 0x3f6;
const CAPABILITIES: u32 = 0x345;
const MISC_ENABLE: u32 = 0x1a0;
const FIXED_CTRL: u32 = 0x38d;
const OVF_DS_BUFFER: u64 = 1 << 62;
const ADAPTIVE: u64 = 1 << 34;

/// The models: CPUID model, format, size of a record without the adaptive groups.
const MODELS: [(u32, u64, u64); 16] = [
    (NEHALEM, 1, 0xb0),
    (WESTMERE, 1, 0xb0),
    (SANDY_BRIDGE, 1, 0xb0),
    (IVY_BRIDGE, 1, 0xb0),
    (HASWELL, 2, 0xc0),
    (BROADWELL, 2, 0xc0),
    (SKYLAKE, 3, 0xc8),
    (ICE_LAKE, 4, 0x20),
    (GOLDEN_COVE, 4, 0x20),
    (REDWOOD_COVE, 4, 0x20),
    (SILVERMONT, 2, 0xc0),
    (GOLDMONT, 3, 0xc8),
    (GOLDMONT_PLUS, 3, 0xc8),
    (TREMONT, 4, 0x20),
    (GRACEMONT, 4, 0x20),
    (CRESTMONT, 4, 0x20),
];

/// Returns whether counter 0 alone samples.
fn samples_on_counter_0_alone(cpu: u32) -> bool {
    matches!(cpu, SILVERMONT | GOLDMONT)
}

/// Returns the number of a counter's bits.
fn width(cpu: u32) -> u32 {
    if cpu == SILVERMONT {
        40
    } else {
        48
    }
}

/// Returns whether all counters sample any event (Extended PEBS): from Ice Lake and Goldmont Plus
/// on.
fn is_extended(cpu: u32, format: u64) -> bool {
    format == 4 || cpu == GOLDMONT_PLUS
}

/// The addresses of the DS area and its buffer.
const AREA: u64 = 0xffff_c900_0000_1000;
const BUFFER: u64 = AREA + 0x400;
const END: u64 = AREA + 0x1000;

/// One page from [`AREA`] on.
struct Page([u8; 0x1000]);

impl Page {
    /// Returns a DS area with a buffer, its maximum and threshold, and with a reset value for all
    /// counters.
    fn new(maximum: u64, threshold: u64, reset: i64) -> Self {
        let mut page = Page([0; 0x1000]);
        let fields = [BUFFER, BUFFER, maximum, threshold];
        assert!(page.write_words(AREA + 0x20, &fields));
        assert!(page.write_words(AREA + 0x40, &[reset as u64 & ((1 << 48) - 1); 12]));
        page
    }

    fn index(&self) -> u64 {
        self.word(AREA + 0x28).unwrap()
    }

    fn record<const WORDS: usize>(&self, at: u64) -> [u64; WORDS] {
        std::array::from_fn(|i| self.word(at + 8 * i as u64).unwrap())
    }

    fn range(address: u64, size: usize) -> Option<std::ops::Range<usize>> {
        let start = address.checked_sub(AREA)? as usize;
        (start + size <= 0x1000).then_some(start..start + size)
    }
}

impl Memory for Page {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let Some(range) = Page::range(address, buffer.len()) else {
            return false;
        };
        buffer.copy_from_slice(&self.0[range]);
        true
    }

    fn write(&mut self, address: u64, buffer: &[u8]) -> bool {
        let Some(range) = Page::range(address, buffer.len()) else {
            return false;
        };
        self.0[range].copy_from_slice(buffer);
        true
    }
}

/// Returns a PMU with PEBS, with the first four general and all fixed counters enabled in
/// IA32_PERF_GLOBAL_CTRL.
fn pmu(model: u32) -> Pmu {
    let mut pmu = Pmu::new(find(model), 2).with_pebs().unwrap();
    let fixed = match model {
        ICE_LAKE | GOLDEN_COVE | REDWOOD_COVE => 0xf,
        _ => 7,
    };
    // RESET sets the bits of all general counters.
    let general = read(&pmu, GLOBAL_CTRL) & 0xf;
    write(&mut pmu, GLOBAL_CTRL, general | (fixed << 32));
    write(&mut pmu, DS_AREA, AREA);
    pmu
}

/// Returns the state after the instruction with this number, and the registers that go with it.
fn sample(number: u64) -> Sample {
    Sample {
        ip: 0x40_0000 + 4 * number,
        next_ip: 0x40_0004 + 4 * number,
        flags: 0x246,
        regs: std::array::from_fn(|i| 0x1000 * (i as u64 + 1) + number),
        xmm: std::array::from_fn(|i| [0x100 + i as u64, 0x200 + i as u64]),
        load: 0x7000_0000 + 8 * number,
        store: 0x8000_0000 + 8 * number,
        tsc: 1_000_000 + number,
    }
}

/// Runs instructions as QEMU does, in blocks of 512 or, with `Counting::Each`, singly, and calls
/// the PMU when the budget is used up. Each instruction loads, stores and takes a branch. Returns
/// the numbers of the instructions that were sampled.
fn run(pmu: &mut Pmu, memory: &mut dyn Memory, instructions: u64) -> Vec<u64> {
    let mut sampled = Vec::new();
    let mut number = 0;
    while number < instructions {
        let budget = pmu.budget(true);
        let each = pmu.counting() == Counting::Each;
        let mut count = 0;
        while budget - count >= 0 && number < instructions {
            let block = if each { 1 } else { 512 };
            count += block as i64;
            number += block;
        }
        let mut counts = [0; retired::COUNTS];
        for kind in [
            retired::INSTRUCTIONS,
            retired::LOADS,
            retired::STORES,
            retired::TAKEN,
        ] {
            counts[kind] = count;
        }
        pmu.retire(true, &counts);
        if pmu.sample_due() {
            sampled.push(number);
            pmu.sample(&sample(number), memory);
        }
        if pmu.budget(true) < 0 {
            pmu.pmi(false);
        }
    }
    sampled
}

/// Runs instructions, 100 at a time, until one is sampled. Returns its number within its hundred.
fn first_sample(pmu: &mut Pmu, page: &mut Page) -> u64 {
    (0..10_000)
        .find_map(|_| run(pmu, page, 100).first().copied())
        .unwrap()
}

#[test]
fn pebs_exists_on_request() {
    for (cpu, format, _) in MODELS {
        let without = Pmu::new(find(cpu), 2);
        let with = pmu(cpu);
        let [eax, ebx, ecx, edx] = without.cpuid(1, 0, [0; 4]);
        assert_eq!(
            with.cpuid(1, 0, [0; 4]),
            [eax, ebx, ecx | (1 << 2), edx | (1 << 21)]
        );
        assert_eq!(read(&without, MISC_ENABLE) & (3 << 11), 3 << 11);
        assert_eq!(read(&with, MISC_ENABLE) & (3 << 11), 1 << 11);
        let baseline = u64::from(format == 4) << 14;
        let timing = u64::from(cpu == REDWOOD_COVE) << 17;
        let pebs = read(&with, CAPABILITIES) ^ read(&without, CAPABILITIES);
        assert_eq!(pebs, 0xc0 | (format << 8) | baseline | timing);
        for msr in [DS_AREA, PEBS_ENABLE, DATA_CFG] {
            assert_eq!(without.rdmsr(msr), Some(Err(Fault)));
            let there = msr != DATA_CFG || format == 4;
            assert_eq!(with.rdmsr(msr).unwrap().is_ok(), there);
        }
    }
    let zen = model::find(0x19, 0x11).unwrap();
    assert!(Pmu::new(zen, 1).with_pebs().is_none());
}

/// Returns the page after ten records of a Skylake, with or without errors.
fn ten_records(wrong: bool) -> Page {
    let mut pmu = pmu(SKYLAKE);
    let mut page = Page::new(END, END, -1000);
    write(&mut pmu, PEBS_ENABLE, 1);
    select(&mut pmu, 0, INSTRUCTIONS | USR | EN);
    write(&mut pmu, 0x4c1, (1 << 48) - 1000);
    if wrong {
        write(&mut pmu, INJECT, Injected::WRONG_RECORDS.bits());
    }
    run(&mut pmu, &mut page, 10 * 1001);
    page
}

#[test]
fn wrong_records_on_request() {
    let (right, wrong) = (ten_records(false), ten_records(true));
    assert_eq!(right.index(), BUFFER + 10 * 0xc8);
    let index = wrong.index();
    assert_ne!(index, right.index());
    let differ = (0..8 * 0xc8 / 8).filter(|word| {
        let at = BUFFER + 8 * word;
        right.word(at) != wrong.word(at)
    });
    assert!(differ.count() > 20);
}

#[test]
fn reserved_bits_fault() {
    for (cpu, format, _) in MODELS {
        let mut pmu = pmu(cpu);
        let enable: u64 = match cpu {
            SANDY_BRIDGE | IVY_BRIDGE => (1 << 63) | 0xf_0000_000f,
            ICE_LAKE | GOLDEN_COVE | REDWOOD_COVE => 0xf_0000_00ff,
            SILVERMONT | GOLDMONT => 1,
            GOLDMONT_PLUS | TREMONT => 0x7_0000_000f,
            GRACEMONT => 0x7_0000_003f,
            CRESTMONT => 0x7_0000_00ff,
            _ => 0xf_0000_000f,
        };
        let mut bits = vec![(PEBS_ENABLE, enable)];
        if format == 4 {
            bits.push((DATA_CFG, 0xff00_000f));
            let absent = if matches!(cpu, TREMONT | GRACEMONT | CRESTMONT) {
                0xf000_0000_f000
            } else {
                0
            };
            write(&mut pmu, FIXED_CTRL, 0x1111_0000_bbbb & !absent);
            select(&mut pmu, 0, ADAPTIVE);
        } else {
            assert_eq!(pmu.wrmsr(0x186, ADAPTIVE), Some(Err(Fault)));
            assert_eq!(pmu.wrmsr(FIXED_CTRL, 1 << 32), Some(Err(Fault)));
        }
        for (msr, writable) in bits {
            for bit in 0..64 {
                let result = pmu.wrmsr(msr, 1 << bit).unwrap();
                assert_eq!(result.is_ok(), writable & (1 << bit) != 0, "{msr:#x} {bit}");
            }
        }
        // Five-level paging came with this format.
        let sign = if format == 4 { 56 } else { 47 };
        assert_eq!(pmu.wrmsr(DS_AREA, 1 << sign), Some(Err(Fault)));
        assert_eq!(pmu.wrmsr(DS_AREA, u64::MAX << sign), Some(Ok(())));
    }
}

/// The next event after the overflow is sampled: with a reset value of -N, every N + 1st event.
#[test]
fn the_event_after_the_overflow_is_sampled() {
    for (cpu, format, size) in MODELS {
        for period in [1, 2, 100, 511, 512, 513, 5000] {
            let mut pmu = pmu(cpu);
            let mut page = Page::new(END, END, -period);
            let counter = u32::from(!samples_on_counter_0_alone(cpu));
            select(&mut pmu, counter, COUNTS | INSTRUCTIONS);
            write(&mut pmu, PEBS_ENABLE, 1 << counter);
            write(&mut pmu, 0xc1 + counter, -period as u64);
            let sampled = run(&mut pmu, &mut page, 12_000);
            let wanted = (1..).map(|n| n * (period as u64 + 1));
            let wanted: Vec<u64> = wanted.take_while(|&n| n <= 12_000).collect();
            assert_eq!(sampled, wanted, "{cpu} {period}");
            // As many records as fit.
            let records = ((END - BUFFER) / size).min(wanted.len() as u64);
            assert_eq!(page.index(), BUFFER + records * size);
            for (record, number) in (0..records).zip(wanted) {
                let at = BUFFER + record * size;
                let state = sample(number);
                if format == 4 {
                    let basic = page.record::<4>(at);
                    let first = retirement(cpu, state.ip) | (0x20 << 48);
                    assert_eq!(basic, [first, state.ip, 1 << counter, state.tsc]);
                    continue;
                }
                let [r0, r1, r2, r3, r4, r5, r6, r7, rest @ ..] = state.regs;
                let core = [state.flags, state.next_ip, r0, r3, r1, r2, r6, r7, r5, r4];
                assert_eq!(page.record::<10>(at), core);
                assert_eq!(page.record::<8>(at + 0x50), rest);
                // The status; no data address, data source and latency: the event has none.
                assert_eq!(page.record::<4>(at + 0x90), [1 << counter, 0, 0, 0]);
                if format >= 2 {
                    assert_eq!(page.record::<2>(at + 0xb0), [state.ip, 0]);
                }
                if format >= 3 {
                    assert_eq!(page.record::<1>(at + 0xc0), [state.tsc]);
                }
            }
        }
    }
}

#[test]
fn the_threshold_raises_a_pmi() {
    for (cpu, _, size) in MODELS {
        let mut pmu = pmu(cpu);
        let mut page = Page::new(END, BUFFER + 3 * size, -99);
        select(&mut pmu, 0, COUNTS | INSTRUCTIONS);
        write(&mut pmu, PEBS_ENABLE, 1);
        write(&mut pmu, 0xc1, -99i64 as u64);
        let mut pmis = Vec::new();
        for number in (100..=500).step_by(100) {
            run(&mut pmu, &mut page, 99);
            // It has overflowed and is armed.
            assert_eq!(read(&pmu, STATUS) & 1, 1);
            let mut counts = [0; retired::COUNTS];
            counts[retired::INSTRUCTIONS] = 1;
            pmu.retire(true, &counts);
            pmu.sample(&sample(number), &mut page);
            if pmu.pmi(false) {
                pmis.push(number);
                assert_eq!(read(&pmu, STATUS), OVF_DS_BUFFER);
            } else {
                assert_eq!(read(&pmu, STATUS), 0);
            }
        }
        assert_eq!(pmis, [300, 400, 500], "{cpu}");
    }
}

#[test]
fn a_record_is_lost() {
    for (cpu, _, size) in MODELS {
        // One byte too few, a missing page of the buffer, and a missing DS area.
        for (maximum, base, area) in [
            (BUFFER + size - 1, BUFFER, AREA),
            (u64::MAX, AREA + 0xff8, AREA),
            (END, BUFFER, AREA + 0x1000),
        ] {
            let mut pmu = pmu(cpu);
            let mut page = Page::new(maximum, base + size, -99);
            page.write_words(AREA + 0x20, &[base, base]);
            write(&mut pmu, DS_AREA, area);
            select(&mut pmu, 0, COUNTS | INSTRUCTIONS);
            write(&mut pmu, PEBS_ENABLE, 1);
            write(&mut pmu, 0xc1, -9i64 as u64);
            assert_eq!(run(&mut pmu, &mut page, 10), [10]);
            assert_eq!(page.index(), base);
            assert_eq!(read(&pmu, STATUS), 0);
            let value = if area == AREA {
                (-99i64 as u64) & ((1 << width(cpu)) - 1)
            } else {
                1
            };
            assert_eq!(read(&pmu, 0xc1), value);
        }
    }
}

#[test]
fn other_events_are_sampled_by_extended_pebs_and_goldmont_only() {
    const CYCLES: u64 = 0x3c;
    for (cpu, format, _) in MODELS {
        let mut pmu = pmu(cpu);
        let mut page = Page::new(END, END, -99);
        select(&mut pmu, 0, COUNTS | CYCLES);
        write(&mut pmu, PEBS_ENABLE, 1);
        let sampled = run(&mut pmu, &mut page, 10);
        assert!(sampled.is_empty());
        write(&mut pmu, 0xc1, -9i64 as u64);
        let sampled = run(&mut pmu, &mut page, 100);
        let sample = is_extended(cpu, format) || cpu == GOLDMONT;
        assert_eq!(sampled.is_empty(), !sample, "{cpu}");
    }
}

/// PEBS_ENABLE\[32\] is fixed counter 0 with Extended PEBS, and load latency before. Small cores
/// before Extended PEBS have neither.
#[test]
fn fixed_counters() {
    for (cpu, format, _) in MODELS {
        if samples_on_counter_0_alone(cpu) {
            continue;
        }
        let mut pmu = pmu(cpu);
        let mut page = Page::new(END, END, -99);
        write(&mut pmu, FIXED_CTRL, 2);
        write(&mut pmu, PEBS_ENABLE, 1 << 32);
        write(&mut pmu, 0x309, (1 << 48) - 9);
        let sampled = run(&mut pmu, &mut page, 100);
        if is_extended(cpu, format) {
            assert_eq!(sampled, [10]);
            let status = if format == 4 { 0x10 } else { 0x90 };
            assert_eq!(page.word(BUFFER + status), Some(1 << 32));
        } else {
            assert!(sampled.is_empty());
        }
    }
}

/// The overflow is in the status as without PEBS, until the record.
#[test]
fn an_overflow_is_in_the_status_until_its_record() {
    let mut pmu = pmu(SKYLAKE);
    let mut page = Page::new(END, END, -99);
    select(&mut pmu, 0, COUNTS | INT | INSTRUCTIONS);
    write(&mut pmu, PEBS_ENABLE, 1);
    write(&mut pmu, 0xc1, -9i64 as u64);
    assert!(run(&mut pmu, &mut page, 9).is_empty());
    assert_eq!(read(&pmu, STATUS), 1);
    assert_eq!(run(&mut pmu, &mut page, 1), [1]);
    assert_eq!(read(&pmu, STATUS), 0);
}

/// Returns a PMU whose counter 0 is armed, and its DS area.
fn armed() -> (Pmu, Page) {
    let mut pmu = pmu(HASWELL);
    let mut page = Page::new(END, END, -99);
    select(&mut pmu, 0, COUNTS | INSTRUCTIONS);
    write(&mut pmu, PEBS_ENABLE, 1);
    write(&mut pmu, 0xc1, -9i64 as u64);
    run(&mut pmu, &mut page, 9);
    (pmu, page)
}

/// A counter stays armed while IA32_PEBS_ENABLE is cleared, as drivers do at every interrupt and
/// context switch.
#[test]
fn an_armed_counter_waits_to_be_enabled() {
    let (mut pmu, mut page) = armed();
    write(&mut pmu, PEBS_ENABLE, 0);
    assert!(run(&mut pmu, &mut page, 10).is_empty());
    write(&mut pmu, PEBS_ENABLE, 1);
    assert_eq!(run(&mut pmu, &mut page, 10), [1]);
}

/// A write of the counter or of its event select disarms it.
#[test]
fn writes_disarm() {
    for (msr, value) in [
        (0xc1, 0),
        (0x186, COUNTS | INSTRUCTIONS),
        (GLOBAL_CTRL, 0xf),
    ] {
        let (mut pmu, mut page) = armed();
        write(&mut pmu, msr, value);
        let sampled = run(&mut pmu, &mut page, 10);
        assert_eq!(sampled.is_empty(), msr != GLOBAL_CTRL, "{msr:#x}");
    }
}

/// A write that faults leaves the counter armed.
#[test]
fn writes_that_fault_do_not_disarm() {
    for (msr, value) in [(0x4c1, 1 << 48), (0x186, 1 << 40)] {
        let (mut pmu, mut page) = armed();
        assert_eq!(pmu.wrmsr(msr, value), Some(Err(Fault)));
        assert_eq!(run(&mut pmu, &mut page, 10), [1], "{msr:#x}");
    }
}

/// An instruction that was reported but faults has no record; the next one that counts has.
#[test]
fn an_instruction_that_faults_has_no_record() {
    let (mut pmu, mut page) = armed();
    let mut counts = [0; retired::COUNTS];
    for count in [1, -1] {
        counts[retired::INSTRUCTIONS] = count;
        pmu.retire(true, &counts);
        assert_eq!(pmu.sample_due(), count == 1);
    }
    // The count of -1 is subtracted from the first one's, so the second one is the next that
    // counts.
    assert_eq!(run(&mut pmu, &mut page, 9), [2]);
}

/// Counters that are due with the same instruction have one record.
#[test]
fn simultaneous_records_are_one() {
    for (cpu, format, size) in MODELS {
        if samples_on_counter_0_alone(cpu) {
            continue;
        }
        let mut pmu = pmu(cpu);
        let mut page = Page::new(END, END, -99);
        for counter in [0, 2] {
            select(&mut pmu, counter, COUNTS | INSTRUCTIONS);
            write(&mut pmu, 0xc1 + counter, -9i64 as u64);
        }
        // One that is not sampled: its overflow is in the status of the first formats.
        select(&mut pmu, 3, COUNTS | INSTRUCTIONS);
        write(&mut pmu, 0xc4, -5i64 as u64);
        write(&mut pmu, PEBS_ENABLE, 5);
        assert_eq!(run(&mut pmu, &mut page, 20), [10]);
        assert_eq!(page.index(), BUFFER + size);
        let status = if format == 4 {
            page.record::<3>(BUFFER)[2]
        } else {
            page.record::<1>(BUFFER + 0x90)[0]
        };
        assert_eq!(status, if format < 3 { 0xd } else { 5 }, "{cpu}");
        assert_eq!(read(&pmu, STATUS), 8);
    }
}

/// Load latency: the latency exceeds the threshold. Golden Cove, Redwood Cove and Gracemont also
/// have half of it, the cache latency.
#[test]
fn load_latency() {
    for (cpu, format, _) in MODELS {
        let event = match cpu {
            NEHALEM | WESTMERE => 0x100b,
            // They have no such event.
            SILVERMONT | GOLDMONT | GOLDMONT_PLUS | TREMONT => continue,
            GRACEMONT | CRESTMONT => 0x5d0,
            _ => 0x1cd,
        };
        // On these models, only counter 3 counts it.
        let only_3 = matches!(cpu, SANDY_BRIDGE | IVY_BRIDGE);
        for (threshold, latency, source, counter) in [
            (3, 4, 1, 3),
            (15, 16, 3, if only_3 { 3 } else { 1 }),
            (64, 65, 4, if only_3 { 3 } else { 2 }),
            (512, 513, 0xa, 3),
            (0xffff, 0x10000, 0xa, 3),
        ] {
            // On Gracemont, only counters 0 and 1 count it.
            let counter = if matches!(cpu, GRACEMONT | CRESTMONT) {
                counter & 1
            } else {
                counter
            };
            let in_two_parts = matches!(cpu, GOLDEN_COVE | REDWOOD_COVE | GRACEMONT | CRESTMONT);
            let latency = match (in_two_parts, latency) {
                (true, 0x10000) => 0x7fff_0000_ffff,
                (true, _) => latency | ((latency / 2) << 32),
                (false, _) => latency,
            };
            let mut pmu = pmu(cpu);
            let mut page = Page::new(END, BUFFER, -1);
            write(&mut pmu, LD_LAT, threshold);
            let adaptive = if format == 4 { ADAPTIVE } else { 0 };
            select(&mut pmu, counter, COUNTS | adaptive | event);
            let latencies = if format == 4 {
                write(&mut pmu, DATA_CFG, 1);
                0u64
            } else {
                1 << (32 + counter)
            };
            write(&mut pmu, PEBS_ENABLE, (1 << counter) | latencies);
            write(&mut pmu, 0xc1 + counter, -1i64 as u64);
            let state = sample(first_sample(&mut pmu, &mut page));
            let at = BUFFER + if format == 4 { 0x20 } else { 0x98 };
            assert_eq!(page.record::<3>(at), [state.load, source, latency], "{cpu}");
        }
    }
}

/// The address of other events: from Haswell on of all loads and stores, on Sandy Bridge and Ivy
/// Bridge only of stores with precise store.
#[test]
fn addresses() {
    for (cpu, format, _) in MODELS {
        // Silvermont's loads and stores have other codes, and no address.
        if matches!(cpu, NEHALEM | WESTMERE | SILVERMONT) {
            continue;
        }
        for (event, counter, enable) in [(0x81d0, 0, 1), (0x82d0, 0, 1), (0x2cd, 3, (1 << 63) | 8)]
        {
            if (event == 0x2cd) != (matches!(cpu, SANDY_BRIDGE | IVY_BRIDGE)) && event == 0x2cd {
                continue;
            }
            let mut pmu = pmu(cpu);
            let mut page = Page::new(END, END, -1);
            let adaptive = if format == 4 { ADAPTIVE } else { 0 };
            select(&mut pmu, counter, COUNTS | adaptive | event);
            if format == 4 {
                write(&mut pmu, DATA_CFG, 1);
            }
            write(&mut pmu, PEBS_ENABLE, enable);
            write(&mut pmu, 0xc1 + counter, -1i64 as u64);
            let state = sample(first_sample(&mut pmu, &mut page));
            let at = BUFFER + if format == 4 { 0x20 } else { 0x98 };
            let wanted = match (event, format) {
                (0x2cd, _) => [state.store, 1, 0],
                (_, 1) => [0; 3],
                (0x81d0, _) => [state.load, 0, 0],
                _ => [state.store, 1, 0],
            };
            assert_eq!(page.record::<3>(at), wanted, "{cpu} {event:#x}");
        }
    }
}

/// Returns the latency of an instruction's retirement in the first word of a record.
fn retirement(cpu: u32, ip: u64) -> u64 {
    if cpu == REDWOOD_COVE {
        (1 + ip % 16) << 32
    } else {
        0
    }
}

/// The latency of retirement is in the records of general counters, not in those of fixed counter 0
/// alone.
#[test]
fn latency_of_retirement() {
    for cpu in [GOLDEN_COVE, REDWOOD_COVE] {
        for (counters, has_it) in [(1, true), (1 << 32, false), (1 | (1 << 32), true)] {
            let mut pmu = pmu(cpu);
            let mut page = Page::new(END, END, -99);
            select(&mut pmu, 0, COUNTS | INSTRUCTIONS);
            write(&mut pmu, FIXED_CTRL, 0xb);
            write(&mut pmu, GLOBAL_CTRL, 1 | (1 << 32));
            write(&mut pmu, PEBS_ENABLE, counters);
            write(&mut pmu, 0xc1, -9i64 as u64);
            write(&mut pmu, 0x309, (1 << 48) - 9);
            let ip = sample(first_sample(&mut pmu, &mut page)).ip;
            let latency = if has_it { retirement(cpu, ip) } else { 0 };
            let record = page.record::<3>(BUFFER);
            assert_eq!(record, [latency | (0x20 << 48), ip, counters], "{cpu}");
        }
    }
}

/// The adaptive groups, in their order: memory, general registers, XMM registers, LBR entries.
#[test]
fn adaptive_groups() {
    for cpu in [
        ICE_LAKE,
        GOLDEN_COVE,
        REDWOOD_COVE,
        TREMONT,
        GRACEMONT,
        CRESTMONT,
    ] {
        for cfg in (0..16).map(|groups| groups | (2 << 24)) {
            let mut pmu = pmu(cpu);
            let mut page = Page::new(END, END, -99);
            let architectural = !matches!(cpu, ICE_LAKE | TREMONT);
            if architectural {
                write(&mut pmu, 0x14cf, 32);
                write(&mut pmu, 0x14ce, 0x7f_0007);
            } else {
                write(&mut pmu, 0x1d9, 1);
            }
            for number in 1..=2 {
                pmu.branch(&Branch {
                    kind: retired::TAKEN as u32,
                    from_user: true,
                    to_user: true,
                    next: false,
                    from: number,
                    to: 0x100 + number,
                    instructions: 2,
                });
            }
            select(&mut pmu, 0, COUNTS | ADAPTIVE | 0x81d0);
            write(&mut pmu, DATA_CFG, cfg);
            write(&mut pmu, PEBS_ENABLE, 1);
            write(&mut pmu, 0xc1, -9i64 as u64);
            assert_eq!(run(&mut pmu, &mut page, 100), [10]);
            let state = sample(10);
            let mut wanted = vec![0, state.ip, 1, state.tsc];
            if cfg & 1 != 0 {
                wanted.extend([state.load, 0, 0, 0]);
            }
            if cfg & 2 != 0 {
                wanted.extend([state.flags, state.next_ip]);
                wanted.extend(state.regs);
            }
            if cfg & 4 != 0 {
                wanted.extend(state.xmm.iter().flatten());
            }
            let info = if architectural { 3 | (1 << 60) } else { 3 };
            if cfg & 8 != 0 {
                wanted.extend([2, 0x102, info, 1, 0x101, info, 0, 0, 0]);
            }
            let groups = if cfg & 8 != 0 { cfg } else { cfg & 7 };
            wanted[0] = groups | retirement(cpu, state.ip) | ((8 * wanted.len() as u64) << 48);
            let got: Vec<u64> = (0..wanted.len() as u64)
                .map(|i| page.word(BUFFER + 8 * i).unwrap())
                .collect();
            assert_eq!(got, wanted, "{cpu} {cfg:#x}");
            assert_eq!(page.index(), BUFFER + 8 * wanted.len() as u64);
        }
    }
}

/// Without PEBS, and far from an overflow, QEMU runs whole blocks.
#[test]
fn one_instruction_at_a_time_only_near_a_record() {
    let mut pmu = pmu(HASWELL);
    select(&mut pmu, 0, USR | EN | INSTRUCTIONS);
    write(&mut pmu, 0xc1, -100i64 as u64);
    assert_eq!(pmu.counting(), Counting::Instructions);
    write(&mut pmu, PEBS_ENABLE, 1);
    assert_eq!(pmu.counting(), Counting::Each);
    assert_eq!(pmu.budget(true), 99);
    write(&mut pmu, 0xc1, -513i64 as u64);
    assert_eq!(pmu.counting(), Counting::Instructions);
    assert_eq!(pmu.budget(true), 0);
    write(&mut pmu, 0xc1, -10_000i64 as u64);
    assert_eq!(pmu.budget(true), 10_000 - 512 - 1);
    write(&mut pmu, GLOBAL_CTRL, 0);
    assert_eq!(pmu.counting(), Counting::Nothing);
}
