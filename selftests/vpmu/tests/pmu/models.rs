// SPDX-License-Identifier: GPL-2.0

//! Tests the registers of each CPU model, based on the manuals and independently of `src/model/`.

use vpmu::model::{
    self,
    INTEL_MODELS, //
};
use vpmu::pmu::Pmu;
use vpmu::Fault;

use super::{
    read,
    write, //
};

/// A CPU model. Register fields are masks of the writable bits.
struct Cpu {
    name: &'static str,
    model: u32,
    /// General counters with one and with two threads per core.
    general: [usize; 2],
    fixed: usize,
    /// CPUID leaf 0xA without the number of general counters.
    cpuid: [u32; 4],
    capabilities: u64,
    select: u64,
    fixed_ctrl: u64,
    offcore: [Option<u64>; 2],
    frontend: Option<u64>,
    /// MSR_PERF_METRICS, 8 bits for each share.
    metrics: Option<u64>,
}

impl Cpu {
    fn version(&self) -> u32 {
        self.cpuid[0] & 0xff
    }

    /// Returns whether there are events of load latency, and their MSR_PEBS_LD_LAT.
    fn has_load_latency(&self) -> bool {
        !matches!(
            self.name,
            "Silvermont" | "Goldmont" | "Goldmont Plus" | "Tremont"
        )
    }

    /// Returns whether the branch records are where Core 2 has them.
    fn has_low_records(&self) -> bool {
        self.name == "Silvermont"
    }

    /// Returns the mask of a counter's bits.
    fn counter(&self) -> u64 {
        (1 << ((self.cpuid[0] >> 16) & 0xff)) - 1
    }

    /// Returns whether there are the snoop response registers.
    fn has_snoop_responses(&self) -> bool {
        self.name == "Crestmont"
    }

    fn full_width(&self) -> bool {
        self.capabilities & (1 << 13) != 0
    }

    fn counters(&self, threads: usize) -> u64 {
        let metrics = u64::from(self.metrics.is_some()) << 48;
        ((1 << self.general[threads - 1]) - 1) | (((1 << self.fixed) - 1) << 32) | metrics
    }
}

const FULL: u64 = 0x3000;
const FULL_AND_METRICS: u64 = 0xb000;
const V3: [u32; 4] = [0x0730_0003, 0, 0, 0x603];
const V3_OF_40_BITS: [u32; 4] = [0x0728_0003, 0, 0, 0x503];
const V4: [u32; 4] = [0x0730_0004, 0, 0, 0x603];
const V5: [u32; 4] = [0x0830_0005, 0, 0xf, 0x8604];

#[rustfmt::skip]
const CPUS: [Cpu; 19] = [
    Cpu { name: "Nehalem", model: 26, general: [4, 4], fixed: 3, cpuid: [0x0730_0003, 0x44, 0, 0x603],
          capabilities: 0x1003, select: 0xffff_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0xffff), None], frontend: None, metrics: None },
    Cpu { name: "Westmere", model: 44, general: [4, 4], fixed: 3, cpuid: [0x0730_0003, 0x04, 0, 0x603],
          capabilities: 0x1003, select: 0xffff_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0xffff); 2], frontend: None, metrics: None },
    Cpu { name: "Sandy Bridge", model: 42, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 3, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_807f_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Sandy Bridge (server)", model: 45, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 3, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_ffff_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Ivy Bridge", model: 58, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 3, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_807f_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Ivy Bridge (server)", model: 62, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 3, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_ffff_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Haswell", model: 60, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 4, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_ffff_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Broadwell", model: 61, general: [8, 4], fixed: 3, cpuid: V3,
          capabilities: FULL | 4, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_ffff_8fff); 2], frontend: None, metrics: None },
    Cpu { name: "Skylake", model: 94, general: [8, 4], fixed: 3, cpuid: V4,
          capabilities: FULL | 5, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x3f_ffff_8fff); 2], frontend: Some(0x7f_ff17), metrics: None },
    Cpu { name: "Ice Lake", model: 106, general: [8, 8], fixed: 4, cpuid: V5,
          capabilities: FULL_AND_METRICS | 5, select: 0xffd7_ffff, fixed_ctrl: 0xbbbb,
          offcore: [Some(0x3f_ffff_bfff); 2], frontend: Some(0x7f_ff17), metrics: Some(0xffff_ffff) },
    Cpu { name: "Ice Lake (client)", model: 125, general: [8, 8], fixed: 4, cpuid: V5,
          capabilities: FULL_AND_METRICS | 5, select: 0xffd7_ffff, fixed_ctrl: 0xbbbb,
          offcore: [Some(0x3f_ffff_bfff); 2], frontend: Some(0x7f_ff17), metrics: Some(0xffff_ffff) },
    Cpu { name: "Golden Cove", model: 143, general: [8, 8], fixed: 4, cpuid: V5,
          capabilities: FULL_AND_METRICS | 0x3f, select: 0xffd7_ffff, fixed_ctrl: 0xbbbb,
          offcore: [Some(0x3f_ffff_ffff); 2], frontend: Some(0x7f_ff1f), metrics: Some(u64::MAX) },
    Cpu { name: "Redwood Cove", model: 173, general: [8, 8], fixed: 4, cpuid: V5,
          capabilities: FULL_AND_METRICS | 0x3f, select: 0xffd7_ffff, fixed_ctrl: 0xbbbb,
          offcore: [Some(0x3f_ffff_ffff); 2], frontend: Some(0x7f_ff1f), metrics: Some(u64::MAX) },
    Cpu { name: "Silvermont", model: 77, general: [2, 2], fixed: 3, cpuid: V3_OF_40_BITS,
          capabilities: FULL | 1, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x76_8005_ffff), Some(0x36_8005_ffff)], frontend: None, metrics: None },
    Cpu { name: "Goldmont", model: 95, general: [4, 4], fixed: 3, cpuid: V4,
          capabilities: FULL | 6, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x76_0005_ffbf), Some(0x36_0005_ffbf)], frontend: None, metrics: None },
    Cpu { name: "Goldmont Plus", model: 122, general: [4, 4], fixed: 3, cpuid: V4,
          capabilities: FULL | 7, select: 0xfff7_ffff, fixed_ctrl: 0xfff,
          offcore: [Some(0x76_0005_ffbf), Some(0x36_0005_ffbf)], frontend: None, metrics: None },
    Cpu { name: "Tremont", model: 134, general: [4, 4], fixed: 3, cpuid: [0x0730_0005, 0, 7, 0x8603],
          capabilities: FULL | 7, select: 0xffd7_ffff, fixed_ctrl: 0xbbb,
          offcore: [Some(0x800f_f0ff_ffff_9fff), Some(0xf_f0ff_ffff_9fff)], frontend: None, metrics: None },
    Cpu { name: "Gracemont", model: 190, general: [6, 6], fixed: 3, cpuid: [0x0730_0005, 0, 7, 0x8603],
          capabilities: FULL | 0x3f, select: 0xffd7_ffff, fixed_ctrl: 0xbbb,
          offcore: [Some(0x8003_f03f_ffff_ffff), Some(0x3_f03f_ffff_ffff)], frontend: None, metrics: None },
    Cpu { name: "Crestmont", model: 175, general: [8, 8], fixed: 3, cpuid: [0x0730_0005, 0, 7, 0x8603],
          capabilities: FULL | 0x3f, select: 0xffd7_ffff, fixed_ctrl: 0xbbb,
          offcore: [Some(0x800f_f3ff_ffff_ffff), Some(0xf_f3ff_ffff_ffff)], frontend: None, metrics: None },
];

/// Calls `check` for each model, with one and with two threads per core.
fn each(check: impl Fn(&Cpu, usize, Pmu)) {
    for cpu in &CPUS {
        for threads in [1, 2] {
            let model = model::find(6, cpu.model).expect(cpu.name);
            assert_eq!(model.name, cpu.name);
            check(cpu, threads, Pmu::new(model, threads as u32));
        }
    }
}

fn check_exists(pmu: &mut Pmu, msr: u32, there: bool, name: &str) {
    assert_eq!(pmu.rdmsr(msr).unwrap().is_ok(), there, "{name} {msr:#x}");
    assert_eq!(pmu.wrmsr(msr, 0).unwrap().is_ok(), there, "{name} {msr:#x}");
}

/// Checks that exactly the bits of `mask` can be written, one by one and all together.
fn check_writable(pmu: &mut Pmu, msr: u32, mask: u64, name: &str) {
    for bit in 0..64 {
        let expected = if mask & (1 << bit) != 0 {
            Ok(())
        } else {
            Err(Fault)
        };
        let result = pmu.wrmsr(msr, 1 << bit);
        assert_eq!(result, Some(expected), "{name} {msr:#x} bit {bit}");
    }
    write(pmu, msr, mask);
}

#[test]
fn all_models_are_here() {
    let names: Vec<_> = INTEL_MODELS.iter().map(|model| model.name).collect();
    assert_eq!(names, CPUS.each_ref().map(|cpu| cpu.name));
    // QEMU's Icelake-Server without model=106 is a Tremont. There is no model of another family.
    for tremont in [134, 150, 156] {
        assert_eq!(model::find(6, tremont).unwrap().name, "Tremont");
    }
    assert!(model::find(15, 26).is_none());
}

#[test]
fn cpuid_leaf_a() {
    each(|cpu, threads, pmu| {
        let mut expected = cpu.cpuid;
        expected[0] |= (cpu.general[threads - 1] as u32) << 8;
        assert_eq!(
            pmu.cpuid(0xa, 0, [0; 4]),
            expected,
            "{} {threads}",
            cpu.name
        );
    });
}

#[test]
fn reset_values() {
    each(|cpu, threads, mut pmu| {
        let mut zero = vec![0xc1, 0x186, 0x1a6, 0x1d9, 0x38d, 0x38e, 0x390];
        zero.extend(cpu.has_load_latency().then_some(0x3f6));
        zero.extend((0..cpu.general[threads - 1] as u32).flat_map(|i| [0xc1 + i, 0x186 + i]));
        zero.extend((0..cpu.fixed as u32).map(|i| 0x309 + i));
        zero.extend(cpu.offcore[1].map(|_| 0x1a7));
        zero.extend(cpu.frontend.map(|_| 0x3f7));
        if cpu.has_snoop_responses() {
            zero.extend([0x1328, 0x1329]);
        }
        // MSR_PERF_METRICS comes after fixed counter 3, as a write multiplies by that.
        zero.extend(cpu.metrics.map(|_| 0x329));
        if cpu.version() >= 4 {
            zero.extend([0x391, 0x392]);
        }
        for reset in [false, true] {
            if reset {
                for &msr in zero.iter().filter(|msr| !matches!(msr, 0x38e..=0x392)) {
                    write(&mut pmu, msr, 2);
                    assert_eq!(read(&pmu, msr), 2, "{} {msr:#x}", cpu.name);
                }
                write(&mut pmu, 0x38f, 0);
                pmu.reset();
            }
            for &msr in &zero {
                assert_eq!(read(&pmu, msr), 0, "{} {msr:#x}", cpu.name);
            }
            let general = (1 << cpu.general[threads - 1]) - 1;
            assert_eq!(read(&pmu, 0x38f), general, "{}", cpu.name);
            assert_eq!(read(&pmu, 0x345), cpu.capabilities, "{}", cpu.name);
            assert_eq!(read(&pmu, 0x1a0), 0x1881, "{}", cpu.name);
        }
    });
}

#[test]
fn existing_counters() {
    each(|cpu, threads, mut pmu| {
        for index in 0..8 {
            let there = (index as usize) < cpu.general[threads - 1];
            for first in [0xc1, 0x186] {
                check_exists(&mut pmu, first + index, there, cpu.name);
            }
            check_exists(&mut pmu, 0x4c1 + index, there && cpu.full_width(), cpu.name);
            assert_eq!(pmu.rdpmc(index).is_ok(), there, "{}", cpu.name);
            let there = (index as usize) < cpu.fixed;
            check_exists(&mut pmu, 0x309 + index, there, cpu.name);
            let result = pmu.rdpmc((1 << 30) | index);
            assert_eq!(result.is_ok(), there, "{}", cpu.name);
        }
    });
}

#[test]
fn existing_registers() {
    each(|cpu, _, mut pmu| {
        check_exists(&mut pmu, 0x1a6, true, cpu.name);
        check_exists(&mut pmu, 0x1a7, cpu.offcore[1].is_some(), cpu.name);
        check_exists(&mut pmu, 0x3f6, cpu.has_load_latency(), cpu.name);
        check_exists(&mut pmu, 0x3f7, cpu.frontend.is_some(), cpu.name);
        check_exists(&mut pmu, 0x1328, cpu.has_snoop_responses(), cpu.name);
        check_exists(&mut pmu, 0x1329, cpu.has_snoop_responses(), cpu.name);
        check_exists(&mut pmu, 0x329, cpu.metrics.is_some(), cpu.name);
        assert_eq!(pmu.rdpmc(1 << 29).is_ok(), cpu.metrics.is_some());
        assert_eq!(pmu.rdpmc((1 << 29) | 1), Err(Fault));
        check_exists(&mut pmu, 0x391, cpu.version() >= 4, cpu.name);
        assert_eq!(pmu.rdmsr(0x392).unwrap().is_ok(), cpu.version() >= 4);
        for msr in [0x40, 0x47, 0x60, 0x67] {
            check_exists(&mut pmu, msr, cpu.has_low_records(), cpu.name);
        }
        // The branch records of NetBurst, TSX_FORCE_ABORT, PEBS_ENABLE, DS_AREA, last
        // exception records, Intel PT, the next version's counters
        for msr in [
            0x1da, 0x10f, 0x3f1, 0x600, 0x1db, 0x1dc, 0x1dd, 0x1de, 0x560, 0x561, 0x570, 0x572,
            0x580, 0x58f, 0x4c9, 0x1900,
        ] {
            check_exists(&mut pmu, msr, false, cpu.name);
        }
        for msr in [0x38e, 0x345] {
            assert_eq!(pmu.wrmsr(msr, 0), Some(Err(Fault)), "{} {msr:#x}", cpu.name);
        }
    });
}

#[test]
fn reserved_bits() {
    each(|cpu, threads, mut pmu| {
        let mut set = |msr, mask| check_writable(&mut pmu, msr, mask, cpu.name);
        let counters = cpu.counters(threads);
        set(0x186, cpu.select);
        set(0x38d, cpu.fixed_ctrl);
        set(0x38f, counters);
        set(0x309, cpu.counter());
        if cpu.full_width() {
            set(0x4c1, cpu.counter());
        }
        // Trace_ToPA_PMI; LBR_FRZ, CTR_FRZ, ASCI; Ovf_Uncore, OvfDSBuffer; CondChgd, which can only
        // be cleared
        let version_4 = if cpu.version() >= 4 { 0x39 << 55 } else { 0 };
        set(0x390, counters | version_4 | (0xe << 60));
        if cpu.version() >= 4 {
            set(0x391, counters | version_4 | (0x6 << 60));
        }
        for (msr, offcore) in [0x1a6, 0x1a7].into_iter().zip(cpu.offcore) {
            offcore.into_iter().for_each(|mask| set(msr, mask));
        }
        if cpu.has_load_latency() {
            set(0x3f6, 0xffff);
        }
        cpu.frontend.into_iter().for_each(|mask| set(0x3f7, mask));
        if cpu.has_snoop_responses() {
            set(0x1328, u64::MAX);
            set(0x1329, u64::MAX);
        }
        cpu.metrics.into_iter().for_each(|mask| set(0x329, mask));
        set(0x1d9, 0x5803);
        set(0x1a0, 0x44_00c5_1889);
    });
}

/// Otherwise perf's named events could not be programmed.
#[test]
fn the_registers_take_all_values_in_intels_list() {
    for model in &INTEL_MODELS {
        let name = model.name;
        assert_eq!(model.list.offcore & !model.offcore.bits(0), 0, "{name}");
        assert_ne!(model.list.offcore, 0, "{name}");
        assert_eq!(model.list.frontend & !model.frontend, 0, "{name}");
        assert_eq!(model.list.frontend == 0, model.frontend == 0, "{name}");
        assert_eq!(model.list.load_latency & !0xffff, 0, "{name}");
    }
}
