// SPDX-License-Identifier: GPL-2.0

//! AMD's CPU models.
//!
//! Sources: APM vol. 2, chapter 13, and the PPR or BKDG of each family.

mod lists;
mod old;
mod zen;

use super::spec::{
    Amd,
    General,
    Model,
    Offcore,
    Vendor, //
};
use crate::defect::Defects;
use crate::event::List;

/// Number of AMD's models.
pub(super) const COUNT: usize = 9;

/// AMD's models.
pub(super) const MODELS: [Model; COUNT] = [
    old::K10,
    old::PILEDRIVER,
    old::JAGUAR,
    zen::ZEN1,
    zen::ZEN2,
    zen::ZEN3,
    zen::ZEN4,
    zen::ZEN5,
    zen::ZEN6,
];

/// An empty list of Intel's events, for AMD's models.
static NO_LIST: List = List {
    events: &[],
    offcore: 0,
    frontend: 0,
    load_latency: 0,
};

/// Returns a model without branch records, and without the parts that only Intel's models have.
const fn model(
    name: &'static str,
    family: u32,
    models: &'static [u32],
    counters: usize,
    amd: Amd,
) -> Model {
    Model {
        name,
        family,
        models,
        vendor: Vendor::Amd(amd),
        version: 0,
        general: General::Thread(counters),
        width: 48,
        fixed: 0,
        architectural: 0,
        missing: 0,
        any_thread: false,
        pin_control: false,
        capabilities: 0,
        offcore: Offcore {
            registers: 0,
            per_core: false,
            writable: 0,
            first_response: 0,
            any: false,
            high_requests: 0,
            only_first: 0,
        },
        frontend: 0,
        snoop: 0,
        slots: 0,
        metrics: 0,
        lbr: None,
        pebs: None,
        defects: Defects::NONE,
        list: &NO_LIST,
    }
}
