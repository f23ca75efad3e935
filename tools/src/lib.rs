// SPDX-License-Identifier: GPL-2.0

//! The library behind `rpmu-plan`, which predicts multiplexing, `rpmu-top`, which shows it live,
//! and `rpmu-check`, which tries rpmu on a real machine.
//!
//! ```text
//!  syntax ─► names, regroup ─► open ─► simulate ─► plan ─► explain, changes, split ─► text, json, svg, html
//!              │               │         │
//!             data           machine   rust/logic: the driver's own decisions
//!
//!  schedule ─► live: the events of a running rpmu, and a plan for them
//!        └───► top: the events that have the counters now
//!
//!  check: the checks of rpmu-check, and its report
//! ```
//!
//! `rust/logic` is compiled in place, from the same files as the module.

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

pub mod changes;
pub mod check;
pub mod data;
pub mod explain;
pub mod lexer;
pub mod live;
pub mod machine;
pub mod names;
pub mod open;
pub mod plan;
pub mod regroup;
pub mod report;
pub mod schedule;
pub mod sharing;
pub mod simulate;
pub mod split;
pub mod svg;
pub mod syntax;
pub mod terms;
pub mod text;
pub mod time;
pub mod top;

// The driver uses items that this crate does not use.
#[allow(dead_code)]
#[path = "../../rust/logic/mod.rs"]
pub mod logic;
