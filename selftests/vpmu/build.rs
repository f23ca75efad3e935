// SPDX-License-Identifier: GPL-2.0

//! Converts Intel's event lists into the model's tables.
//!
//! The lists come from `$KERNEL_SOURCE/tools/perf/pmu-events/arch/x86/`: JSON arrays of flat
//! objects whose values are nearly all strings. Of each event the table holds what selects it, the
//! counters that the list names, the register beside the event select that it needs, and what its
//! name says that it counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};

/// Directory of the event lists and name of the generated table.
const LISTS: [(&str, &str); 10] = [
    ("nehalemep", "NEHALEM"),
    ("westmereep-dp", "WESTMERE"),
    ("sandybridge", "SANDY_BRIDGE"),
    ("ivybridge", "IVY_BRIDGE"),
    ("haswell", "HASWELL"),
    ("broadwell", "BROADWELL"),
    ("skylake", "SKYLAKE"),
    ("icelakex", "ICE_LAKE"),
    ("icelake", "ICE_LAKE_CLIENT"),
    ("sapphirerapids", "GOLDEN_COVE"),
];

/// Where a list is known to be wrong.
struct Exception {
    /// Directory of the list.
    list: &'static str,
    /// EVENT_SELECT.
    event: u8,
    /// The counters that the list names, and those that it should.
    listed: u8,
    right: u8,
}

const EXCEPTIONS: [Exception; 1] = [
    // OFFCORE_RESPONSE: all 270 lines name counter 2 alone. SDM vol. 3, 20.3.1.1.3 lets any
    // IA32_PERFEVTSELx select it, and the list of Westmere, whose facility is the same with a second
    // register, names counters 0 to 3 in each of these lines.
    Exception {
        list: "nehalemep",
        event: 0xb7,
        listed: 0b0100,
        right: 0b1111,
    },
];

type Object = Map<String, Value>;

fn main() {
    println!("cargo::rerun-if-env-changed=KERNEL_SOURCE");
    let source = env::var("KERNEL_SOURCE")
        .expect("set KERNEL_SOURCE to the directory of an unpacked kernel source");
    let base = PathBuf::from(source).join("tools/perf/pmu-events/arch/x86");

    let mut out = String::new();
    for (list, name) in LISTS {
        let directory = base.join(list);
        println!("cargo::rerun-if-changed={}", directory.display());
        write_table(&mut out, name, &core_events(list, &directory));
    }
    let path = PathBuf::from(env::var("OUT_DIR").unwrap()).join("event_lists.rs");
    fs::write(path, out).unwrap();
}

/// What selects an event: (event, umask, cmask, inv, edge).
type Select = (u8, u8, u8, bool, bool);

/// What the table says of an event.
struct Event {
    name: String,
    /// The counters that it may use, as a mask.
    counters: u8,
    /// `event::Meaning`.
    meaning: &'static str,
    /// `event::Register`.
    register: Option<&'static str>,
}

/// The core PMU's events of one model.
#[derive(Default)]
struct Events {
    events: BTreeMap<Select, Event>,
    /// All bits that the list has set in a register.
    offcore: u64,
    frontend: u64,
    load_latency: u64,
}

fn core_events(list: &str, directory: &Path) -> Events {
    let mut events = Events::default();
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
            events.add(list, object);
        }
    }
    assert!(!events.events.is_empty(), "{list}: no events");
    events
}

impl Events {
    fn add(&mut self, list: &str, object: &Object) {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let required = |key: &str| text(key).unwrap_or_else(|| panic!("{object:?} has no {key}"));
        let number = |key: &str| text(key).map_or(0, |text| parse_number(text) as u8);
        let listed = required("Counter")
            .split(',')
            .fold(0u8, |mask, counter| mask | (1 << parse_number(counter)));
        let name = required("EventName");
        let value = text("MSRValue").map_or(0, parse_number);
        let mut registers = text("MSRIndex")
            .into_iter()
            .flat_map(|text| text.split(','));
        // An offcore response event has two codes, one for each of its registers.
        for code in required("EventCode").split(',') {
            let event = parse_number(code) as u8;
            let select = (
                event,
                number("UMask"),
                number("CounterMask"),
                number("Invert") != 0,
                number("EdgeDetect") != 0,
            );
            let wrong = EXCEPTIONS
                .iter()
                .find(|e| (e.list, e.event, e.listed) == (list, event, listed));
            let counters = wrong.map_or(listed, |exception| exception.right);
            let register = registers
                .next()
                .map(|register| self.register(parse_number(register), value));
            let meaning = meaning(name);
            let entry = self.events.entry(select).or_insert_with(|| Event {
                name: name.to_string(),
                counters,
                meaning,
                register,
            });
            assert_eq!(entry.meaning, meaning, "{list}: {} and {name}", entry.name);
            entry.counters |= counters;
            entry.register = entry.register.or(register);
        }
    }

    fn register(&mut self, msr: u64, value: u64) -> &'static str {
        let (values, register) = match msr {
            0x1a6 => (&mut self.offcore, "Offcore(0)"),
            0x1a7 => (&mut self.offcore, "Offcore(1)"),
            0x3f6 => (&mut self.load_latency, "LoadLatency"),
            0x3f7 => (&mut self.frontend, "Frontend"),
            _ => panic!("MSRIndex {msr:#x} is not known"),
        };
        *values |= value;
        register
    }
}

/// What an event of this name counts: `event::Meaning`. An event select's other fields do not tell,
/// as the same ones mean something else on another model.
fn meaning(name: &str) -> &'static str {
    // Counted on both threads, or for precise sampling: here the same.
    let name = name.strip_suffix("_ANY").unwrap_or(name);
    match name {
        "INST_RETIRED.ANY_P" | "INST_RETIRED.PREC_DIST" => "Instructions",
        "CPU_CLK_UNHALTED.THREAD_P" => "Cycles",
        "CPU_CLK_UNHALTED.REF_TSC_P" => "ReferenceCycles",
        "CPU_CLK_UNHALTED.REF_P"
        | "CPU_CLK_UNHALTED.REF_XCLK"
        | "CPU_CLK_THREAD_UNHALTED.REF_XCLK" => "CrystalCycles",
        "TOPDOWN.SLOTS_P" => "Slots",
        _ => match name.strip_prefix("BR_INST_RETIRED.") {
            None => "Rate",
            Some("ALL_BRANCHES" | "ALL_BRANCHES_PEBS") => "Branches",
            Some("CONDITIONAL" | "COND") => "Conditional",
            Some("COND_TAKEN") => "ConditionalTaken",
            Some("NOT_TAKEN" | "COND_NTAKEN") => "NotTaken",
            Some("NEAR_TAKEN") => "NearTaken",
            Some("NEAR_CALL" | "NEAR_CALL_R3") => "NearCall",
            Some("NEAR_RETURN") => "NearReturn",
            Some("FAR_BRANCH") => "Far",
            Some("INDIRECT") => "Indirect",
            Some(_) => panic!("{name}: which branches?"),
        },
    }
}

fn parse_number(text: &str) -> u64 {
    let text = text.trim();
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|e| panic!("\"{text}\": {e}"))
}

fn write_table(out: &mut String, name: &str, list: &Events) {
    let Events {
        events,
        offcore,
        frontend,
        load_latency,
    } = list;
    writeln!(
        out,
        "/// From Intel's list.\n\
         pub static {name}: List = List {{\n    \
             offcore: {offcore:#x},\n    \
             frontend: {frontend:#x},\n    \
             load_latency: {load_latency:#x},\n    \
             events: &["
    )
    .unwrap();
    for ((event, umask, cmask, inv, edge), listed) in events {
        let register = listed
            .register
            .map_or("None".to_string(), |name| format!("Some(Register::{name})"));
        writeln!(
            out,
            "        Listed {{ event: {event:#04x}, umask: {umask:#04x}, cmask: {cmask}, inv: {inv}, edge: {edge}, \
             counters: {:#06b}, meaning: Meaning::{}, register: {register} }}, // {}",
            listed.counters, listed.meaning, listed.name
        )
        .unwrap();
    }
    writeln!(out, "    ],\n}};").unwrap();
}
