// SPDX-License-Identifier: GPL-2.0

//! The driver's logic, compiled on the host as the module compiles it.
//!
//! `rust/logic` is taken from its place; its unit tests and the examples in its docs run here, the
//! property tests are in `tests/`. As in the module, `crate::logic` is where it is found.

// The unit tests may use std; what the module compiles may not.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

#[path = "../../../rust/logic/mod.rs"]
pub mod logic;
