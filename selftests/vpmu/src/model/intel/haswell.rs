// SPDX-License-Identifier: GPL-2.0

//! Haswell: SDM vol. 3, 20.3.6.
//!
//! TSX is not modelled: IN_TX and IN_TXCP are reserved.

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

/// Haswell.
pub(super) const MODEL: Model = Model {
    name: "Haswell",
    family: FAMILY,
    // No CPU is 254: a model that drivers do not know.
    models: &[60, 69, 70, 254],
    vendor: Vendor::Intel,
    version: 3,
    general: General::Core(8),
    width: 48,
    fixed: 3,
    architectural: 7,
    missing: 0,
    any_thread: true,
    pin_control: false,
    capabilities: CAP_SMM_FREEZE | CAP_FW_WRITE,
    offcore: Offcore {
        registers: 2,
        per_core: false,
        writable: 0x3f_ffff_8fff,
        first_response: 16,
        any: true,
        high_requests: 0,
        only_first: 0,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::HASWELL),
    pebs: Some(pebs::HASWELL),
    // Erratum HSD29.
    defects: Defects {
        ht_leak: true,
        ..Defects::NONE
    },
    list: &lists::HASWELL,
};
