// SPDX-License-Identifier: GPL-2.0

//! Reports in debugfs: refused events, events that got no counter, the holders of the counters, and
//! the users with open events.

pub(super) mod debugfs;
pub(super) mod failures;
pub(super) mod refusals;
pub(super) mod snapshot;
pub(super) mod users;
