// SPDX-License-Identifier: GPL-2.0

//! Hardware model of an Intel core PMU (architectural performance monitoring), one instance per
//! logical CPU.
//!
//! QEMU opens this crate as a shared object ([`ffi`], `qemu/vpmu.h`), tells it what a CPU
//! retired and passes on its accesses to PMU registers. Sources: Intel SDM vol. 3 chapter 20
//! (performance monitoring) and vol. 4 (MSRs); which event counts on which counter is converted
//! from Intel's event lists by `build.rs`.
//!
//! ```text
//!   ffi ── pmu ──┬── msr         which registers there are, their reserved bits
//!                ├── counter     48-bit counters, rates
//!                ├── event       what an event select counts
//!                ├── shared      what the threads of a core tell each other
//!                ├── defect      what the hardware gets wrong
//!                ├── accounting  who accessed what, how often
//!                └── model       what differs between CPUs
//! ```

pub mod accounting;
pub mod counter;
pub mod defect;
pub mod event;
pub mod ffi;
pub mod model;
pub mod order;
pub mod pmu;
pub mod retired;
pub mod select;
pub mod share;
pub mod shared;

/// An access to a register that the hardware answers with #GP(0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;
