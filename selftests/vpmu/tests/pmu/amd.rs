// SPDX-License-Identifier: GPL-2.0

//! Tests AMD's PMUs, based on the manuals and independently of `src/`: APM vol. 2, 13.2, and the
//! BKDGs and PPRs.

mod branches;
mod counting;
mod registers;
mod sharing;

use vpmu::model::{
    self,
    AMD_MODELS, //
};
use vpmu::pmu::Pmu;
use vpmu::retired::{
    self,
    Retired, //
};

use super::{
    read,
    write, //
};

const USR: u64 = 1 << 16;
const OS: u64 = 1 << 17;
const INT: u64 = 1 << 20;
const EN: u64 = 1 << 22;
const MASK: u64 = (1 << 48) - 1;

const RETIRED_INSTRUCTIONS: u64 = 0xc0;
const RETIRED_BRANCHES: u64 = 0xc2;
const CYCLES: u64 = 0x76;

const GLOBAL_STATUS: u32 = 0xc000_0300;
const GLOBAL_CTL: u32 = 0xc000_0301;
const GLOBAL_STATUS_CLR: u32 = 0xc000_0302;
const GLOBAL_STATUS_SET: u32 = 0xc000_0303;

/// A CPU.
struct Cpu {
    name: &'static str,
    family: u32,
    model: u32,
    counters: u32,
    /// CPUID 8000_0001H:ECX.PerfCtrExtCore.
    extended: bool,
    /// CPUID 8000_0022H:EAX.PerfMonV2.
    v2: bool,
}

#[rustfmt::skip]
const CPUS: [Cpu; 9] = [
    Cpu { name: "K10", family: 0x10, model: 2, counters: 4, extended: false, v2: false },
    Cpu { name: "Piledriver", family: 0x15, model: 2, counters: 6, extended: true, v2: false },
    Cpu { name: "Jaguar", family: 0x16, model: 0, counters: 4, extended: false, v2: false },
    Cpu { name: "Zen 1", family: 0x17, model: 0x01, counters: 6, extended: true, v2: false },
    Cpu { name: "Zen 2", family: 0x17, model: 0x31, counters: 6, extended: true, v2: false },
    Cpu { name: "Zen 3", family: 0x19, model: 0x01, counters: 6, extended: true, v2: false },
    Cpu { name: "Zen 4", family: 0x19, model: 0x11, counters: 6, extended: true, v2: true },
    Cpu { name: "Zen 5", family: 0x1a, model: 0x02, counters: 6, extended: true, v2: true },
    Cpu { name: "Zen 6", family: 0x1a, model: 0x50, counters: 6, extended: true, v2: true },
];

const K10: &Cpu = &CPUS[0];
const PILEDRIVER: &Cpu = &CPUS[1];
const ZEN2: &Cpu = &CPUS[4];
const ZEN4: &Cpu = &CPUS[6];

impl Cpu {
    fn pmu(&self) -> Pmu {
        Pmu::new(model::find(self.family, self.model).unwrap(), 1)
    }

    /// The MSR of PERF_CTL.
    fn ctl(&self, counter: u32) -> u32 {
        if self.extended {
            0xc001_0200 + 2 * counter
        } else {
            0xc001_0000 + counter
        }
    }

    /// The MSR of PERF_CTR.
    fn ctr(&self, counter: u32) -> u32 {
        if self.extended {
            0xc001_0201 + 2 * counter
        } else {
            0xc001_0004 + counter
        }
    }
}

/// Retires this many of each kind at one privilege level.
fn retire(pmu: &mut Pmu, user: bool, kinds: &[(usize, i64)]) {
    let mut counts: Retired = [0; retired::COUNTS];
    for &(kind, count) in kinds {
        counts[kind] = count;
    }
    pmu.retire(user, &counts);
}

/// Programs counter 0, retires these kinds in user mode and returns the count.
fn count(cpu: &Cpu, select: u64, kinds: &[(usize, i64)]) -> u64 {
    count_on(cpu, 0, select, kinds)
}

fn count_on(cpu: &Cpu, counter: u32, select: u64, kinds: &[(usize, i64)]) -> u64 {
    let mut pmu = cpu.pmu();
    write(&mut pmu, cpu.ctl(counter), select | USR | EN);
    retire(&mut pmu, true, kinds);
    read(&pmu, cpu.ctr(counter))
}

#[test]
fn all_models_are_here() {
    let names: Vec<_> = AMD_MODELS.iter().map(|model| model.name).collect();
    assert_eq!(names, CPUS.each_ref().map(|cpu| cpu.name));
    for cpu in &CPUS {
        assert_eq!(model::find(cpu.family, cpu.model).unwrap().name, cpu.name);
    }
    assert!(model::find(0x19, 0x31).is_none());
}
