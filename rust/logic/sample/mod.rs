// SPDX-License-Identifier: GPL-2.0

//! Samples: those that the processor itself writes (PEBS), the branches that it records for
//! them (LBR), and the periods between them.

pub mod lbr;
pub mod pebs;
pub mod random_period;
