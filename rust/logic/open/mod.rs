// SPDX-License-Identifier: GPL-2.0

//! Checks of new events: from a `perf_event_attr` to a configured event or a refusal.

mod amd;
pub mod attr;
mod extensions;
pub mod precise;
pub mod topdown;
