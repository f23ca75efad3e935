// SPDX-License-Identifier: GPL-2.0

//! What `rpmu-top` shows: who has the counters, who waits, and why.
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
