// SPDX-License-Identifier: GPL-2.0

//! Converts Intel's event lists into the model's tables.
//!
//! The lists come from `$KERNEL_SOURCE/tools/perf/pmu-events/arch/x86/`: JSON arrays of flat
//! objects whose values are nearly all strings. Of each event the table holds what selects it, the
//! counters that the list names, the register beside the event select that it needs, and what its
//! name says that it counts. The counters of a core with one thread, which the kernel's copies of the
//! lists lack, come from `../intel-counters`.

mod exceptions;
mod lists;
mod meaning;
mod output;

use std::path::PathBuf;
use std::{env, fs};

/// Directory of the event lists and name of the generated table.
const LISTS: [(&str, &str); 12] = [
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
        let directory = base.join(list);
        println!("cargo::rerun-if-changed={}", directory.display());
        let events = lists::core_events(list, &directory, &lists::columns(&text, list));
        output::write_table(&mut out, name, &events);
    }
    let path = PathBuf::from(env::var("OUT_DIR").unwrap()).join("event_lists.rs");
    fs::write(path, out).unwrap();
}
