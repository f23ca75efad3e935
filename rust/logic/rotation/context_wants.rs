// SPDX-License-Identifier: GPL-2.0

//! The demand of a context's groups, kept up to date while groups are added and removed.

use super::{
    GroupWants,
    Wants, //
};
use crate::logic::model::demand::Key;

/// The largest number of changes, and of intervals since an event was removed, before a context is
/// walked again.
const LONGEST: u64 = 64;

/// Number of words for the numbers of keys: keys of a hundred events mostly have different numbers.
const SEEN: usize = 16;

/// The demand of all groups of a context. Removed groups stay included for some intervals.
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
/// context.add(&group, false);
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
    /// Number of intervals since the first removal of an included event; 0 if none was removed.
    stale: u64,
}

impl ContextWants {
    /// No group.
    pub const NOTHING: Self = Self {
        wants: Wants::NOTHING,
        seen: [0; SEEN],
        stale: 0,
    };

    /// Returns the demand.
    pub const fn wants(&self) -> &Wants {
        &self.wants
    }

    /// Adds a group. `alone` is set if it wants to be alone.
    pub fn add(&mut self, group: &GroupWants, alone: bool) {
        if !group.is_empty() {
            self.wants.add(group, alone);
        }
    }

    /// Adds the `key` of an event of an added group. Equal events of one
    /// group count as events of two groups; then a search for groups that can ride may be in vain.
    pub fn add_key(&mut self, key: Key) {
        if key == Key::NONE {
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
