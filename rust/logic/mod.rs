// SPDX-License-Identifier: GPL-2.0

//! The driver's decisions as pure computations.
//!
//! They use no kernel types, no `unsafe`, no allocation and no crate but `core`. The driver passes
//! values, gets a plan or a refusal with its reason, and applies it. `rpmu-plan` and the host tests
//! in `selftests/host` compile the same files.
//!
//! ```text
//!  At load
//!  cores          the types of cores, each with its PMU
//!  tried          the kernel versions that features were tried on
//!  capabilities   CPUID: the counters and features of the PMU
//!  model          the processor model: constraints, extra registers, generic events, errata
//!  pmu            the model and the capabilities of this machine: the constraint of an event
//!
//!  perf_event_open()
//!  open           the checks of attributes ──► event select, period, or a refusal
//!    nospec       array indices from user space
//!    refusal      the reasons why events are refused, or fail to get a counter
//!
//!  add, del, txn
//!  rotation       the order of groups that share counters over time
//!  smt            the counters and registers that the core's other thread leaves
//!  sched          the counter and the extra register of each event of a CPU
//!
//!  enable, disable, PMI
//!  regs           event selects, periods, and the register writes that program a schedule
//!  pmi            the state that callbacks share with the PMI
//!  breaker        the signs of a PMU that does not work
//!  sample         records of precise events (PEBS) and of branches (LBR)
//!
//!  mmap()
//!  user_read      the events whose counters their users read with RDPMC
//! ```
//!
//! `Documentation/architecture.md` lists the modules in an order in which each imports only from
//! those below it.
//!
//! The functions for loading, `perf_event_open()` and `mmap()` run in process context, most others
//! with interrupts off; some, such as those of [`pmi`] and [`regs::period`], also run in NMI
//! context. Only the constructors and checks of the models' tables can panic, all loops are
//! bounded, and arithmetic that may wrap is marked as wrapping.

#![forbid(unsafe_code)]

pub mod breaker;
pub mod capabilities;
pub mod cores;
pub mod model;
pub mod nospec;
pub mod open;
pub mod pmi;
pub mod pmu;
pub mod refusal;
pub mod regs;
pub mod rotation;
pub mod sample;
pub mod sched;
pub mod smt;
pub mod tried;
pub mod user_read;
