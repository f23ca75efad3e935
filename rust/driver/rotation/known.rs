// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU for the groups that rotate on it.

use crate::{
    logic::rotation::{
        ContextWants,
        Places, //
    },
    perf_core::Version, //
};
use kernel::prelude::*;

/// Number of contexts whose demand is cached on a CPU, and of control groups.
pub(super) const KNOWN: usize = 8;

/// The demand of the groups of a context.
pub(super) struct Known {
    pub(super) version: Version,
    /// The control group of the tasks beside which it is the demand; [`None`] if it is that of all
    /// groups.
    pub(super) cgroup: Option<u64>,
    pub(super) groups: ContextWants,
}

impl Known {
    /// Returns whether this is the demand of that context, and for tasks of that control group.
    pub(super) fn is(&self, version: &Version, cgroup: Option<u64>) -> bool {
        self.version.is_of_same_context(version) && self.cgroup == cgroup
    }
}

/// A cache of the demand of groups that rotate on a CPU.
pub(super) struct Demands {
    /// The demand of all groups of a context.
    pub(super) contexts: KBox<[Option<Known>; KNOWN]>,
    /// The entry to replace next.
    pub(super) next: usize,
    /// The demand of the groups beside tasks of one control group. Apart from the others: many
    /// control groups leave these in place.
    pub(super) cgroups: KBox<[Option<Known>; KNOWN]>,
    pub(super) places: Places<KNOWN>,
}

impl Demands {
    fn new() -> Result<Self> {
        let nothing = || KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL);
        Ok(Self {
            contexts: nothing()?,
            next: 0,
            cgroups: nothing()?,
            places: Places::NEW,
        })
    }
}

/// The state of rotation on a CPU.
pub(in crate::driver) struct RotationState {
    pub(super) demands: Demands,
    /// Set if a group was brought forward since an interval has ended.
    pub(super) brought_forward: bool,
    /// Set if groups were placed within this interval, while the threads of the core contended.
    pub(in crate::driver) placed_within: bool,
    /// Set if that was put off because of the right of way.
    put_off: bool,
    /// Set if a group that waited at the end of the last interval, or one of its context, wants to
    /// be alone.
    pub(super) any_alone: bool,
}

impl RotationState {
    /// Creates the state, with an empty cache. `ENOMEM` without memory.
    pub(in crate::driver) fn new() -> Result<Self> {
        Ok(Self {
            demands: Demands::new()?,
            brought_forward: false,
            placed_within: false,
            put_off: false,
            any_alone: false,
        })
    }

    /// Returns whether groups may stay behind refused ones, for which this thread has the right of
    /// way. Not every time, if groups were brought forward: they would wait for good if the sibling
    /// cannot make way.
    pub(in crate::driver) fn may_put_off(&mut self) -> bool {
        self.put_off = self.brought_forward && !self.put_off;
        let may = self.put_off || !self.brought_forward;
        self.brought_forward &= !may;
        may
    }
}
