// SPDX-License-Identifier: GPL-2.0

//! Redwood Cove on servers: CPUID family 6, models 0xAD, 0xAE (Granite Rapids).
//!
//! The PMU is Golden Cove's, but FRONTEND_RETIRED.* has other unit masks, and load latency events
//! need no auxiliary event.
//!
//! Mainline: `intel_rwc_extra_regs`, `intel_pmu_init()`, `arch/x86/events/intel/core.c`.

use super::golden_cove::GOLDEN_COVE;
use crate::logic::model::{
    extra_registers::{
        ExtraRegisterEvent,
        ExtraRegisters, //
    },
    memory_files,
    Cpus,
    Model,
    Quirk, //
};

/// The extra registers that events need.
#[rustfmt::skip]
const EXTRA_REGISTER_EVENTS: ExtraRegisters = ExtraRegisters::checked(&[
    ExtraRegisterEvent::offcore_response_0(0x012a, 0x3f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::offcore_response_1(0x012b, 0x3f_ffff_ffff), // OCR.*
    ExtraRegisterEvent::load_latency(0x01cd), // MEM_TRANS_RETIRED.LOAD_LATENCY
    ExtraRegisterEvent::frontend(0x02c6, 0x9), // FRONTEND_RETIRED.MISP_ANT
    ExtraRegisterEvent::frontend(0x03c6, 0x7f_ff1f), // FRONTEND_RETIRED.*
    ExtraRegisterEvent::frontend(0x40ad, 0x7), // INT_MISC.UNKNOWN_BRANCH_CYCLES
    ExtraRegisterEvent::frontend(0x04c2, 0x8), // UOPS_RETIRED.MS
]);

/// Granite Rapids.
pub const REDWOOD_COVE: Model = Model {
    pmu_name: "granite_rapids",
    name: "Granite Rapids",
    quirks: &[Quirk::ReferenceCyclesAnywhere, Quirk::LatencyInTwoParts],
    cpus: &Cpus::intel([0xad, 0xae]),
    extra_register_events: EXTRA_REGISTER_EVENTS,
    memory_files: memory_files::REDWOOD_COVE,
    ..GOLDEN_COVE
};
