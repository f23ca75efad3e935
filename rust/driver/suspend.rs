// SPDX-License-Identifier: GPL-2.0

//! The machine sleeps, and wakes up; or comes to its end.
//!
//! The perf core does not take a CPU's events away for that, nor those of the task that puts the
//! machine to sleep. The built-in driver does nothing, and what was open on the boot CPU counts no
//! more until it is scheduled anew; here it goes on. (Of other CPUs, see
//! [`hotplug`](super::hotplug).)
//!
//! At the end the perf core takes the CPUs' own events away, but tasks go on counting until their CPU
//! is stopped. With `kexec`, the next kernel finds the registers as they are then, and its driver
//! refuses a PMU that has events selected: `check_hw_exists()`, `arch/x86/events/core.c:269-371`.

use super::{cpu::Own, CorePmu};
use kernel::interrupt::LocalInterruptDisabled;

/// Stops the events of this CPU, the last one that runs, before its registers are lost.
pub(super) fn suspend(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if cpu.shared.is_unknown() {
        return;
    }
    pmu.with_disabled(irqs, |cx| {
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        own.asleep = own.shadow.active();
        let asleep = own.asleep;
        driver.pause(cx, asleep, &cpu.shared, &mut own.shadow);
    });
}

/// Sets up the registers of this CPU, which is back, and lets its events count on.
pub(super) fn resume(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    driver.smi.starting(irqs);
    let cpu = driver.cpus.this_cpu(irqs);
    if cpu.shared.is_unknown() {
        return;
    }
    pmu.with_disabled(irqs, |cx| {
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        own.reset(&driver.hardware, irqs);
        let Own {
            tfa,
            schedule,
            shadow,
            asleep,
            ..
        } = &mut *own;
        driver.transactions.allow(tfa, irqs);
        driver
            .transactions
            .abort_if_needed(tfa, schedule.taken(), shadow, irqs);
        driver.go_on(cx, core::mem::take(asleep), &cpu.shared, shadow);
    });
}
