// SPDX-License-Identifier: GPL-2.0

//! From a `perf_event_attr` to a configured event, or to the reason why there is none.

pub mod attr;
pub mod cache_event;
pub mod group;
pub mod refusal;
pub mod topdown;
