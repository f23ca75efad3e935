// SPDX-License-Identifier: GPL-2.0

//! What only AMD's processors have, and Hygon's.

pub mod lbr;
pub mod perfmon;
pub mod virt;
