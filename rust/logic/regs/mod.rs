// SPDX-License-Identifier: GPL-2.0

//! The counters, their registers, and the values that these have to hold.
//!
//! PMUs differ in how counters are switched on and off. [`global`] is for those with one register
//! that has a bit per counter: Intel's from version 2 of architectural performance monitoring on,
//! AMD's from PerfMonV2 on. [`per_counter`] is for those with an enable bit in each event select
//! instead, AMD's before. [`shadow`] serves both kinds: for the latter, the driver takes the value
//! of GLOBAL_CTRL for what `per_counter` has to do.

pub mod counter;
pub mod dirty;
pub mod event_select;
pub mod extra_register;
pub mod global;
pub mod metrics;
pub mod per_counter;
pub mod period;
pub mod register;
pub mod shadow;
