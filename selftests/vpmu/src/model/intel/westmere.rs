// SPDX-License-Identifier: GPL-2.0

//! Westmere: SDM vol. 3, 20.3.2.
//!
//! Like Nehalem, with a second MSR_OFFCORE_RSP and a reliable count of mispredicted branches.

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

/// Westmere.
pub(super) const MODEL: Model = Model {
    name: "Westmere",
    family: FAMILY,
    models: &[44],
    vendor: Vendor::Intel,
    version: 3,
    general: General::Thread(4),
    width: 48,
    fixed: 3,
    architectural: 7,
    // Reference cycles.
    missing: 1 << 2,
    any_thread: true,
    pin_control: true,
    capabilities: CAP_SMM_FREEZE,
    offcore: Offcore {
        registers: 2,
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
    list: &lists::WESTMERE,
};
