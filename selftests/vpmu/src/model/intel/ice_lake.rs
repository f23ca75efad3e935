// SPDX-License-Identifier: GPL-2.0

//! Ice Lake, the Sunny Cove core: SDM vol. 3, 20.3.9.
//!
//! Eight general counters per thread, a fourth fixed counter for pipeline slots, MSR_PERF_METRICS
//! with four shares of these slots, no AnyThread.

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
    CAP_PERF_METRICS,
    CAP_SMM_FREEZE, //
};

/// Ice Lake.
pub(super) const MODEL: Model = Model {
    name: "Ice Lake",
    family: FAMILY,
    models: &[106, 108],
    vendor: Vendor::Intel,
    version: 5,
    general: General::Thread(8),
    width: 48,
    fixed: 4,
    architectural: 8,
    missing: 0,
    any_thread: false,
    pin_control: false,
    capabilities: CAP_SMM_FREEZE | CAP_FW_WRITE | CAP_PERF_METRICS,
    offcore: Offcore {
        registers: 2,
        per_core: false,
        writable: 0x3f_ffff_bfff,
        first_response: 16,
        any: true,
        high_requests: 0,
        only_first: 0,
    },
    frontend: 0x7f_ff17,
    snoop: 0,
    slots: 5,
    metrics: 4,
    lbr: Some(lbr::SKYLAKE),
    pebs: Some(pebs::ICE_LAKE),
    defects: Defects::NONE,
    list: &lists::ICE_LAKE,
};

/// Ice Lake (client): a different event list.
pub(super) const CLIENT: Model = Model {
    name: "Ice Lake (client)",
    family: FAMILY,
    models: &[125, 126],
    list: &lists::ICE_LAKE_CLIENT,
    ..MODEL
};
