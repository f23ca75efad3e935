// SPDX-License-Identifier: GPL-2.0

//! Tests of register accesses.

use super::Pmu;
use crate::model;
use crate::pmu::accounting_msr::{
    ACCOUNTING,
    ACCOUNTING_MARK, //
};
use crate::Fault;

const HASWELL: u32 = 60;
const SKYLAKE: u32 = 94;

fn pmu(model: u32, threads: u32) -> Pmu {
    Pmu::new(model::find(6, model).unwrap(), threads)
}

/// An MSR, the value written, and the value read back; `None` if the write raises #GP.
struct Write(u32, u64, Option<u64>);

fn check(pmu: &mut Pmu, cases: &[Write]) {
    for &Write(msr, written, expected) in cases {
        let result = pmu.wrmsr(msr, written).expect("an MSR of the PMU");
        assert_eq!(
            result.is_ok(),
            expected.is_some(),
            "{msr:#x} = {written:#x}"
        );
        if let Some(expected) = expected {
            assert_eq!(
                pmu.rdmsr(msr),
                Some(Ok(expected)),
                "{msr:#x} = {written:#x}"
            );
        }
    }
}

#[test]
fn reset_values() {
    for (model, threads, generals) in [(HASWELL, 2, 4), (HASWELL, 1, 8), (SKYLAKE, 2, 4)] {
        let mut pmu = pmu(model, threads);
        for reset in [false, true] {
            if reset {
                for msr in [0x186, 0xc1, 0x309, 0x38d, 0x1a6, 0x3f6, 0x1d9] {
                    pmu.wrmsr(msr, 2).unwrap().unwrap();
                }
                pmu.wrmsr(0x38f, 0).unwrap().unwrap();
                pmu.reset();
            }
            for msr in [0x186, 0xc1, 0x4c1, 0x309, 0x38d, 0x38e, 0x1a6, 0x3f6, 0x1d9] {
                assert_eq!(pmu.rdmsr(msr), Some(Ok(0)), "{msr:#x}");
            }
            assert_eq!(pmu.rdmsr(0x38f), Some(Ok((1 << generals) - 1)));
            assert_eq!(pmu.rdmsr(0x1a0), Some(Ok(0x1881)));
            assert_eq!(
                pmu.rdmsr(0x345),
                Some(Ok(if model == HASWELL { 0x3004 } else { 0x3005 }))
            );
        }
    }
}

#[test]
fn a_thread_has_half_of_the_counters() {
    for (threads, generals) in [(1, 8), (2, 4)] {
        let mut pmu = pmu(HASWELL, threads);
        assert_eq!(
            pmu.cpuid(0xa, 0, [0; 4]),
            [0x0730_0003 | (generals << 8), 0, 0, 0x603]
        );
        for first in [0xc1, 0x186, 0x4c1] {
            for index in 0..8 {
                let there = index < generals;
                assert_eq!(pmu.rdmsr(first + index).unwrap().is_ok(), there);
                assert_eq!(pmu.wrmsr(first + index, 0).unwrap().is_ok(), there);
            }
        }
        assert!(pmu.wrmsr(0x38f, 1 << (generals - 1)).unwrap().is_ok());
        assert!(pmu.wrmsr(0x38f, 1 << generals).unwrap().is_err());
    }
}

#[test]
fn reserved_bits_fault() {
    check(
        &mut pmu(HASWELL, 2),
        &[
            Write(0x186, 0xfff7_ffff, Some(0xfff7_ffff)),
            Write(0x186, 1 << 19, None), // PC
            Write(0x186, 1 << 32, None), // IN_TX, without TSX
            Write(0x186, 1 << 63, None),
            Write(0x38d, 0xfff, Some(0xfff)),
            Write(0x38d, 0x1000, None),
            Write(0x38f, 0x7_0000_000f, Some(0x7_0000_000f)),
            Write(0x38f, 1 << 35, None),
            Write(0x38f, 1 << 48, None),
            Write(0x4c1, 0xffff_ffff_ffff, Some(0xffff_ffff_ffff)),
            Write(0x4c1, 1 << 48, None),
            Write(0x309, 1 << 48, None),
            Write(0x1d9, 1, Some(1)),   // LBR
            Write(0x1d9, 1 << 6, None), // TR
            Write(0x1d9, (1 << 14) | (1 << 12), Some((1 << 14) | (1 << 12))),
            Write(0x1a6, 0x3f_ffff_8fff, Some(0x3f_ffff_8fff)),
            Write(0x1a6, 1 << 12, None),
            Write(0x1a7, 1 << 38, None),
            Write(0x3f6, 0x1_0000, None),
            Write(0x1a0, 1 << 22, Some((1 << 22) | 0x1880)), // read-only bits stay
            Write(0x1a0, 1 << 1, None),
        ],
    );
}

#[test]
fn legacy_counter_writes_extend_bit_31() {
    let mut pmu = pmu(HASWELL, 2);
    check(
        &mut pmu,
        &[
            Write(0xc1, 0x7fff_ffff, Some(0x7fff_ffff)),
            Write(0xc1, 0x8000_0000, Some(0xffff_8000_0000)),
            Write(0xc1, 0x1234_5678_0000_0001, Some(1)),
        ],
    );
    // Both MSRs are the same counter.
    assert_eq!(pmu.rdmsr(0x4c1), Some(Ok(1)));
}

#[test]
fn read_only_and_absent_registers_fault() {
    let mut pmu = pmu(HASWELL, 2);
    for msr in [0x38e, 0x345] {
        assert!(pmu.rdmsr(msr).unwrap().is_ok());
        assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{msr:#x}");
    }
    // Fixed counter 3, PERF_METRICS, PEBS_ENABLE, DS_AREA, LBR_INFO, architectural LBR, version 6's
    // counters
    for msr in [0x30c, 0x329, 0x3f1, 0x600, 0xdc0, 0x14ce, 0x1200, 0x1900] {
        assert_eq!(pmu.rdmsr(msr), Some(Err(Fault)), "{msr:#x}");
        assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{msr:#x}");
    }
    // Not performance monitoring: TSC, EFER
    for msr in [0x10, 0xc000_0080] {
        assert_eq!(pmu.rdmsr(msr), None);
        assert_eq!(pmu.wrmsr(msr, 0), None);
    }
}

#[test]
fn version_4_registers() {
    for msr in [0x391, 0x392, 0x3f7] {
        assert_eq!(pmu(HASWELL, 2).rdmsr(msr), Some(Err(Fault)), "{msr:#x}");
        assert!(pmu(SKYLAKE, 2).rdmsr(msr).unwrap().is_ok(), "{msr:#x}");
    }
    let mut pmu = pmu(SKYLAKE, 2);
    let frozen = (1 << 59) | (1 << 58);
    pmu.wrmsr(0x391, frozen | (1 << 34) | 1).unwrap().unwrap();
    assert_eq!(pmu.rdmsr(0x38e), Some(Ok(frozen | (1 << 34) | 1)));
    pmu.wrmsr(0x390, frozen | 1).unwrap().unwrap();
    assert_eq!(pmu.rdmsr(0x38e), Some(Ok(1 << 34)));
    assert_eq!(pmu.wrmsr(0x391, 1 << 4), Some(Err(Fault)));
    assert_eq!(pmu.wrmsr(0x392, 0), Some(Err(Fault)));

    assert_eq!(pmu.rdmsr(0x392), Some(Ok(0)));
    pmu.wrmsr(0x187, 0xc0).unwrap().unwrap();
    pmu.wrmsr(0x38d, 0x0b0).unwrap().unwrap();
    assert_eq!(pmu.rdmsr(0x392), Some(Ok((1 << 63) | (1 << 33) | (1 << 1))));
    // Trace_ToPA_PMI, ASCI, Ovf_Uncore, OvfDSBuffer.
    for bit in [55, 60, 61, 62] {
        pmu.wrmsr(0x391, 1 << bit).unwrap().unwrap();
        assert_eq!(pmu.rdmsr(0x38e), Some(Ok((1 << 34) | (1 << bit))));
        pmu.wrmsr(0x390, 1 << bit).unwrap().unwrap();
        assert_eq!(pmu.rdmsr(0x38e), Some(Ok(1 << 34)));
    }
    // Version 3 has no frozen bits.
    assert_eq!(self::pmu(HASWELL, 2).wrmsr(0x390, frozen), Some(Err(Fault)));
}

#[test]
fn uncore_overflow_can_be_cleared() {
    const NEHALEM: u32 = 26;
    for model in [NEHALEM, HASWELL, SKYLAKE] {
        let mut pmu = pmu(model, 2);
        assert_eq!(pmu.wrmsr(0x390, 1 << 61), Some(Ok(())), "{model}");
        assert_eq!(pmu.rdmsr(0x38e), Some(Ok(0)));
    }
    assert_eq!(pmu(HASWELL, 2).wrmsr(0x390, 1 << 60), Some(Err(Fault)));
}

#[test]
fn accounting_registers() {
    let mut pmu = pmu(HASWELL, 2);
    pmu.wrmsr(0x38f, 0).unwrap().unwrap();
    pmu.wrmsr(0x38f, 1 << 20).unwrap().unwrap_err();
    pmu.rdmsr(0x38f).unwrap().unwrap();
    pmu.rdpmc(2).unwrap();
    let read = |pmu: &Pmu, offset| pmu.rdmsr(ACCOUNTING + offset).unwrap();
    pmu.wrmsr(ACCOUNTING, 0x38f).unwrap().unwrap();
    assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(1), Ok(2), Ok(1)]);
    pmu.wrmsr(ACCOUNTING, (1 << 62) | 2).unwrap().unwrap();
    assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(1), Ok(0), Ok(0)]);
    pmu.wrmsr(ACCOUNTING, (1 << 63) | 0x38f).unwrap().unwrap();
    assert_eq!([1, 2, 3].map(|at| read(&pmu, at)), [Ok(0); 3]);
    assert_eq!(pmu.wrmsr(ACCOUNTING + 1, 0), Some(Err(Fault)));
    assert_eq!(read(&pmu, 8), Ok(0));
    assert_eq!(read(&pmu, ACCOUNTING_MARK), Err(Fault));
    assert_eq!(pmu.wrmsr(ACCOUNTING + ACCOUNTING_MARK, 5), Some(Ok(())));
    assert!(pmu
        .accounting
        .to_string()
        .contains("mark 0x5 reads 0 writes 0"));
}

#[test]
fn rdpmc_of_absent_counters_faults() {
    let pmu = pmu(HASWELL, 2);
    for ecx in [0, 3, 1 << 30, (1 << 30) | 2] {
        assert!(pmu.rdpmc(ecx).is_ok(), "{ecx:#x}");
    }
    for ecx in [4, 8, (1 << 30) | 3, 1 << 31, 1 << 29, 3 << 30, u32::MAX] {
        assert_eq!(pmu.rdpmc(ecx), Err(Fault), "{ecx:#x}");
    }
    let unthreaded = self::pmu(HASWELL, 1);
    assert!(unthreaded.rdpmc(7).is_ok());
    assert_eq!(unthreaded.rdpmc(8), Err(Fault));
}
