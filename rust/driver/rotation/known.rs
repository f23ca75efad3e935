// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU for the groups that rotate on it.

use crate::{logic::rotation::ContextWants, perf::Version};
use kernel::prelude::*;

/// Number of contexts whose demand is cached on a CPU.
pub(super) const KNOWN: usize = 8;

/// The demand of the groups of a context.
pub(super) struct Known {
    pub(super) version: Version,
    pub(super) groups: ContextWants,
}

/// A cache of the demand of groups that rotate on a CPU.
pub(in crate::driver) struct RotationState {
    pub(super) known: KBox<[Option<Known>; KNOWN]>,
    /// The entry to replace next.
    pub(super) next: usize,
}

impl RotationState {
    /// Creates an empty cache. `ENOMEM` without memory.
    pub(in crate::driver) fn new() -> Result<Self> {
        let known = KBox::init(pin_init::init_array_from_fn(|_| None), GFP_KERNEL)?;
        Ok(Self { known, next: 0 })
    }
}
