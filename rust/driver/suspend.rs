// SPDX-License-Identifier: GPL-2.0

//! The machine sleeps, and wakes up.
//!
//! The perf core does not take a CPU's events away for that. The built-in driver does nothing, and
//! what was open on the boot CPU counts no more until it is scheduled anew; here it goes on. (Tasks
//! do not run meanwhile, so their events are not on the CPU.)

use super::CorePmu;
use crate::x86::syscore::Callbacks;
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
            for counter in own.asleep {
                let event = cpu.shared.last_event(counter).and_then(|id| cx.event(id));
                if let Some(event) = event {
                    driver.stop_on(cx, (counter, event), &cpu.shared, &mut own.shadow);
                }
            }
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
            for counter in core::mem::take(&mut own.asleep) {
                let id = cpu.shared.last_event(counter);
                if let Some((id, event)) = id.and_then(|id| Some((id, cx.event(id)?))) {
                    driver.start_on(cx, (counter, id, event), &cpu.shared, &mut own.shadow);
                }
            }
        });
    }
}
