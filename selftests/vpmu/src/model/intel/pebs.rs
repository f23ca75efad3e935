// SPDX-License-Identifier: GPL-2.0

//! Precise sampling of each generation: SDM vol. 3, 20.3.1.1.1 (Nehalem), 20.3.4.4 (Sandy Bridge),
//! 20.3.6.2 (Haswell), 20.3.8.1 (Skylake), 20.5.2.1 (Silvermont), 20.5.3.1 (Goldmont), 20.5.4.1
//! (Goldmont Plus) and 20.9 (adaptive).

use crate::model::spec::{
    Pebs,
    PebsFormat,
    Sampled, //
};

/// The counters that count load latency with PEBS. The lists of Nehalem, Westmere, Haswell and
/// Broadwell name counter 3 alone, but IA32_PEBS_ENABLE has LL_EN for four counters, and the
/// built-in driver uses all four. On Sandy Bridge it uses counter 3 alone.
const LL_EN: u8 = 0xf;

/// Nehalem and Westmere.
pub(super) const NEHALEM: Pebs = Pebs {
    format: PebsFormat::Nehalem,
    sampled: Sampled::Listed,
    precise_store: false,
    addresses: false,
    load_latency: LL_EN,
    two_latencies: false,
    retire_latency: false,
};

/// Sandy Bridge and Ivy Bridge.
pub(super) const SANDY_BRIDGE: Pebs = Pebs {
    format: PebsFormat::Nehalem,
    sampled: Sampled::Listed,
    precise_store: true,
    addresses: false,
    load_latency: 0,
    two_latencies: false,
    retire_latency: false,
};

/// Haswell and Broadwell.
pub(super) const HASWELL: Pebs = Pebs {
    format: PebsFormat::Haswell,
    sampled: Sampled::Listed,
    precise_store: false,
    addresses: true,
    load_latency: LL_EN,
    two_latencies: false,
    retire_latency: false,
};

/// Silvermont.
pub(super) const SILVERMONT: Pebs = Pebs {
    sampled: Sampled::ListedFirst,
    addresses: false,
    load_latency: 0,
    ..HASWELL
};

/// Skylake.
pub(super) const SKYLAKE: Pebs = Pebs {
    format: PebsFormat::Skylake,
    sampled: Sampled::Listed,
    precise_store: false,
    addresses: true,
    load_latency: 0,
    two_latencies: false,
    retire_latency: false,
};

/// Goldmont.
pub(super) const GOLDMONT: Pebs = Pebs {
    sampled: Sampled::First,
    ..SKYLAKE
};

/// Goldmont Plus.
pub(super) const GOLDMONT_PLUS: Pebs = Pebs {
    sampled: Sampled::All,
    ..SKYLAKE
};

/// Ice Lake.
pub(super) const ICE_LAKE: Pebs = Pebs {
    format: PebsFormat::Adaptive,
    sampled: Sampled::All,
    precise_store: false,
    addresses: true,
    load_latency: 0,
    two_latencies: false,
    retire_latency: false,
};

/// Golden Cove.
pub(super) const GOLDEN_COVE: Pebs = Pebs {
    two_latencies: true,
    ..ICE_LAKE
};

/// Redwood Cove: IA32_PERF_CAPABILITIES.PEBS_TIMING_INFO.
pub(super) const REDWOOD_COVE: Pebs = Pebs {
    retire_latency: true,
    ..GOLDEN_COVE
};

/// Gracemont.
pub(super) const GRACEMONT: Pebs = GOLDEN_COVE;
