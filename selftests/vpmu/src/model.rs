// SPDX-License-Identifier: GPL-2.0

//! The modelled CPUs: data only. A vendor has a directory, a CPU model a constant in a file of its
//! own, and [`spec`] says what such a constant holds.
//!
//! Sources: Intel SDM vol. 3, 20.3 (performance monitoring by microarchitecture), and vol. 4 (MSRs by
//! microarchitecture).

mod intel;
mod spec;

pub use spec::Model;
pub(crate) use spec::{Offcore, CAP_FW_WRITE, CAP_SMM_FREEZE, MAX_FIXED, MAX_GENERAL};

/// All models.
pub static MODELS: [Model; 12] = intel::MODELS;

/// Returns the model of the CPU with this CPUID family and model, if there is one.
pub fn find(family: u32, model: u32) -> Option<&'static Model> {
    MODELS
        .iter()
        .find(|entry| family == intel::FAMILY && entry.models.contains(&model))
}
