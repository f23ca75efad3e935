// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::Cpuid,
    open::{
        attr::EventType,
        configure, //
    },
    refusal::Shortage,
    regs::counter::{
        CounterId,
        CounterMask, //
    },
    sched::{
        cpu_schedule::CpuSchedule,
        limits::Limits, //
    },
};

/// CPUID's family and model of an Ice Lake server, of a Sapphire Rapids, and of a CPU without a
/// table.
const ICE_LAKE: u32 = 0x606a6;
const SAPPHIRE_RAPIDS: u32 = 0x806f8;
const UNKNOWN: u32 = 0xf06f0;
/// PERF_METRICS in IA32_PERF_CAPABILITIES, and full-width writes.
const METRICS: u64 = (1 << 15) | (1 << 13);

fn pmu(signature: u32, fixed: u32, perf_capabilities: u64) -> PmuInfo {
    let cpuid = Cpuid::intel(5, 8, fixed).with_signature(signature);
    PmuInfo::probe(&cpuid, Some(perf_capabilities)).unwrap()
}

fn open(pmu: &PmuInfo, attr: &Attributes) -> Result<u64, Refusal> {
    configure(pmu, attr, |_| true, || true).map(|event| event.select.bits())
}

fn metric(config: u64) -> Attributes {
    Attributes {
        leader: Leader::Slots,
        ..Attributes::counting(EventType::Raw, config)
    }
}

#[test]
fn topdown_events_take_no_filters_with_metrics() {
    let with = pmu(ICE_LAKE, 4, METRICS);
    let without = pmu(ICE_LAKE, 4, 0);
    for (config, config1, config2, refused) in [
        (0x0400, 0, 0, false),
        (0x0400, 1, 0, false),
        (0x0400, 2, 0, true),
        (0x0400, 0, 1, true),
        (0x0400 | EventSelect::EDGE, 0, 0, true),
        (0x0400 | EventSelect::IN_TX, 0, 0, true),
        (0x8000, 0, 0, false),
        (0x8300, 1, 0, true),
        (0x8700 | EventSelect::INV, 0, 0, true),
        (0x8700, 0, 1, true),
        (0x003c | EventSelect::EDGE, 0, 1, false),
        // Other events with unit masks of metrics.
        (0x0100_81d0, 0, 0, false), // MEM_INST_RETIRED.ALL_LOADS, cmask=1
        (0x0184_81d0, 0, 0, false), // the same, inv=1, edge=1
        (0x0004_82d0, 0, 0, false), // MEM_INST_RETIRED.ALL_STORES, edge=1
        (0x0080_81d0, 0, 0, false),
        (0x0100_80c0, 0, 0, false),
        (0x80c0 | EventSelect::IN_TX, 0, 0, false),
        (0x81d0, 1, 0, false),
        (0x82d0, 0, 1, false),
        (0x80ff, 1, 1, false),
    ] {
        let mut attr = metric(config);
        attr.config1 = config1;
        attr.config2 = config2;
        let event = open(&with, &attr);
        assert_eq!(event == Err(Refusal::TopdownFilter), refused, "{config:#x}");
        assert!(open(&without, &attr).is_ok(), "{config:#x}");
    }
}

#[test]
fn metrics_need_slots_that_count() {
    use Leader::{
        Other,
        SampledSlots,
        Slots, //
    };
    use Refusal::{
        MetricOfSampledSlots,
        MetricSampling,
        MetricWithoutSlots,
        TopdownFilter, //
    };

    let pmu = pmu(ICE_LAKE, 4, METRICS);
    for (leader, sample_period, config1, expected) in [
        (Slots, 0, 0, Ok(())),
        (SampledSlots, 0, 0, Err(MetricOfSampledSlots)),
        (Other, 0, 0, Err(MetricWithoutSlots)),
        (Slots, 1_000_003, 0, Err(MetricSampling)),
        (Other, 1_000_003, 0, Err(MetricSampling)),
        (Other, 1_000_003, 1, Err(TopdownFilter)),
    ] {
        let attr = Attributes {
            leader,
            sample_period,
            config1,
            ..metric(0x8000)
        };
        assert_eq!(open(&pmu, &attr).map(|_| ()), expected, "{attr:?}");
        // Slots need no leader, and may be sampled.
        let slots = Attributes {
            config: SLOTS,
            config1: 0,
            ..attr
        };
        assert!(open(&pmu, &slots).is_ok());
    }
}

#[test]
fn each_model_has_its_metrics() {
    let counter = |pmu: &PmuInfo, config| pmu.constraint(EventSelect::from_bits(config)).counters;
    for (cpu, fixed, capabilities, metrics) in [
        (ICE_LAKE, 4, METRICS, 4),
        (SAPPHIRE_RAPIDS, 4, METRICS, 8),
        // Without fixed counter 3, without the capability, and without a table.
        (ICE_LAKE, 3, METRICS, 0),
        (SAPPHIRE_RAPIDS, 4, 0, 0),
        (UNKNOWN, 4, METRICS, 0),
    ] {
        let pmu = pmu(cpu, fixed, capabilities);
        assert_eq!(
            pmu.capabilities.metrics,
            CounterMask::first_metrics(metrics)
        );
        assert!(!pmu.capabilities.counters.has_metrics());
        for n in 0..8 {
            let config = FIRST_METRIC + (u64::from(n) << 8);
            let found = counter(&pmu, config);
            if n < metrics {
                assert_eq!(Some(found), CounterId::metric(n).map(CounterId::mask));
            } else {
                assert!(!found.has_metrics(), "{config:#x}");
            }
        }
    }
    // A metric that the model lacks is a meaningless event, and needs no leader.
    let ice_lake = pmu(ICE_LAKE, 4, METRICS);
    let alone = Attributes::counting(EventType::Raw, 0x8400);
    assert!(open(&ice_lake, &alone).is_ok());
    assert_eq!(counter(&ice_lake, 0x8400), CounterMask::first_gp(8));
    let sapphire_rapids = pmu(SAPPHIRE_RAPIDS, 4, METRICS);
    assert_eq!(
        open(&sapphire_rapids, &alone),
        Err(Refusal::MetricWithoutSlots)
    );
}

#[test]
fn one_group_with_slots_fits() {
    let pmu = pmu(SAPPHIRE_RAPIDS, 4, METRICS);
    let mut schedule = CpuSchedule::new(&pmu.capabilities);
    let mut add = |name: u64, configs: &[u64]| {
        schedule.begin();
        for (n, config) in (0..).zip(configs) {
            let constraint = pmu.constraint(EventSelect::from_bits(*config));
            schedule
                .add(name + n, constraint, None, &Limits::NONE)
                .unwrap();
        }
        let verdict = schedule.commit(&Limits::NONE);
        if verdict.is_err() {
            schedule.cancel();
        }
        verdict
    };
    let all = [
        0x400, 0x8000, 0x8100, 0x8200, 0x8300, 0x8400, 0x8500, 0x8600, 0x8700,
    ];
    assert_eq!(add(0, &all), Ok(()));
    // All other counters are free.
    for n in 0..5 {
        assert_eq!(add(100 + n, &[0x01c2]), Ok(()));
    }
    assert_eq!(add(200, &[0x00c0, 0x003c, 0x0300]), Ok(()));
    // A second group waits for the slots.
    let shortage = Shortage::Contended {
        events: 2,
        counters: CounterId::SLOTS.mask(),
    };
    assert_eq!(
        add(300, &[0x400, 0x8000]),
        Err(Refusal::DoesNotFit(shortage))
    );
}
