// SPDX-License-Identifier: GPL-2.0

//! Nehalem: SDM vol. 3, 20.3.1.1.
//!
//! The count of mispredicted branches is unreliable (erratum AAJ80), so CPUID reports the event as
//! not available. The core has one MSR_OFFCORE_RSP, of eight requests and eight responses.

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
    CAP_SMM_FREEZE, //
};

/// Nehalem.
pub(super) const MODEL: Model = Model {
    name: "Nehalem",
    family: FAMILY,
    models: &[26, 30, 31],
    vendor: Vendor::Intel,
    version: 3,
    general: General::Thread(4),
    width: 48,
    fixed: 3,
    architectural: 7,
    // Reference cycles and mispredicted branches.
    missing: (1 << 2) | (1 << 6),
    any_thread: true,
    pin_control: true,
    capabilities: CAP_SMM_FREEZE,
    offcore: Offcore {
        registers: 1,
        per_core: true,
        writable: 0xffff,
        first_response: 8,
        any: false,
        high_requests: 0,
        only_first: 0,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::NEHALEM),
    pebs: Some(pebs::NEHALEM),
    defects: Defects::NONE,
    list: &lists::NEHALEM,
};
