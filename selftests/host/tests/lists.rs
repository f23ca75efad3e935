// SPDX-License-Identifier: GPL-2.0

//! The models' constraints against Intel's own event lists, as the kernel's source has them
//! (`tools/perf/pmu-events/arch/x86`).
//!
//! An event that a table allows on a counter which its list does not name would count nothing, or
//! something else. What differs all the same is written down here, with the reason.

use std::path::Path;

use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::event_select::EventSelect;
use rpmu_logic::logic::model::{
    Model, BROADWELL, GOLDEN_COVE, GOLDMONT, GOLDMONT_PLUS, HASWELL, ICE_LAKE, ICE_LAKE_SERVER,
    IVY_BRIDGE, IVY_BRIDGE_SERVER, NEHALEM, SANDY_BRIDGE, SANDY_BRIDGE_SERVER, SILVERMONT, SKYLAKE,
    WESTMERE,
};
use rpmu_logic::logic::pmu::Pmu;

/// The lists, the model each is for, and how many general-purpose counters a thread has where a
/// core has as many threads as it can.
const LISTS: &[(&str, &Model, u32)] = &[
    ("nehalemep", &NEHALEM, 4),
    ("nehalemex", &NEHALEM, 4),
    ("westmereep-dp", &WESTMERE, 4),
    ("westmereep-sp", &WESTMERE, 4),
    ("westmereex", &WESTMERE, 4),
    ("sandybridge", &SANDY_BRIDGE, 4),
    ("jaketown", &SANDY_BRIDGE_SERVER, 4),
    ("ivybridge", &IVY_BRIDGE, 4),
    ("ivytown", &IVY_BRIDGE_SERVER, 4),
    ("haswell", &HASWELL, 4),
    ("haswellx", &HASWELL, 4),
    ("broadwell", &BROADWELL, 4),
    ("broadwellde", &BROADWELL, 4),
    ("broadwellx", &BROADWELL, 4),
    ("skylake", &SKYLAKE, 4),
    ("skylakex", &SKYLAKE, 4),
    ("cascadelakex", &SKYLAKE, 4),
    ("icelake", &ICE_LAKE, 8),
    ("rocketlake", &ICE_LAKE, 8),
    ("tigerlake", &ICE_LAKE, 8),
    ("icelakex", &ICE_LAKE_SERVER, 8),
    ("sapphirerapids", &GOLDEN_COVE, 8),
    ("emeraldrapids", &GOLDEN_COVE, 8),
    ("silvermont", &SILVERMONT, 2),
    ("goldmont", &GOLDMONT, 4),
    ("goldmontplus", &GOLDMONT_PLUS, 4),
];

/// An event code, on the models with these `pmu_name`s, that is allowed more counters than listed
/// (or fewer), and why. All are the built-in driver's too.
#[rustfmt::skip]
const EXCEPTIONS: &[(&[&str], u64, &str)] = &[
    (&["nehalem", "westmere"], 0xb7, "OFFCORE_RESPONSE: counter 2 alone in three lists, any in those of Westmere DP and SP"),
    (&["nehalem"], 0x53, "L1D_CACHE_LOCK_FB_HIT: counters 0 and 1; the built-in driver has no line for it"),
    (&["nehalem", "westmere"], 0x52, "L1D_CACHE_PREFETCH_LOCK_FB_HIT: the same"),
    (&["nehalem", "westmere"], 0x4c, "LOAD_HIT_PRE: the same"),
    (&["westmere"], 0x4e, "L1D_PREFETCH: the same"),
    (&["sandybridge"], 0x48, "L1D_PEND_MISS: PENDING has counter 2, FB_FULL any; the built-in driver's line is for both"),
];

/// An event of a list.
struct Listed {
    name: String,
    config: u64,
    counters: u64,
}

/// The values of one object of a list, of which each is on a line of its own.
fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = object.split_once(&format!("\"{name}\": \""))?;
    Some(rest.split_once('"')?.0)
}

fn number(text: &str) -> u64 {
    let text = text.trim();
    match text.to_lowercase().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// The events of the core that can be counted on a general-purpose counter. Those that can only be
/// sampled, precisely (`PEBS` 2), are left out.
fn read(directory: &Path) -> Vec<Listed> {
    let mut events = Vec::new();
    for file in std::fs::read_dir(directory).expect("no such list") {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for object in text.split("\n    {").skip(1) {
            let Some(codes) = field(object, "EventCode") else {
                continue;
            };
            let listed = field(object, "Counter").unwrap_or_default();
            let general = listed.starts_with(|first: char| first.is_ascii_digit());
            let precise = field(object, "PEBS") == Some("2");
            if field(object, "Unit").is_some() || !general || precise {
                continue;
            }
            let bits = |name| field(object, name).map_or(0, number);
            let filters = (bits("UMask") << 8)
                | (bits("EdgeDetect") << 18)
                | (bits("AnyThread") << 21)
                | (bits("Invert") << 23)
                | (bits("CounterMask") << 24);
            for code in codes.split(',') {
                events.push(Listed {
                    name: field(object, "EventName").unwrap().to_owned(),
                    config: number(code) | filters,
                    counters: listed.split(',').fold(0, |mask, n| mask | (1 << number(n))),
                });
            }
        }
    }
    events
}

fn pmu(model: &'static Model, gp: u32) -> Pmu {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0xa,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0004 | (gp << 8),
            edx: 4,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    Pmu {
        model,
        capabilities: Capabilities::decode(&cpuid, None).unwrap(),
    }
}

#[test]
fn events_are_on_the_counters_that_intel_lists() {
    let Some(tree) = std::env::var_os("KERNEL_SOURCE") else {
        eprintln!("not compared: KERNEL_SOURCE is not set");
        return;
    };
    let lists = Path::new(&tree).join("tools/perf/pmu-events/arch/x86");
    let mut used = vec![false; EXCEPTIONS.len()];
    let mut wrong = Vec::new();
    for (list, model, gp) in LISTS {
        let pmu = pmu(model, *gp);
        let events = read(&lists.join(list));
        let mut excepted = 0;
        for event in &events {
            let allowed = pmu.constraint(EventSelect::from_bits(event.config));
            let allowed = allowed.counters.gp().bits();
            if allowed == event.counters & ((1 << gp) - 1) {
                continue;
            }
            let exception = EXCEPTIONS.iter().position(|(names, code, _)| {
                names.contains(&model.pmu_name) && *code == event.config & 0xff
            });
            match exception {
                Some(found) => {
                    used[found] = true;
                    excepted += 1;
                }
                None => wrong.push(format!(
                    "{list}: {} {:#x} is for {:#x}, allowed on {allowed:#x}",
                    event.name, event.config, event.counters
                )),
            }
        }
        println!(
            "{list}: {} events, {excepted} of them excepted",
            events.len()
        );
        assert!(events.len() > 50, "{list}: not all of it was read");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (used, exception) in used.into_iter().zip(EXCEPTIONS) {
        assert!(used, "an exception without an event: {exception:x?}");
    }
}
