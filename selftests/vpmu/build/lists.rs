// SPDX-License-Identifier: GPL-2.0

//! Reads Intel's event lists and `../intel-counters`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{
    Map,
    Value, //
};

use crate::exceptions::{
    Missing,
    EXCEPTIONS,
    MISSING, //
};
use crate::meaning::{
    matches,
    meaning, //
};

type Object = Map<String, Value>;

/// The counters of each event select of a list: with two threads per core, with one, and for
/// precise sampling.
pub(crate) type Columns = BTreeMap<u64, (u8, u8, u8)>;

/// Reads the counters of a list from `../intel-counters`, whose head describes the format.
pub(crate) fn columns(text: &str, list: &str) -> Columns {
    let hex = |text| u64::from_str_radix(text, 16).unwrap_or_else(|e| panic!("\"{text}\": {e}"));
    let mut letter = None;
    let mut columns = Columns::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["list", sign, name] if name == list => letter = Some(sign),
            [] | ["list", ..] => (),
            [lists, two, one, pebs, kind, ref selects @ ..] => {
                if lists.contains(letter.expect("the lists' letters come first")) {
                    // Up to Skylake, the lists do not name the counters of PEBS: those of the first
                    // four that count the event.
                    let precise = match (kind, pebs) {
                        ("0:", _) => 0,
                        (_, "-") => hex(two) & 0xf,
                        _ => hex(pebs),
                    };
                    let counters = (hex(two) as u8, hex(one) as u8, precise as u8);
                    columns.extend(selects.iter().map(|select| (hex(select), counters)));
                }
            }
            _ => panic!("intel-counters: \"{line}\""),
        }
    }
    columns
}

/// An event select: (event, umask, cmask, inv, edge).
pub(crate) type Select = (u8, u8, u8, bool, bool);

/// An event of the table.
pub(crate) struct Event {
    pub(crate) name: String,
    /// Mask of its counters on a core with one thread.
    pub(crate) counters: u8,
    /// Mask of the counters that sample it precisely.
    pub(crate) precise: u8,
    /// `event::Meaning`.
    pub(crate) meaning: String,
    /// `event::Register`.
    pub(crate) register: Option<&'static str>,
}

/// The core PMU events of one model.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) events: BTreeMap<Select, Event>,
    /// All bits that the events set in a register.
    pub(crate) offcore: u64,
    pub(crate) frontend: u64,
    pub(crate) load_latency: u64,
}

/// Reads the events of the core PMU. `unit` is its name on a hybrid processor, where the directory
/// has the events of several.
pub(crate) fn core_events(
    list: &str,
    directory: &Path,
    unit: Option<&str>,
    columns: &Columns,
) -> Events {
    let mut events = Events::default();
    let entries =
        fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let json: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        // A file that is not an array of objects (metricgroups.json) has no events.
        for object in json
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
        {
            // With another "Unit" it is an event of the uncore or of another PMU; without
            // EventCode a metric or an event of a fixed counter.
            let of_unit = object.get("Unit").and_then(Value::as_str) == unit;
            if !of_unit || !object.contains_key("EventCode") {
                continue;
            }
            events.add(list, object, columns);
        }
    }
    assert!(!events.events.is_empty(), "{list}: no events");
    for missing in MISSING.iter().filter(|one| matches(one.lists, list)) {
        events.add_missing(list, missing);
    }
    events
}

impl Events {
    fn add(&mut self, list: &str, object: &Object, columns: &Columns) {
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
            let wrong = EXCEPTIONS.iter().find(|wrong| {
                matches(wrong.lists, list)
                    && (wrong.event, wrong.listed) == (event, listed)
                    && wrong.umask.is_none_or(|umask| umask == select.1)
            });
            let (event, umask, cmask, inv, edge) = select;
            let bits = u64::from(event)
                | (u64::from(umask) << 8)
                | (u64::from(edge) << 18)
                | (u64::from(number("AnyThread")) << 21)
                | (u64::from(inv) << 23)
                | (u64::from(cmask) << 24);
            let (two, one, precise) = *columns
                .get(&bits)
                .unwrap_or_else(|| panic!("{list}: {name} ({bits:#x}) is not in intel-counters"));
            assert!(two == listed && one & two == two, "{list}: {name}");
            let counters = wrong.map_or(one, |exception| exception.right);
            let register = registers
                .next()
                .map(|register| self.register(parse_number(register), value));
            let description = |key| text(key).unwrap_or_default();
            let meaning = meaning(
                name,
                [
                    description("BriefDescription"),
                    description("PublicDescription"),
                ],
            );
            let entry = self.events.entry(select).or_insert_with(|| Event {
                name: name.to_string(),
                counters,
                precise,
                meaning: meaning.clone(),
                register,
            });
            assert_eq!(entry.meaning, meaning, "{list}: {} and {name}", entry.name);
            entry.counters |= counters;
            entry.precise |= precise;
            entry.register = entry.register.or(register);
        }
    }

    fn add_missing(&mut self, list: &str, missing: &Missing) {
        let same = self
            .events
            .values()
            .find(|event| event.name == missing.same_as);
        let same = same.unwrap_or_else(|| panic!("{list}: no {}", missing.same_as));
        let event = Event {
            name: same.name.clone(),
            counters: same.counters,
            precise: same.precise,
            meaning: same.meaning.clone(),
            register: missing.register.or(same.register),
        };
        let select = (missing.event, missing.umask, 0, false, false);
        let there = self.events.insert(select, event);
        assert!(there.is_none(), "{list} has {select:x?}");
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

pub(crate) fn parse_number(text: &str) -> u64 {
    let text = text.trim();
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|e| panic!("\"{text}\": {e}"))
}
