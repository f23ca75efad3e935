// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    capabilities::Cpuid,
    model::demand::Key,
    pmu::PmuInfo,
    regs::event_select::EventSelect, //
};

fn haswell(gp: u32) -> PmuInfo {
    PmuInfo::probe(&Cpuid::intel(3, gp, 3).with_signature(0x306c3), None).unwrap()
}

fn validate_under(limits: Limits, pmu: &PmuInfo, codes: &[u64]) -> Result<(), Refusal> {
    let mut group = Group::new(&pmu.capabilities, &limits);
    for code in codes {
        group.push(pmu.constraint(EventSelect::from_bits(*code)))?;
    }
    group.validate()
}

fn validate(pmu: &PmuInfo, codes: &[u64]) -> Result<(), Refusal> {
    validate_under(Limits::NONE, pmu, codes)
}

#[test]
fn six_tlb_events_fit_eight_counters_and_not_four() {
    let tlb = [0x0e08, 0x0208, 0x0e49, 0x0249, 0x0e85, 0x0285];
    assert_eq!(validate(&haswell(8), &tlb), Ok(()));
    assert_eq!(validate(&haswell(4), &tlb[..4]), Ok(()));
    let four = CounterMask::first_gp(4);
    assert_eq!(
        validate(&haswell(4), &tlb[..5]),
        Err(Refusal::DoesNotFit(Shortage::Contended {
            events: 5,
            counters: four,
        }))
    );
}

#[test]
fn fixed_counters_count_too() {
    let pmu = haswell(4);
    let all = [0x00c0, 0x003c, 0x0300, 0x00c4, 0x00c5, 0x412e, 0x4f2e];
    assert_eq!(validate(&pmu, &all), Ok(()));
    let one_more = [&all[..], &[0x013c]].concat();
    let shortage = Shortage::more_than(pmu.capabilities.counters);
    assert_eq!(validate(&pmu, &one_more), Err(shortage.into()));
}

#[test]
fn two_events_for_one_counter() {
    assert!(matches!(
        validate(&haswell(4), &[0x0148, 0x0ca3]),
        Err(Refusal::DoesNotFit(Shortage::Contended { events: 2, .. }))
    ));
}

#[test]
fn half_of_the_counters_beside_a_sibling() {
    let pmu = haswell(4);
    let beside_sibling = Limits::beside_sibling(4);
    // MEM_LOAD_UOPS_RETIRED.{L1_HIT,L1_MISS,L2_HIT} and L1D_PEND_MISS.PENDING.
    let loads = [0x01d1, 0x08d1, 0x02d1, 0x0148];
    assert_eq!(validate(&pmu, &loads), Ok(()));
    assert_eq!(
        validate_under(beside_sibling, &pmu, &loads),
        Err(Refusal::DoesNotFit(Shortage::GpLimit {
            needed: 4,
            limit: 2
        }))
    );
    // One corrupting event, at any place in the group, limits the whole group.
    for (group, fits) in [
        (&[0x00c4, 0x00c5, 0x0108, 0x0149][..], true),
        (&[0x00c4, 0x00c5, 0x01d1], false),
        (&[0x01d1, 0x00c4, 0x00c5], false),
        (&[0x01d1, 0x00c4], true),
        // Fixed counters are not limited.
        (&[0x01d1, 0x00c4, 0x00c0, 0x003c, 0x0300], true),
    ] {
        let verdict = validate_under(beside_sibling, &pmu, group);
        assert_eq!(verdict.is_ok(), fits, "{group:x?}");
    }
}

#[test]
fn closed_counters() {
    let pmu = haswell(4);
    let without_3 = Limits::NONE.closing(CounterMask::from_bits(1 << 3));
    let three = [0x00c4, 0x00c5, 0x0108];
    assert_eq!(validate_under(without_3, &pmu, &three), Ok(()));
    let four = [0x00c4, 0x00c5, 0x0108, 0x0149];
    assert!(validate_under(without_3, &pmu, &four).is_err());
    // MEM_TRANS_RETIRED.LOAD_LATENCY, on counter 3 alone.
    let refused = validate_under(without_3, &pmu, &[0x01cd]);
    assert_eq!(refused, Err(Refusal::NoCounter));
}

#[test]
fn more_values_than_extra_registers() {
    use crate::logic::{
        model::HASWELL,
        regs::extra_register::ExtraRegister, //
    };
    let pmu = haswell(4);
    let validate = |events: &[(u64, u64)]| {
        let mut group = Group::new(&pmu.capabilities, &Limits::NONE);
        for (code, config1) in events {
            let select = EventSelect::from_bits(*code);
            let table = HASWELL.extra_register_events;
            group.push(Demand {
                constraint: pmu.constraint(select),
                requirement: table.requirement(select, *config1, |_| true).unwrap(),
                lbr_select: None,
                key: Key::NONE,
            })?;
        }
        group.validate()
    };
    let two = [(0x01bb, 1), (0x00c4, 0), (0x01b7, 1), (0x01b7, 2)];
    assert_eq!(validate(&two), Ok(()));
    let three = [&two[1..], &[(0x01b7, 3)]].concat();
    assert_eq!(validate(&three), Err(Refusal::ExtraRegisterTaken));
    let pmu = haswell(8);
    let mut group = Group::new(&pmu.capabilities, &Limits::NONE);
    let mut push = |value| {
        group.push(Demand {
            constraint: pmu.constraint(EventSelect::event(0xb7, 0x01)),
            requirement: Some(Requirement {
                value,
                register: ExtraRegister::OffcoreResponse0,
                alternative: None,
            }),
            lbr_select: None,
            key: Key::NONE,
        })
    };
    // Equal requirements count once.
    assert_eq!(push(1), Ok(()));
    for value in 1..=8 {
        assert_eq!(push(value), Ok(()), "{value}");
    }
    assert_eq!(push(9), Err(Refusal::ExtraRegisterTaken));
    assert_eq!(group.validate(), Err(Refusal::ExtraRegisterTaken));
}

#[test]
fn an_event_that_nothing_can_count() {
    let checkpointed_on_1 = 0x01c0 | EventSelect::IN_TX_CHECKPOINTED;
    let refused = validate(&haswell(4), &[checkpointed_on_1]);
    assert_eq!(refused, Err(Refusal::NoCounter));
}
