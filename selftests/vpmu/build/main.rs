// SPDX-License-Identifier: GPL-2.0

//! Converts the vendors' event lists into the model's tables.
//!
//! The lists are in `$KERNEL_SOURCE/tools/perf/pmu-events/arch/x86/`: JSON arrays of flat objects
//! whose values are nearly all strings. For each event, a table has its event select, its counters,
//! the register that further selects it, and its meaning, which follows from its name. The kernel's
//! copies of the lists lack the counters of a core with one thread; `../intel-counters` has them.

mod amd;
mod exceptions;
mod lists;
mod meaning;
mod output;

use std::path::PathBuf;
use std::{
    env,
    fs, //
};

/// The directory of each list, on hybrid processors with the name of the PMU, and the name of its
/// table.
const LISTS: [(&str, &str); 21] = [
    ("nehalemep", "NEHALEM"),
    ("westmereep-dp", "WESTMERE"),
    ("sandybridge", "SANDY_BRIDGE"),
    ("jaketown", "SANDY_BRIDGE_SERVER"),
    ("ivybridge", "IVY_BRIDGE"),
    ("ivytown", "IVY_BRIDGE_SERVER"),
    ("haswell", "HASWELL"),
    ("broadwell", "BROADWELL"),
    ("skylake", "SKYLAKE"),
    ("icelakex", "ICE_LAKE"),
    ("icelake", "ICE_LAKE_CLIENT"),
    ("sapphirerapids", "GOLDEN_COVE"),
    ("graniterapids", "REDWOOD_COVE"),
    ("silvermont", "SILVERMONT"),
    ("goldmont", "GOLDMONT"),
    ("goldmontplus", "GOLDMONT_PLUS"),
    ("snowridgex", "TREMONT"),
    ("alderlaken", "GRACEMONT"),
    ("sierraforest", "CRESTMONT"),
    ("alderlake/cpu_core", "ALDER_LAKE_CORE"),
    ("alderlake/cpu_atom", "ALDER_LAKE_ATOM"),
];

/// The same for AMD's lists.
const AMD_LISTS: [(&str, &str); 6] = [
    ("amdzen1", "ZEN1"),
    ("amdzen2", "ZEN2"),
    ("amdzen3", "ZEN3"),
    ("amdzen4", "ZEN4"),
    ("amdzen5", "ZEN5"),
    ("amdzen6", "ZEN6"),
];

fn main() {
    println!("cargo::rerun-if-env-changed=KERNEL_SOURCE");
    let source = env::var("KERNEL_SOURCE")
        .expect("set KERNEL_SOURCE to the directory of an unpacked kernel source");
    let base = PathBuf::from(source).join("tools/perf/pmu-events/arch/x86");

    println!("cargo::rerun-if-changed=../intel-counters");
    let text = fs::read_to_string("../intel-counters").expect("selftests/intel-counters");

    let mut out = String::new();
    for (list, name) in LISTS {
        let (directory, unit) = match list.split_once('/') {
            Some((directory, unit)) => (directory, Some(unit)),
            None => (list, None),
        };
        let directory = base.join(directory);
        println!("cargo::rerun-if-changed={}", directory.display());
        let events = lists::core_events(list, &directory, unit, &lists::columns(&text, list));
        output::write_table(&mut out, name, &events);
    }
    let products = PathBuf::from(env::var("OUT_DIR").unwrap());
    fs::write(products.join("event_lists.rs"), out).unwrap();

    let mut out = String::new();
    for (list, name) in AMD_LISTS {
        let directory = base.join(list);
        println!("cargo::rerun-if-changed={}", directory.display());
        amd::write_table(&mut out, &directory, name);
    }
    fs::write(products.join("amd_lists.rs"), out).unwrap();
}
