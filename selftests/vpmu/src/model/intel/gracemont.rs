// SPDX-License-Identifier: GPL-2.0

//! Gracemont, the small core, in processors without big ones (Alder Lake-N): SDM vol. 3, 20.3.10
//! and 20.5.
//!
//! Six general counters, no pipeline slots, no MSR_PERF_METRICS, no MSR_PEBS_FRONTEND. PEBS and
//! last branch records are Golden Cove's. OFFCORE_RESPONSE is called OCR, and has two unit masks of
//! event code 0xB7.

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
    CAP_SMM_FREEZE, //
};

/// Gracemont.
pub(super) const MODEL: Model = Model {
    name: "Gracemont",
    family: FAMILY,
    models: &[190],
    vendor: Vendor::Intel,
    version: 5,
    general: General::Thread(6),
    width: 48,
    fixed: 3,
    architectural: 7,
    missing: 0,
    any_thread: false,
    pin_control: false,
    capabilities: CAP_SMM_FREEZE | CAP_FW_WRITE,
    offcore: Offcore {
        registers: 2,
        per_core: false,
        writable: 0x3_f03f_ffff_ffff,
        first_response: 16,
        any: true,
        // Bits 44 to 49.
        high_requests: 0x3_f000_0000_0000,
        // Outstanding requests.
        only_first: 1 << 63,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::ARCHITECTURAL),
    pebs: Some(pebs::GRACEMONT),
    defects: Defects::NONE,
    list: &lists::GRACEMONT,
};
