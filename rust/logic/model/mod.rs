// SPDX-License-Identifier: GPL-2.0

//! The models: constants that describe the microarchitectures of Intel and AMD, and of Hygon, whose
//! processors are AMD's Zen.
//!
//! A model holds the properties that its processors share. The machine's counters are from CPUID,
//! and [`PmuInfo`](super::pmu::PmuInfo) combines the two. The driver refuses the processors in
//! [`NOT_DRIVEN`].

mod amd;
pub mod cache_event;
pub mod constraint;
mod cpu;
mod cycles_alias;
pub mod data_source;
mod definition;
pub mod demand;
mod event_constraint;
mod event_index;
pub mod extra_registers;
mod hardware_event;
mod intel;
pub mod memory_files;
mod not_driven;
pub mod pebs_events;
mod topdown_file;

pub use amd::family_15h::AMD_15H;
pub use amd::k8::AMD_K8;
pub use amd::zen::{
    AMD_ZEN,
    AMD_ZEN_2,
    AMD_ZEN_4,
    MERGE,
    MERGE_VALUE, //
};
pub use cpu::{
    Cpus,
    Vendor, //
};
pub use cycles_alias::CyclesAlias;
pub use definition::{
    Acknowledge,
    LbrFilter,
    Model,
    Quirk,
    Scope, //
};
pub use event_constraint::{
    checked,
    first_match,
    EventConstraint,
    UnitMask, //
};
pub use event_index::EventIndex;
pub use hardware_event::{
    HardwareEvents,
    HardwareId, //
};
pub use intel::alder_lake::{
    ALDER_LAKE_ATOM,
    ALDER_LAKE_CORE, //
};
pub use intel::broadwell::BROADWELL;
pub use intel::crestmont::CRESTMONT;
pub use intel::generic::{
    GENERIC,
    GENERIC_V5, //
};
pub use intel::golden_cove::GOLDEN_COVE;
pub use intel::goldmont::{
    GOLDMONT,
    GOLDMONT_PLUS, //
};
pub use intel::gracemont::GRACEMONT;
pub use intel::haswell::HASWELL;
pub use intel::ice_lake::{
    ICE_LAKE,
    ICE_LAKE_SERVER, //
};
pub use intel::ivy_bridge::{
    IVY_BRIDGE,
    IVY_BRIDGE_SERVER, //
};
pub use intel::nehalem::NEHALEM;
pub use intel::redwood_cove::REDWOOD_COVE;
pub use intel::sandy_bridge::{
    SANDY_BRIDGE,
    SANDY_BRIDGE_SERVER, //
};
pub use intel::silvermont::SILVERMONT;
pub use intel::skylake::{
    SKYLAKE,
    SKYLAKE_SERVER, //
};
pub use intel::tremont::TREMONT;
pub use intel::westmere::WESTMERE;
pub use not_driven::{
    Need,
    NotDriven,
    NOT_DRIVEN, //
};
pub use topdown_file::TopdownFile;

/// Intel's models: big cores by age, then small cores by age. The architectural models, [`GENERIC`]
/// and [`GENERIC_V5`], are not in the list: they are for processors for which neither this driver
/// nor mainline has a table.
pub const INTEL_MODELS: &[&Model] = &[
    &NEHALEM,
    &WESTMERE,
    &SANDY_BRIDGE,
    &SANDY_BRIDGE_SERVER,
    &IVY_BRIDGE,
    &IVY_BRIDGE_SERVER,
    &HASWELL,
    &BROADWELL,
    &SKYLAKE,
    &SKYLAKE_SERVER,
    &ICE_LAKE,
    &ICE_LAKE_SERVER,
    &GOLDEN_COVE,
    &REDWOOD_COVE,
    &ALDER_LAKE_CORE,
    &SILVERMONT,
    &GOLDMONT,
    &GOLDMONT_PLUS,
    &TREMONT,
    &GRACEMONT,
    &ALDER_LAKE_ATOM,
    &CRESTMONT,
];

/// AMD's models, one of which is also for Hygon's processors.
pub const AMD_MODELS: &[&Model] = &[&AMD_K8, &AMD_15H, &AMD_ZEN, &AMD_ZEN_2, &AMD_ZEN_4];

/// Returns all models except the architectural ones.
pub fn models() -> impl Iterator<Item = &'static &'static Model> + Clone {
    INTEL_MODELS.iter().chain(AMD_MODELS)
}

#[cfg(test)]
mod tests;
