// SPDX-License-Identifier: GPL-2.0

//! Golden Cove, in Sapphire Rapids: SDM vol. 3, 20.3.10.
//!
//! Like Ice Lake, with six pipeline slots and four more shares in MSR_PERF_METRICS.
//! OFFCORE_RESPONSE is called OCR and has the event codes 0x2A and 0x2B.

use super::{
    lbr,
    lists,
    pebs,
    FAMILY, //
};
use crate::defect::Defects;
use crate::model::spec::{
    General,
    Model,
    Offcore,
    Vendor,
    CAP_FW_WRITE,
    CAP_PERF_METRICS,
    CAP_SMM_FREEZE, //
};

/// Golden Cove.
pub(super) const MODEL: Model = Model {
    name: "Golden Cove",
    family: FAMILY,
    // No CPU is 253: a model that drivers do not know, with perfmon version 5.
    models: &[143, 253],
    vendor: Vendor::Intel,
    version: 5,
    general: General::Thread(8),
    width: 48,
    fixed: 4,
    architectural: 8,
    missing: 0,
    any_thread: false,
    pin_control: false,
    capabilities: CAP_SMM_FREEZE | CAP_FW_WRITE | CAP_PERF_METRICS,
    offcore: Offcore {
        registers: 2,
        per_core: false,
        writable: 0x3f_ffff_ffff,
        first_response: 16,
        any: true,
        high_requests: 0,
        only_first: 0,
    },
    frontend: 0x7f_ff1f,
    snoop: 0,
    slots: 6,
    metrics: 8,
    lbr: Some(lbr::ARCHITECTURAL),
    pebs: Some(pebs::GOLDEN_COVE),
    defects: Defects::NONE,
    list: &lists::GOLDEN_COVE,
};
