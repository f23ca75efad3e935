// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::Cpuid,
    open::{
        attr::EventType,
        configure,
        event::Event, //
    },
};

const CYCLES_SELECTED: u64 = 0x3c;

/// Returns the PMU of a processor with this signature, this version of architectural performance
/// monitoring, this IA32_PERF_CAPABILITIES, and PEBS.
fn pmu(signature: u32, version: u32, perf_capabilities: u64) -> PmuInfo {
    let cpuid = Cpuid::intel(version, 4, 3)
        .with_signature(signature)
        .with_debug_store();
    PmuInfo::probe(&cpuid, Some(perf_capabilities)).unwrap()
}

fn nehalem() -> PmuInfo {
    pmu(0x106a5, 3, 0x11c2)
}

fn haswell() -> PmuInfo {
    pmu(0x306c3, 3, 0x32c4)
}

fn skylake() -> PmuInfo {
    pmu(0x506e3, 4, 0x33c5)
}

fn ice_lake() -> PmuInfo {
    pmu(0x606a6, 5, 0x34c5 | (1 << 14))
}

/// A sampling event with a fixed period.
fn sampled(event_type: EventType, config: u64, precise_ip: u8) -> Attributes {
    Attributes {
        sample_period: 1000,
        sample_type: st::IP,
        precise_ip,
        ..Attributes::counting(event_type, config)
    }
}

fn open(pmu: &PmuInfo, attr: &Attributes) -> Result<Event, Refusal> {
    configure(pmu, attr, |_| true, || true)
}

fn precise(pmu: &PmuInfo, attr: &Attributes) -> Precise {
    open(pmu, attr).unwrap().precise.unwrap()
}

#[test]
fn precision_has_a_limit() {
    let without = pmu(0x506e3, 4, 0x3005);
    let mut no_branches = nehalem();
    no_branches.lbr = None;
    let mut uneven = pmu(0x206a7, 3, 0x31c1);
    for (pmu, most) in [
        (&without, 0),
        (&no_branches, 1),
        (&nehalem(), 2),
        (&uneven, 2),
        (&pmu(0x306a9, 3, 0x31c1), 3),
        (&haswell(), 3),
        (&skylake(), 3),
        (&ice_lake(), 3),
    ] {
        assert_eq!(pmu.max_precise(), most, "{}", pmu.model.name);
        for level in 0..=3 {
            let opened = open(pmu, &sampled(EventType::Hardware, 1, level));
            let expected = match level {
                0 => Ok(None),
                level if level > most => Err(Refusal::Precise),
                level => Ok(Some(level)),
            };
            assert_eq!(opened.map(|it| it.precise.map(|it| it.level)), expected);
        }
    }
    uneven.capabilities.pebs_format = None;
    let counting = Attributes {
        precise_ip: 1,
        ..Attributes::counting(EventType::Hardware, 1)
    };
    assert_eq!(open(&uneven, &counting), Err(Refusal::Precise));
    assert_eq!(open(&skylake(), &counting), Err(Refusal::PreciseCounting));
}

#[test]
fn cycles_have_an_alias() {
    let alias = |pmu: &PmuInfo, level| {
        let select = open(pmu, &sampled(EventType::Hardware, 0, level))
            .unwrap()
            .select;
        assert!(!select.has(EventSelect::INT));
        select.bits() & EventSelect::RAW
    };
    const INSTRUCTIONS: u64 = 0x1080_00c0;
    const PREC_DIST: u64 = 0x1080_01c0;
    const UOPS: u64 = 0x1080_01c2;
    for (pmu, expected) in [
        (&nehalem(), &[INSTRUCTIONS, INSTRUCTIONS][..]),
        (&pmu(0x206a7, 3, 0x31c1), &[UOPS, UOPS]),
        (&haswell(), &[UOPS, UOPS, PREC_DIST]),
        (&skylake(), &[INSTRUCTIONS, INSTRUCTIONS, PREC_DIST]),
        (
            &ice_lake(),
            &[CYCLES_SELECTED, CYCLES_SELECTED, CYCLES_SELECTED],
        ),
    ] {
        for (level, expected) in (1..).zip(expected) {
            assert_eq!(alias(pmu, level), *expected, "{} {level}", pmu.model.name);
        }
    }
    // Cycles with edge detection have no alias, nor have cycles with a `precise_ip` of 0.
    let edges = sampled(EventType::Raw, CYCLES_SELECTED | EventSelect::EDGE, 1);
    let select = open(&skylake(), &edges).unwrap().select;
    assert_eq!(select.code(), CYCLES_SELECTED);
    let select = open(&skylake(), &sampled(EventType::Hardware, 0, 0))
        .unwrap()
        .select;
    assert_eq!(select.bits() & EventSelect::RAW, CYCLES_SELECTED);
    assert!(select.has(EventSelect::INT));
}

#[test]
fn addresses_are_found_with_branches() {
    let branches =
        |pmu: &PmuInfo, attr: &Attributes| open(pmu, attr).map(|it| it.branches.is_some());
    let mut attr = sampled(EventType::Hardware, 1, 2);
    assert_eq!(branches(&nehalem(), &attr), Ok(true));
    assert_eq!(branches(&haswell(), &attr), Ok(false));
    attr.precise_ip = 1;
    assert_eq!(branches(&nehalem(), &attr), Ok(false));
    // If the event requests a branch stack, the stack has to contain all branches at the event's
    // privilege levels.
    attr.precise_ip = 2;
    attr.sample_type |= st::BRANCH_STACK;
    attr.branch_sample_type = branches::ANY | branches::USER;
    assert_eq!(branches(&nehalem(), &attr), Err(Refusal::PreciseBranches));
    assert_eq!(branches(&haswell(), &attr), Ok(true));
    attr.exclude_kernel = true;
    assert_eq!(branches(&nehalem(), &attr), Ok(true));
    attr.branch_sample_type = branches::ANY_CALL | branches::USER;
    assert_eq!(branches(&nehalem(), &attr), Err(Refusal::PreciseBranches));
}

#[test]
fn simple_samples_need_the_address_alone() {
    let needs_address_only = |pmu: &PmuInfo, level, part| {
        let mut attr = sampled(EventType::Hardware, 1, level);
        attr.sample_type |= st::IP | st::TID | st::TIME | st::PERIOD | part;
        precise(pmu, &attr).needs_address_only
    };
    for pmu in [&haswell(), &skylake(), &ice_lake()] {
        assert!(needs_address_only(pmu, 2, 0) && needs_address_only(pmu, 3, st::CPU));
        // With a `precise_ip` of 1, samples need the next instruction's address, from the record's
        // registers.
        assert!(!needs_address_only(pmu, 1, 0));
        for part in [
            st::ADDR,
            st::DATA_SRC,
            st::WEIGHT,
            st::TRANSACTION,
            st::PHYS_ADDR,
            st::DATA_PAGE_SIZE,
            st::REGS_INTR,
            st::REGS_USER,
            st::CALLCHAIN,
        ] {
            assert!(
                !needs_address_only(pmu, 2, part),
                "{} {part:#x}",
                pmu.model.name
            );
        }
    }
    // Nehalem's records do not have the address of the instruction itself.
    assert!(!needs_address_only(&nehalem(), 2, 0));
}

#[test]
fn records_can_wait_if_they_have_all_data() {
    let waits = |pmu: &PmuInfo, change: &dyn Fn(&mut Attributes)| {
        let mut attr = sampled(EventType::Hardware, 1, 2);
        attr.sample_type |= st::TID | st::PERIOD;
        change(&mut attr);
        let precise = precise(pmu, &attr);
        (precise.reloads, precise.records_can_wait)
    };
    for pmu in [&haswell(), &skylake(), &ice_lake()] {
        assert_eq!(waits(pmu, &|_| ()), (true, true));
        assert_eq!(waits(pmu, &|attr| attr.freq = true), (false, false));
        assert_eq!(waits(pmu, &|attr| attr.wakeup_events = 1), (false, false));
        let bytes = |attr: &mut Attributes| (attr.wakeup_events, attr.watermark) = (1, true);
        assert_eq!(waits(pmu, &bytes), (true, true));
        assert_eq!(
            waits(pmu, &|attr| attr.has_aux_action = true),
            (true, false)
        );
        // PERF_SAMPLE_READ, PERF_SAMPLE_CALLCHAIN.
        assert_eq!(
            waits(pmu, &|attr| attr.sample_type |= 1 << 4),
            (true, false)
        );
        assert_eq!(
            waits(pmu, &|attr| attr.sample_type |= 1 << 5),
            (true, false)
        );
        let timed = |attr: &mut Attributes| attr.sample_type |= st::TIME;
        assert_eq!(waits(pmu, &timed).1, pmu.model.name != "Haswell");
        let by_clock =
            |attr: &mut Attributes| (attr.sample_type, attr.use_clockid) = (st::TIME, true);
        assert!(!waits(pmu, &by_clock).1);
    }
    // Each record needs its own last branch.
    assert_eq!(waits(&nehalem(), &|_| ()), (true, false));
    assert_eq!(waits(&nehalem(), &|attr| attr.precise_ip = 1), (true, true));
}

#[test]
fn records_have_the_groups_that_samples_need() {
    let groups = |change: &dyn Fn(&mut Attributes)| {
        let mut attr = sampled(EventType::Hardware, 1, 2);
        change(&mut attr);
        let opened = open(&ice_lake(), &attr).unwrap();
        assert!(opened.select.has(EventSelect::ADAPTIVE));
        opened.precise.unwrap().groups.bits()
    };
    assert_eq!(groups(&|_| ()), 0);
    assert_eq!(groups(&|attr| attr.precise_ip = 1), Groups::REGISTERS);
    assert_eq!(groups(&|attr| attr.sample_type |= st::ADDR), Groups::MEMORY);
    let registers = |attr: &mut Attributes| {
        (attr.sample_type, attr.sample_regs_intr) = (st::REGS_INTR, 1);
    };
    assert_eq!(groups(&registers), Groups::REGISTERS);
    let xmm = |attr: &mut Attributes| {
        (attr.sample_type, attr.sample_regs_intr) = (st::REGS_INTR, 1 << 32);
    };
    assert_eq!(groups(&xmm), Groups::XMM);
    let stack = |attr: &mut Attributes| {
        (attr.sample_type, attr.branch_sample_type) = (st::BRANCH_STACK, branches::ANY);
    };
    assert_eq!(groups(&stack), (1 << 3) | (31 << 24));

    // Only adaptive records have XMM registers.
    let mut attr = sampled(EventType::Hardware, 1, 0);
    xmm(&mut attr);
    assert_eq!(open(&ice_lake(), &attr), Err(Refusal::ExtendedRegisters));
    attr.precise_ip = 1;
    assert_eq!(open(&skylake(), &attr), Err(Refusal::ExtendedRegisters));
}

#[test]
fn the_data_format_is_from_the_table() {
    let data = |pmu: &PmuInfo, config| precise(pmu, &sampled(EventType::Raw, config, 1)).data;
    assert_eq!(data(&skylake(), 0x01cd), PebsData::LoadLatency);
    assert_eq!(data(&skylake(), 0x82d0), PebsData::StoreAddress);
    assert_eq!(data(&skylake(), 0x00c0), PebsData::None);
    assert!(!open(&skylake(), &sampled(EventType::Raw, 0xc0, 1))
        .unwrap()
        .select
        .has(EventSelect::ADAPTIVE));
}
