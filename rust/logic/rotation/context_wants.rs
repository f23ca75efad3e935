// SPDX-License-Identifier: GPL-2.0

//! What the groups of a context want, kept while groups come and go.

use super::{GroupWants, Wants};

/// After so many changes, or so many intervals since an event has gone, a context is looked at anew.
const LONGEST: u64 = 64;

/// What the groups of a context want, all together. Groups that have gone may still be in it, for some
/// intervals.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::CounterMask;
/// use logic::rotation::{ContextWants, GroupWants};
/// use logic::sched::constraint::Constraint;
///
/// let mut group = GroupWants::default();
/// group.add(Constraint::any_of(CounterMask::first_gp(4)));
///
/// let mut context = ContextWants::NOTHING;
/// context.add(&group, false);
/// assert!(context.end_interval());
///
/// // An event has gone. What it has wanted is forgotten when the context is looked at anew.
/// context.changed(true, false);
/// let intervals = (0..1000).take_while(|_| context.end_interval()).count();
/// assert!(intervals > 10 && intervals < 100);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ContextWants {
    wants: Wants,
    /// Intervals since events have gone that are still in there; 0 if there are none.
    stale: u64,
}

impl ContextWants {
    /// No group yet.
    pub const NOTHING: Self = Self {
        wants: Wants::NOTHING,
        stale: 0,
    };

    /// What the groups want.
    pub const fn wants(&self) -> &Wants {
        &self.wants
    }

    /// Adds a group, which may want to be alone.
    pub fn add(&mut self, group: &GroupWants, alone: bool) {
        if !group.is_empty() {
            self.wants.add(group, alone);
        }
    }

    /// Whether so many events that have come or gone can be followed.
    pub const fn can_follow(changes: u64) -> bool {
        changes <= LONGEST
    }

    /// Groups have come, which are [added](Self::add): `whole` ones alone, or events to older groups as
    /// well; and whether the older ones are `all_there`.
    pub fn changed(&mut self, whole: bool, all_there: bool) {
        // A group that has grown is in there as what it was, too: until the interval is over.
        if !whole {
            self.stale = LONGEST;
        } else if !all_there {
            self.stale = self.stale.max(1);
        }
    }

    /// An interval is over. Returns whether this holds further on; if not, the context is to be looked at
    /// anew.
    pub fn end_interval(&mut self) -> bool {
        if self.stale != 0 {
            self.stale = self.stale.wrapping_add(1);
        }
        self.stale <= LONGEST
    }
}
