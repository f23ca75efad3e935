// SPDX-License-Identifier: GPL-2.0

//! Samples that the processor itself writes.

pub mod pebs;
