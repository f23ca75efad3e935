// SPDX-License-Identifier: GPL-2.0

//! Tests of the PMU as software sees it.

mod amd;
mod counts;
mod defects;
mod hybrid;
mod injected;
mod lbr;
mod models;
mod pebs;
mod profile;
mod threads;
mod topdown;

use vpmu::defect::Defects;
use vpmu::model::{
    self,
    Model, //
};
use vpmu::pmu::Pmu;
use vpmu::retired;
use vpmu::shared::{
    Core,
    Thread, //
};

const NEHALEM: u32 = 26;
const WESTMERE: u32 = 44;
const SANDY_BRIDGE: u32 = 42;
const IVY_BRIDGE: u32 = 58;
const HASWELL: u32 = 60;
const BROADWELL: u32 = 61;
const SKYLAKE: u32 = 94;
const USR: u64 = 1 << 16;
const INT: u64 = 1 << 20;
const EN: u64 = 1 << 22;
const COUNTS: u64 = USR | EN;
const INSTRUCTIONS: u64 = 0xc0;
const STATUS: u32 = 0x38e;
const STATUS_RESET: u32 = 0x390;
const GLOBAL_CTRL: u32 = 0x38f;
/// The MSR of the injected errors.
const INJECT: u32 = 0x4000_ff0a;

fn find(model: u32) -> &'static Model {
    model::find(6, model).unwrap()
}

/// Creates the PMUs of a core, with the first four general counters enabled in
/// IA32_PERF_GLOBAL_CTRL.
fn core(model: &'static Model, defects: Defects) -> [Pmu; 2] {
    let core = Core::new(2);
    [0, 1].map(|index| {
        let mut pmu = Pmu::on(Thread::new(core.clone(), index), model, defects);
        // RESET sets the bits of all general counters.
        let general = read(&pmu, GLOBAL_CTRL) & 0xf;
        write(&mut pmu, GLOBAL_CTRL, general);
        pmu
    })
}

fn write(pmu: &mut Pmu, msr: u32, value: u64) {
    pmu.wrmsr(msr, value).unwrap().unwrap();
}

fn read(pmu: &Pmu, msr: u32) -> u64 {
    pmu.rdmsr(msr).unwrap().unwrap()
}

fn select(pmu: &mut Pmu, counter: u32, select: u64) {
    write(pmu, 0x186 + counter, select);
}

/// Retires instructions at user level, all of which load.
fn retire(pmu: &mut Pmu, instructions: i64) {
    retire_at(pmu, true, instructions);
}

/// Retires instructions at one privilege level, all of which load.
fn retire_at(pmu: &mut Pmu, user: bool, instructions: i64) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = instructions;
    counts[retired::LOADS] = instructions;
    pmu.retire(user, &counts);
}
