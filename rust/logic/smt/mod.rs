// SPDX-License-Identifier: GPL-2.0

//! What the hardware threads of a core owe each other.

pub mod claim;
pub mod right_of_way;
