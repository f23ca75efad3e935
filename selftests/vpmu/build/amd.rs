// SPDX-License-Identifier: GPL-2.0

//! Converts AMD's event lists, which have neither the counters nor the meanings of events.
//!
//! They are JSON arrays of flat objects, as Intel's. An event may have a line for each unit (bit of
//! UMask) and lines for several units together; one without UMask ignores it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::lists::parse_number;
use crate::meaning::matches;

/// The name of an event code, and the units in the list.
struct Event {
    name: String,
    /// `None` if a line has no UMask.
    units: Option<u8>,
}

/// Reads the core events of a list.
fn events(directory: &Path) -> BTreeMap<u16, Event> {
    let mut events: BTreeMap<u16, Event> = BTreeMap::new();
    let entries =
        fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let json: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for object in json.as_array().into_iter().flatten() {
            let text = |key: &str| object.get(key).and_then(Value::as_str);
            // With "Unit" it is an event of the L3 or the data fabric, without EventCode a metric.
            let (Some(code), None) = (text("EventCode"), text("Unit")) else {
                continue;
            };
            let name = text("EventName").unwrap();
            let name = name.split_once('.').map_or(name, |(name, _)| name);
            let units = text("UMask").map(|mask| parse_number(mask) as u8);
            let event = events.entry(parse_number(code) as u16).or_insert(Event {
                name: name.to_string(),
                units: Some(0),
            });
            event.units = event.units.zip(units).map(|(some, more)| some | more);
        }
    }
    assert!(!events.is_empty(), "{}: no events", directory.display());
    let list = directory.file_name().unwrap().to_str().unwrap();
    for (_, code, name) in MISSING.iter().filter(|(lists, ..)| matches(lists, list)) {
        let event = Event {
            name: name.to_string(),
            units: None,
        };
        assert!(
            events.insert(*code, event).is_none(),
            "{list} has {code:#x}"
        );
    }
    events
}

/// Events that a list lacks, by the names in the list of Zen 3. The built-in driver counts
/// L1-dcache-loads, L1-icache-loads and L1-icache-load-misses with them on all families from 17h on
/// (`amd_hw_cache_event_ids_f17h`).
const MISSING: [(&str, u16, &str); 3] = [
    ("amdzen4 amdzen5 amdzen6", 0x040, "ls_dc_accesses"),
    ("amdzen4 amdzen5 amdzen6", 0x080, "ic_fw32"),
    ("amdzen4 amdzen5 amdzen6", 0x081, "ic_fw32_miss"),
];

/// Writes the table of a list.
pub(crate) fn write_table(out: &mut String, directory: &Path, name: &str) {
    writeln!(
        out,
        "/// From AMD's list.\npub(super) static {name}: &[Event] = &["
    )
    .unwrap();
    for (code, event) in events(directory) {
        let meaning = meaning(&event.name, event.units.unwrap_or(0));
        writeln!(
            out,
            "    Event {{ event: {code:#05x}, counters: 0x3f, meaning: Meaning::{meaning} }}, // {}",
            event.name
        )
        .unwrap();
    }
    writeln!(out, "];").unwrap();
}

/// Returns the `event::amd::Meaning` of an event with this name. `units` are the units in the list,
/// 0 if the list ignores UnitMask.
fn meaning(name: &str, units: u8) -> String {
    if let Some((_, meaning)) = MEANINGS.iter().find(|(names, _)| {
        names
            .split(' ')
            .any(|one| one == name || one == format!("{name}/{units:#04x}"))
    }) {
        return meaning.to_string();
    }
    let of = RATES
        .iter()
        .find(|(start, _)| name.starts_with(start))
        .map_or("INSTRUCTION", |(_, of)| of);
    format!("Rate({of}, {units:#04x})")
}

/// Events whose counts follow from the CPU's retired instructions and the like, by names or by
/// names and units. README.md has them as a table.
#[rustfmt::skip]
const MEANINGS: [(&str, &str); 27] = [
    ("ex_ret_instr", "All(RETIRED)"),
    ("ls_not_halted_cyc", "Cycles"),
    ("ls_not_halted_p0_cyc", "ReferenceCycles"),
    // Branches
    ("ex_ret_brn", "All(BRANCHES)"),
    ("ex_ret_brn_misp", "Mispredicted(NEAR, FAR_TRANSFERS)"),
    ("ex_ret_brn_tkn", "All(TAKEN_BRANCHES)"),
    ("ex_ret_brn_tkn_misp", "Mispredicted(NEAR_TAKEN, &[])"),
    ("ex_ret_brn_far", "All(FAR_TRANSFERS)"),
    ("ex_ret_near_ret", "All(NEAR_RETURN)"),
    ("ex_ret_near_ret_mispred", "Mispredicted(NEAR_RETURN, &[])"),
    ("ex_ret_brn_ind_misp ex_ret_brn_uncond_ind_near_misp", "Mispredicted(INDIRECT, &[])"),
    ("ex_ret_ind_brch_instr ex_ret_brn_ind", "All(INDIRECT)"),
    ("ex_ret_cond ex_ret_brn_cond", "All(CONDITIONAL)"),
    ("ex_ret_cond_misp ex_ret_brn_cond_misp", "Mispredicted(CONDITIONAL, &[])"),
    ("ex_ret_uncond_brnch_instr ex_ret_brn_uncond", "All(UNCONDITIONAL)"),
    ("ex_ret_uncond_brnch_instr_mispred", "Mispredicted(UNCONDITIONAL, &[])"),
    // Memory
    ("ls_dc_accesses", "All(MEMORY)"),
    ("ls_dispatch", "Kinds([LOAD, STORE, LOAD_STORE, &[], &[], &[], &[], &[]])"),
    ("ls_pref_instr_disp", "Parts(PREFETCHES, [2048, 1024, 1024, 0, 0, 0, 0, 0])"),
    ("l2_request_g1", "Parts(MEMORY, [8, 64, 4, 16, 16, 8, 32, 128])"),
    ("l2_cache_req_stat", "Parts(MEMORY, [4, 2, 10, 36, 8, 16, 100, 16])"),
    // Translations. The misses of the L2 TLB are walks. For each walk, it has about two hits. An
    // eighth of the hits and of the misses is for coalesced pages.
    ("ls_l1_d_tlb_miss", "Parts(DATA_WALKS, [7168, 1024, 120, 8, 3520, 512, 60, 4])"),
    ("bp_l1_tlb_miss_l2_hit bp_l1_tlb_miss_l2_tlb_hit", "Part(FETCH_WALKS, 8192)"),
    ("bp_l1_tlb_miss_l2_miss", "All(FETCH_WALKS)"),
    ("bp_l1_tlb_miss_l2_tlb_miss/0xff", "Parts(FETCH_WALKS, [4032, 60, 4, 0, 0, 0, 0, 0])"),
    ("bp_l1_tlb_miss_l2_tlb_miss/0x0f", "Parts(FETCH_WALKS, [3520, 60, 4, 512, 0, 0, 0, 0])"),
    ("bp_l1_tlb_miss_l2_tlb_miss/0x07", "Parts(FETCH_WALKS, [4032, 60, 4, 0, 0, 0, 0, 0])"),
];

/// The kinds of occurrences of which other events count a rate, by the start of the event's name.
/// All further events count a rate of instructions.
const RATES: [(&str, &str); 6] = [
    ("ls_tablewalker", "WALKS"),
    ("ls_", "MEMORY"),
    ("l2_", "MEMORY"),
    ("l1_data_cache", "MEMORY"),
    ("bp_", "NEAR"),
    ("ex_ret_brn", "NEAR"),
];
