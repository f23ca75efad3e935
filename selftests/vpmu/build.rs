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

/// Directory of the event lists and name of the generated table.
const LISTS: [(&str, &str); 2] = [("haswell", "HASWELL"), ("skylake", "SKYLAKE")];

type Object = BTreeMap<String, String>;

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
        // Anything but an array of objects (metricgroups.json) has no events.
        if !text.trim_start().starts_with('[') {
            continue;
        }
        for object in (Parser { rest: &text }).array() {
            // "Unit": an uncore event. No EventCode: a metric, or an event of a fixed counter.
            if object.contains_key("Unit") || !object.contains_key("EventCode") {
                continue;
            }
            add_event(&mut events, &object);
        }
    }
    assert!(!events.is_empty(), "{}: no events", directory.display());
    events
}

fn add_event(events: &mut BTreeMap<Select, (u8, String)>, object: &Object) {
    let number = |key: &str| object.get(key).map_or(0, |text| parse_number(text));
    let counters = object["Counter"]
        .split(',')
        .fold(0u8, |mask, counter| mask | (1 << parse_number(counter)));
    // An offcore response event has two codes, one for each of its registers.
    for code in object["EventCode"].split(',') {
        let select = (
            parse_number(code),
            number("UMask"),
            number("CounterMask"),
            number("Invert") != 0,
            number("EdgeDetect") != 0,
        );
        let entry = events
            .entry(select)
            .or_insert_with(|| (0, object["EventName"].clone()));
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

/// Reads an array of flat objects; numbers are kept as text.
struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn array(&mut self) -> Vec<Object> {
        let mut objects = Vec::new();
        self.expect('[');
        while !self.take(']') {
            objects.push(self.object());
            self.take(',');
        }
        objects
    }

    fn object(&mut self) -> Object {
        let mut object = Object::new();
        self.expect('{');
        while !self.take('}') {
            let key = self.value();
            self.expect(':');
            let value = self.value();
            object.insert(key, value);
            self.take(',');
        }
        object
    }

    /// A string or a bare word (number, true, false, null).
    fn value(&mut self) -> String {
        if !self.take('"') {
            let end = self.rest.find([',', '}', ']']).expect("value without end");
            let (word, rest) = self.rest.split_at(end);
            self.rest = rest;
            return word.trim().to_string();
        }
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return value;
                }
                // Only texts for people hold escapes: what they stand for is of no interest.
                '\\' => drop(chars.next()),
                _ => value.push(c),
            }
        }
        panic!("string without end");
    }

    fn take(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, c: char) {
        assert!(self.take(c), "'{c}' expected at: {:.40}", self.rest);
    }
}
