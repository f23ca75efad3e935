// SPDX-License-Identifier: GPL-2.0

//! Samples that the processor itself writes (PEBS), and the branches that it records for samples (LBR).

pub mod lbr;
pub mod pebs;
