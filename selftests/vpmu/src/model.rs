// SPDX-License-Identifier: GPL-2.0

//! What differs between the CPU models: one constant a file.
//!
//! Sources: Intel SDM vol. 3, 20.3 (performance monitoring by microarchitecture), and vol. 4 (MSRs by
//! microarchitecture). What no model here differs in is not a field: counters of 48 bits,
//! IA32_MISC_ENABLE, MSR_PEBS_LD_LAT.

mod intel;
mod spec;

pub use spec::{General, Model, Offcore, CAP_FW_WRITE, CAP_SMM_FREEZE, MAX_FIXED, MAX_GENERAL};

/// All models.
pub static MODELS: [Model; 12] = intel::MODELS;

/// The PMU of a CPU, if there is a model of it.
pub fn find(family: u32, model: u32) -> Option<&'static Model> {
    MODELS
        .iter()
        .find(|entry| family == intel::FAMILY && entry.models.contains(&model))
}
