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
mod msr;
pub mod order;
pub mod pmu;
pub mod select;
pub mod shared;

/// An access to a register that the hardware answers with #GP(0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

/// What a CPU retires and does; the indices of [`Retired`]. Mirrors `enum vpmu_retired`.
pub mod retired {
    /// Instructions.
    pub const INSTRUCTIONS: usize = 0;
    /// Instructions that read memory.
    pub const LOADS: usize = 1;
    /// Instructions that write memory. One that does both is in both counts.
    pub const STORES: usize = 2;
    /// Instructions that prefetch, which read nothing.
    pub const PREFETCHES: usize = 3;
    /// Conditional branches that were taken.
    pub const TAKEN: usize = 4;
    /// Conditional branches that were not.
    pub const NOT_TAKEN: usize = 5;
    /// Near direct jumps.
    pub const JUMP: usize = 6;
    /// Near indirect jumps.
    pub const JUMP_INDIRECT: usize = 7;
    /// Near direct calls.
    pub const CALL: usize = 8;
    /// Near indirect calls.
    pub const CALL_INDIRECT: usize = 9;
    /// Near returns.
    pub const RETURN: usize = 10;
    /// Far branches.
    pub const FAR: usize = 11;
    /// Page walks for loads.
    pub const WALK_LOAD: usize = 12;
    /// Page walks for stores.
    pub const WALK_STORE: usize = 13;
    /// Page walks for instructions.
    pub const WALK_FETCH: usize = 14;
    /// Number of counts.
    pub const COUNTS: usize = 15;
}

/// Counts of what was retired.
pub type Retired = [i64; retired::COUNTS];
