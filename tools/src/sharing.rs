// SPDX-License-Identifier: GPL-2.0

//! Sets of events, of which equal ones share a counter.

use crate::logic::model::demand::{
    Demand,
    Key, //
};
use std::collections::HashMap;

/// A key as an index: equal for events that can share a counter, if not both are sampled.
fn index(demand: &Demand) -> Key {
    demand.key.with_samples(false)
}

/// Returns one demand for each counter that the events need: of equal events that can share a
/// counter, only the first one's.
pub fn distinct(events: impl IntoIterator<Item = Demand>) -> Vec<Demand> {
    let mut distinct: Vec<Demand> = Vec::new();
    // The numbers of the demands with each key.
    let mut known: HashMap<Key, Vec<usize>> = HashMap::new();
    for demand in events {
        if demand.key.shares() {
            let known = known.entry(index(&demand)).or_default();
            let equal = known.iter().find(|it| demand.can_ride_on(&distinct[**it]));
            if let Some(equal) = equal {
                let key = &mut distinct[*equal].key;
                *key = key.with_samples(key.samples() || demand.key.samples());
                continue;
            }
            known.push(distinct.len());
        }
        distinct.push(demand);
    }
    distinct
}

/// Removes the keys that no two events of `units` and `others` have in common, and those of events
/// that share no counter. Events that share nothing are then equal if their needs are.
pub fn forget_unique_keys(units: &mut [Vec<Demand>], others: impl IntoIterator<Item = Demand>) {
    let mut number: HashMap<Key, usize> = HashMap::new();
    let all = units.iter().flatten().copied().chain(others);
    for demand in all.filter(|demand| demand.key.shares()) {
        *number.entry(index(&demand)).or_default() += 1;
    }
    for demand in units.iter_mut().flatten() {
        if !demand.key.shares() || number.get(&index(demand)) == Some(&1) {
            demand.key = Key::NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::model::constraint::Constraint;
    use crate::logic::regs::counter::CounterMask;
    use crate::logic::regs::event_select::EventSelect;
    use crate::logic::regs::global::CountsIn;

    fn event(code: u8, samples: bool) -> Demand {
        let select = EventSelect::event(code, 0);
        Demand {
            key: Key::new(select, CountsIn::EVERYWHERE, samples),
            ..Constraint::any_of(CounterMask::first_gp(4)).into()
        }
    }

    #[test]
    fn equal_events_need_one_counter() {
        let number = |events: &[Demand]| distinct(events.iter().copied()).len();
        assert_eq!(number(&[event(0xc4, false); 9]), 1);
        assert_eq!(number(&[event(0xc4, true); 9]), 9);
        let mixed = [
            event(0xc4, false),
            event(0xc4, true),
            event(0xc5, false),
            event(0xc4, false),
            event(0xc4, true),
        ];
        assert_eq!(number(&mixed), 3);
        let without = mixed.map(|demand| Demand {
            key: Key::NONE,
            ..demand
        });
        assert_eq!(number(&without), 5);
    }

    #[test]
    fn only_keys_in_common_stay() {
        let mut units = [
            vec![event(0xc4, false), event(0xc5, false)],
            vec![event(0xc4, true), event(0xc6, false)],
        ];
        forget_unique_keys(&mut units, [event(0xc6, false)]);
        let has_key = |demand: &Demand| demand.key.shares();
        let keys: Vec<bool> = units.iter().flatten().map(has_key).collect();
        assert_eq!(keys, [true, false, true, true]);
    }
}
