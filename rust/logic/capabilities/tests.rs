// SPDX-License-Identifier: GPL-2.0

use super::*;

/// Version 3, 4 × 48 bits, 7 events; leaf 1 of a Haswell client.
fn haswell() -> Cpuid {
    Cpuid::intel(3, 4, 3).with_signature(0x306c3)
}

#[test]
fn vendor_family_model() {
    assert_eq!(&haswell().vendor(), b"GenuineIntel");
    for (eax, family, model) in [
        (0x306c3, 6, 0x3c),
        (0x506e3, 6, 0x5e),
        (0xa0655, 6, 0xa5),
        (0x00f43, 15, 0x04),
        (0x10f43, 15, 0x14),
        (0x00800f11, 0x17, 0x01), // AMD: extended family counts from 15 on
        (0x00543, 5, 0x04),
    ] {
        let mut cpuid = haswell();
        cpuid.leaf_1.eax = eax;
        assert_eq!((cpuid.family(), cpuid.model()), (family, model), "{eax:#x}");
    }
}

#[test]
fn fixed_counters_by_version() {
    struct Case {
        version: u32,
        edx: u32,
        ecx: u32,
        virtual_: bool,
        fixed: u64,
    }
    #[rustfmt::skip]
    let cases = [
        Case { version: 1, edx: 3, ecx: 0, virtual_: false, fixed: 0 },
        Case { version: 2, edx: 0, ecx: 0, virtual_: false, fixed: 0x7 },
        Case { version: 2, edx: 0, ecx: 0, virtual_: true, fixed: 0 },
        Case { version: 3, edx: 2, ecx: 0, virtual_: true, fixed: 0x3 },
        Case { version: 4, edx: 2, ecx: 0, virtual_: false, fixed: 0x7 },
        Case { version: 4, edx: 4, ecx: 0, virtual_: false, fixed: 0xf },
        Case { version: 4, edx: 0x603, ecx: 0, virtual_: true, fixed: 0x7 },
        Case { version: 4, edx: 0x1f, ecx: 0, virtual_: true, fixed: 0xffff },
        Case { version: 5, edx: 0, ecx: 0x9, virtual_: false, fixed: 0x9 },
        Case { version: 5, edx: 3, ecx: 0x9, virtual_: false, fixed: 0xf },
        Case { version: 5, edx: 3, ecx: 0, virtual_: true, fixed: 0x7 },
        Case { version: 5, edx: 0, ecx: 0, virtual_: false, fixed: 0 },
        Case { version: 5, edx: 0, ecx: u32::MAX, virtual_: true, fixed: 0xffff },
    ];
    for Case {
        version,
        edx,
        ecx,
        virtual_,
        fixed,
    } in cases
    {
        let mut cpuid = haswell();
        cpuid.leaf_a.eax = 0x0730_0400 | version;
        cpuid.leaf_a.edx = edx;
        cpuid.leaf_a.ecx = ecx;
        cpuid.leaf_1.ecx = u32::from(virtual_) << 31;
        let capabilities = Capabilities::decode(&cpuid, None).unwrap();
        assert_eq!(
            capabilities.counters.bits(),
            (fixed << 32) | 0xf,
            "version {version} edx {edx:#x} ecx {ecx:#x}"
        );
    }
}

#[test]
fn no_usable_pmu() {
    for eax in [
        0,           // nothing
        0x0730_0400, // no version
        0x0730_0003, // no counter
        0x0630_0403, // six events
        0x0700_0403, // width 0
        0x071f_0403, // width 31
        0x0741_0403, // width 65
    ] {
        let mut cpuid = haswell();
        cpuid.leaf_a.eax = eax;
        assert_eq!(Capabilities::decode(&cpuid, None), None, "{eax:#x}");
    }
    let mut cpuid = haswell();
    cpuid.leaf_0.eax = 9;
    assert_eq!(Capabilities::decode(&cpuid, None), None);
}

#[test]
fn longest_period_follows_full_width_write() {
    for (value, max_period) in [
        (None, 0x7fff_ffff),
        (Some(0), 0x7fff_ffff),
        (Some(1 << 12), 0x7fff_ffff),
        (Some(1 << 13), 0x7fff_ffff_ffff),
    ] {
        let capabilities = Capabilities::decode(&haswell(), value).unwrap();
        assert_eq!(capabilities.max_period(), max_period, "{value:?}");
    }
}

#[test]
fn absent_events() {
    let mut cpuid = haswell();
    cpuid.leaf_a.ebx = 0xa0;
    let absent = Capabilities::decode(&cpuid, None).unwrap().absent_events;
    let bits: Vec<u8> = (0..=255).filter(|bit| absent.contains(*bit)).collect();
    assert_eq!(bits, [5]);
}

#[test]
fn any_thread_depends_on_the_version() {
    for (version, edx, any) in [
        (2, 0x603, false),
        (3, 0x603, true),
        (4, 0x8603, true),
        (5, 0x603, true),
        (5, 0x8603, false),
    ] {
        let mut cpuid = haswell();
        cpuid.leaf_a.eax = 0x0730_0400 | version;
        cpuid.leaf_a.edx = edx;
        let capabilities = Capabilities::decode(&cpuid, None).unwrap();
        assert_eq!(
            capabilities.any_thread, any,
            "version {version} edx {edx:#x}"
        );
    }
}

#[test]
fn tsx() {
    for (ebx, tsx, rtm) in [
        (0, false, false),
        (1 << 4, true, false),
        (1 << 11, true, true),
    ] {
        let mut cpuid = haswell();
        cpuid.leaf_7.ebx = ebx;
        let capabilities = Capabilities::decode(&cpuid, None).unwrap();
        assert_eq!(capabilities.tsx, tsx);
        assert_eq!(capabilities.rtm, rtm);

        // The kernel's feature bits override CPUID.
        for (rtm, hle) in [(false, false), (false, true), (true, false)] {
            cpuid.set_tsx(rtm, hle);
            assert_eq!((cpuid.has_rtm(), cpuid.has_tsx()), (rtm, rtm || hle));
        }
    }
}

#[test]
fn counters_without_an_architectural_address_are_left_out() {
    for (reported, gp, unused) in [(7, 7, 0), (8, 8, 0), (10, 8, 2), (255, 8, 247)] {
        let mut cpuid = haswell();
        cpuid.leaf_a.eax = 0x0730_0003 | (reported << 8);
        let capabilities = Capabilities::decode(&cpuid, None).unwrap();
        assert_eq!((capabilities.gp(), capabilities.unused_gp), (gp, unused));
    }
}

#[test]
fn branch_records_of_amd() {
    let mut cpuid = Cpuid {
        leaf_8000_0001: Leaf {
            ecx: 1 << 23,
            ..Leaf::default()
        },
        leaf_8000_0008: Leaf {
            eax: 0x3030,
            ..Leaf::default()
        },
        // Zen 4: 6 counters, 16 branches.
        leaf_8000_0022: Leaf {
            eax: 0b111,
            ebx: 0x106,
            ..Leaf::default()
        },
        ..Cpuid::default()
    };
    let lbr = |cpuid: &Cpuid| Capabilities::decode_amd(cpuid).unwrap().amd_lbr;
    let zen4 = AmdLbr {
        depth: 16,
        freezes: true,
        virtual_bits: 48,
    };
    assert_eq!(lbr(&cpuid), Some(zen4));
    cpuid.set_amd_lbr(true, false);
    assert_eq!(lbr(&cpuid).map(|it| it.freezes), Some(false));
    // The kernel's command line can turn PerfMonV2 off alone.
    cpuid.set_amd(true, false);
    assert_eq!(lbr(&cpuid), None);
    cpuid.set_amd(true, true);
    cpuid.set_amd_lbr(false, true);
    assert_eq!(lbr(&cpuid), None);
}
