// SPDX-License-Identifier: GPL-2.0

//! The counters, their registers, and what has to be written to them.
//!
//! PMUs differ in how counters are switched on and off. [`global`] is for those with one register
//! that has a bit per counter (Intel from version 2 of architectural performance monitoring on, AMD
//! from PerfMonV2 on). One that has an enable bit in each event select instead (AMD before) belongs
//! beside it; [`shadow`] keeps what both have in common.

pub mod counter;
pub mod dirty;
pub mod event_select;
mod global;
pub mod period;
pub mod register;
pub mod shadow;
