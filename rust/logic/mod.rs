// SPDX-License-Identifier: GPL-2.0

//! What is decided, never how it is done.
//!
//! Everything in here is a computation on plain values: no kernel types, no `unsafe`, no
//! allocation, nothing but `core`. The driver asks, gets a plan or a refusal with its reason, and
//! applies it. The same files compile on the host, where `selftests/host` tests them.
//!
//! ```text
//!  perf_event_open   attr ──► event_select / constraint / period      one event
//!                    group ─► assign                                  a group on an idle PMU
//!  add, commit       limits ─► roster ─► assign ─► claim              one CPU's events
//!                              roster ─► register_plan                their extra registers
//!  enable, disable   roster ─► registers                              what to write
//! ```
//!
//! Most of it runs with interrupts off, some of it ([`period`], [`counter`]) in NMI context too:
//! nothing panics, loops have fixed bounds, and arithmetic that may wrap says so.

pub mod assign;
pub mod attr;
pub mod cache_event;
pub mod capabilities;
pub mod claim;
pub mod constraint;
pub mod counter;
pub mod dirty;
pub mod event_select;
pub mod exception;
pub mod explanation;
pub mod extra_register;
pub mod group;
pub mod limits;
pub mod model;
pub mod nospec;
pub mod pebs;
pub mod period;
pub mod pmu;
pub mod refusal;
pub mod register_plan;
pub mod registers;
pub mod right_of_way;
pub mod roster;
pub mod topdown;
pub mod turns;
