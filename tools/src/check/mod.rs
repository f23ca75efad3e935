// SPDX-License-Identifier: GPL-2.0

//! The library behind `rpmu-check`, which tries rpmu on a real machine: the checks, and all
//! decisions about their results. The program itself runs commands and writes files.
//!
//! ```text
//!  checks ─► (the program runs them on both drivers) ─► tap ─► compare ─► report ─► text, json, html
//!                                                               private ──┘
//!  facts: the machine; advice: the driver's messages in other words
//! ```

pub mod advice;
pub mod checks;
pub mod compare;
pub mod facts;
pub mod html;
pub mod private;
pub mod report;
pub mod tap;
