// SPDX-License-Identifier: GPL-2.0

//! Tests the existing registers and their content.

use super::*;
use vpmu::Fault;

fn check_exists(pmu: &mut Pmu, msr: u32, there: bool, name: &str) {
    assert_eq!(pmu.rdmsr(msr).unwrap().is_ok(), there, "{name} {msr:#x}");
    assert_eq!(pmu.wrmsr(msr, 0).unwrap().is_ok(), there, "{name} {msr:#x}");
}

#[test]
fn counters_at_both_places() {
    for cpu in &CPUS {
        let mut pmu = cpu.pmu();
        for index in 0..6 {
            let there = cpu.extended && index < cpu.counters;
            check_exists(&mut pmu, 0xc001_0200 + 2 * index, there, cpu.name);
            check_exists(&mut pmu, 0xc001_0201 + 2 * index, there, cpu.name);
        }
        for index in 0..4 {
            check_exists(&mut pmu, 0xc001_0000 + index, true, cpu.name);
            check_exists(&mut pmu, 0xc001_0004 + index, true, cpu.name);
            // They are the same registers.
            write(&mut pmu, 0xc001_0000 + index, 0x1234);
            write(&mut pmu, 0xc001_0004 + index, 0x5678);
            assert_eq!(read(&pmu, cpu.ctl(index)), 0x1234, "{}", cpu.name);
            assert_eq!(read(&pmu, cpu.ctr(index)), 0x5678, "{}", cpu.name);
        }
        for ecx in [0, 3, 4, 5, 6, 9, 10, 1 << 30, 1 << 31] {
            assert_eq!(pmu.rdpmc(ecx).is_ok(), ecx < cpu.counters, "{}", cpu.name);
        }
        // Counters of the L2 or L3 and of the northbridge
        check_exists(&mut pmu, 0xc001_0230, false, cpu.name);
        check_exists(&mut pmu, 0xc001_0240, false, cpu.name);
        // Intel's: IA32_PMC0, IA32_PERFEVTSEL0, IA32_FIXED_CTR0, IA32_PERF_GLOBAL_CTRL, the branch
        // records
        for msr in [
            0xc1, 0x186, 0x309, 0x38f, 0x40, 0x67, 0x1c8, 0x680, 0x6c0, 0xdc0,
        ] {
            check_exists(&mut pmu, msr, false, cpu.name);
        }
        assert!(pmu.rdmsr(0x1a0).is_none());
    }
    let intel = Pmu::new(model::find(6, 60).unwrap(), 1);
    for msr in [0xc001_0000, 0xc001_0200, GLOBAL_STATUS] {
        assert!(intel.rdmsr(msr).is_none());
    }
}

#[test]
fn reserved_bits_are_ignored() {
    for cpu in &CPUS {
        let mut pmu = cpu.pmu();
        // 63:42, 39:36, 21 and 19
        write(&mut pmu, cpu.ctl(0), !0);
        assert_eq!(read(&pmu, cpu.ctl(0)), 0x30f_ffd7_ffff, "{}", cpu.name);
        write(&mut pmu, cpu.ctr(0), !0);
        assert_eq!(read(&pmu, cpu.ctr(0)), MASK, "{}", cpu.name);
        assert_eq!(pmu.rdpmc(0), Ok(MASK));
    }
}

#[test]
fn global_registers() {
    for cpu in &CPUS {
        let mut pmu = cpu.pmu();
        for msr in [GLOBAL_CTL, GLOBAL_STATUS_CLR, GLOBAL_STATUS_SET] {
            check_exists(&mut pmu, msr, cpu.v2, cpu.name);
        }
        assert_eq!(pmu.rdmsr(GLOBAL_STATUS).unwrap().is_ok(), cpu.v2);
        assert_eq!(
            pmu.wrmsr(GLOBAL_STATUS, 0),
            Some(Err(Fault)),
            "{}",
            cpu.name
        );
        if cpu.v2 {
            // RESET enables all counters, for software that does not know PerfMonV2.
            assert_eq!(read(&cpu.pmu(), GLOBAL_CTL), 0x3f);
            write(&mut pmu, GLOBAL_CTL, !0);
            assert_eq!(read(&pmu, GLOBAL_CTL), 0x3f);
            write(&mut pmu, GLOBAL_STATUS_SET, 0x25);
            assert_eq!(read(&pmu, GLOBAL_STATUS), 0x25);
            write(&mut pmu, GLOBAL_STATUS_CLR, 0x04);
            assert_eq!(read(&pmu, GLOBAL_STATUS), 0x21);
            pmu.reset();
            assert_eq!(read(&pmu, GLOBAL_STATUS), 0);
        }
    }
}

#[test]
fn cpuid() {
    const PERF_CTR_EXT_CORE: u32 = 1 << 23;
    for cpu in &CPUS {
        let pmu = cpu.pmu();
        let [.., ecx, _] = pmu.cpuid(0x8000_0001, 0, [0; 4]);
        assert_eq!(ecx, u32::from(cpu.extended) * PERF_CTR_EXT_CORE);
        let leaf = pmu.cpuid(0x8000_0022, 0, [0; 4]);
        let expected = if cpu.v2 {
            [7, cpu.counters | (16 << 4), 0, 0]
        } else {
            [0; 4]
        };
        assert_eq!(leaf, expected, "{}", cpu.name);
        // Intel's leaf, and PDCM in leaf 1.
        for leaf in [1, 7, 0xa] {
            assert_eq!(pmu.cpuid(leaf, 0, [0; 4]), [0; 4], "{}", cpu.name);
        }
    }
}

/// MSR 0x4000FF0A: errors that the guest injects.
#[test]
fn injected_errors() {
    const INJECTED: u32 = 0x4000_ff0a;
    const MISSING: u64 = 1 << 5;
    const FEWER: u64 = 1 << 4;
    for cpu in &CPUS {
        let mut pmu = cpu.pmu();
        let last = cpu.counters - 1;
        write(&mut pmu, INJECTED, MISSING);
        for counter in 0..cpu.counters {
            check_exists(&mut pmu, cpu.ctl(counter), counter < 2, cpu.name);
        }
        write(&mut pmu, INJECTED, 0);
        // Everything is as before; PerfCntrGlobalCtl must be written again.
        if cpu.v2 {
            write(&mut pmu, GLOBAL_CTL, 0x3f);
        }
        write(&mut pmu, cpu.ctl(last), RETIRED_INSTRUCTIONS | USR | EN);
        retire(&mut pmu, true, &[(retired::INSTRUCTIONS, 5)]);
        assert_eq!(read(&pmu, cpu.ctr(last)), 5, "{}", cpu.name);
        if cpu.v2 {
            write(&mut pmu, INJECTED, FEWER);
            assert_eq!(pmu.cpuid(0x8000_0022, 0, [0; 4]), [7, 2 | (16 << 4), 0, 0]);
        }
        // PerfMonV2, PerfCtrExtCore are gone one after the other.
        write(&mut pmu, INJECTED, 1 << 8);
        assert_eq!(pmu.cpuid(0x8000_0022, 0, [0; 4]), [0; 4]);
        let [.., ecx, _] = pmu.cpuid(0x8000_0001, 0, [0; 4]);
        assert_eq!(ecx != 0, cpu.extended);
        write(&mut pmu, INJECTED, 0xff << 8);
        assert_eq!(pmu.cpuid(0x8000_0001, 0, [0; 4]), [0; 4]);
    }
}

#[test]
fn a_pmi_masks_lvtpc_on_intels_cpus_alone() {
    for cpu in &CPUS {
        assert!(!cpu.pmu().pmi_masks());
    }
    assert!(Pmu::new(model::find(6, 60).unwrap(), 1).pmi_masks());
}
