// SPDX-License-Identifier: GPL-2.0

//! Features that have their own state, of a PMU, a core or a CPU.

pub(super) mod lbr;
pub(super) mod metrics;
pub(super) mod northbridge;
pub(super) mod pebs;
pub(super) mod rdpmc;
pub(super) mod smi;
pub(super) mod smt;
pub(super) mod tfa;
pub(super) mod tracing;
