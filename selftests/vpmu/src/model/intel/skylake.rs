// SPDX-License-Identifier: GPL-2.0

//! Skylake and its successors with the same core, up to Comet Lake: SDM vol. 3, 20.3.8.
//!
//! TSX and Intel PT are not modelled: IN_TX and IN_TXCP are reserved, except with the defect TFA;
//! only software sets the status bit of PT's output.

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

/// Skylake.
pub(super) const MODEL: Model = Model {
    name: "Skylake",
    family: FAMILY,
    models: &[78, 94, 142, 158, 165, 166],
    vendor: Vendor::Intel,
    version: 4,
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
    frontend: 0x7f_ff17,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::SKYLAKE),
    pebs: Some(pebs::SKYLAKE),
    // With microcode of 2019 or later.
    defects: Defects {
        tfa: true,
        ..Defects::NONE
    },
    list: &lists::SKYLAKE,
};
