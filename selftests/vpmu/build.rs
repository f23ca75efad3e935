// SPDX-License-Identifier: GPL-2.0

//! Converts Intel's event lists into the model's tables.
//!
//! The lists come from `$KERNEL_SOURCE/tools/perf/pmu-events/arch/x86/`: JSON arrays of flat
//! objects whose values are nearly all strings. Of each event the table holds what selects it, the
//! counters that the list names, the register beside the event select that it needs, and what its
//! name says that it counts. The counters of a core with one thread, which the kernel's copies of the
//! lists lack, come from `../intel-counters`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Map, Value};

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

/// Where a list is known to be wrong.
struct Exception {
    /// Directories of the lists.
    lists: &'static str,
    /// EVENT_SELECT, and UMASK unless any will do.
    event: u8,
    umask: Option<u8>,
    /// The counters that the list names, and those that it should.
    listed: u8,
    right: u8,
}

const EXCEPTIONS: [Exception; 1] = [
    // OFFCORE_RESPONSE: all 270 lines name counter 2 alone. SDM vol. 3, 20.3.1.1.3 lets any
    // IA32_PERFEVTSELx select it, and the list of Westmere, whose facility is the same with a second
    // register, names counters 0 to 3 in each of these lines.
    Exception {
        lists: "nehalemep",
        event: 0xb7,
        umask: None,
        listed: 0b0100,
        right: 0b1111,
    },
];

/// What a list lacks.
struct Missing {
    /// Directories of the lists.
    lists: &'static str,
    event: u8,
    umask: u8,
    /// The name of the listed event that counts the same on the same counters.
    same_as: &'static str,
}

/// MEM_UOPS_RETIRED's umask is made of two halves, which the lists of Sandy Bridge and Ivy Bridge have
/// in the combinations that Intel recommends: 01H loads, 02H stores; and of these 10H those that
/// missed the STLB, 20H locked ones, 40H those that cross a line, 80H all (SDM vol. 3, the table of
/// event D0H: "combine with umask 10H, 20H, 40H, 80H"). With all four of the latter they are all
/// loads, or all stores, as 80H has the others in it. The built-in driver's L1-dcache-loads and
/// L1-dcache-stores are these (`snb_hw_cache_event_ids`, MEM_UOP_RETIRED.LOADS and .STORES).
const MISSING: [Missing; 2] = [
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf1,
        same_as: "MEM_UOPS_RETIRED.ALL_LOADS",
    },
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf2,
        same_as: "MEM_UOPS_RETIRED.ALL_STORES",
    },
];

type Object = Map<String, Value>;

/// The counters of each event select of a list: with two threads a core, and with one.
type Columns = BTreeMap<u64, (u8, u8)>;

/// Reads what `../intel-counters` says of a list; its head describes the format.
fn columns(text: &str, list: &str) -> Columns {
    let hex = |text| u64::from_str_radix(text, 16).unwrap_or_else(|e| panic!("\"{text}\": {e}"));
    let mut letter = None;
    let mut columns = Columns::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["list", sign, name] if name == list => letter = Some(sign),
            [] | ["list", ..] => (),
            [lists, two, one, _, _, ref selects @ ..] => {
                if lists.contains(letter.expect("the lists' letters come first")) {
                    let counters = (hex(two) as u8, hex(one) as u8);
                    columns.extend(selects.iter().map(|select| (hex(select), counters)));
                }
            }
            _ => panic!("intel-counters: \"{line}\""),
        }
    }
    columns
}

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
        let events = core_events(list, &directory, &columns(&text, list));
        write_table(&mut out, name, &events);
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
    meaning: String,
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

fn core_events(list: &str, directory: &Path, columns: &Columns) -> Events {
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
            let (two, one) = *columns
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
                meaning: meaning.clone(),
                register,
            });
            assert_eq!(entry.meaning, meaning, "{list}: {} and {name}", entry.name);
            entry.counters |= counters;
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
            meaning: same.meaning.clone(),
            register: same.register,
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

/// What an event of this name counts: `event::Meaning`. An event select's other fields do not tell,
/// as the same ones mean something else on another model.
fn meaning(name: &str, descriptions: [&str; 2]) -> String {
    let meaning = meaning_by_name(name);
    // MEM_INST_RETIRED.ANY is what ALL_LOADS and ALL_STORES are, which its description leaves out.
    if name == "MEM_INST_RETIRED.ANY" || descriptions.into_iter().any(has_prefetches) {
        let part = meaning.strip_prefix("Part(");
        let part = part.unwrap_or_else(|| panic!("{name}: {meaning} and prefetches"));
        format!("PartAndPrefetches({part}")
    } else {
        meaning
    }
}

/// Does it say that the event counts software prefetches beside what its name says?
fn has_prefetches(description: &str) -> bool {
    ["accounts for", "also counts", "includes all"]
        .iter()
        .any(|says| description.contains(&format!("event {says} SW prefetch")))
}

fn meaning_by_name(name: &str) -> String {
    // Counted on both threads, or for precise sampling: here the same.
    let name = name.strip_suffix("_ANY").unwrap_or(name);
    let name = name.strip_suffix("_PS").unwrap_or(name);
    let part = |of: &str, low: u32, high: u32| format!("Part(Of::{of}, {low}, {high})");
    let all = |of| part(of, 0, WHOLE);
    match name {
        "INST_RETIRED.ANY_P" | "INST_RETIRED.PREC_DIST" => return all("Instructions"),
        "CPU_CLK_UNHALTED.THREAD_P" => return "Cycles".to_string(),
        "CPU_CLK_UNHALTED.REF_TSC_P" => return "ReferenceCycles".to_string(),
        "CPU_CLK_UNHALTED.REF_P"
        | "CPU_CLK_UNHALTED.REF_XCLK"
        | "CPU_CLK_THREAD_UNHALTED.REF_XCLK" => return "CrystalCycles".to_string(),
        "TOPDOWN.SLOTS_P" => return "Slots".to_string(),
        _ => (),
    }
    let (group, event) = name.split_once('.').unwrap_or((name, ""));
    if let Some((_, _, of, low, high)) = PARTS
        .iter()
        .find(|(groups, names, ..)| matches(groups, group) && matches(names, event))
    {
        return part(of, *low, *high);
    }
    match group {
        "BR_INST_RETIRED" => all(branches(event)),
        "BR_MISP_RETIRED" => part(branches(event), 0, WHOLE / 32),
        _ => {
            let of = RATES
                .iter()
                .find(|(start, _)| group.starts_with(start))
                .map_or("Instructions", |(_, of)| of);
            WALKS
                .iter()
                .find(|(names, ..)| of.ends_with("Walks") && matches(names, event))
                .map_or(format!("Rate(Of::{of})"), |(_, low, high)| {
                    part(of, *low, *high)
                })
        }
    }
}

/// Is it one of these words?
fn matches(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// `event::Of` of a BR_INST_RETIRED or BR_MISP_RETIRED event.
fn branches(event: &str) -> &'static str {
    match event {
        "ALL_BRANCHES" | "ALL_BRANCHES_PEBS" => "Branches",
        "CONDITIONAL" | "COND" => "Conditional",
        "COND_TAKEN" => "ConditionalTaken",
        "NOT_TAKEN" | "COND_NTAKEN" => "NotTaken",
        "NEAR_TAKEN" | "TAKEN" => "NearTaken",
        "NEAR_CALL" | "NEAR_CALL_R3" => "NearCall",
        "NEAR_RETURN" | "RET" => "NearReturn",
        "FAR_BRANCH" => "Far",
        "INDIRECT" => "Indirect",
        "INDIRECT_CALL" => "IndirectCall",
        _ => panic!("{event}: which branches?"),
    }
}

/// `event::WHOLE`.
const WHOLE: u32 = 4096;

/// Events that are a share of what really happened: groups, names, of what, and the share as
/// `event::Meaning::Part` has it. README.md has the same as a table; a share that contains another
/// is a kind of it, and kinds that make up a whole add up.
#[rustfmt::skip]
const PARTS: [(&str, &str, &str, u32, u32); 72] = [
    // Loads and stores
    (MEM, "ALL_LOADS LOADS", "Loads", 0, WHOLE),
    (MEM, "ALL_STORES STORES", "Stores", 0, WHOLE),
    (MEM, "ANY", "Memory", 0, WHOLE),
    ("MEM_TRANS_RETIRED", "PRECISE_STORE STORE_SAMPLE", "Stores", 0, WHOLE),
    (MEM, "LOCK_LOADS", "Loads", 0, 64),
    (MEM, "SPLIT_LOADS", "Loads", 0, 16),
    (MEM, "SPLIT_STORES", "Stores", 0, 16),
    ("MISALIGN_MEM_REF", "LOADS", "Loads", 0, 16),
    ("MISALIGN_MEM_REF", "STORE STORES", "Stores", 0, 16),
    // Where a load is served
    (LOAD, "L1_HIT L1D_HIT", "Loads", 256, WHOLE),
    (LOAD, "FB_HIT HIT_LFB", "Loads", 128, 256),
    (LOAD, "L1_MISS", "Loads", 0, 128),
    (LOAD, "L2_HIT", "Loads", 32, 128),
    (LOAD, "L2_MISS", "Loads", 0, 32),
    (LOAD, "L3_HIT LLC_HIT", "Loads", 8, 32),
    (LOAD, "L3_MISS LLC_MISS", "Loads", 0, 8),
    (LOAD, "LLC_UNSHARED_HIT", "Loads", 20, 32),
    (LOAD, "OTHER_CORE_L2_HIT_HITM", "Loads", 8, 20),
    (L3_HIT, "XSNP_NONE", "Loads", 20, 32),
    (L3_HIT, "XSNP_HITM XSNP_FWD", "Loads", 16, 20),
    (L3_HIT, "XSNP_HIT XSNP_NO_FWD", "Loads", 12, 16),
    (L3_HIT, "XSNP_MISS", "Loads", 8, 12),
    (L3_MISS, "LOCAL_DRAM", "Loads", 0, 5),
    (L3_MISS, "REMOTE_DRAM", "Loads", 5, 6),
    (L3_MISS, "REMOTE_FWD REMOTE_CACHE_LOCAL_HOME_HIT", "Loads", 6, 7),
    (L3_MISS, "REMOTE_HITM OTHER_CORE_L2_HITM", "Loads", 7, 8),
    ("MEM_LOAD_UOPS_MISC_RETIRED", "LLC_MISS", "Loads", 0, 8),
    ("MEM_STORE_RETIRED", "L2_HIT", "Stores", 32, 128),
    // The caches
    ("L1D", "REPLACEMENT REPL ALLOCATED_IN_M", "Memory", 0, 128),
    ("L1D", "EVICTION M_EVICT M_REPL", "Memory", 0, 64),
    ("L1D_CACHE_LD", "MESI", "Loads", 0, WHOLE),
    ("L1D_CACHE_LD", "I_STATE", "Loads", 0, 256),
    ("L1D_CACHE_LD", "S_STATE", "Loads", 256, 512),
    ("L1D_CACHE_LD", "E_STATE", "Loads", 512, 2048),
    ("L1D_CACHE_LD", "M_STATE", "Loads", 2048, WHOLE),
    ("L1D_CACHE_ST", "S_STATE", "Stores", 256, 512),
    ("L1D_CACHE_ST", "E_STATE", "Stores", 512, 2048),
    ("L1D_CACHE_ST", "M_STATE", "Stores", 2048, WHOLE),
    ("L1D_ALL_REF", "ANY CACHEABLE", "Memory", 0, WHOLE),
    ("L2_RQSTS", "ALL_DEMAND_DATA_RD LOADS", "Loads", 0, 128),
    ("L2_RQSTS", "DEMAND_DATA_RD_HIT LD_HIT", "Loads", 32, 128),
    ("L2_RQSTS", "DEMAND_DATA_RD_MISS LD_MISS", "Loads", 0, 32),
    ("L2_RQSTS", "ALL_RFO RFOS", "Stores", 0, 128),
    ("L2_RQSTS", "RFO_HIT", "Stores", 32, 128),
    ("L2_RQSTS", "RFO_MISS", "Stores", 0, 32),
    ("L2_RQSTS", "ALL_CODE_RD IFETCHES", "Instructions", 0, 16),
    ("L2_RQSTS", "CODE_RD_HIT IFETCH_HIT", "Instructions", 4, 16),
    ("L2_RQSTS", "CODE_RD_MISS IFETCH_MISS", "Instructions", 0, 4),
    ("L2_RQSTS", "ALL_PF PREFETCHES ALL_HWPF", "Memory", 0, 64),
    ("L2_RQSTS", "PF_HIT L2_PF_HIT PREFETCH_HIT", "Memory", 16, 64),
    ("L2_RQSTS", "PF_MISS L2_PF_MISS PREFETCH_MISS HWPF_MISS", "Memory", 0, 16),
    ("L2_RQSTS", "ALL_DEMAND_REFERENCES", "Memory", 0, 128),
    ("L2_RQSTS", "ALL_DEMAND_MISS", "Memory", 0, 32),
    ("L2_RQSTS L2_REQUEST", "REFERENCES ALL", "Memory", 0, 192),
    ("L2_RQSTS L2_REQUEST", "HIT", "Memory", 48, 192),
    ("L2_RQSTS L2_REQUEST", "MISS", "Memory", 0, 48),
    ("L2_LINES_IN", "ALL ANY", "Memory", 0, 48),
    ("LONGEST_LAT_CACHE", "REFERENCE", "Memory", 0, 32),
    ("LONGEST_LAT_CACHE", "MISS", "Memory", 0, 8),
    ("OFFCORE_REQUESTS", "ALL_DATA_RD DATA_RD ANY.READ", "Loads", 0, 48),
    ("OFFCORE_REQUESTS", "DEMAND_DATA_RD DEMAND.READ_DATA", "Loads", 0, 32),
    ("OFFCORE_REQUESTS", "L3_MISS_DEMAND_DATA_RD", "Loads", 0, 8),
    ("OFFCORE_REQUESTS", "DEMAND_RFO DEMAND.RFO ANY.RFO", "Stores", 0, 32),
    ("OFFCORE_REQUESTS", "DEMAND_CODE_RD DEMAND.READ_CODE", "Instructions", 0, 4),
    ("OFFCORE_REQUESTS", "ALL_REQUESTS ANY", "Memory", 0, 64),
    // Page walks
    (MEM, "STLB_MISS_LOADS", "LoadWalks", 0, WHOLE),
    (MEM, "STLB_MISS_STORES", "StoreWalks", 0, WHOLE),
    (LOAD, "DTLB_MISS", "LoadWalks", 0, WHOLE),
    ("MEM_STORE_RETIRED", "DTLB_MISS", "StoreWalks", 0, WHOLE),
    ("ITLB_MISS_RETIRED", "", "FetchWalks", 0, WHOLE),
    ("PAGE_WALKS", "LLC_MISS", "Walks", 0, 32),
    ("MEM_UOP_RETIRED", "ANY", "Memory", 0, WHOLE),
];
const MEM: &str = "MEM_INST_RETIRED MEM_UOPS_RETIRED";
const LOAD: &str = "MEM_LOAD_RETIRED MEM_LOAD_UOPS_RETIRED";
const L3_HIT: &str =
    "MEM_LOAD_L3_HIT_RETIRED MEM_LOAD_UOPS_L3_HIT_RETIRED MEM_LOAD_UOPS_LLC_HIT_RETIRED";
const L3_MISS: &str = "MEM_LOAD_L3_MISS_RETIRED MEM_LOAD_UOPS_L3_MISS_RETIRED \
                       MEM_LOAD_UOPS_LLC_MISS_RETIRED MEM_UNCORE_RETIRED";

/// The same for the walks of a group of [`RATES`].
#[rustfmt::skip]
const WALKS: [(&str, u32, u32); 5] = [
    ("WALK_COMPLETED MISS_CAUSES_A_WALK ANY DEMAND_LD_WALK_COMPLETED DEMAND_LD_MISS_CAUSES_A_WALK", 0, WHOLE),
    ("WALK_COMPLETED_4K", 64, WHOLE),
    ("WALK_COMPLETED_2M_4M LARGE_WALK_COMPLETED LARGE_PAGE_WALK_COMPLETED", 4, 64),
    ("WALK_COMPLETED_1G", 0, 4),
    ("WALK_DURATION WALK_PENDING WALK_CYCLES WALK_ACTIVE DEMAND_LD_WALK_DURATION", 0, 24 * WHOLE),
];

/// What the other events of a group have their rate of, by how the group's name starts; else of
/// instructions.
const RATES: [(&str, &str); 24] = [
    ("DTLB_LOAD_MISSES", "LoadWalks"),
    ("DTLB_STORE_MISSES", "StoreWalks"),
    ("DTLB_MISSES", "DataWalks"),
    ("ITLB_MISSES", "FetchWalks"),
    ("PAGE_WALK", "Walks"),
    ("EPT", "Walks"),
    ("BR_", "Branches"),
    ("BACLEAR", "Branches"),
    ("MEM_LOAD", "Loads"),
    ("MEM_TRANS_RETIRED", "Loads"),
    ("MEM_INST_RETIRED", "Loads"),
    ("MEM_STORE", "Stores"),
    ("MEM_", "Memory"),
    ("LOAD_", "Loads"),
    ("LD_BLOCKS", "Loads"),
    ("STORE_", "Stores"),
    ("L1D_CACHE_ST", "Stores"),
    ("L1D_CACHE_LD", "Loads"),
    ("L1D", "Memory"),
    ("L2_", "Memory"),
    ("CACHE_LOCK", "Memory"),
    ("OFFCORE_REQUESTS", "Memory"),
    ("MEMORY_ACTIVITY", "Loads"),
    ("SQ_MISC", "Memory"),
];

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
             counters: {:#010b}, meaning: Meaning::{}, register: {register} }}, // {}",
            listed.counters, listed.meaning, listed.name
        )
        .unwrap();
    }
    writeln!(out, "    ],\n}};").unwrap();
}
