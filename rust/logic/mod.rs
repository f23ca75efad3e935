// SPDX-License-Identifier: GPL-2.0

//! The decisions of the driver, as computations on plain values.
//!
//! No kernel types, no `unsafe`, no allocation, nothing but `core`. The driver calls it, gets a plan or a
//! refusal with its reason, and applies that. The same files compile on the host, where `selftests/host`
//! tests them, and in `rpmu-plan`.
//!
//! ```text
//!  perf_event_open   attr ──► event_select / constraint / period      one event
//!                    group ─► assign                                  a group on an idle PMU
//!  add, commit       rotation                                       which groups wait, which go first
//!                    smt ─► cpu_schedule ─► assign                    one CPU's events beside the sibling's
//!                           cpu_schedule ─► register_plan             their extra registers
//!  enable, disable   cpu_schedule ─► shadow                           what to write
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
