// SPDX-License-Identifier: GPL-2.0

//! The models' tables against mainline's, read from the kernel's source.
//!
//! `KERNEL_SOURCE` names the tree, and `make test` sets it; without, there is nothing to compare
//! with, and the test says so.

use rpmu_logic::logic::capabilities::{Cpuid, Leaf};
use rpmu_logic::logic::event_select::EventSelect;
use rpmu_logic::logic::pmu::Pmu;

/// One line of a mainline table: match `code` under `mask`, then `counters`.
#[derive(Debug)]
struct Line {
    code: u64,
    mask: u64,
    counters: u64,
    fixed: bool,
    exclusive: bool,
}

fn number(text: &str) -> u64 {
    match text.trim().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.trim().parse().unwrap(),
    }
}

/// The lines of `static struct event_constraint NAME[]`.
fn table(source: &str, name: &str) -> Vec<Line> {
    let start = source.find(&format!("{name}[]")).expect("no such table");
    let body = &source[start..];
    let body = &body[..body.find("EVENT_CONSTRAINT_END").unwrap()];
    body.lines()
        .filter_map(|line| {
            let (kind, rest) = line.trim().split_once("_CONSTRAINT(")?;
            let (arguments, _) = rest.split_once(')')?;
            let (code, value) = arguments.split_once(',')?;
            let (code, value) = (number(code), number(value));
            let fixed = kind == "FIXED_EVENT";
            Some(Line {
                code,
                mask: match kind {
                    // Event, umask, edge, inv, cmask, in_tx, in_tx_cp.
                    "FIXED_EVENT" => 0x3_ff84_ffff,
                    "INTEL_UEVENT" => 0xffff,
                    "INTEL_EVENT" | "INTEL_EXCLEVT" => 0xff,
                    _ => panic!("a kind that this test does not know: {line}"),
                },
                counters: if fixed { 1 << (32 + value) } else { value },
                fixed,
                exclusive: kind == "INTEL_EXCLEVT",
            })
        })
        .collect()
}

/// What mainline allows an event: first match, after `intel_pmu_check_event_constraints()`.
fn mainline(lines: &[Line], config: u64, gp: u64) -> (u64, bool) {
    let present = gp | 0x7_0000_0000;
    match lines.iter().find(|line| config & line.mask == line.code) {
        Some(line) => {
            let widened = line.fixed && line.code & 0xff != 0;
            let counters = line.counters | if widened { gp } else { 0 };
            (counters & present, line.exclusive)
        }
        None => (gp, false),
    }
}

fn pmu(leaf_1_eax: u32, gp: u32) -> Pmu {
    let cpuid = Cpuid {
        leaf_0: Leaf {
            eax: 0x16,
            ebx: u32::from_le_bytes(*b"Genu"),
            edx: u32::from_le_bytes(*b"ineI"),
            ecx: u32::from_le_bytes(*b"ntel"),
        },
        leaf_1: Leaf {
            eax: leaf_1_eax,
            ..Leaf::default()
        },
        leaf_a: Leaf {
            eax: 0x0730_0003 | (gp << 8),
            edx: 0x603,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    Pmu::probe(&cpuid, None).unwrap()
}

#[test]
fn every_event_has_mainlines_counters() {
    let Some(tree) = std::env::var_os("KERNEL_SOURCE") else {
        eprintln!("not compared: KERNEL_SOURCE is not set");
        return;
    };
    let path = std::path::Path::new(&tree).join("arch/x86/events/intel/core.c");
    let source = std::fs::read_to_string(&path).expect("KERNEL_SOURCE is no kernel tree");
    for (name, leaf_1_eax, lines) in [
        ("intel_hsw_event_constraints", 0x306c3, 13),
        ("intel_skl_event_constraints", 0x506e3, 9),
    ] {
        let table = table(&source, name);
        assert_eq!(table.len(), lines, "{name}: {table:x?}");
        for gp in [4, 8] {
            let pmu = pmu(leaf_1_eax, gp);
            // Plain, and with each kind of filter, which keeps events off fixed counters.
            for filter in [0, 1 << 18, 1 << 23, 1 << 24, 1 << 32, 1 << 16, 1 << 21] {
                for code in 0..=0xffff {
                    let config = code | filter;
                    let constraint = pmu.constraint(EventSelect::from_bits(config));
                    assert_eq!(
                        (constraint.counters.bits(), constraint.exclusive),
                        mainline(&table, config, (1 << gp) - 1),
                        "{name} {config:#x} on {gp} counters"
                    );
                }
            }
        }
    }
}
