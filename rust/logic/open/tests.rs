// SPDX-License-Identifier: GPL-2.0

use super::attr::sample_type;
use super::*;
use crate::logic::{
    capabilities::{
        Cpuid,
        PebsFormat, //
    },
    regs::{
        event_select::EventSelect,
        global::CountsIn, //
    },
};

/// KVM's event for the branch records of a guest.
const GUEST_BRANCHES: u64 = 0x1b00;

/// HLE and RTM.
const TSX: u32 = (1 << 4) | (1 << 11);

fn pmu(signature: u32, version: u32, leaf_7_ebx: u32) -> PmuInfo {
    let mut cpuid = Cpuid::intel(version, 4, 3).with_signature(signature);
    cpuid.leaf_7.ebx = leaf_7_ebx;
    PmuInfo::probe(&cpuid, Some(0x2000)).unwrap()
}

fn haswell() -> PmuInfo {
    pmu(0x306c3, 3, TSX)
}

fn raw(config: u64) -> Attributes {
    Attributes::counting(EventType::Raw, config)
}

fn hardware(config: u64) -> Attributes {
    Attributes::counting(EventType::Hardware, config)
}

/// Configures an event with permission to count for any thread.
fn permitted(pmu: &PmuInfo, attr: &Attributes) -> Result<u64, Refusal> {
    configure(pmu, attr, |_| true, || true).map(|event| event.select.bits())
}

#[test]
fn types() {
    for (attr_type, pmu_type, decoded) in [
        (4, 4, EventType::Raw),
        (0, 4, EventType::Hardware),
        (3, 4, EventType::HwCache),
        (1, 4, EventType::Other),
        (4, 9, EventType::Other),
        (9, 9, EventType::Raw),
    ] {
        assert_eq!(EventType::decode(attr_type, pmu_type), decoded);
    }
}

#[test]
fn generic_events() {
    const NONE: Result<u64, Refusal> = Err(Refusal::HardwareEventAbsent);
    #[rustfmt::skip]
    let expected = [
        Ok(0x13_003c), Ok(0x13_00c0), Ok(0x13_4f2e), Ok(0x13_412e), Ok(0x13_00c4),
        Ok(0x13_00c5), Ok(0x13_013c), NONE, NONE, Ok(0x13_0300),
        Err(Refusal::NoSuchHardwareId),
    ];
    for (config, expected) in (0..).zip(expected) {
        assert_eq!(
            permitted(&haswell(), &hardware(config)),
            expected,
            "{config}"
        );
    }
    assert_eq!(
        permitted(&haswell(), &hardware(u64::MAX)),
        Err(Refusal::NoSuchHardwareId)
    );
}

#[test]
fn privilege_levels() {
    for (exclude_user, exclude_kernel, select) in [
        (false, false, 0x13_00c4),
        (false, true, 0x11_00c4),
        (true, false, 0x12_00c4),
        (true, true, 0x10_00c4),
    ] {
        for mut attr in [raw(0x00c4), hardware(4)] {
            attr.exclude_user = exclude_user;
            attr.exclude_kernel = exclude_kernel;
            assert_eq!(permitted(&haswell(), &attr), Ok(select));
        }
    }
}

#[test]
fn raw_bits_outside_the_users_mask_are_dropped() {
    // All bits but any-thread and the TSX filters, which have tests of their own.
    let special = EventSelect::ANY | EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;
    let select = permitted(&haswell(), &raw(!special));
    assert_eq!(select, Ok(0xff84_ffff | 0x13_0000));
    // attr.exclude_user and attr.exclude_kernel decide, not the bits of attr.config.
    let mut attr = raw(0x3_00c4);
    attr.exclude_user = true;
    attr.exclude_kernel = true;
    assert_eq!(permitted(&haswell(), &attr), Ok(0x10_00c4));
}

#[test]
fn any_thread_needs_version_3_and_permission() {
    let any = raw(0x00c4 | EventSelect::ANY);
    assert_eq!(permitted(&haswell(), &any), Ok(0x33_00c4));
    assert_eq!(
        configure(&haswell(), &any, |_| true, || false),
        Err(Refusal::AnyThreadNotPermitted)
    );
    let version_2 = pmu(0x306c3, 2, 0);
    assert_eq!(
        configure(&version_2, &any, |_| true, || panic!("asked in vain")),
        Err(Refusal::AnyThreadAbsent)
    );
    // A deprecated bit is accepted, as by the built-in driver, but not written.
    let mut deprecated = haswell();
    deprecated.capabilities.any_thread = false;
    assert_eq!(permitted(&deprecated, &any), Ok(0x13_00c4));
    // Other events do not need the permission.
    let event = configure(
        &haswell(),
        &raw(0x00c4),
        |_| true,
        || panic!("asked in vain"),
    );
    assert!(event.is_ok());
}

#[test]
fn tsx_filters_exist_with_tsx() {
    let in_tx = 0x00c4 | EventSelect::IN_TX;
    let in_tx_cp = 0x00c4 | EventSelect::IN_TX_CHECKPOINTED;
    for (leaf_7_ebx, kept) in [(0, 0), (1 << 4, !0), (1 << 11, !0)] {
        for config in [in_tx, in_tx_cp] {
            let filter = config & !0xffff & kept;
            let select = permitted(&pmu(0x506e3, 4, leaf_7_ebx), &raw(config));
            assert_eq!(
                select,
                Ok(0x13_00c4 | filter),
                "{leaf_7_ebx:#x} {config:#x}"
            );
        }
    }
}

#[test]
fn tsx_filters_exclude_any_thread() {
    let config = 0x00c4 | EventSelect::IN_TX | EventSelect::ANY;
    assert_eq!(
        permitted(&haswell(), &raw(config)),
        Err(Refusal::TransactionFilter)
    );
    // Without TSX, the filter is dropped.
    assert_eq!(permitted(&pmu(0x306c3, 3, 0), &raw(config)), Ok(0x33_00c4));
    // The permission is checked first.
    assert_eq!(
        configure(&haswell(), &raw(config), |_| true, || false),
        Err(Refusal::AnyThreadNotPermitted)
    );
    // A deprecated bit is not written, but excludes the filter.
    let mut deprecated = haswell();
    deprecated.capabilities.any_thread = false;
    assert_eq!(
        permitted(&deprecated, &raw(config)),
        Err(Refusal::TransactionFilter)
    );
}

#[test]
fn tsx_filters_exclude_precise_sampling() {
    for (leaf_1_eax, version, format) in [
        (0x306c3, 3, PebsFormat::Haswell),
        (0x606a6, 5, PebsFormat::Adaptive),
    ] {
        for filter in [EventSelect::IN_TX, EventSelect::IN_TX_CHECKPOINTED] {
            let open = |leaf_7_ebx, precise_ip| {
                let mut pmu = pmu(leaf_1_eax, version, leaf_7_ebx);
                pmu.capabilities.pebs_format = Some(format);
                let mut attr = raw(0x00c4 | filter);
                attr.sample_period = 1 << 31;
                attr.precise_ip = precise_ip;
                permitted(&pmu, &attr).map(|_| ())
            };
            assert_eq!(open(TSX, 0), Ok(()));
            for precise_ip in 1..=3 {
                assert_eq!(
                    open(TSX, precise_ip),
                    Err(Refusal::TransactionFilter),
                    "{leaf_1_eax:#x} {filter:#x}"
                );
            }
            // Without TSX, the filter is dropped.
            assert_eq!(open(0, 1), Ok(()));
        }
    }
}

#[test]
fn checkpointed_sampling_needs_a_long_period() {
    let mut attr = raw(0x00c4 | EventSelect::IN_TX_CHECKPOINTED);
    for (period, refusal) in [
        (1 << 20, Err(Refusal::CheckpointedPeriod)),
        (0x7fff_fffe, Err(Refusal::CheckpointedPeriod)),
        (0x7fff_ffff, Ok(0x2_0013_00c4)),
    ] {
        attr.sample_period = period;
        assert_eq!(permitted(&haswell(), &attr), refusal, "{period:#x}");
    }
}

#[test]
fn aux_output_needs_a_precise_event() {
    let mut haswell = haswell();
    haswell.capabilities.pebs_format = Some(PebsFormat::Nehalem);
    let mut attr = raw(0x00c4 | EventSelect::IN_TX | EventSelect::ANY);
    attr.aux_output = true;
    assert_eq!(permitted(&haswell, &attr), Err(Refusal::AuxOutput));
    // The perf core refuses the precise event.
    (attr.config, attr.precise_ip, attr.sample_period) = (0x00c4, 1, 100_003);
    assert!(permitted(&haswell, &attr).is_ok());
}

/// Combines each fault with all faults that mainline checks for later: the first one is reported.
#[test]
fn refusals_in_mainlines_order() {
    type Spoil = fn(&mut Attributes);
    #[rustfmt::skip]
    let faults: &[(Refusal, Spoil)] = &[
        (Refusal::OtherType, |attr| attr.event_type = EventType::Other),
        (Refusal::Precise, |attr| attr.precise_ip = 3),
        (Refusal::PreciseCounting, |attr| (attr.precise_ip, attr.sample_period) = (1, 0)),
        (Refusal::PeriodTooShort, |attr| attr.sample_period = 31),
        (Refusal::ExtendedRegisters, |attr| attr.sample_regs_user = 1 << 63),
        (Refusal::ExtendedRegisters, |attr| attr.sample_regs_intr = 1 << 32),
        (Refusal::ExtraRegisterValue, |attr| (attr.config, attr.config1) = (0x01b7, 1 << 12)),
        (Refusal::BranchCounters, |attr| attr.branch_sample_type = 1 << 19),
        (Refusal::BranchStack, |attr| attr.branch_sample_type = 1 << 3),
        (Refusal::TransactionFilter, |attr| attr.config |= EventSelect::IN_TX | EventSelect::ANY),
        (Refusal::TransactionFilter, |attr| {
            attr.config |= EventSelect::IN_TX;
            attr.precise_ip = 1;
        }),
        (Refusal::CheckpointedPeriod, |attr| {
            attr.config |= EventSelect::IN_TX_CHECKPOINTED;
            attr.sample_period = 1 << 20;
        }),
    ];
    // With this PEBS format and without branch records, the maximum precise_ip is 2.
    let mut haswell = haswell();
    haswell.capabilities.pebs_format = Some(PebsFormat::Nehalem);
    for (i, (refusal, _)) in faults.iter().enumerate() {
        let mut attr = raw(0x00c4);
        // In reverse, so that the earlier of two faults in one field stays.
        for (_, spoil) in faults[i..].iter().rev() {
            spoil(&mut attr);
        }
        assert_eq!(permitted(&haswell, &attr), Err(*refusal), "fault {i}");
    }
}

#[test]
fn cache_events() {
    let cache = |config| {
        let mut attr = Attributes::counting(EventType::HwCache, config);
        // Has no effect.
        attr.config1 = u64::MAX;
        let event = configure(&haswell(), &attr, |_| true, || true)?;
        Ok((event.select.bits(), event.requirement.map(|it| it.value)))
    };
    for (config, expected) in [
        (0x0_0000, Ok((0x13_81d0, None))),
        (0x1_0002, Ok((0x13_01b7, Some(0x3f_b840_0001)))),
        (0x0_0200, Err(Refusal::CacheEventAbsent)),
        (0x0_0101, Err(Refusal::CacheEventImpossible)),
        (0x0_007f, Err(Refusal::NoSuchCacheId)),
        (0x0_0300, Err(Refusal::NoSuchCacheId)),
        (0x2_0000, Err(Refusal::NoSuchCacheId)),
    ] {
        assert_eq!(cache(config), expected, "{config:#x}");
    }
    let absent = Attributes::counting(EventType::HwCache, 0x1_0002);
    assert_eq!(
        configure(&haswell(), &absent, |_| false, || true),
        Err(Refusal::ExtraRegisterAbsent)
    );
}

#[test]
fn events_with_an_extra_register() {
    let skylake = pmu(0x506e3, 4, 0);
    let all = |config, config1| {
        let mut attr = raw(config);
        attr.config1 = config1;
        attr
    };
    for (pmu, config, config1, expected) in [
        (haswell(), 0x01b7, 0x3f_ffff_8fff, Ok(Some(0x3f_ffff_8fff))),
        (haswell(), 0x01b7, 0x1000, Err(Refusal::ExtraRegisterValue)),
        (haswell(), 0x01bb, 0, Ok(Some(0))),
        (
            haswell(),
            0x0100_01b7,
            0x1000,
            Err(Refusal::ExtraRegisterValue),
        ),
        // Events with other unit masks have no extra register.
        (haswell(), 0x02b7, u64::MAX, Ok(None)),
        (haswell(), 0x01c6, u64::MAX, Ok(None)),
        (skylake, 0x01c6, 0x7f_ff17, Ok(Some(0x7f_ff17))),
        (skylake, 0x01c6, 0x8, Err(Refusal::ExtraRegisterValue)),
        (skylake, 0x01cd, 0x3, Ok(Some(0x3))),
        (skylake, 0x01cd, 0x1_0000, Err(Refusal::ExtraRegisterValue)),
    ] {
        let event = configure(&pmu, &all(config, config1), |_| true, || true);
        let value = event.map(|event| event.requirement.map(|it| it.value));
        assert_eq!(value, expected, "{config:#x} {config1:#x}");
    }
    // A generic event has no extra register, whatever its config1.
    let mut cycles = hardware(0);
    cycles.config1 = u64::MAX;
    let event = configure(&haswell(), &cycles, |_| false, || true).unwrap();
    assert_eq!(event.requirement, None);
}

#[test]
fn a_member_read_with_the_leaders_samples_needs_no_branch_stack() {
    let mut attr = raw(0x00c4);
    attr.branch_sample_type = 1 << 3;
    attr.sample_type = sample_type::READ;
    assert_eq!(permitted(&haswell(), &attr), Ok(0x13_00c4));
    attr.sample_period = 1 << 20;
    assert_eq!(permitted(&haswell(), &attr), Err(Refusal::BranchStack));
}

#[test]
fn branch_stacks_need_a_filter() {
    use crate::logic::sample::lbr::{
        self,
        filter::sample_type,
        Lbr, //
    };

    let mut pmu = haswell();
    pmu.capabilities.lbr_format = 4;
    pmu.lbr = Lbr::new(pmu.model.lbr_filter, &pmu.capabilities);
    let branches = |attr: &Attributes| {
        let event = configure(&pmu, attr, |_| true, || true);
        event.map(|event| event.branches.map(|request| request.select))
    };
    let mut attr = raw(0x00c4);
    assert_eq!(branches(&attr), Ok(None));
    attr.branch_sample_type = sample_type::ANY | sample_type::USER;
    assert_eq!(branches(&attr), Ok(Some(1)));
    attr.config = GUEST_BRANCHES;
    assert_eq!(branches(&attr), Ok(Some(lbr::GUEST)));
    // With flags, it is another event.
    for flags in [0x0180_0000, EventSelect::EDGE, EventSelect::IN_TX] {
        attr.config = GUEST_BRANCHES | flags;
        assert_eq!(branches(&attr), Ok(Some(1)), "{flags:#x}");
    }
    attr.config = GUEST_BRANCHES | EventSelect::ANY;
    assert_eq!(branches(&attr), Ok(Some(lbr::GUEST)));
}

#[test]
fn short_periods_by_event() {
    for (attr, period, short) in [
        (raw(0x00c4), 31, true),
        (raw(0x00c4), 32, false),
        (raw(0x01c0), 127, true),
        (raw(0x01c0), 128, false),
        (hardware(1), 32, false),
    ] {
        let mut attr = attr;
        attr.sample_period = period;
        let event = configure(&haswell(), &attr, |_| true, || true);
        let expected = if short {
            Err(Refusal::PeriodTooShort)
        } else {
            Ok(period)
        };
        assert_eq!(event.map(|event| event.period), expected, "{period}");
        // As a frequency, the value is valid.
        attr.freq = true;
        assert!(permitted(&haswell(), &attr).is_ok());
    }
}

#[test]
fn first_periods_by_event() {
    for (attr, freq, period) in [
        (hardware(0), 4000, 124_999),
        (hardware(1), 3, 166_666_666),
        (hardware(2), 1000, 24_999),
        (hardware(4), 1000, 124_999),
        (hardware(5), 1000, 124_999),
        (hardware(9), 1000, 499_999),
        (Attributes::counting(EventType::HwCache, 0), 1000, 24_999),
        (raw(0x003c), 4000, 63),
        // Not below Haswell's shortest period.
        (raw(0x003c), 100_000, 32),
        (raw(0x01c0), 4000, 128),
        (hardware(0), u64::MAX, 32),
    ] {
        let mut attr = attr;
        attr.freq = true;
        attr.sample_period = freq;
        let event = configure(&haswell(), &attr, |_| true, || true).unwrap();
        assert_eq!(event.period, period, "{:#x} {freq}", attr.config);
        // With a frequency of 0, the event counts.
        attr.sample_period = 0;
        let event = configure(&haswell(), &attr, |_| true, || true).unwrap();
        assert_eq!(event.period, (1 << 47) - 1);
    }
}

#[test]
fn every_branch() {
    let skylake = pmu(0x506e3, 4, 0);
    for (attr, refused) in [
        (hardware(4), true),
        (raw(0x00c4), true),
        (raw(0x0100_00c4), true),
        (raw(0x01c4), false),
        (hardware(1), false),
    ] {
        let mut attr = attr;
        attr.sample_period = 1;
        let answer = permitted(&skylake, &attr);
        assert_eq!(answer == Err(Refusal::EveryBranch), refused);
        assert_eq!(answer.is_err(), refused);
        // On Haswell, 1 is too short for any event.
        let short = Err(Refusal::PeriodTooShort);
        assert_eq!(permitted(&haswell(), &attr), short);
        attr.sample_period = 2;
        assert!(permitted(&skylake, &attr).is_ok());
        attr.sample_period = 1;
        attr.exclude_host = true;
        assert!(permitted(&skylake, &attr).is_ok());
        attr.exclude_host = false;
        attr.freq = true;
        assert!(permitted(&skylake, &attr).is_ok());
    }
}

#[test]
fn counting_events_get_the_longest_period() {
    let attr = raw(0x00c4);
    let event = configure(&haswell(), &attr, |_| true, || true).unwrap();
    assert_eq!(event.period, (1 << 47) - 1);
}

#[test]
fn events_count_where_they_are_not_excluded() {
    for (exclude_host, exclude_guest) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let mut attr = raw(0x00c4);
        attr.exclude_host = exclude_host;
        attr.exclude_guest = exclude_guest;
        let event = configure(&haswell(), &attr, |_| true, || true).unwrap();
        let counts_in = CountsIn {
            host: !exclude_host,
            guest: !exclude_guest,
        };
        assert_eq!(event.counts_in, counts_in);
    }
}

#[test]
fn load_latency_needs_an_auxiliary_event_on_golden_cove() {
    let mut attr = raw(0x01cd);
    attr.sample_type = sample_type::DATA_SRC;
    for (model, has_auxiliary, refused) in [
        (0x806f8, false, true),
        (0x806f8, true, false),
        (0x606a6, false, false),
        (0xa06d1, false, false),
    ] {
        attr.has_auxiliary = has_auxiliary;
        let event = permitted(&pmu(model, 5, 0), &attr);
        assert_eq!(
            event == Err(Refusal::LoadLatencyAlone),
            refused,
            "{model:#x}"
        );
    }
    attr.has_auxiliary = false;
    attr.sample_type = 0;
    assert!(permitted(&pmu(0x806f8, 5, 0), &attr).is_ok());
    // A generic event is never a load latency event.
    attr = hardware(0);
    attr.sample_type = sample_type::DATA_SRC;
    assert!(permitted(&pmu(0x806f8, 5, 0), &attr).is_ok());
}
