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
//! Most of it runs with interrupts off, some of it ([`regs::period`], [`regs::counter`]) in NMI context too:
//! nothing panics, loops have fixed bounds, and arithmetic that may wrap says so.

pub mod capabilities;
pub mod model;
pub mod nospec;
pub mod open;
pub mod pmu;
pub mod regs;
pub mod rotation;
pub mod sample;
pub mod sched;
pub mod smt;
