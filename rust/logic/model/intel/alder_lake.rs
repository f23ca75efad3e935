// SPDX-License-Identifier: GPL-2.0

//! Alder Lake and Raptor Lake: CPUID family 6, models 0x97, 0x9A (Alder Lake), 0xB7, 0xBA, 0xBF
//! (Raptor Lake). Big cores are Golden Cove, small ones Gracemont.
//!
//! Mainline: `intel_pmu_init_glc_hybrid()`, `intel_pmu_init_grt()`, `intel_pmu_init()`,
//! `adl_get_event_constraints()`, `adl_hw_config()`, `adl_hybrid_events_attrs`,
//! `adl_hybrid_mem_attrs`, `arch/x86/events/intel/core.c`.

use super::{
    golden_cove::{
        COMMON_CACHE_EVENTS,
        GOLDEN_COVE, //
    },
    gracemont::GRACEMONT, //
};
use crate::logic::{
    cores::{
        CoreType,
        ALDER_LAKE, //
    },
    model::{
        cache_event::{
            Cache::LastLevel,
            CacheEvent, CacheEvents,
            Operation::Write,
            Outcome::{
                Access,
                Miss, //
            },
        },
        data_source::DataSources,
        Cpus,
        Model,
        TopdownFile, //
    },
};

/// The generic cache events of big cores.
#[rustfmt::skip]
const CORE_CACHE_EVENTS: CacheEvents = COMMON_CACHE_EVENTS.with(&[
    // OCR.DEMAND_RFO.ANY_RESPONSE
    CacheEvent::new(LastLevel, Write, Access, 0x012a).offcore(0x1_0002),
    // OCR.DEMAND_RFO.L3_MISS
    CacheEvent::new(LastLevel, Write, Miss, 0x012a).offcore(0x3f_bfc0_0002),
]);

/// The slots and the topdown metrics of big cores.
#[rustfmt::skip]
const CORE_TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("slots", "event=0x00,umask=0x4"), // TOPDOWN.SLOTS
    TopdownFile::new("topdown-retiring", "event=0x00,umask=0x80"),
    TopdownFile::new("topdown-bad-spec", "event=0x00,umask=0x81"),
    TopdownFile::new("topdown-fe-bound", "event=0x00,umask=0x82"),
    TopdownFile::new("topdown-be-bound", "event=0x00,umask=0x83"),
    TopdownFile::new("topdown-heavy-ops", "event=0x00,umask=0x84"),
    TopdownFile::new("topdown-br-mispredict", "event=0x00,umask=0x85"),
    TopdownFile::new("topdown-fetch-lat", "event=0x00,umask=0x86"),
    TopdownFile::new("topdown-mem-bound", "event=0x00,umask=0x87"),
];

/// The topdown method's events of small cores.
#[rustfmt::skip]
const ATOM_TOPDOWN_FILES: &[TopdownFile] = &[
    TopdownFile::new("topdown-retiring", "event=0xc2,umask=0x0"), // TOPDOWN_RETIRING.ALL
    TopdownFile::new("topdown-bad-spec", "event=0x73,umask=0x0"), // TOPDOWN_BAD_SPECULATION.ALL
    TopdownFile::new("topdown-fe-bound", "event=0x71,umask=0x0"), // TOPDOWN_FE_BOUND.ALL
    TopdownFile::new("topdown-be-bound", "event=0x74,umask=0x0"), // TOPDOWN_BE_BOUND.ALL
];

/// The big cores of Alder Lake and Raptor Lake.
pub const ALDER_LAKE_CORE: Model = Model {
    pmu_name: "alderlake_hybrid",
    name: "Alder Lake (big cores)",
    cpus: &Cpus::hybrid(ALDER_LAKE, CoreType::Big),
    cache_events: CORE_CACHE_EVENTS,
    data_sources: DataSources::GOLDEN_COVE_CLIENT,
    topdown_files: CORE_TOPDOWN_FILES,
    ..GOLDEN_COVE
};

/// The small cores of Alder Lake and Raptor Lake.
pub const ALDER_LAKE_ATOM: Model = Model {
    pmu_name: "alderlake_hybrid",
    name: "Alder Lake (small cores)",
    cpus: &Cpus::hybrid(ALDER_LAKE, CoreType::Small),
    topdown_files: ATOM_TOPDOWN_FILES,
    ..GRACEMONT
};
