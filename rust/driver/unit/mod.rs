// SPDX-License-Identifier: GPL-2.0

//! Features with state of their own on each CPU or core.

pub(super) mod rdpmc;
pub(super) mod smi;
pub(super) mod smt;
pub(super) mod tfa;
