// SPDX-License-Identifier: GPL-2.0

//! Tremont, a small core (Snow Ridge, Elkhart Lake, Jasper Lake): SDM vol. 3, 17.9, 20.3.10 and
//! 20.5.
//!
//! Four general counters, no pipeline slots, no load latency. OFFCORE_RESPONSE is called OCR, and
//! has two unit masks of event code 0xB7.

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

/// Tremont.
pub(super) const MODEL: Model = Model {
    name: "Tremont",
    family: FAMILY,
    models: &[134, 150, 156],
    vendor: Vendor::Intel,
    version: 5,
    general: General::Thread(4),
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
        writable: 0xf_f0ff_ffff_9fff,
        first_response: 16,
        any: true,
        // Bits 44 to 51.
        high_requests: 0xf_f000_0000_0000,
        // Outstanding requests.
        only_first: 1 << 63,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::GOLDMONT_PLUS),
    pebs: Some(pebs::ICE_LAKE),
    defects: Defects::NONE,
    list: &lists::TREMONT,
};
