// SPDX-License-Identifier: GPL-2.0

//! Why is there multiplexing? What `rpmu-plan` is made of.
//!
//! ```text
//!  syntax ─► names ─► open ─► simulate ─► plan ─► explain, changes, split ─► text, json, svg, html
//!              │       │         │
//!             data   machine   rust/logic: the driver's own decisions
//!
//!  live: the events of a running rpmu, and a plan for them
//! ```
//!
//! `rust/logic` is compiled from its place, as the module compiles it.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

pub mod changes;
pub mod data;
pub mod explain;
pub mod live;
pub mod machine;
pub mod names;
pub mod open;
pub mod plan;
pub mod report;
pub mod simulate;
pub mod split;
pub mod svg;
pub mod syntax;
pub mod text;

// The driver uses all of it, this does not.
#[allow(dead_code)]
#[path = "../../rust/logic/mod.rs"]
pub mod logic;
