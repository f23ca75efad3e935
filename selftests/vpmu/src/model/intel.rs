// SPDX-License-Identifier: GPL-2.0

//! Intel's CPU models.

mod alder_lake;
mod broadwell;
mod crestmont;
mod golden_cove;
mod goldmont;
mod goldmont_plus;
mod gracemont;
mod haswell;
mod ice_lake;
mod ivy_bridge;
mod lbr;
mod lists;
mod nehalem;
mod pebs;
mod redwood_cove;
mod sandy_bridge;
mod silvermont;
mod skylake;
mod tremont;
mod westmere;

use super::hybrid::Hybrid;
use super::spec::Model;

/// CPUID family of all models.
const FAMILY: u32 = 6;

/// Hybrid processors.
pub(super) const HYBRIDS: [Hybrid; 1] = [alder_lake::HYBRID];

/// Intel's models.
pub(super) const MODELS: [Model; 19] = [
    nehalem::MODEL,
    westmere::MODEL,
    sandy_bridge::MODEL,
    sandy_bridge::SERVER,
    ivy_bridge::MODEL,
    ivy_bridge::SERVER,
    haswell::MODEL,
    broadwell::MODEL,
    skylake::MODEL,
    ice_lake::MODEL,
    ice_lake::CLIENT,
    golden_cove::MODEL,
    redwood_cove::MODEL,
    silvermont::MODEL,
    goldmont::MODEL,
    goldmont_plus::MODEL,
    tremont::MODEL,
    gracemont::MODEL,
    crestmont::MODEL,
];
