// SPDX-License-Identifier: GPL-2.0

//! The facts that `rpmu-top` shows: which events have the counters, which wait, and why.
//!
//! ```text
//!  readings ─► facts ─► table (text), json, metrics
//!                 └───► screen ─► draw
//! ```

pub mod draw;
pub mod facts;
pub mod metrics;
pub mod readings;
pub mod screen;
pub mod table;
