// SPDX-License-Identifier: GPL-2.0

//! The state of rotation on a CPU, and its cache of the demand of groups.

use crate::{
    logic::rotation::{
        BroughtForward,
        ContextWants,
        Places, //
    },
    perf_core::Version, //
};
use kernel::prelude::*;

/// Number of contexts, and of control groups, whose demand is cached on a CPU.
pub(super) const KNOWN: usize = 8;

/// The demand of the groups of a context.
pub(super) struct Known {
    pub(super) version: Version,
    /// The control group of a task, for the demand of the groups that can be on the CPU with that
    /// task; [`None`] for the demand of all groups.
    pub(super) cgroup: Option<u64>,
    pub(super) groups: ContextWants,
}

impl Known {
    /// Returns whether this is the demand of the context with `version`, for tasks of `cgroup`.
    pub(super) fn is(&self, version: &Version, cgroup: Option<u64>) -> bool {
        self.version.is_of_same_context(version) && self.cgroup == cgroup
    }
}

/// A cache of the demand of groups that rotate on a CPU.
pub(super) struct Demands {
    /// The demand of all groups of a context.
    pub(super) contexts: KBox<[Option<Known>; KNOWN]>,
    /// The entry that was replaced last.
    pub(super) last_replaced: usize,
    /// The demand of the groups that can be on the CPU with tasks of one control group. Cached
    /// apart, so that many control groups do not displace the demand of whole contexts.
    pub(super) cgroups: KBox<[Option<Known>; KNOWN]>,
    pub(super) places: Places<KNOWN>,
}

impl Demands {
    fn new() -> Result<Self> {
        let nothing = || KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL);
        Ok(Self {
            contexts: nothing()?,
            last_replaced: 0,
            cgroups: nothing()?,
            places: Places::NEW,
        })
    }
}

/// The state of rotation on a CPU.
pub(in crate::driver) struct RotationState {
    pub(super) demands: Demands,
    /// The groups that were brought forward since the last end of an interval.
    pub(in crate::driver) brought_forward: BroughtForward,
    /// Set if groups were placed since the last end of an interval, outside of a rotation, while
    /// the threads of the core contended.
    pub(in crate::driver) placed_within: bool,
    /// The bits of the keys with which groups could ride on counters of others, at the end of the
    /// last interval ([`Wants::rideable`](crate::logic::rotation::Wants::rideable)).
    pub(super) rideable: u64,
    /// Set if a context had a group that wants to be alone, at the end of the last interval.
    pub(super) any_alone: bool,
}

impl RotationState {
    /// Creates the state, with an empty cache. Fails with `ENOMEM`.
    pub(in crate::driver) fn new() -> Result<Self> {
        Ok(Self {
            demands: Demands::new()?,
            brought_forward: BroughtForward::NONE,
            placed_within: false,
            rideable: 0,
            any_alone: false,
        })
    }
}
