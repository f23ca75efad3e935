// SPDX-License-Identifier: GPL-2.0

//! The demand of a context's groups, kept up to date while groups are added and removed.

use super::{
    GroupWants,
    Wants, //
};
use crate::logic::model::demand::{
    Demand,
    Key, //
};

/// The largest number of changes, and of intervals since an event was removed, before a context is
/// walked again.
const LONGEST: u64 = 64;

/// Number of words for the numbers of keys: keys of a hundred events mostly have different numbers.
const SEEN: usize = 16;

/// Maximum number of different events whose copies are recognized.
const EVENTS: usize = 32;

/// The demand of all groups of a context, or of those that can be on the CPU together with its
/// current task. Removed groups stay included for some intervals.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::CounterMask;
/// use logic::rotation::{ContextWants, GroupWants};
/// use logic::model::constraint::Constraint;
///
/// let mut group = GroupWants::default();
/// group.add(Constraint::any_of(CounterMask::first_gp(4)));
///
/// let mut context = ContextWants::NOTHING;
/// context.add(&group, false, false);
/// assert!(context.end_interval());
///
/// // An event was removed. Its demand is forgotten when the context is walked again.
/// context.changed(true, false);
/// let intervals = (0..1000).take_while(|_| context.end_interval()).count();
/// assert!(intervals > 10 && intervals < 100);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ContextWants {
    wants: Wants,
    /// The numbers of the keys of the groups' events ([`Key::number`]), as a set.
    seen: [u64; SEEN],
    /// The [fingerprints](Demand::fingerprint) of the first events that can share counters.
    events: [u64; EVENTS],
    /// 1 plus the number of intervals since the first removal of an included event; 0 if none was
    /// removed; at least [`LONGEST`] after a group has grown.
    stale: u64,
}

impl ContextWants {
    /// No group.
    pub const NOTHING: Self = Self {
        wants: Wants::NOTHING,
        seen: [0; SEEN],
        events: [0; EVENTS],
        stale: 0,
    };

    /// Returns the demand.
    pub const fn wants(&self) -> &Wants {
        &self.wants
    }

    /// Adds a group. `alone` is set if it wants to be alone, `copy` if all of its events are
    /// [equal](Self::add_event) to events of other groups.
    pub fn add(&mut self, group: &GroupWants, alone: bool, copy: bool) {
        match copy {
            _ if group.is_empty() => {}
            true => self.wants.add_copy(group, alone),
            false => self.wants.add(group, alone),
        }
    }

    /// Adds the key of an event with this `demand`, before its group is [added](Self::add). Returns
    /// whether an equal event was added before; `false` also for a sampled event, for one that
    /// shares no counter, and if there are too many different events to know.
    ///
    /// Equal events of one group count as events of two groups; then a search for groups that can
    /// ride may be in vain.
    pub fn add_event(&mut self, demand: &Demand) -> bool {
        self.add_key(demand.key);
        let new = demand.fingerprint();
        if new == 0 {
            return false;
        }
        // Free places are 0.
        let place = self.events.iter_mut().find(|it| **it == new || **it == 0);
        place.is_some_and(|place| core::mem::replace(place, new) == new)
    }

    fn add_key(&mut self, key: Key) {
        if !key.shares() {
            return;
        }
        let number = key.number(SEEN * 64);
        // The mask only avoids a bounds check. CAST: less than 64.
        let word = &mut self.seen[(number / 64) & (SEEN - 1)];
        let bit = 1u64.wrapping_shl((number % 64) as u32);
        let again = *word & bit != 0;
        *word |= bit;
        self.wants.add_key(key, again);
    }

    /// Returns whether `changes`, a number of added or removed events, can be followed without a
    /// walk.
    pub const fn can_follow(changes: u64) -> bool {
        changes <= LONGEST
    }

    /// Records a change, after its new groups were [added](Self::add). `whole` is set if all of
    /// these are new, and none is an older group that has grown; `all_there` is set if no older
    /// event was removed.
    pub fn changed(&mut self, whole: bool, all_there: bool) {
        // A group that has grown is included twice, as it was and as it is, until the end of the
        // interval.
        if !whole {
            self.stale = LONGEST;
        } else if !all_there {
            self.stale = self.stale.max(1);
        }
    }

    /// Ends an interval. Returns whether the demand is still valid; otherwise the context must be
    /// walked again.
    pub fn end_interval(&mut self) -> bool {
        if self.stale != 0 {
            self.stale = self.stale.wrapping_add(1);
        }
        self.stale <= LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        model::constraint::Constraint,
        regs::{
            counter::CounterMask,
            event_select::EventSelect,
            global::CountsIn, //
        },
    };

    fn event(code: u8, samples: bool) -> Demand {
        Demand {
            key: Key::new(EventSelect::event(code, 0), CountsIn::EVERYWHERE, samples),
            ..Constraint {
                corrupting: true,
                ..Constraint::any_of(CounterMask::first_gp(4))
            }
            .into()
        }
    }

    fn contend(groups: &[&[Demand]]) -> bool {
        let mut context = ContextWants::NOTHING;
        for events in groups {
            let mut group = GroupWants::default();
            let mut copy = true;
            for event in *events {
                group.add(event.constraint);
                copy &= context.add_event(event);
            }
            context.add(&group, false, copy);
        }
        context.wants().contend_for(CounterMask::first_gp(4))
    }

    #[test]
    fn copies_do_not_contend() {
        let (one, other, sampled) = (event(0xd0, false), event(0xd1, false), event(0xd0, true));
        let unshared = Demand {
            key: Key::NONE,
            ..one
        };
        assert!(
            !contend(&[&[one], &[one], &[one]]) && !contend(&[&[one, other], &[other], &[one]])
        );
        assert!(contend(&[&[one], &[other]]) && contend(&[&[unshared], &[unshared]]));
        // Two sampled events have a counter each.
        assert!(contend(&[&[sampled], &[sampled]]));
        // A group with another event is no copy.
        assert!(contend(&[&[one], &[one, other]]));
    }

    #[test]
    fn many_different_events_contend() {
        let mut context = ContextWants::NOTHING;
        let events = (0..=255).map(|code| event(code, false));
        let again = events
            .map(|it| context.add_event(&it))
            .filter(|again| *again);
        assert_eq!(again.count(), 0);
        // Copies of the first ones are recognized, and no others.
        let events = (0..=255).map(|code| event(code, false));
        let again = events
            .map(|it| context.add_event(&it))
            .filter(|again| *again);
        assert_eq!(again.count(), EVENTS);
    }
}
