// SPDX-License-Identifier: GPL-2.0

//! Hardware model of a core PMU, one instance per logical CPU.
//!
//! QEMU loads this crate as a shared object (`ffi`, `qemu/vpmu.h`), reports what each CPU retires
//! and passes on accesses to PMU registers. Sources: Intel SDM vol. 3 chapter 20 (performance
//! monitoring) and vol. 4 (MSRs); AMD APM vol. 2 chapter 13, and the BKDG or PPR of each family;
//! `build/` converts the vendors' event lists.
//!
//! ```text
//!   ffi ── pmu ──┬── profile
//!                ├── select ──┬── model ──┬── event ── share ── retired
//!                │            │           └── defect
//!                ├── counter ─┴── share
//!                ├── shared, accounting, inject
//! ```
//!
//! `model`, `event` and `defect` are data about the hardware. `select`, `share` and `counter`
//! determine the counts. `pmu` is the PMU that software sees, `shared` the state that the threads
//! of a core or the cores of a node share.
//!
//! Where things go:
//!
//! | New code | Place |
//! |---|---|
//! | another CPU model | a constant in `model/intel/` or `model/amd/`, a line in the lists of `build/main.rs` |
//! | another vendor's models | as for AMD: an arm of `Vendor` in `model/spec.rs`, and directories of that name in `model/`, `event/`, `select/` and `pmu/` |
//! | a register | `pmu/msr.rs` or `pmu/amd/msr.rs` (number), `pmu/reserved.rs` (bits), `pmu/access.rs` (effect) |
//! | a feature with its own state, such as LBR (`pmu/lbr.rs`) | a file in `pmu/` |
//! | a processor with several types of cores | a `Hybrid` in `model/intel/`; each logical CPU has the model of its core |
//! | what a hypervisor leaves of a PMU | a constant in `profile.rs`, its effect in `pmu/` |
//! | a defect | a field in `defect.rs`, and its effect in `pmu/` |

mod accounting;
pub mod branch;
mod counter;
pub mod defect;
mod event;
#[allow(unsafe_code)]
mod ffi;
pub mod inject;
pub mod model;
pub mod pmu;
pub mod profile;
pub mod retired;
pub mod sample;
mod select;
mod share;
pub mod shared;

/// The answer of the hardware to an access that it rejects: #GP(0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;
