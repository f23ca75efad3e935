// SPDX-License-Identifier: GPL-2.0

//! Registers and features that only Intel's processors have: architectural performance monitoring,
//! and more.

pub mod ds;
pub mod lbr;
pub mod perfmon;
pub mod smi;
pub mod trace;
pub mod tsx;
