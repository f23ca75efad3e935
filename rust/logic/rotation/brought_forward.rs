// SPDX-License-Identifier: GPL-2.0

//! Groups that were brought forward in front of refused ones, and can be put off for them.

/// The groups of a CPU that [`look_ahead`](super::look_ahead()) has brought forward in this
/// interval.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::BroughtForward;
///
/// let mut groups = BroughtForward::NONE;
/// assert!(groups.may_keep_places());
/// for is_first in [true, false, true] {
///     groups.record();
///     assert_eq!(groups.may_keep_places(), is_first);
///     groups.take();
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroughtForward {
    /// Set if there are groups that were brought forward and not put off since.
    pub any: bool,
    /// Set if the last [`may_keep_places`](Self::may_keep_places) has put off such groups.
    pub put_off: bool,
}

impl BroughtForward {
    /// No group.
    pub const NONE: Self = Self {
        any: false,
        put_off: false,
    };

    /// Records that a group was brought forward.
    pub fn record(&mut self) {
        self.any = true;
    }

    /// Returns whether there are groups that were brought forward and not put off since, and
    /// forgets them: an interval ends.
    pub fn take(&mut self) -> bool {
        core::mem::take(&mut self.any)
    }

    /// Returns whether refused groups, for which this thread has the right of way, may keep their
    /// places before the groups that were placed instead of them. Groups that were brought forward
    /// are put off only every other time: otherwise they would wait for ever if the sibling cannot
    /// make way.
    pub fn may_keep_places(&mut self) -> bool {
        self.put_off = self.any && !self.put_off;
        let may = self.put_off || !self.any;
        self.any &= !may;
        may
    }
}
