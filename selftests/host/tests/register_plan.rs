// SPDX-License-Identifier: GPL-2.0

//! Tests extra registers against a complete search: every small set of events in every order, with
//! all previous registers of the events and all values that the core's other thread may hold.

use rpmu_logic::logic::model::demand::Requirement;
use rpmu_logic::logic::regs::extra_register::ExtraRegister;
use rpmu_logic::logic::sched::register_plan::{
    plan,
    RegisterValues, //
};

use ExtraRegister::{
    LoadLatency,
    OffcoreResponse0,
    OffcoreResponse1, //
};

/// The requirement of an event and its current register.
type Event = (Requirement, Option<ExtraRegister>);

const OFFCORE: [ExtraRegister; 2] = [OffcoreResponse0, OffcoreResponse1];

fn requirement(register: ExtraRegister, value: u64, choice: bool) -> Requirement {
    Requirement {
        value,
        register,
        alternative: OFFCORE
            .into_iter()
            .find(|other| choice && *other != register),
    }
}

/// Returns all kinds of events: offcore responses with three values, with and without a choice, and
/// load latencies with two; each without a register and with each of its registers.
fn events() -> Vec<Event> {
    let mut requirements = Vec::new();
    for value in 1..=3 {
        for register in OFFCORE {
            for choice in [false, true] {
                requirements.push(requirement(register, value, choice));
            }
        }
    }
    requirements.extend([1, 2].map(|value| requirement(LoadLatency, value, false)));
    let mut events = Vec::new();
    for required in requirements {
        events.push((required, None));
        events.extend(required.registers().map(|now| (required, Some(now))));
    }
    events
}

/// Returns all values that the sibling may hold.
fn held() -> Vec<RegisterValues> {
    let mut all = Vec::new();
    for first in [None, Some(1), Some(2)] {
        for second in [None, Some(1), Some(3)] {
            let mut values = RegisterValues::NONE;
            for (register, value) in OFFCORE.into_iter().zip([first, second]) {
                if let Some(value) = value {
                    values.place(register, value).unwrap();
                }
            }
            all.push(values);
        }
    }
    all
}

/// Returns whether the events fit, by a complete search.
fn fits(events: &[Event], values: RegisterValues) -> bool {
    let Some(((required, _), rest)) = events.split_first() else {
        return true;
    };
    required.registers().any(|register| {
        let mut values = values;
        values.place(register, required.value).is_ok() && fits(rest, values)
    })
}

/// Checks the plan for these events in this order. Returns whether they fit.
fn check(events: &[Event], held: RegisterValues) -> bool {
    let Ok(values) = plan(events.iter().copied(), held) else {
        assert!(!fits(events, held), "refused: {events:?} beside {held:?}");
        return false;
    };
    for (required, _) in events {
        assert!(values.find(*required).is_some(), "{events:?}: {values:?}");
    }
    for register in ExtraRegister::ALL {
        if let Some(value) = held.get(register) {
            assert_eq!(values.get(register), Some(value), "taken from the sibling");
        }
    }
    true
}

#[test]
fn every_small_list_of_events() {
    let (events, held) = (events(), held());
    let (mut planned, mut refused) = (0u32, 0u32);
    // Lists, so that every set occurs in every order.
    let mut lists: Vec<Vec<Event>> = vec![Vec::new()];
    for length in 0..=3 {
        for list in &lists {
            for values in &held {
                match check(list, *values) {
                    true => planned += 1,
                    false => refused += 1,
                }
            }
        }
        if length < 3 {
            lists = lists
                .iter()
                .flat_map(|list| events.iter().map(|event| [&list[..], &[*event]].concat()))
                .collect();
        }
    }
    println!("{planned} lists of events planned, {refused} refused, as by a complete search");
    assert!(planned > 100_000 && refused > 100_000);
}

#[test]
fn random_lists_of_events() {
    let (events, held) = (events(), held());
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut planned = 0;
    for _ in 0..200_000 {
        let few = 1 + random(6);
        let kinds: Vec<Event> = (0..few).map(|_| events[random(events.len())]).collect();
        let list: Vec<Event> = (0..8).map(|_| kinds[random(few)]).collect();
        planned += u32::from(check(&list, held[random(held.len())]));
    }
    assert!(planned > 1000);
}

/// Events that have the registers of a plan keep them when they are planned again.
#[test]
fn a_plan_is_kept() {
    let events = events();
    for first in &events {
        for second in &events {
            let both = [*first, *second];
            let Ok(values) = plan(both.into_iter(), RegisterValues::NONE) else {
                continue;
            };
            let again = both.map(|(required, _)| (required, values.find(required)));
            for order in [again, [again[1], again[0]]] {
                assert_eq!(plan(order.into_iter(), RegisterValues::NONE), Ok(values));
            }
        }
    }
}

/// Returns whether mainline accepts the events in this order: each event uses its own register if
/// that is free or has the value, otherwise the other one (`__intel_shared_reg_get_constraints()`,
/// `arch/x86/events/intel/core.c`).
fn mainline_fits(events: &[Requirement]) -> bool {
    let mut values = RegisterValues::NONE;
    events.iter().all(|required| {
        let mut registers = required.registers();
        registers.any(|register| values.place(register, required.value).is_ok())
    })
}

fn orders<T: Copy>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, first) in items.iter().enumerate() {
        let rest = [&items[..i], &items[i + 1..]].concat();
        all.extend(
            orders(&rest)
                .into_iter()
                .map(|rest| [&[*first], &rest[..]].concat()),
        );
    }
    all
}

#[test]
fn a_set_that_mainline_refuses_in_some_orders() {
    let set = [
        requirement(OffcoreResponse1, 0x20, true),
        requirement(OffcoreResponse0, 0x20, true),
        requirement(OffcoreResponse0, 0x10, true),
        requirement(OffcoreResponse1, 0x10, true),
    ];
    let orders = orders(&set);
    let refused = orders.iter().filter(|order| !mainline_fits(order)).count();
    println!("mainline refuses {refused} of {} orders", orders.len());
    assert_eq!((orders.len(), refused), (24, 8));
    for order in orders {
        let wanted: Vec<Event> = order.iter().map(|required| (*required, None)).collect();
        assert!(check(&wanted, RegisterValues::NONE));
    }
}
