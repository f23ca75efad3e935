// SPDX-License-Identifier: GPL-2.0

//! Converts Intel's event lists into the model's tables.
//!
//! The lists come from `$KERNEL_SOURCE/tools/perf/pmu-events/arch/x86/`: JSON arrays of flat
//! objects whose values are nearly all strings. That little JSON is read here, so that the crate
//! needs no other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};

/// Directory of the event lists and name of the generated table.
const LISTS: [(&str, &str); 2] = [("haswell", "HASWELL"), ("skylake", "SKYLAKE")];

type Object = Map<String, Value>;

fn main() {
    println!("cargo::rerun-if-env-changed=KERNEL_SOURCE");
    let source = env::var("KERNEL_SOURCE")
        .expect("set KERNEL_SOURCE to the directory of an unpacked kernel source");
    let base = PathBuf::from(source).join("tools/perf/pmu-events/arch/x86");

    let mut out = String::new();
    for (directory, name) in LISTS {
        let directory = base.join(directory);
        println!("cargo::rerun-if-changed={}", directory.display());
        write_table(&mut out, name, &core_events(&directory));
    }
    let path = PathBuf::from(env::var("OUT_DIR").unwrap()).join("event_lists.rs");
    fs::write(path, out).unwrap();
}

/// What selects an event: (event, umask, cmask, inv, edge).
type Select = (u8, u8, u8, bool, bool);

/// The core PMU's events of one model and the counters that each may use, as a mask.
fn core_events(directory: &Path) -> BTreeMap<Select, (u8, String)> {
    let mut events = BTreeMap::new();
    let entries =
        fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let json: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        // Anything but an array of objects (metricgroups.json) has no events.
        for object in json
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
        {
            // "Unit": an uncore event. No EventCode: a metric, or an event of a fixed counter.
            if object.contains_key("Unit") || !object.contains_key("EventCode") {
                continue;
            }
            add_event(&mut events, object);
        }
    }
    assert!(!events.is_empty(), "{}: no events", directory.display());
    events
}

fn add_event(events: &mut BTreeMap<Select, (u8, String)>, object: &Object) {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let required = |key: &str| text(key).unwrap_or_else(|| panic!("{object:?} has no {key}"));
    let number = |key: &str| text(key).map_or(0, parse_number);
    let counters = required("Counter")
        .split(',')
        .fold(0u8, |mask, counter| mask | (1 << parse_number(counter)));
    // An offcore response event has two codes, one for each of its registers.
    for code in required("EventCode").split(',') {
        let select = (
            parse_number(code),
            number("UMask"),
            number("CounterMask"),
            number("Invert") != 0,
            number("EdgeDetect") != 0,
        );
        let entry = events
            .entry(select)
            .or_insert_with(|| (0, required("EventName").to_string()));
        entry.0 |= counters;
    }
}

fn parse_number(text: &str) -> u8 {
    let text = text.trim();
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|e| panic!("\"{text}\": {e}"))
}

fn write_table(out: &mut String, name: &str, events: &BTreeMap<Select, (u8, String)>) {
    writeln!(
        out,
        "/// From Intel's list.\npub static {name}: [Listed; {}] = [",
        events.len()
    )
    .unwrap();
    for ((event, umask, cmask, inv, edge), (counters, title)) in events {
        writeln!(
            out,
            "    Listed {{ event: {event:#04x}, umask: {umask:#04x}, cmask: {cmask}, inv: {inv}, edge: {edge}, \
             counters: {counters:#06b} }}, // {title}"
        )
        .unwrap();
    }
    writeln!(out, "];").unwrap();
}
