// SPDX-License-Identifier: GPL-2.0

//! What reaches into private parts of the perf core: structures that no driver is meant to know, and
//! functions that modules cannot link to.
//!
//! This has no place in the kernel proper, where the perf core itself would be changed. The rest of
//! [`perf`](crate::perf) is written as if it were to go upstream.

pub(super) mod disable_watch;
pub(super) mod foreign;
pub(super) mod inactive;
pub(super) mod pinned;
pub(super) mod resched;
pub(super) mod rotation;
pub(super) mod symbols;
pub(super) mod turns;
