// SPDX-License-Identifier: GPL-2.0

//! What the hardware threads of a core owe each other.
//!
//! ```text
//!  protocol      plan, use, release: what a thread does beside its sibling
//!    siblings    the two threads of a core, and what each leaves to the other
//!      usage         what a thread uses
//!      right_of_way  which of them goes first where not both can have what they need
//! ```

pub mod protocol;
pub mod right_of_way;
pub mod siblings;
pub mod usage;
