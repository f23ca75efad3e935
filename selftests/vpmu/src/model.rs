// SPDX-License-Identifier: GPL-2.0

//! The modelled CPUs: data only. Each vendor has a directory, where each CPU model is a constant;
//! [`spec`] defines the type of these constants.
//!
//! Sources: Intel SDM vol. 3, 20.3 (performance monitoring by microarchitecture), and vol. 4 (MSRs
//! by microarchitecture); AMD APM vol. 2, chapter 13, and the BKDG or PPR of each family.

mod amd;
mod intel;
mod spec;

pub use spec::Model;
pub(crate) use spec::{
    Amd,
    Lbr,
    LbrFormat,
    Offcore,
    Pebs,
    PebsFormat,
    Sampled,
    CAP_FW_WRITE,
    CAP_PERF_METRICS,
    CAP_SMM_FREEZE,
    MAX_FIXED,
    MAX_GENERAL,
    MAX_SNOOP, //
};

/// Intel's models.
pub static INTEL_MODELS: [Model; 19] = intel::MODELS;
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
