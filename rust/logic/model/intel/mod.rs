// SPDX-License-Identifier: GPL-2.0

//! The models of Intel's processors: data only.

pub(super) mod alder_lake;
pub(super) mod broadwell;
pub(super) mod crestmont;
pub(super) mod generic;
pub(super) mod golden_cove;
pub(super) mod goldmont;
pub(super) mod gracemont;
pub(super) mod haswell;
pub(super) mod ice_lake;
pub(super) mod ivy_bridge;
pub(super) mod nehalem;
pub(super) mod redwood_cove;
pub(super) mod sandy_bridge;
pub(super) mod silvermont;
pub(super) mod skylake;
pub(super) mod tremont;
pub(super) mod westmere;
