// SPDX-License-Identifier: GPL-2.0

//! The machine sleeps, and wakes up; or comes to its end.
//!
//! The perf core does not take a CPU's events away for that. The built-in driver does nothing, and
//! what was open on the boot CPU counts no more until it is scheduled anew; here it goes on. (Tasks
//! do not run meanwhile, so their events are not on the CPU.)
//!
//! At the end the perf core takes the CPUs' own events away, but tasks go on counting until their CPU
//! is stopped. With `kexec`, the next kernel finds the registers as they are then, and its driver
//! refuses a PMU that has events selected: `check_hw_exists()`, `arch/x86/events/core.c:269-371`.

use super::CorePmu;
use crate::x86::{cpu::on_each_cpu, syscore::Callbacks};
use kernel::interrupt::LocalInterruptDisabled;

impl Callbacks for CorePmu {
    fn suspend(&self, irqs: &LocalInterruptDisabled) {
        let driver = self.ops();
        let cpu = driver.cpus.this_cpu(irqs);
        if cpu.shared.is_unknown() {
            return;
        }
        self.with_disabled(irqs, |cx| {
            let Some(mut own) = cpu.own.borrow(irqs) else {
                return;
            };
            own.asleep = own.shadow.active();
            let asleep = own.asleep;
            driver.pause(cx, asleep, &cpu.shared, &mut own.shadow);
        });
    }

    fn resume(&self, irqs: &LocalInterruptDisabled) {
        let driver = self.ops();
        driver.smi.starting(irqs);
        let cpu = driver.cpus.this_cpu(irqs);
        if cpu.shared.is_unknown() {
            return;
        }
        self.with_disabled(irqs, |cx| {
            let Some(mut own) = cpu.own.borrow(irqs) else {
                return;
            };
            own.reset(&driver.hardware, irqs);
            driver.transactions.allow(&mut own, irqs);
            let asleep = core::mem::take(&mut own.asleep);
            driver.go_on(cx, asleep, &cpu.shared, &mut own.shadow);
        });
    }

    fn shutdown(&self) {
        on_each_cpu(&|irqs| leave_for_good(self, irqs));
    }
}

/// Leaves the PMU of this CPU as it was found. Nothing counts there any more.
fn leave_for_good(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    pmu.with_disabled(irqs, |cx| {
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        for counter in own.shadow.active() {
            let event = cpu.shared.last_event(counter).and_then(|id| cx.event(id));
            if let Some(event) = event {
                driver.stop_on(cx, (counter, event), &cpu.shared, &mut own.shadow);
                event.data().leave();
                event.set_counter(None);
                event.update_userpage();
            }
        }
        cpu.shared.forget();
        own.restore(&driver.hardware, irqs);
        driver.transactions.allow(&mut own, irqs);
        // Callbacks do nothing while it is borrowed.
        core::mem::forget(own);
    });
}
