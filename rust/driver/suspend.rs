// SPDX-License-Identifier: GPL-2.0

//! Suspend and resume of the last CPU. (For the other CPUs, see [`hotplug`](super::hotplug).)
//!
//! The perf core removes neither this CPU's events nor those of the task that suspends the machine.
//! The built-in driver does nothing, so after resume the boot CPU's events do not count until they
//! are scheduled again. With this driver they continue to count.
//!
//! On shutdown the perf core removes the CPUs' own events, but events of tasks count until their
//! CPU is stopped. So each CPU is [given back](super::hotplug::give_back). Otherwise the next
//! kernel, after `kexec`, would find selected events, and its driver would refuse the PMU
//! (`check_hw_exists()`, `arch/x86/events/core.c`).

use super::CorePmu;
use kernel::interrupt::LocalInterruptDisabled;

/// Stops the events of this CPU, the last one online, before it loses its registers.
pub(super) fn suspend(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if cpu.pmi_state.is_unknown() {
        return;
    }
    pmu.with_disabled(irqs, |cx| {
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        own.asleep = own.shadow.active();
        let asleep = own.asleep;
        driver.pause(cx, asleep, &cpu.pmi_state, &mut own.shadow);
    });
}

/// Sets up the registers of this CPU, and lets its events continue to count.
pub(super) fn resume(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    driver.hardware.starting(irqs);
    let cpu = driver.cpus.this_cpu(irqs);
    if cpu.pmi_state.is_unknown() {
        return;
    }
    driver.check_registers(irqs);
    pmu.with_disabled(irqs, |cx| {
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        driver.reset(cpu, &mut own, irqs);
        let asleep = core::mem::take(&mut own.asleep);
        driver.go_on(cx, asleep, &cpu.pmi_state, &mut own.shadow);
    });
}
