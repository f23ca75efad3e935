// SPDX-License-Identifier: GPL-2.0

//! Broadwell: SDM vol. 3, 20.3.7.
//!
//! TSX and Intel PT are not modelled: IN_TX, IN_TXCP and the status bit of PT's output are
//! reserved.

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

/// Broadwell.
pub(super) const MODEL: Model = Model {
    name: "Broadwell",
    family: FAMILY,
    models: &[61, 71],
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
    defects: Defects::NONE,
    list: &lists::BROADWELL,
};
