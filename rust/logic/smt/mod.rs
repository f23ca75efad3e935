// SPDX-License-Identifier: GPL-2.0

//! The agreement between the hardware threads of a core on counters and extra registers.
//!
//! ```text
//!  protocol        plan, use, release: the steps of a thread beside its sibling
//!    siblings      the two threads of a core, and the limits of each
//!      right_of_way  the thread that goes first where not both can have what they need
//! ```
//!
//! And the agreement between the cores of a node on counters that they have in common:
//! [`northbridge`].

pub mod northbridge;
pub mod protocol;
pub mod right_of_way;
pub mod siblings;
