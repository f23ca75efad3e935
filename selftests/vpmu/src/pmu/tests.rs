// SPDX-License-Identifier: GPL-2.0

//! Tests of a PMU through its registers.

mod access;
mod counting;
mod overflow;

use std::sync::atomic::Ordering::Relaxed;

use super::registers::{
    BTF,
    CTR_FRZ,
    EN,
    FREEZE_PERFMON_ON_PMI,
    FREEZE_WHILE_SMM,
    INT,
    OS,
    USR, //
};
use super::{
    Counting,
    Pmu, //
};
use crate::counter::MASK;
use crate::model;
use crate::retired;

const HASWELL: u32 = 60;
const SKYLAKE: u32 = 94;
const KERNEL: bool = false;
const USER: bool = true;

const INST_RETIRED: u64 = 0xc0;
const BR_INST_RETIRED: u64 = 0xc4;
const L1D_PEND_MISS: u64 = 0x148;
const UOPS_ISSUED_ANY: u64 = 0x10e;
const REF_XCLK: u64 = 0x13c;
const LOADS: u64 = 0x81d0;
const WALKS: u64 = 0x0108;
const OFFCORE_RESPONSE_0: u64 = 0x1b7;
const OFFCORE_RESPONSE_1: u64 = 0x1bb;

const STATUS: u32 = 0x38e;
const GLOBAL_CTRL: u32 = 0x38f;
const STATUS_RESET: u32 = 0x390;

fn pmu(model: u32) -> Pmu {
    let mut pmu = Pmu::new(model::find(6, model).unwrap(), 2);
    write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
    pmu
}

fn write(pmu: &mut Pmu, msr: u32, value: u64) {
    pmu.wrmsr(msr, value).unwrap().unwrap();
}

fn read(pmu: &Pmu, msr: u32) -> u64 {
    pmu.rdmsr(msr).unwrap().unwrap()
}

/// Retires instructions, all of which load.
fn retire(pmu: &mut Pmu, user: bool, instructions: i64) {
    let mut counts = [0; retired::COUNTS];
    counts[retired::INSTRUCTIONS] = instructions;
    counts[retired::LOADS] = instructions;
    pmu.retire(user, &counts);
}
