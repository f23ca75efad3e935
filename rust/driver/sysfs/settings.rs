// SPDX-License-Identifier: GPL-2.0

//! The settings of a PMU, as files in sysfs.

use crate::{
    driver::{
        machine::common::Common,
        unit::tfa::Tfa,
        CorePmu,
        Driver, //
    },
    kern::cpu::online_cpus,
    perf::Setting, //
};
use core::sync::atomic::Ordering::Relaxed;
use kernel::prelude::*;

/// `rdpmc`: the tasks that may read counters with this instruction.
///
/// Mainline: `set_attr_rdpmc()`, `arch/x86/events/core.c`.
pub(super) struct Rdpmc;

impl Setting<Driver> for Rdpmc {
    type Value = u64;
    const MODE: u16 = 0o600;

    fn get(pmu: &CorePmu) -> u64 {
        pmu.ops().common.user_read.mode() as u64
    }

    fn set(pmu: &CorePmu, value: u64) -> Result {
        pmu.ops().common.user_read.set_mode(value)
    }
}

/// `freeze_on_smi`: whether counters stop in system management mode.
///
/// Mainline: `freeze_on_smi_store()`, `arch/x86/events/intel/core.c`.
pub(super) struct FreezeOnSmi;

impl Setting<Driver> for FreezeOnSmi {
    type Value = u64;
    const MODE: u16 = 0o644;

    fn get(pmu: &CorePmu) -> u64 {
        pmu.ops().common.smi.freezes().into()
    }

    fn set(pmu: &CorePmu, value: u64) -> Result {
        let on = match value {
            0 => false,
            1 => true,
            _ => return Err(EINVAL),
        };
        let Common { smi, user_read, .. } = &*pmu.ops().common;
        smi.set_freeze(on, user_read.initialised());
        Ok(())
    }
}

/// `allow_tsx_force_abort`: whether TSX transactions may be made to abort for counter 3.
///
/// Mainline: `set_sysctl_tfa()`, `arch/x86/events/intel/core.c`.
pub(super) struct AllowForceAbort;

impl Setting<Driver> for AllowForceAbort {
    type Value = bool;
    const MODE: u16 = 0o644;

    fn get(pmu: &CorePmu) -> bool {
        let tfa = pmu.ops().units.tfa.as_ref();
        tfa.is_none_or(Tfa::abort_is_allowed)
    }

    fn set(pmu: &CorePmu, on: bool) -> Result {
        let driver = pmu.ops();
        if !driver.can_resched() {
            return Err(EOPNOTSUPP);
        }
        let tfa = driver.units.tfa.as_ref();
        if !tfa.is_some_and(|tfa| tfa.allow_abort(on)) {
            return Ok(());
        }
        // If off, an event on counter 3 has to leave it. If on, an event that waits for it can get
        // it.
        for cpu in online_cpus() {
            pmu.resched(cpu);
        }
        pmu.finish_resched();
        Ok(())
    }
}

/// `switch_max_percent`: the maximum share of a CPU's time, in percent, for rotations that
/// overflows cause (`switch`).
pub(super) struct SwitchMaxPercent;

impl Setting<Driver> for SwitchMaxPercent {
    type Value = u64;
    const MODE: u16 = 0o644;

    fn get(pmu: &CorePmu) -> u64 {
        pmu.ops().switch_max_percent.load(Relaxed).into()
    }

    fn set(pmu: &CorePmu, value: u64) -> Result {
        match value {
            // CAST: at most 100.
            1..=100 => pmu.ops().switch_max_percent.store(value as u32, Relaxed),
            _ => return Err(EINVAL),
        }
        Ok(())
    }
}

/// `max_precise`: the maximum `precise_ip`.
pub(super) struct MaxPrecise;

impl Setting<Driver> for MaxPrecise {
    type Value = u64;
    const MODE: u16 = 0o444;

    fn get(pmu: &CorePmu) -> u64 {
        let Driver {
            units, hardware, ..
        } = pmu.ops();
        let pebs = units.pebs.as_ref();
        pebs.map_or(0, |pebs| pebs.max_precise(hardware)).into()
    }

    fn set(_pmu: &CorePmu, _value: u64) -> Result {
        Err(EACCES)
    }
}
