// SPDX-License-Identifier: GPL-2.0

//! The driver's logic, compiled on the host as the module compiles it.
//!
//! Compiles `rust/logic` in place, as `crate::logic`, and runs its unit tests and the examples in
//! its docs. The property tests are in `tests/`.

// Only the unit tests may use std.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

#[path = "../../../rust/logic/mod.rs"]
pub mod logic;

/// The kernel's description of its types, which `rust/kern` reads.
#[path = "../../../rust/kern/btf.rs"]
pub mod btf;
