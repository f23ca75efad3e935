// SPDX-License-Identifier: GPL-2.0

//! The models' constraints against Intel's own event lists, as the kernel's source has them
//! (`tools/perf/pmu-events/arch/x86`).
//!
//! An event that a table allows on a counter which its list does not name would count nothing, or
//! something else. What differs all the same is written down next to the table, with the reason; how
//! many events it concerns is printed.

use std::path::Path;

use rpmu_logic::logic::capabilities::{Capabilities, Cpuid, Leaf};
use rpmu_logic::logic::event_select::EventSelect;
use rpmu_logic::logic::exception::{Exception, Reference};
use rpmu_logic::logic::model::{
    exceptions, Model, BROADWELL, EXCEPTIONS, GOLDEN_COVE, GOLDMONT, GOLDMONT_PLUS, HASWELL,
    ICE_LAKE, ICE_LAKE_SERVER, IVY_BRIDGE, IVY_BRIDGE_SERVER, NEHALEM, SANDY_BRIDGE,
    SANDY_BRIDGE_SERVER, SILVERMONT, SKYLAKE, WESTMERE,
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

/// An event of a list.
struct Listed {
    name: String,
    config: u64,
    counters: u64,
    /// `PEBS`: 1 where the event can be sampled precisely, 2 where it can be had in no other way.
    pebs: u64,
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

/// The events of the core that can be counted on a general-purpose counter.
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
            if field(object, "Unit").is_some() || !general {
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
                    pebs: bits("PEBS"),
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
    let mut used: Vec<(&str, &Exception)> = Vec::new();
    let mut wrong = Vec::new();
    for (list, model, gp) in LISTS {
        let pmu = pmu(model, *gp);
        let events = read(&lists.join(list));
        // Counting, precise: events, and those of them that are excepted, wider and narrower.
        let mut tally = [[0; 3]; 2];
        for event in &events {
            let select = EventSelect::from_bits(event.config);
            let listed = event.counters & ((1 << gp) - 1);
            for precise in [false, true] {
                let is_so = if precise {
                    event.pebs != 0 || model.pebs_events.has_others()
                } else {
                    event.pebs != 2
                };
                if !is_so {
                    continue;
                }
                let tally = &mut tally[usize::from(precise)];
                tally[0] += 1;
                let allowed = if precise {
                    pmu.precise_constraint(select, 1)
                } else {
                    pmu.constraint(select)
                };
                let allowed = allowed.counters.gp().bits();
                if allowed == listed {
                    continue;
                }
                let found = exceptions(model, Reference::IntelsList)
                    .find(|exception| exception.is_about(select, precise));
                match found {
                    Some(exception) => {
                        used.push((model.pmu_name, exception));
                        tally[if allowed & !listed != 0 { 1 } else { 2 }] += 1;
                    }
                    None => wrong.push(format!(
                        "{list}: {} {:#x} is for {listed:#x}, allowed on {allowed:#x}{}",
                        event.name,
                        event.config,
                        if precise { ", precise" } else { "" },
                    )),
                }
            }
        }
        let [counting, precise] = tally.map(|[events, wider, narrower]| {
            format!("{events} events, {wider} on more counters than listed, {narrower} on fewer")
        });
        println!("{list}: counting {counting}; precise {precise}");
        assert!(events.len() > 50, "{list}: not all of it was read");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (model, list) in EXCEPTIONS {
        for exception in *list {
            let is_used = used.contains(&(model.pmu_name, exception));
            assert!(
                is_used || exception.from != Reference::IntelsList,
                "{}: an exception without an event: {exception:x?}",
                model.name
            );
        }
    }
}
