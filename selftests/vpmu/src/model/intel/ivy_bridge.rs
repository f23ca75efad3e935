// SPDX-License-Identifier: GPL-2.0

//! Ivy Bridge: SDM vol. 3, 20.3.5.

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

/// Ivy Bridge.
pub(super) const MODEL: Model = Model {
    name: "Ivy Bridge",
    family: FAMILY,
    models: &[58],
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
        writable: 0x3f_807f_8fff,
        first_response: 16,
        any: true,
        high_requests: 0,
        only_first: 0,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::SANDY_BRIDGE),
    pebs: Some(pebs::SANDY_BRIDGE),
    // Erratum BV98.
    defects: Defects {
        ht_leak: true,
        ..Defects::NONE
    },
    list: &lists::IVY_BRIDGE,
};

/// The server part, whose offcore responses include remote memory.
pub(super) const SERVER: Model = Model {
    name: "Ivy Bridge (server)",
    family: FAMILY,
    models: &[62],
    offcore: Offcore {
        writable: 0x3f_ffff_8fff,
        ..MODEL.offcore
    },
    list: &lists::IVY_BRIDGE_SERVER,
    ..MODEL
};
