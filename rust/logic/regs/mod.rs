// SPDX-License-Identifier: GPL-2.0

//! The counters, their registers, and what has to be written to them.

pub mod counter;
pub mod dirty;
pub mod event_select;
pub mod period;
pub mod shadow;
