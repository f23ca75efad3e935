// SPDX-License-Identifier: GPL-2.0

//! An event's part of a counter that equal events share ([`riders`](crate::driver::riders)).

use crate::logic::pmi::shared_count::{
    Base,
    Total, //
};
use core::sync::atomic::{
    AtomicBool,
    Ordering::Relaxed, //
};

/// An event's part of a shared counter.
#[derive(Default)]
pub(in crate::driver) struct Ride {
    /// The total up to which the event is counted.
    base: Base,
    /// Set if another event owns the counter.
    has_owner: AtomicBool,
}

impl Ride {
    /// Begins to count, from `total` on.
    pub(in crate::driver) fn begin(&self, total: Total) {
        self.base.begin(total);
    }

    /// Returns the total up to which the event is counted.
    pub(in crate::driver) fn base(&self) -> &Base {
        &self.base
    }

    /// Returns whether another event owns the event's counter. Any context; on another CPU than the
    /// event's, this may be the value before the latest change.
    ///
    /// The mmap page has no index then: a task must not read the raw value of a counter that also
    /// counts for others, and the PMI does not update the pages of riders.
    pub(in crate::driver) fn has_owner(&self) -> bool {
        self.has_owner.load(Relaxed)
    }

    /// Records whether another event owns the event's counter. The caller updates the mmap page
    /// afterwards.
    pub(in crate::driver) fn set_has_owner(&self, has_owner: bool) {
        self.has_owner.store(has_owner, Relaxed);
    }
}
