// SPDX-License-Identifier: GPL-2.0

use crate::logic::{
    capabilities::{
        Capabilities,
        Cpuid, //
    },
    model::{
        Model,
        AMD_K8,
        AMD_ZEN,
        AMD_ZEN_2,
        AMD_ZEN_4, //
    },
    open::{
        attr::{
            Attributes,
            EventType, //
        },
        configure, //
    },
    pmu::PmuInfo,
    refusal::Refusal, //
};

fn pmu(model: &'static Model) -> PmuInfo {
    PmuInfo::new(model, Capabilities::decode_amd(&Cpuid::default()).unwrap())
}

fn raw(config: u64) -> Attributes {
    Attributes::counting(EventType::Raw, config)
}

fn hardware(config: u64) -> Attributes {
    Attributes::counting(EventType::Hardware, config)
}

fn bits(pmu: &PmuInfo, attr: &Attributes) -> Result<u64, Refusal> {
    // No event counts for all threads of a core.
    let configured = configure(pmu, attr, |_| true, || unreachable!());
    configured.map(|event| event.select.bits())
}

#[test]
fn raw_events_keep_twelve_bits_of_event_code() {
    // The rest of attr.config is dropped, as by mainline: usr, os, pc, int, any, enable, host and
    // guest.
    for (config, select) in [
        (0x1_0000_07c0, 0x1_0013_07c0),
        (0xff, 0x13_00ff),
        (u64::MAX, 0xf_ff97_ffff),
        (1 << 21, 0x13_0000),
        (3 << 40, 0x13_0000),
    ] {
        assert_eq!(bits(&pmu(&AMD_ZEN_2), &raw(config)), Ok(select));
    }
}

#[test]
fn host_and_guest() {
    let zen = pmu(&AMD_ZEN);
    for (exclude_host, exclude_guest, select) in [
        (false, false, 0x13_00c0),
        (true, false, 0x100_0013_00c0),
        (false, true, 0x200_0013_00c0),
        // Nowhere.
        (true, true, 0x10_00c0),
    ] {
        let mut attr = hardware(1);
        (attr.exclude_host, attr.exclude_guest) = (exclude_host, exclude_guest);
        assert_eq!(bits(&zen, &attr), Ok(select));
        let event = configure(&zen, &attr, |_| true, || false).unwrap();
        assert!(event.counts_in.host && event.counts_in.guest);
    }
}

#[test]
fn generic_events_of_the_families() {
    const STALLED_FRONTEND: u64 = 7;
    const STALLED_BACKEND: u64 = 8;
    const REFERENCE_CYCLES: u64 = 9;
    let absent = Err(Refusal::HardwareEventAbsent);
    for (model, config, select) in [
        (&AMD_K8, 0, Ok(0x13_0076)),
        (&AMD_K8, STALLED_BACKEND, Ok(0x13_00d1)),
        (&AMD_ZEN, STALLED_FRONTEND, Ok(0x13_0287)),
        (&AMD_ZEN_2, STALLED_FRONTEND, Ok(0x13_00a9)),
        (&AMD_ZEN_2, STALLED_BACKEND, absent),
        (&AMD_ZEN_2, REFERENCE_CYCLES, absent),
        (&AMD_ZEN_4, REFERENCE_CYCLES, Ok(0x1_0013_0120)),
        (&AMD_ZEN_4, 6, absent),
        (&AMD_ZEN_4, 10, Err(Refusal::NoSuchHardwareId)),
    ] {
        let found = bits(&pmu(model), &hardware(config));
        assert_eq!(found, select, "{} {config}", model.name);
    }
}

#[test]
fn refusals() {
    let zen = pmu(&AMD_ZEN_2);
    let refused = |change: &dyn Fn(&mut Attributes)| {
        let mut attr = hardware(0);
        change(&mut attr);
        bits(&zen, &attr).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|it| it.precise_ip = 1), Some(Refusal::Precise));
    let branches = Some(Refusal::BranchStack);
    assert_eq!(refused(&|it| it.sample_type = 1 << 11), branches);
    let extended = Some(Refusal::ExtendedRegisters);
    assert_eq!(refused(&|it| it.sample_regs_user = 1 << 32), extended);
    assert_eq!(refused(&|it| it.sample_regs_intr = 1 << 63), extended);
    let other = Some(Refusal::OtherType);
    assert_eq!(refused(&|it| it.event_type = EventType::Other), other);
    // There is no shortest period, and only Intel's CPUs have BTS.
    assert_eq!(refused(&|it| it.sample_period = 1), None);
    assert_eq!(refused(&|it| (it.config, it.sample_period) = (4, 1)), None);
    assert_eq!(refused(&|it| it.config1 = 1), None);

    let cache = |config| bits(&zen, &Attributes::counting(EventType::HwCache, config));
    assert_eq!(cache(0x1_0000), Ok(0x13_c860));
    assert_eq!(cache(0x0100), Err(Refusal::CacheEventAbsent));
    assert_eq!(cache(0x0106), Err(Refusal::CacheEventImpossible));
    assert_eq!(cache(7), Err(Refusal::NoSuchCacheId));
}

#[test]
fn periods() {
    let zen = pmu(&AMD_ZEN);
    let period = |sample_period, freq| {
        let attr = Attributes {
            sample_period,
            freq,
            ..hardware(0)
        };
        configure(&zen, &attr, |_| true, || false).unwrap().period
    };
    assert_eq!(period(0, false), (1 << 47) - 1);
    assert_eq!(period(1, false), 1);
    assert_eq!(period(4000, true), 124_999);
}
