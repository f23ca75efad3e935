// SPDX-License-Identifier: GPL-2.0

//! The models' constraints against Intel's event lists: the kernel's copies
//! (`tools/perf/pmu-events/arch/x86`), and the columns that these lack
//! (`selftests/intel-counters`).
//!
//! On a counter that its list does not name, an event counts nothing, or something else. Each known
//! difference has a reason (`exceptions`); the tests print the number of its events.

use std::collections::BTreeMap;
use std::path::Path;

mod exceptions;

use exceptions::{
    exceptions,
    Exception,
    Reference,
    EXCEPTIONS, //
};
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::model::{
    Model,
    ALDER_LAKE_ATOM,
    ALDER_LAKE_CORE,
    BROADWELL,
    CRESTMONT,
    GOLDEN_COVE,
    GOLDMONT,
    GOLDMONT_PLUS,
    GRACEMONT,
    HASWELL,
    ICE_LAKE,
    ICE_LAKE_SERVER,
    IVY_BRIDGE,
    IVY_BRIDGE_SERVER,
    NEHALEM,
    REDWOOD_COVE,
    SANDY_BRIDGE,
    SANDY_BRIDGE_SERVER,
    SILVERMONT,
    SKYLAKE,
    SKYLAKE_SERVER,
    TREMONT,
    WESTMERE, //
};
use rpmu_logic::logic::pmu::PmuInfo;
use rpmu_logic::logic::regs::event_select::EventSelect;

/// The lists, on hybrids with the name of the PMU, with their models, and the number of a thread's
/// general-purpose counters with all threads of the core and with one.
const LISTS: &[(&str, &Model, u32, u32)] = &[
    ("nehalemep", &NEHALEM, 4, 4),
    ("nehalemex", &NEHALEM, 4, 4),
    ("westmereep-dp", &WESTMERE, 4, 4),
    ("westmereep-sp", &WESTMERE, 4, 4),
    ("westmereex", &WESTMERE, 4, 4),
    ("sandybridge", &SANDY_BRIDGE, 4, 8),
    ("jaketown", &SANDY_BRIDGE_SERVER, 4, 8),
    ("ivybridge", &IVY_BRIDGE, 4, 8),
    ("ivytown", &IVY_BRIDGE_SERVER, 4, 8),
    ("haswell", &HASWELL, 4, 8),
    ("haswellx", &HASWELL, 4, 8),
    ("broadwell", &BROADWELL, 4, 8),
    ("broadwellde", &BROADWELL, 4, 8),
    ("broadwellx", &BROADWELL, 4, 8),
    ("skylake", &SKYLAKE, 4, 8),
    ("skylakex", &SKYLAKE_SERVER, 4, 8),
    ("cascadelakex", &SKYLAKE_SERVER, 4, 8),
    ("icelake", &ICE_LAKE, 8, 8),
    ("rocketlake", &ICE_LAKE, 8, 8),
    ("tigerlake", &ICE_LAKE, 8, 8),
    ("icelakex", &ICE_LAKE_SERVER, 8, 8),
    ("sapphirerapids", &GOLDEN_COVE, 8, 8),
    ("emeraldrapids", &GOLDEN_COVE, 8, 8),
    ("graniterapids", &REDWOOD_COVE, 8, 8),
    ("alderlake/cpu_core", &ALDER_LAKE_CORE, 8, 8),
    ("silvermont", &SILVERMONT, 2, 2),
    ("goldmont", &GOLDMONT, 4, 4),
    ("goldmontplus", &GOLDMONT_PLUS, 4, 4),
    ("snowridgex", &TREMONT, 4, 4),
    ("elkhartlake", &TREMONT, 4, 4),
    ("alderlaken", &GRACEMONT, 6, 6),
    ("alderlake/cpu_atom", &ALDER_LAKE_ATOM, 6, 6),
    ("sierraforest", &CRESTMONT, 8, 8),
    ("grandridge", &CRESTMONT, 8, 8),
];

/// An event of a list.
struct Listed {
    name: String,
    config: u64,
    counters: u64,
}

/// Returns a value of an object of a list.
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

/// Reads the core's events that general-purpose counters can count. `unit` is the name of the PMU
/// on a hybrid, where the directory has the events of several.
fn read(directory: &Path, unit: Option<&str>) -> Vec<Listed> {
    let mut events = Vec::new();
    for file in std::fs::read_dir(directory).expect("the list exists") {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for object in text.split("\n    {").skip(1) {
            let Some(codes) = field(object, "EventCode") else {
                continue;
            };
            let listed = field(object, "Counter").unwrap_or_default();
            let general = listed.starts_with(|first: char| first.is_ascii_digit());
            if field(object, "Unit") != unit || !general {
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

fn pmu(model: &'static Model, gp: u32) -> PmuInfo {
    PmuInfo::new(
        model,
        Capabilities::decode(&Cpuid::intel(4, gp, 4), None).unwrap(),
    )
}

#[test]
fn events_are_on_the_counters_that_intel_lists() {
    let Some(tree) = std::env::var_os("KERNEL_SOURCE") else {
        eprintln!("not compared: KERNEL_SOURCE is not set");
        return;
    };
    let lists = Path::new(&tree).join("tools/perf/pmu-events/arch/x86");
    let mut wrong = Vec::new();
    for (list, model, gp, _) in LISTS {
        let pmu = pmu(model, *gp);
        let (directory, unit) = match list.split_once('/') {
            Some((directory, unit)) => (directory, Some(unit)),
            None => (*list, None),
        };
        let events = read(&lists.join(directory), unit);
        // Excepted events, on more counters and on fewer.
        let mut tally = [0; 2];
        for event in &events {
            let select = EventSelect::from_bits(event.config);
            let listed = event.counters & ((1 << gp) - 1);
            let allowed = pmu.constraint(select).counters.gp().bits();
            if allowed == listed {
                continue;
            }
            let mut exceptions = exceptions(model, Reference::IntelsList);
            match exceptions.find(|exception| exception.is_about(select, false)) {
                Some(_) => tally[usize::from(allowed & !listed == 0)] += 1,
                None => wrong.push(format!(
                    "{list}: {} {:#x} is for {listed:#x}, allowed on {allowed:#x}",
                    event.name, event.config,
                )),
            }
        }
        let [wider, narrower] = tally;
        println!(
            "{list}: {} events, {wider} on more counters than listed, {narrower} on fewer",
            events.len()
        );
        assert!(events.len() > 50, "{list}: incompletely read");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The columns of an event select in `selftests/intel-counters`.
#[derive(Clone, Copy)]
struct Columns {
    /// The counters with all threads of the core, and with one.
    counters: [u64; 2],
    /// The counters for precise sampling, if the list has them.
    pebs_counters: Option<u64>,
    /// 1 if the event can be sampled precisely, 2 if it can only be sampled precisely, otherwise 0.
    pebs: u64,
}

impl Columns {
    /// Returns the counters of the precise event. The lists up to Skylake have no column for them;
    /// these processors have PEBS on counters 0 to 3 only (SDM vol. 3, IA32_PEBS_ENABLE).
    fn precise(&self, counters: u64) -> u64 {
        counters & self.pebs_counters.unwrap_or(0xf)
    }
}

/// Reads the columns of all lists, by the name of the list.
fn columns() -> BTreeMap<&'static str, Vec<(EventSelect, Columns)>> {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let mut names = BTreeMap::new();
    let mut lists = BTreeMap::<_, Vec<_>>::new();
    let lines = include_str!("../../intel-counters").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words = line.split([' ', ':']).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        if let ["list", letter, name] = words[..] {
            names.insert(letter, name);
            continue;
        }
        let [letters, two, one, pebs, kind, ref selects @ ..] = words[..] else {
            panic!("{line}");
        };
        let columns = Columns {
            counters: [hex(two), hex(one)],
            pebs_counters: (pebs != "-").then(|| hex(pebs)),
            pebs: hex(kind),
        };
        for n in 0..letters.len() {
            let list = lists.entry(names[&letters[n..=n]]).or_default();
            let selects = selects.iter().map(|text| EventSelect::from_bits(hex(text)));
            list.extend(selects.map(|select| (select, columns)));
        }
    }
    lists
}

/// The lists with a column PDIST, the counters of the highest precision. Among the general-purpose
/// ones it names counter 0 for each event that is precise there, and none for the others (except
/// for load latency in Granite Rapids' list, which is precise on counters 1 to 7).
const WITH_PDIST: [&str; 5] = [
    "sapphirerapids",
    "emeraldrapids",
    "graniterapids",
    "snowridgex",
    "elkhartlake",
];

/// Every event must be on exactly the counters that the columns of its list name, unless there is
/// an exception: with two threads and with one, counting and precise. With the highest precision,
/// it must be on those of the column PDIST, and in lists without that column on no additional ones.
/// This includes counting the events that the list has for precise sampling only, because users can
/// open them as counting events.
#[test]
fn events_are_on_the_counters_of_every_column() {
    let columns = columns();
    let mut used: Vec<(&str, &Exception)> = Vec::new();
    let mut wrong = Vec::new();
    // The numbers of comparisons, and of comparisons with additional counters and no reason.
    let mut tally = [0; 2];
    for (list, model, two, one) in LISTS {
        let events = &columns[list];
        assert!(events.len() > 70, "{list}: incompletely read");
        for (select, columns) in events {
            for (thread, gp) in [two, one].into_iter().enumerate() {
                let pmu = pmu(model, *gp);
                let listed = columns.counters[thread] & ((1 << gp) - 1);
                let mut compare = |allowed: u64, listed: u64, precise_ip: u8| {
                    tally[0] += 1;
                    if allowed == listed {
                        return;
                    }
                    let mut exceptions = exceptions(model, Reference::IntelsList);
                    let found = exceptions.find(|it| it.is_about(*select, precise_ip > 0));
                    if let Some(exception) = found {
                        used.extend([model.pmu_name, model.name].map(|name| (name, exception)));
                        return;
                    }
                    tally[1] += usize::from(allowed & !listed != 0);
                    wrong.push(format!(
                        "{list}: {:#x} is for {listed:#x} of {gp}, allowed on {allowed:#x}, \
                         precise_ip {precise_ip}",
                        select.bits(),
                    ));
                };
                let precise = |ip| pmu.precise_constraint(*select, ip).counters.gp().bits();
                compare(pmu.constraint(*select).counters.gp().bits(), listed, 0);
                let mut listed = columns.precise(listed);
                // An event that the list does not call precise may have fewer counters, or none.
                if columns.pebs == 0 && !model.pebs_events.has_others() {
                    listed &= precise(1);
                }
                compare(precise(1), listed, 1);
                // Fewer counters may have the highest precision.
                listed &= if columns.pebs != 0 && WITH_PDIST.contains(list) {
                    0x1
                } else {
                    precise(3)
                };
                compare(precise(3), listed, 3);
            }
        }
    }
    println!(
        "{} comparisons, {} events on more counters than listed, {} on fewer",
        tally[0],
        tally[1],
        wrong.len() - tally[1]
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (model, list) in EXCEPTIONS {
        for exception in *list {
            let is_used = used.contains(&(*model, exception));
            assert!(
                is_used || exception.from != Reference::IntelsList,
                "{model}: an exception without an event: {exception:x?}"
            );
        }
    }
}
