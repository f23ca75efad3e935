// SPDX-License-Identifier: GPL-2.0

//! The counters, their registers and the registers' values.
//!
//! PMUs differ in how counters are enabled. [`global`] is for PMUs with one register that has a bit
//! per counter: Intel's from version 2 of architectural performance monitoring on, AMD's from
//! PerfMonV2 on. [`per_counter`] is for PMUs that only have an enable bit in each event select:
//! AMD's before PerfMonV2. [`shadow`] serves both kinds: on PMUs without such a register, the
//! driver passes the register's value to `per_counter`, which enables these counters.

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
