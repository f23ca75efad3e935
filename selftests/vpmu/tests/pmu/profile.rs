// SPDX-License-Identifier: GPL-2.0

//! Tests what guests of hypervisors see of a PMU, based on the sources of KVM and Xen and on
//! `README.md`.

use vpmu::model::{
    Model,
    AMD_MODELS,
    INTEL_MODELS, //
};
use vpmu::pmu::Pmu;
use vpmu::profile::{
    self,
    PROFILES, //
};
use vpmu::Fault;

use super::{
    find,
    read,
    retire,
    write,
    COUNTS,
    GLOBAL_CTRL,
    HASWELL,
    INSTRUCTIONS,
    NEHALEM,
    SKYLAKE, //
};

const CAPABILITIES: u32 = 0x345;
const DEBUGCTL: u32 = 0x1d9;

fn guest(name: &str, model: &'static Model) -> Pmu {
    Pmu::new(model, 1).with_profile(profile::find(name).unwrap())
}

#[test]
fn cpuid_reports_what_is_left() {
    let expected = [
        ("kvm", [2, 8, 3], true),
        ("kvm-ignore", [2, 8, 3], true),
        ("kvm-old", [2, 8, 3], true),
        ("xen", [3, 8, 3], false),
        ("no-capabilities", [2, 4, 3], false),
        ("few", [2, 2, 1], true),
    ];
    assert_eq!(expected.len(), PROFILES.len());
    for (name, counters, capabilities) in expected {
        let pmu = guest(name, find(SKYLAKE));
        let [eax, ebx, _, edx] = pmu.cpuid(0xa, 0, [0; 4]);
        assert_eq!(
            [eax & 0xff, (eax >> 8) & 0xff, edx & 0x1f],
            counters,
            "{name}"
        );
        // References to and misses of the last-level cache.
        assert_eq!(ebx, if name == "few" { 0b1_1000 } else { 0 }, "{name}");
        // Xen does not say that AnyThread is deprecated.
        assert_eq!(edx & (1 << 15) == 0, name == "xen", "{name}");
        let pdcm = pmu.cpuid(1, 0, [0; 4])[2] & (1 << 15) != 0;
        assert_eq!(pdcm, capabilities, "{name}");
    }
    assert!(profile::find("KVM").is_err());
}

#[test]
fn registers_of_missing_features_fault() {
    // The last counters, offcore, snoop response, load latency, frontend, PERF_METRICS, PEBS, LBR,
    // version 4.
    const MISSING: [u32; 22] = [
        0x18a, 0xc5, 0x30c, 0x1a6, 0x1a7, 0x1328, 0x3f6, 0x3f7, 0x329, 0x3f1, 0x3f2, 0x600, 0x1c8,
        0x1c9, 0x040, 0x060, 0x680, 0x6c0, 0xdc0, 0x14ce, 0x391, 0x392,
    ];
    for model in &INTEL_MODELS {
        for profile in &PROFILES {
            let pmu = guest(profile.name, model);
            let [eax, .., edx] = pmu.cpuid(0xa, 0, [0; 4]);
            let (counters, fixed) = ((eax >> 8) & 0xff, edx & 0x1f);
            for msr in MISSING {
                if matches!(msr, 0x18a | 0xc5) && counters > 4 || msr == 0x30c && fixed > 3 {
                    continue;
                }
                // QEMU reads other registers as 0.
                let expected = (profile.name != "kvm-ignore").then_some(Err(Fault));
                assert_eq!(pmu.rdmsr(msr), expected, "{}: {msr:#x}", model.name);
            }
        }
    }
}

#[test]
fn capabilities_are_those_of_the_hypervisor() {
    for (name, model, expected) in [
        // KVM emulates full-width writes.
        ("kvm", NEHALEM, Some(Ok(0x2000))),
        ("kvm", HASWELL, Some(Ok(0x2000))),
        ("kvm-old", HASWELL, Some(Ok(0))),
        ("few", HASWELL, Some(Ok(0))),
        ("no-capabilities", HASWELL, Some(Err(Fault))),
        ("xen", HASWELL, Some(Err(Fault))),
    ] {
        let pmu = guest(name, find(model));
        assert_eq!(pmu.rdmsr(CAPABILITIES), expected, "{name}");
        let full_width = matches!(expected, Some(Ok(0x2000)));
        assert_eq!(pmu.rdmsr(0x4c1).unwrap().is_ok(), full_width, "{name}");
    }
}

#[test]
fn debugctl_keeps_nothing() {
    for (name, value, result) in [
        ("kvm", 0b11, Ok(())),
        ("kvm", 1 << 11, Err(Fault)),
        ("kvm", 1 << 12, Err(Fault)),
        ("xen", 0b01, Ok(())),
        ("xen", 0b10, Err(Fault)),
        ("kvm-ignore", 1 << 11, Ok(())),
        ("few", 1 << 11, Ok(())),
    ] {
        let mut pmu = guest(name, find(HASWELL));
        assert_eq!(
            pmu.wrmsr(DEBUGCTL, value),
            Some(result),
            "{name}: {value:#x}"
        );
        assert_eq!(read(&pmu, DEBUGCTL), 0, "{name}: {value:#x}");
    }
}

/// KVM ignores pin control, which some processors refuse, and the bits of fixed counters beyond
/// their width. AnyThread and Ovf_Uncore are reserved.
#[test]
fn reserved_bits_are_those_of_the_hypervisor() {
    for (name, model, lenient) in [
        ("kvm", HASWELL, true),
        ("kvm", NEHALEM, true),
        ("xen", HASWELL, false),
        ("xen", NEHALEM, false),
    ] {
        let mut pmu = guest(name, find(model));
        let expected = Some(if lenient { Ok(()) } else { Err(Fault) });
        assert_eq!(pmu.wrmsr(0x186, 1 << 19), expected, "{name}");
        assert_eq!(pmu.wrmsr(0x309, (1 << 48) | 5), expected, "{name}");
        assert_eq!(read(&pmu, 0x309), if lenient { 5 } else { 0 }, "{name}");
        let counters = (pmu.cpuid(0xa, 0, [0; 4])[0] >> 8) & 0xff;
        let all = 0x7_0000_0000 | ((1u64 << counters) - 1);
        assert_eq!(pmu.wrmsr(0x186, 1 << 21), Some(Err(Fault)), "{name}");
        assert_eq!(pmu.wrmsr(0x38d, 0b100), Some(Err(Fault)), "{name}");
        assert_eq!(pmu.wrmsr(0x390, 1 << 61), Some(Err(Fault)), "{name}");
        assert_eq!(pmu.wrmsr(0x390, (3 << 62) | all), Some(Ok(())), "{name}");
        assert_eq!(pmu.wrmsr(0x390, 1 << counters), Some(Err(Fault)), "{name}");
        // BTS and PEBS are not available.
        assert_eq!(read(&pmu, 0x1a0) & (3 << 11), 3 << 11, "{name}");
    }
}

#[test]
fn counters_are_disabled_at_reset_on_old_kvm_and_xen() {
    for profile in &PROFILES {
        let mut pmu = guest(profile.name, find(HASWELL));
        let expected = match profile.name {
            "kvm-old" | "xen" => 0,
            "no-capabilities" => 0xf,
            "few" => 0b11,
            _ => 0xff,
        };
        assert_eq!(read(&pmu, GLOBAL_CTRL), expected, "{}", profile.name);
        write(&mut pmu, GLOBAL_CTRL, 1);
        pmu.reset();
        assert_eq!(read(&pmu, GLOBAL_CTRL), expected, "{}", profile.name);
    }
}

/// KVM gives its guests PerfMonV2 and PerfCtrExtCore. Without PerfCtrExtCore there are four
/// counters, whatever the profile says.
#[test]
fn amds_guests() {
    const EXTENDED: u32 = 0xc001_020a;
    const GLOBAL: u32 = 0xc000_0301;
    let zen_4 = AMD_MODELS.iter().find(|it| it.name == "Zen 4").unwrap();
    for (name, extended, v2) in [
        ("kvm", true, true),
        ("kvm-ignore", true, true),
        ("kvm-old", true, false),
        ("no-capabilities", false, false),
        ("few", false, false),
    ] {
        let mut pmu = guest(name, zen_4);
        let core = pmu.cpuid(0x8000_0001, 0, [0; 4])[2] & (1 << 23) != 0;
        let [eax, ebx, ..] = pmu.cpuid(0x8000_0022, 0, [0; 4]);
        // No branch records.
        let expected = if v2 { (1, 6) } else { (0, 0) };
        assert_eq!((core, (eax, ebx)), (extended, expected), "{name}");
        let is_there = |pmu: &Pmu, msr| matches!(pmu.rdmsr(msr), Some(Ok(_)));
        assert_eq!(is_there(&pmu, EXTENDED), extended, "{name}");
        assert_eq!(is_there(&pmu, GLOBAL), v2, "{name}");
        write(&mut pmu, 0xc001_0003, 0x53_00c0);
        if v2 {
            write(&mut pmu, GLOBAL, 1 << 3);
        }
        retire(&mut pmu, 1000);
        assert_eq!(read(&pmu, 0xc001_0007), 1000, "{name}");
    }
}

#[test]
fn delivery_masks_lvtpc_except_on_old_kvm_and_xen() {
    for profile in &PROFILES {
        let masks = guest(profile.name, find(HASWELL)).pmi_masks();
        assert_eq!(
            masks,
            !["kvm-old", "xen"].contains(&profile.name),
            "{}",
            profile.name
        );
    }
}

#[test]
fn events_count() {
    for profile in &PROFILES {
        let mut pmu = guest(profile.name, find(SKYLAKE));
        write(&mut pmu, 0x187, INSTRUCTIONS | COUNTS);
        write(&mut pmu, 0x38d, 0x2);
        write(&mut pmu, GLOBAL_CTRL, (1 << 32) | 0b10);
        retire(&mut pmu, 1000);
        assert_eq!(read(&pmu, 0xc2), 1000, "{}", profile.name);
        assert_eq!(read(&pmu, 0x309), 1000, "{}", profile.name);
    }
}
