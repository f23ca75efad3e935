// SPDX-License-Identifier: GPL-2.0

//! Silvermont and Airmont, small cores (Bay Trail, Avoton, Braswell): SDM vol. 3, 17.5 and 20.5.2.
//!
//! Two general counters of 40 bits, no pipeline slots, no load latency. A core has one thread, and
//! AnyThread can be set. OFFCORE_RESPONSE has two unit masks of event code 0xB7.

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

/// Silvermont and Airmont.
pub(super) const MODEL: Model = Model {
    name: "Silvermont",
    family: FAMILY,
    models: &[55, 74, 76, 77, 90, 117],
    vendor: Vendor::Intel,
    version: 3,
    general: General::Thread(2),
    width: 40,
    fixed: 3,
    architectural: 7,
    missing: 0,
    any_thread: true,
    pin_control: false,
    capabilities: CAP_SMM_FREEZE | CAP_FW_WRITE,
    offcore: Offcore {
        registers: 2,
        per_core: false,
        writable: 0x36_8005_ffff,
        first_response: 16,
        any: true,
        high_requests: 0,
        // Outstanding requests.
        only_first: 1 << 38,
    },
    frontend: 0,
    snoop: 0,
    slots: 0,
    metrics: 0,
    lbr: Some(lbr::SILVERMONT),
    pebs: Some(pebs::SILVERMONT),
    defects: Defects::NONE,
    list: &lists::SILVERMONT,
};
