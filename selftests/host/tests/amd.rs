// SPDX-License-Identifier: GPL-2.0

//! AMD's models against mainline's, read from the kernel's source.

mod kernel;

use kernel::Source;
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::model::cache_event::{
    CacheId,
    NoCacheEvent, //
};
use rpmu_logic::logic::model::{
    HardwareId,
    Model,
    AMD_15H,
    AMD_K8,
    AMD_MODELS,
    AMD_ZEN,
    AMD_ZEN_2,
    AMD_ZEN_4,
    MERGE, //
};
use rpmu_logic::logic::pmu::PmuInfo;
use rpmu_logic::logic::regs::counter::CounterMask;
use rpmu_logic::logic::regs::event_select::EventSelect;

/// Returns a machine of the model with `counters` counters.
fn pmu(model: &'static Model, counters: u8) -> PmuInfo {
    let mut capabilities = Capabilities::decode_amd(&Cpuid::default()).unwrap();
    capabilities.counters = CounterMask::first_gp(counters);
    PmuInfo::new(model, capabilities)
}

/// Returns whether `case LABEL:` matches: the label is a number, a range, or a macro for one of
/// them.
fn is_case(source: &Source, label: &str, value: u64) -> bool {
    let label = label.trim();
    let label = if label.starts_with("AMD_EVENT_") {
        source.define(label)
    } else {
        label
    };
    match label.split_once("...") {
        Some((first, last)) => (source.value(first)..=source.value(last)).contains(&value),
        None => source.value(label) == value,
    }
}

/// Executes `amd_get_event_constraints_f15h()`: two nested switches, whose cases return, break, or
/// do either behind an if. Returns the constraint's name.
fn f15h<'a>(source: &Source, lines: &'a [String], config: u64) -> &'a str {
    let code = ((config >> 24) & 0xf00) | (config & 0xff);
    let bits = ((config >> 8) & 0xff).count_ones();
    // By depth: whether the case that applies in the switch at that depth has been reached.
    let mut reached = vec![true];
    // The depth of the switch that a break has left; 0 if there is none.
    let mut left = 0;
    for line in lines {
        let line = line.as_str();
        if line.starts_with("switch (") {
            reached.push(false);
            continue;
        }
        if line == "}" {
            reached.pop();
            if left > reached.len() {
                left = 0;
            }
            continue;
        }
        let depth = reached.len();
        let outside = !reached[..depth - 1].iter().all(|reached| *reached);
        if outside || left == depth {
            continue;
        }
        if let Some(label) = line.strip_prefix("case ") {
            let value = if depth == 2 { code & 0xf0 } else { code };
            let label = label.strip_suffix(':').unwrap();
            reached[depth - 1] |= is_case(source, label, value);
            continue;
        }
        reached[depth - 1] |= line == "default:";
        if !reached[depth - 1] || line == "default:" || depth == 1 {
            continue;
        }
        let (condition, statement) = match line.split_once(")) ") {
            Some((condition, statement)) => (condition, statement),
            None => match line.split_once(" <= 1) ") {
                Some((condition, statement)) => (condition, statement),
                None => ("", line),
            },
        };
        let holds = match condition {
            "" => true,
            "if (!(hwc->config & 0x0000F000ULL" => config & 0xf000 == 0,
            "if (!(hwc->config & 0x00000F00ULL" => config & 0x0f00 == 0,
            "if (hweight_long(hwc->config & ARCH_PERFMON_EVENTSEL_UMASK)" => bits <= 1,
            _ => panic!("not understood: {line}"),
        };
        let statement = statement.trim();
        match statement.strip_prefix("return &") {
            _ if !holds => {}
            Some(name) => return name.strip_suffix(';').unwrap(),
            None => {
                assert_eq!(statement, "break;", "not understood");
                left = depth;
            }
        }
    }
    panic!("no return for {config:#x}");
}

#[test]
fn family_15h_has_mainlines_counters() {
    let Some(source) = Source::read() else {
        return;
    };
    let lines = source.function("amd_get_event_constraints_f15h");
    let lines: Vec<String> = lines
        .into_iter()
        .skip_while(|line| !line.starts_with("switch"))
        .collect();
    let pmu = pmu(&AMD_15H, 6);
    let (mut overlapping, mut none) = (0, 0);
    for code in 0..=0xfff_u16 {
        // No bits, single bits, several bits in one half and in both.
        for umask in [
            0, 0x01, 0x08, 0x10, 0x80, 0x03, 0x0f, 0x30, 0xf0, 0x11, 0x88, 0xff,
        ] {
            let select = EventSelect::amd_event(code, umask);
            let (counters, overlap) = match f15h(&source, &lines, select.bits()) {
                "amd_f15_PMC0" => (0x01, false),
                "amd_f15_PMC20" => (0x07, false),
                "amd_f15_PMC3" => (0x08, false),
                "amd_f15_PMC30" => (0x09, true),
                "amd_f15_PMC50" => (0x3f, false),
                "amd_f15_PMC53" => (0x38, false),
                "emptyconstraint" => (0, false),
                name => panic!("no such constraint: {name}"),
            };
            overlapping += usize::from(overlap);
            none += usize::from(counters == 0);
            let found = pmu.constraint(select);
            assert_eq!(
                (found.counters.bits(), found.overlap, found.pair),
                (counters, overlap, false),
                "{code:#x} {umask:#x}"
            );
        }
    }
    assert_eq!(overlapping, 12);
    assert!(none > 12 && none < 0x1000 * 12 / 2, "{none}");
}

/// Compares the constraints with their names.
#[test]
fn family_15h_constraints_match_their_names() {
    let Some(source) = Source::read() else {
        return;
    };
    for (name, kind, counters) in [
        ("amd_f15_PMC0 ", "EVENT_CONSTRAINT", 0x01),
        ("amd_f15_PMC20", "EVENT_CONSTRAINT", 0x07),
        ("amd_f15_PMC3 ", "EVENT_CONSTRAINT", 0x08),
        ("amd_f15_PMC30", "EVENT_CONSTRAINT_OVERLAP", 0x09),
        ("amd_f15_PMC50", "EVENT_CONSTRAINT", 0x3f),
        ("amd_f15_PMC53", "EVENT_CONSTRAINT", 0x38),
    ] {
        let value = source.initial(name);
        let (found, arguments) = value.split_once('(').unwrap();
        assert_eq!(found.trim(), kind, "{name}");
        let counters_there = source.value(arguments.split(',').nth(1).unwrap());
        assert_eq!(counters_there, counters, "{name}");
    }
}

#[test]
fn zen_pairs_are_mainlines() {
    let Some(source) = Source::read() else {
        return;
    };
    let text = source
        .function("static inline bool amd_is_pair_event_code")
        .join(" ");
    let pairs: Vec<u64> = text
        .split("case ")
        .skip(1)
        .map(|rest| source.value(rest.split_once(':').unwrap().0))
        .collect();
    assert_eq!(MERGE.bits(), source.value("AMD_MERGE_EVENT"));
    for model in [&AMD_ZEN, &AMD_ZEN_2, &AMD_ZEN_4] {
        for code in 0..=0xfff_u16 {
            for counters in [4, 6, 16] {
                let pmu = pmu(model, counters);
                let present = pmu.capabilities.counters;
                let found = pmu.constraint(EventSelect::amd_event(code, 0x7));
                let pair = pairs.contains(&code.into());
                let even = present.bits() & 0x5555;
                assert_eq!(found.pair, pair, "{code:#x}");
                let expected = if pair { even } else { present.bits() };
                assert_eq!(found.counters.bits(), expected, "{code:#x}");
            }
        }
    }
}

#[test]
fn k8_has_no_constraints_but_the_northbridges() {
    let Some(source) = Source::read() else {
        return;
    };
    let body = source.function("static inline int amd_is_nb_event");
    assert_eq!(body, ["return (hwc->config & 0xe0) == 0xe0;"]);
    let pmu = pmu(&AMD_K8, 4);
    for code in 0..=0xff {
        let select = EventSelect::amd_event(code, 0);
        let constraint = pmu.constraint(select);
        assert_eq!(constraint.northbridge, code >= 0xe0);
        assert_eq!(constraint.counters, pmu.capabilities.counters);
    }
}

#[test]
fn generic_events_are_mainlines() {
    let Some(source) = Source::read() else {
        return;
    };
    let maps: [(&Model, &str, usize); 5] = [
        (&AMD_K8, "amd_perfmon_event_map", 8),
        (&AMD_15H, "amd_perfmon_event_map", 8),
        (&AMD_ZEN, "amd_zen1_perfmon_event_map", 8),
        (&AMD_ZEN_2, "amd_zen2_perfmon_event_map", 7),
        (&AMD_ZEN_4, "amd_zen4_perfmon_event_map", 8),
    ];
    assert_eq!(maps.len(), AMD_MODELS.len());
    for (model, name, events) in maps {
        let map = source.event_map(name);
        assert_eq!(map.len(), events, "{name}");
        for (id, name) in HardwareId::ALL.into_iter().zip([
            "CPU_CYCLES",
            "INSTRUCTIONS",
            "CACHE_REFERENCES",
            "CACHE_MISSES",
            "BRANCH_INSTRUCTIONS",
            "BRANCH_MISSES",
            "BUS_CYCLES",
            "STALLED_CYCLES_FRONTEND",
            "STALLED_CYCLES_BACKEND",
            "REF_CPU_CYCLES",
        ]) {
            assert_eq!(
                model.hardware_events.get(id).map(EventSelect::bits),
                map.get(name).copied(),
                "{} {id:?}",
                model.name
            );
        }
    }
}

#[test]
fn cache_events_are_mainlines() {
    let Some(source) = Source::read() else {
        return;
    };
    for model in AMD_MODELS {
        let zen = model.cpus.iter().all(|cpus| cpus.family >= 0x17);
        let name = if zen {
            "amd_hw_cache_event_ids_f17h"
        } else {
            "amd_hw_cache_event_ids"
        };
        let table = source.cache_table(name);
        for config in 0..=0x1_0206 {
            let Some(id) = CacheId::from_config(config) else {
                continue;
            };
            let expected =
                match table[id.cache as usize][id.operation as usize][id.outcome as usize] {
                    0 => Err(NoCacheEvent::Absent),
                    u64::MAX => Err(NoCacheEvent::Impossible),
                    event => Ok((event, 0)),
                };
            let found = model.cache_events.get(id);
            assert_eq!(
                found.map(|(select, config1)| (select.bits(), config1)),
                expected,
                "{} {config:#x}",
                model.name
            );
        }
    }
}
