// SPDX-License-Identifier: GPL-2.0

//! What the driver says of itself: who was refused, who failed, who has which counter.

pub(super) mod debugfs;
pub(super) mod failures;
pub(super) mod refusals;
pub(super) mod snapshot;
