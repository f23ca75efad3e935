// SPDX-License-Identifier: GPL-2.0

//! Families 17h, 19h and 1Ah: the PPR of each model, "Performance Monitor Counters".
//!
//! Each thread has six counters. Any event counts on any of them.

use super::{
    lists,
    model, //
};
use crate::event::amd::Event;
use crate::model::spec::{
    Amd,
    Lbr,
    LbrFormat,
    Model, //
};

const COUNTERS: usize = 6;

/// Returns the PMU of a model up to Zen 3, where PERF_CTL alone enables a counter.
const fn core(list: &'static [Event]) -> Amd {
    Amd {
        extended: true,
        global: false,
        merge: true,
        northbridge: false,
        list,
    }
}

/// Returns the PMU of a model from Zen 4 on, with PerfMonV2.
const fn core_v2(list: &'static [Event]) -> Amd {
    Amd {
        global: true,
        ..core(list)
    }
}

/// LbrExtV2, from Zen 4 on.
const LBR: Lbr = Lbr {
    format: LbrFormat::Amd,
    depth: 16,
    low: false,
    select: 0x1ff,
    per_core: false,
};

/// Zen: Naples, Raven Ridge, Pinnacle Ridge.
pub(super) const ZEN1: Model = model(
    "Zen 1",
    0x17,
    &[0x01, 0x08, 0x11, 0x18],
    COUNTERS,
    core(lists::ZEN1),
);

/// Zen 2: Rome, Renoir, Matisse.
pub(super) const ZEN2: Model = model(
    "Zen 2",
    0x17,
    &[0x31, 0x60, 0x71],
    COUNTERS,
    core(lists::ZEN2),
);

/// Zen 3: Milan, Vermeer, Cezanne.
pub(super) const ZEN3: Model = model(
    "Zen 3",
    0x19,
    &[0x01, 0x21, 0x50],
    COUNTERS,
    core(lists::ZEN3),
);

/// Zen 4: Genoa, Raphael, Phoenix.
pub(super) const ZEN4: Model = Model {
    lbr: Some(LBR),
    ..model(
        "Zen 4",
        0x19,
        &[0x11, 0x61, 0x74],
        COUNTERS,
        core_v2(lists::ZEN4),
    )
};

/// Zen 5: Turin, Strix Point, Granite Ridge.
pub(super) const ZEN5: Model = Model {
    lbr: Some(LBR),
    ..model(
        "Zen 5",
        0x1a,
        &[0x02, 0x24, 0x44],
        COUNTERS,
        core_v2(lists::ZEN5),
    )
};

/// Zen 6. Besides its list of events, nothing is public: the counters are as on Zen 5.
pub(super) const ZEN6: Model = Model {
    lbr: Some(LBR),
    ..model(
        "Zen 6",
        0x1a,
        &[0x50, 0x80, 0xa0],
        COUNTERS,
        core_v2(lists::ZEN6),
    )
};
