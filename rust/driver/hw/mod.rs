// SPDX-License-Identifier: GPL-2.0

//! The hardware: the registers of a PMU, by the names that [`logic`](crate::logic) gives them.

pub(super) mod arch_perfmon;
