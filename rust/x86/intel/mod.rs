// SPDX-License-Identifier: GPL-2.0

//! Intel's processors: architectural performance monitoring, and the features beside it.

pub mod ds;
pub mod lbr;
pub mod perfmon;
pub mod smi;
pub mod trace;
pub mod tsx;
