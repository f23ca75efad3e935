// SPDX-License-Identifier: GPL-2.0

//! Samples that the processor itself writes (PEBS), branches that it records (LBR), and random
//! sample periods.

pub mod lbr;
pub mod pebs;
pub mod random_period;
