// SPDX-License-Identifier: GPL-2.0

//! The modelled CPUs: data only. Each vendor has a directory, where each CPU model is a constant;
//! [`spec`] defines the type of these constants.
//!
//! Sources: Intel SDM vol. 3, 20.3 (performance monitoring by microarchitecture), and vol. 4 (MSRs
//! by microarchitecture); AMD APM vol. 2, chapter 13, and the BKDG or PPR of each family.

mod amd;
mod hybrid;
mod intel;
mod spec;

pub(crate) use hybrid::Common;
pub use hybrid::{
    CoreType,
    Hybrid, //
};
pub use spec::Model;
pub(crate) use spec::{
    Amd,
    General,
    Lbr,
    LbrFormat,
    Offcore,
    Pebs,
    PebsFormat,
    Sampled,
    Vendor,
    CAP_FW_WRITE,
    CAP_PERF_METRICS,
    CAP_SMM_FREEZE,
    MAX_FIXED,
    MAX_GENERAL,
    MAX_SNOOP, //
};

/// Intel's models.
pub static INTEL_MODELS: [Model; 19] = intel::MODELS;
/// Processors with several types of cores.
pub static HYBRIDS: [Hybrid; 1] = intel::HYBRIDS;
/// AMD's models.
pub static AMD_MODELS: [Model; amd::COUNT] = amd::MODELS;

/// Returns the model of the CPU with this CPUID family and model, if there is one. No family is
/// used by both vendors.
pub fn find(family: u32, model: u32) -> Option<&'static Model> {
    INTEL_MODELS
        .iter()
        .chain(&AMD_MODELS)
        .find(|entry| family == entry.family && entry.models.contains(&model))
}

/// Returns the model of one core of the processor with these numbers of CPUID, if there is one, and
/// the type of the core if the processor is hybrid. `core` is the core's number, the part of the
/// APIC ID that its threads share.
pub fn find_core(
    family: u32,
    model: u32,
    stepping: u32,
    core: u32,
) -> Option<(&'static Model, Option<&'static CoreType>)> {
    match HYBRIDS.iter().find(|hybrid| hybrid.is(family, model)) {
        Some(hybrid) => Some(hybrid.core(model, stepping, core)),
        None => find(family, model).map(|model| (model, None)),
    }
}
