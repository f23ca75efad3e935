// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::logic::{
    model::{
        first_match,
        CRESTMONT,
        GOLDEN_COVE,
        GOLDMONT,
        GRACEMONT,
        HASWELL,
        INTEL_MODELS,
        NEHALEM,
        REDWOOD_COVE,
        TREMONT,
        WESTMERE, //
    },
    regs::{
        counter::CounterMask,
        event_select::EventSelect, //
    },
};

fn select(code: u64) -> EventSelect {
    EventSelect::from_bits(code)
}

#[test]
#[should_panic(expected = "an offcore response register with two events")]
fn check_refuses_two_codes_for_one_offcore_register() {
    const TABLE: &[ExtraRegisterEvent] = &[
        ExtraRegisterEvent::offcore_response_0(0x01b7, 0x7),
        ExtraRegisterEvent::offcore_response_0(0x02b7, 0x7),
    ];
    ExtraRegisters::checked(TABLE);
}

#[test]
fn requirements() {
    use ExtraRegister::{
        Frontend,
        LoadLatency,
        OffcoreResponse0,
        OffcoreResponse1,
        SnoopResponse0,
        SnoopResponse1, //
    };
    let all = 0x76_0005_ffbf;
    for (model, code, config1, expected) in [
        (&HASWELL, 0x00c4, u64::MAX, Ok(None)),
        (
            &HASWELL,
            0x01b7,
            1,
            Ok(Some((OffcoreResponse0, Some(OffcoreResponse1)))),
        ),
        (
            &HASWELL,
            0x01bb,
            0,
            Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
        ),
        (&HASWELL, 0x01b7, 1 << 12, Err(NoExtraRegister::Value)),
        (&HASWELL, 0x01cd, 0xffff, Ok(Some((LoadLatency, None)))),
        (&HASWELL, 0x01cd, 0x1_0000, Err(NoExtraRegister::Value)),
        (&HASWELL, 0x02b7, u64::MAX, Ok(None)),
        (&NEHALEM, 0x01b7, 1, Ok(Some((OffcoreResponse0, None)))),
        (&NEHALEM, 0x01bb, u64::MAX, Ok(None)),
        (
            &WESTMERE,
            0x01bb,
            1,
            Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
        ),
        // A value that the second register does not accept stays on the first.
        (&GOLDMONT, 0x01b7, all, Ok(Some((OffcoreResponse0, None)))),
        (
            &GOLDMONT,
            0x02b7,
            1,
            Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
        ),
        (&GOLDEN_COVE, 0x04c2, 8, Ok(Some((Frontend, None)))),
        (&GOLDEN_COVE, 0x04c2, 7, Err(NoExtraRegister::Value)),
        (&REDWOOD_COVE, 0x01c6, 1, Ok(None)),
        (&REDWOOD_COVE, 0x02c6, 9, Ok(Some((Frontend, None)))),
        (&REDWOOD_COVE, 0x02c6, 0x11, Err(NoExtraRegister::Value)),
        (&REDWOOD_COVE, 0x03c6, 0x11, Ok(Some((Frontend, None)))),
        (&TREMONT, 0x02b7, 1 << 63, Err(NoExtraRegister::Value)),
        (&TREMONT, 0x01b7, 0x2000, Err(NoExtraRegister::Value)),
        (&TREMONT, 0x05d0, u64::MAX, Ok(None)),
        (
            &GRACEMONT,
            0x02b7,
            1,
            Ok(Some((OffcoreResponse1, Some(OffcoreResponse0)))),
        ),
        (
            &GRACEMONT,
            0x01b7,
            (1 << 63) | 1,
            Ok(Some((OffcoreResponse0, None))),
        ),
        (&GRACEMONT, 0x02b7, 1 << 63, Err(NoExtraRegister::Value)),
        (&GRACEMONT, 0x05d0, 0xffff, Ok(Some((LoadLatency, None)))),
        (&GRACEMONT, 0x01cd, u64::MAX, Ok(None)),
        (&GRACEMONT, 0x0127, u64::MAX, Ok(None)),
        (
            &CRESTMONT,
            0x0127,
            u64::MAX,
            Ok(Some((SnoopResponse0, None))),
        ),
        (&CRESTMONT, 0x0227, 1, Ok(Some((SnoopResponse1, None)))),
        (&CRESTMONT, 0x02b7, 1 << 63, Err(NoExtraRegister::Value)),
    ] {
        let found = model
            .extra_register_events
            .requirement(select(code), config1, |_| true)
            .map(|required| required.map(|it| (it.register, it.alternative)));
        assert_eq!(found, expected, "{} {code:#x} {config1:#x}", model.name);
    }
}

#[test]
fn absent_registers() {
    use ExtraRegister::{
        OffcoreResponse0,
        OffcoreResponse1, //
    };
    let table = HASWELL.extra_register_events;
    let only = |register| move |it| it == register;
    let first = table.requirement(select(0x01b7), 1, only(OffcoreResponse0));
    assert_eq!(first.unwrap().unwrap().alternative, None);
    let second = table.requirement(select(0x01b7), 1, only(OffcoreResponse1));
    assert_eq!(second, Err(NoExtraRegister::Absent));
    // The value is checked first.
    let wrong = table.requirement(select(0x01b7), 1 << 12, |_| false);
    assert_eq!(wrong, Err(NoExtraRegister::Value));
}

#[test]
fn the_code_follows_the_register() {
    use ExtraRegister::{
        Frontend,
        OffcoreResponse0,
        OffcoreResponse1, //
    };
    for (model, code, register, expected) in [
        (&HASWELL, 0x0113_01b7, OffcoreResponse0, 0x0113_01b7),
        (&HASWELL, 0x0113_01b7, OffcoreResponse1, 0x0113_01bb),
        (&HASWELL, 0x01bb, OffcoreResponse0, 0x01b7),
        (&GOLDMONT, 0x01b7, OffcoreResponse1, 0x02b7),
        (&GOLDEN_COVE, 0x012b, OffcoreResponse0, 0x012a),
        // Several events need this register.
        (&GOLDEN_COVE, 0x04c2, Frontend, 0x04c2),
    ] {
        let found = model
            .extra_register_events
            .select_for(select(code), register);
        assert_eq!(found.bits(), expected, "{} {code:#x}", model.name);
    }
}

/// An event that moves to the other register changes its code, and must keep its constraint.
#[test]
fn twins_have_the_same_constraint() {
    for model in INTEL_MODELS {
        let table = model.extra_register_events;
        let counters = |register| {
            let entry = table.event_of(register)?;
            let found = first_match(model.event_constraints, select(entry.code));
            Some(found.map(|entry| entry.resolve(CounterMask::first_gp(8)).counters))
        };
        if let Some(second) = counters(ExtraRegister::OffcoreResponse1) {
            let first = counters(ExtraRegister::OffcoreResponse0);
            assert_eq!(first, Some(second), "{}", model.name);
        }
    }
}

#[test]
#[should_panic(expected = "an event twice")]
fn check_refuses_an_event_twice() {
    const TABLE: &[ExtraRegisterEvent] = &[
        ExtraRegisterEvent::frontend(0x01c6, 0x7),
        ExtraRegisterEvent::load_latency(0x01cd),
        ExtraRegisterEvent::frontend(0x01c6, 0x8),
    ];
    ExtraRegisters::checked(TABLE);
}

#[test]
fn numbers() {
    for (index, register) in ExtraRegister::ALL.into_iter().enumerate() {
        assert_eq!(register.index(), index);
        assert_eq!(ExtraRegister::from_index(index), Some(register));
    }
    assert_eq!(ExtraRegister::from_index(ExtraRegister::ALL.len()), None);
}
