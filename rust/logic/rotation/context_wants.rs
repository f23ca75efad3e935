// SPDX-License-Identifier: GPL-2.0

//! The demand of a context's groups, kept up to date while groups come and go.

use super::{
    GroupWants,
    Wants, //
};

/// Number of changes, or of intervals since an event was removed, after which a context is walked
/// again.
const LONGEST: u64 = 64;

/// The demand of all groups of a context. Includes removed groups for some intervals.
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
    /// Number of intervals since the first removal of an included event; 0 if all are there.
    stale: u64,
}

impl ContextWants {
    /// No group.
    pub const NOTHING: Self = Self {
        wants: Wants::NOTHING,
        stale: 0,
    };

    /// Returns the demand.
    pub const fn wants(&self) -> &Wants {
        &self.wants
    }

    /// Adds a group, which may want to be alone.
    pub fn add(&mut self, group: &GroupWants, alone: bool) {
        if !group.is_empty() {
            self.wants.add(group, alone);
        }
    }

    /// Returns whether that many added or removed events can be followed without a walk.
    pub const fn can_follow(changes: u64) -> bool {
        changes <= LONGEST
    }

    /// Records a change whose new groups were [added](Self::add): whether all of these are `whole`,
    /// that is, none is an older group that has grown, and whether the older events are
    /// `all_there`.
    pub fn changed(&mut self, whole: bool, all_there: bool) {
        // A group that has grown is also included as it was, until the end of the interval.
        if !whole {
            self.stale = LONGEST;
        } else if !all_there {
            self.stale = self.stale.max(1);
        }
    }

    /// Ends an interval. Returns whether the demand is still good; if not, the context is to be
    /// walked again.
    pub fn end_interval(&mut self) -> bool {
        if self.stale != 0 {
            self.stale = self.stale.wrapping_add(1);
        }
        self.stale <= LONGEST
    }
}
