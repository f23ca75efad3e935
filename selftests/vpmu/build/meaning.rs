// SPDX-License-Identifier: GPL-2.0

//! The meanings of events, by their names.

/// Returns the `event::Meaning` of an event with this name. The event select is not enough: the
/// same one has another meaning on another model. The descriptions tell whether software prefetches
/// count, too.
pub(crate) fn meaning(name: &str, descriptions: [&str; 2]) -> String {
    let meaning = meaning_by_name(name);
    // MEM_INST_RETIRED.ANY is ALL_LOADS plus ALL_STORES; its description does not say so.
    if name == "MEM_INST_RETIRED.ANY" || descriptions.into_iter().any(has_prefetches) {
        let part = meaning.strip_prefix("Part(");
        let part = part.unwrap_or_else(|| panic!("{name}: {meaning} and prefetches"));
        format!("PartAndPrefetches({part}")
    } else {
        meaning
    }
}

/// Returns whether an event with this description counts software prefetches as well.
fn has_prefetches(description: &str) -> bool {
    ["accounts for", "also counts", "includes all"]
        .iter()
        .any(|says| description.contains(&format!("event {says} SW prefetch")))
}

fn meaning_by_name(name: &str) -> String {
    // The suffixes for both threads and for precise sampling do not change the meaning.
    let name = name.strip_suffix("_ANY").unwrap_or(name);
    let name = name.strip_suffix("_PS").unwrap_or(name);
    // The same branches; only the precise records differ, which have the misprediction's cost.
    let name = name.strip_suffix("_COST").unwrap_or(name);
    let part = |of: &str, low: u32, high: u32| format!("Part(Activity::{of}, {low}, {high})");
    let all = |of| part(of, 0, WHOLE);
    match name {
        "INST_RETIRED.ANY_P" | "INST_RETIRED.PREC_DIST" => return all("Instructions"),
        "CPU_CLK_UNHALTED.THREAD_P" | "CPU_CLK_UNHALTED.CORE_P" => return "Cycles".to_string(),
        "CPU_CLK_UNHALTED.REF_TSC_P" | "CPU_CLK_UNHALTED.REF" => {
            return "ReferenceCycles".to_string()
        }
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
        "MEM_UOPS_RETIRED" if event.starts_with("LOAD_LATENCY") => part("Loads", 0, 128),
        _ => {
            let of = RATES
                .iter()
                .find(|(start, _)| group.starts_with(start))
                .map_or("Instructions", |(_, of)| of);
            WALKS
                .iter()
                .find(|(names, ..)| of.ends_with("Walks") && matches(names, event))
                .map_or(format!("Rate(Activity::{of})"), |(_, low, high)| {
                    part(of, *low, *high)
                })
        }
    }
}

/// Returns the `event::Activity` of a BR_INST_RETIRED or BR_MISP_RETIRED event.
fn branches(event: &str) -> &'static str {
    match event {
        "ALL_BRANCHES" | "ALL_BRANCHES_PEBS" => "Branches",
        "CONDITIONAL" | "COND" | "JCC" => "Conditional",
        "COND_TAKEN" | "TAKEN_JCC" => "ConditionalTaken",
        "NOT_TAKEN" | "COND_NTAKEN" => "NotTaken",
        "NEAR_TAKEN" | "TAKEN" => "NearTaken",
        "ALL_TAKEN_BRANCHES" => "Taken",
        "NEAR_CALL" | "NEAR_CALL_R3" | "CALL" => "NearCall",
        "REL_CALL" => "DirectCall",
        "REL_JMP" => "DirectJump",
        "NEAR_RETURN" | "RET" | "RETURN" => "NearReturn",
        "FAR_BRANCH" => "Far",
        "INDIRECT" | "NON_RETURN_IND" => "Indirect",
        "INDIRECT_JMP" => "IndirectJump",
        "INDIRECT_CALL" | "IND_CALL" => "IndirectCall",
        _ => panic!("unknown branch event {event}"),
    }
}

/// `event::WHOLE`.
const WHOLE: u32 = 4096;

/// Events that are a share of actual occurrences: groups, names, the activity, and the share as in
/// `event::Meaning::Part`. README.md has them as a table. A share within another share is a subset
/// of it; shares that make up a whole add up to it.
#[rustfmt::skip]
const PARTS: [(&str, &str, &str, u32, u32); 80] = [
    // Loads and stores
    (MEM, "ALL_LOADS LOADS", "Loads", 0, WHOLE),
    (MEM, "ALL_STORES STORES", "Stores", 0, WHOLE),
    (MEM, "ANY ALL", "Memory", 0, WHOLE),
    ("MEM_TRANS_RETIRED", "PRECISE_STORE STORE_SAMPLE", "Stores", 0, WHOLE),
    ("MEM_UOPS_RETIRED", "STORE_LATENCY", "Stores", 0, WHOLE),
    (MEM, "LOCK_LOADS", "Loads", 0, 64),
    (MEM, "SPLIT_LOADS", "Loads", 0, 16),
    (MEM, "SPLIT_STORES", "Stores", 0, 16),
    (MEM, "SPLIT", "Memory", 0, 16),
    ("MISALIGN_MEM_REF", "LOADS", "Loads", 0, 16),
    ("MISALIGN_MEM_REF", "STORE STORES", "Stores", 0, 16),
    // Where a load is served
    (LOAD, "L1_HIT L1D_HIT", "Loads", 256, WHOLE),
    (LOAD, "FB_HIT HIT_LFB WCB_HIT", "Loads", 128, 256),
    (LOAD, "L1_MISS", "Loads", 0, 128),
    (LOAD, "L2_HIT", "Loads", 32, 128),
    (LOAD, "L2_MISS", "Loads", 0, 32),
    (LOAD, "L3_HIT LLC_HIT", "Loads", 8, 32),
    (LOAD, "L3_MISS LLC_MISS DRAM_HIT", "Loads", 0, 8),
    (LOAD, "HITM", "Loads", 16, 20),
    (LOAD, "LLC_UNSHARED_HIT", "Loads", 20, 32),
    (LOAD, "OTHER_CORE_L2_HIT_HITM", "Loads", 8, 20),
    (L3_HIT, "XSNP_NONE", "Loads", 20, 32),
    (L3_HIT, "XSNP_HITM XSNP_FWD", "Loads", 16, 20),
    (L3_HIT, "XSNP_HIT XSNP_NO_FWD", "Loads", 12, 16),
    (L3_HIT, "XSNP_MISS", "Loads", 8, 12),
    (L3_MISS, "LOCAL_DRAM", "Loads", 0, 5),
    (L3_MISS, "REMOTE_DRAM REMOTE_DRAM_OR_NOFWD", "Loads", 5, 6),
    (L3_MISS, "REMOTE_FWD REMOTE_FWD_NONM REMOTE_CACHE_LOCAL_HOME_HIT", "Loads", 6, 7),
    (L3_MISS, "REMOTE_HITM REMOTE_FWD_HITM OTHER_CORE_L2_HITM", "Loads", 7, 8),
    ("MEM_LOAD_UOPS_L3_MISS_RETIRED", "ALL", "Loads", 0, 8),
    ("MEM_LOAD_UOPS_MISC_RETIRED", "LLC_MISS", "Loads", 0, 8),
    ("MEM_LOAD_UOPS_MISC_RETIRED", "L3_HIT_SNOOP_HITM", "Loads", 16, 20),
    ("MEM_LOAD_UOPS_RETIRED_MISC", "L3_MISS", "Loads", 0, 8),
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
    ("ICACHE", "ACCESSES", "Instructions", 0, 1024),
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
    (MEM, "STLB_MISS_LOADS DTLB_MISS_LOADS", "LoadWalks", 0, WHOLE),
    (MEM, "STLB_MISS_STORES DTLB_MISS_STORES", "StoreWalks", 0, WHOLE),
    (MEM, "STLB_MISS DTLB_MISS", "DataWalks", 0, WHOLE),
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

/// The same for events of page walks, whose group is in [`RATES`].
#[rustfmt::skip]
const WALKS: [(&str, u32, u32); 5] = [
    ("WALK_COMPLETED MISS_CAUSES_A_WALK MISS_CAUSED_WALK ANY DEMAND_LD_WALK_COMPLETED DEMAND_LD_MISS_CAUSES_A_WALK", 0, WHOLE),
    ("WALK_COMPLETED_4K", 64, WHOLE),
    ("WALK_COMPLETED_2M_4M LARGE_WALK_COMPLETED LARGE_PAGE_WALK_COMPLETED", 4, 64),
    ("WALK_COMPLETED_1G WALK_COMPLETED_1GB", 0, 4),
    ("WALK_DURATION WALK_PENDING WALK_CYCLES WALK_ACTIVE DEMAND_LD_WALK_DURATION", 0, 24 * WHOLE),
];

/// The activity of which the other events of a group are a rate, by the start of the group's name.
/// Events of all other groups are a rate of instructions.
const RATES: [(&str, &str); 25] = [
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
    // MEM_BOUND_STALLS of Tremont, by an older name.
    ("C0_STALLS", "Memory"),
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

/// Returns whether `word` is one of these words.
pub(crate) fn matches(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}
