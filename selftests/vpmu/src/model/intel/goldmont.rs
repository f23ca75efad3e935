// SPDX-License-Identifier: GPL-2.0

//! Goldmont, a small core (Apollo Lake, Denverton): SDM vol. 3, 17.6 and 20.5.3.
//!
//! Four general counters, no pipeline slots, no load latency. A core has one thread, and AnyThread
//! can be set. OFFCORE_RESPONSE has two unit masks of event code 0xB7.

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

/// Goldmont.
pub(super) const MODEL: Model = Model {
    name: "Goldmont",
    family: FAMILY,
    models: &[92, 95],
    vendor: Vendor::Intel,
    version: 4,
    general: General::Thread(4),
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
        writable: 0x36_0005_ffbf,
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
    lbr: Some(lbr::GOLDMONT),
    pebs: Some(pebs::GOLDMONT),
    defects: Defects::NONE,
    list: &lists::GOLDMONT,
};
