// SPDX-License-Identifier: GPL-2.0

//! Checks of new events: from a `perf_event_attr` to a configured event or a refusal.

mod amd;
pub mod attr;
pub mod cache_event;
mod extensions;
pub mod group;
pub mod precise;
pub mod refusal;
pub mod topdown;
