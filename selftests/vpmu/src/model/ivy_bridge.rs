// SPDX-License-Identifier: GPL-2.0

//! Ivy Bridge: SDM vol. 3, 20.3.5.

use super::{Code, General, Model, Offcore, CAP_FW_WRITE, CAP_SMM_FREEZE};
use crate::defect::Defects;
use crate::event;

/// Ivy Bridge.
pub(super) const MODEL: Model = Model {
    name: "Ivy Bridge",
    models: &[58],
    version: 3,
    general: General::Core(8),
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
    },
    frontend: 0,
    slots: 0,
    low_only: &[
        Code::Exact(0x79, 0x02), // IDQ.EMPTY
        Code::Exact(0x9c, 0x01), // IDQ_UOPS_NOT_DELIVERED.CORE
        Code::Exact(0xa3, 0x02), // CYCLE_ACTIVITY.CYCLES_LDM_PENDING
        Code::Exact(0xa3, 0x04), // CYCLE_ACTIVITY.CYCLES_NO_EXECUTE
        Code::Exact(0xa3, 0x05), // CYCLE_ACTIVITY.STALLS_L2_PENDING
        Code::Exact(0xa3, 0x06), // CYCLE_ACTIVITY.STALLS_LDM_PENDING
        Code::Event(0xd0),       // MEM_UOPS_RETIRED.*
        Code::Event(0xd1),       // MEM_LOAD_UOPS_RETIRED.*
        Code::Event(0xd2),       // MEM_LOAD_UOPS_LLC_HIT_RETIRED.*
        Code::Event(0xd3),       // MEM_LOAD_UOPS_LLC_MISS_RETIRED.*
    ],
    // Erratum BV98.
    defects: Defects {
        ht_leak: true,
        ..Defects::NONE
    },
    list: &event::IVY_BRIDGE,
};

/// The same for more than one socket: offcore responses from remote memory.
pub(super) const SERVER: Model = Model {
    name: "Ivy Bridge (server)",
    models: &[62],
    offcore: Offcore {
        writable: 0x3f_ffff_8fff,
        ..MODEL.offcore
    },
    list: &event::IVY_BRIDGE_SERVER,
    ..MODEL
};
