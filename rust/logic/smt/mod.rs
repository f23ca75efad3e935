// SPDX-License-Identifier: GPL-2.0

//! The rules by which the hardware threads of a core share counters and extra registers.
//!
//! ```text
//!  protocol        plan, use, release: the steps of a thread beside its sibling
//!    siblings      the two threads of a core, and the limits of each
//!      right_of_way  the thread that goes first if only one can have the resources it needs
//! ```
//!
//! Also the rules by which the cores of a node share common counters: [`northbridge`].

pub mod northbridge;
pub mod protocol;
pub mod right_of_way;
pub mod siblings;
