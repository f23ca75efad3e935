// SPDX-License-Identifier: GPL-2.0

//! Crestmont, the small core, in processors without big ones (Sierra Forest, Grand Ridge): SDM vol.
//! 3, 20.3.10 and 20.5.
//!
//! Gracemont with eight general counters, more offcore requests, and snoop response registers.

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

/// Crestmont.
pub(super) const MODEL: Model = Model {
    name: "Crestmont",
    family: FAMILY,
    models: &[175, 182],
    vendor: Vendor::Intel,
    version: 5,
    general: General::Thread(8),
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
        writable: 0xf_f3ff_ffff_ffff,
        first_response: 16,
        any: true,
        // Bits 44 to 51.
        high_requests: 0xf_f000_0000_0000,
        // Outstanding requests.
        only_first: 1 << 63,
    },
    frontend: 0,
    snoop: 2,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::ARCHITECTURAL),
    pebs: Some(pebs::GRACEMONT),
    defects: Defects::NONE,
    list: &lists::CRESTMONT,
};
