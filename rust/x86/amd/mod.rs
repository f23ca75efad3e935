// SPDX-License-Identifier: GPL-2.0

//! Registers and features that only AMD's and Hygon's processors have.

pub mod lbr;
pub mod perfmon;
pub mod virt;
