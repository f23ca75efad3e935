// SPDX-License-Identifier: GPL-2.0

//! CPUs that come and go, and the driver that does.
//!
//! When one goes, the registers of the CPU become as they were found. They keep what they hold while
//! a CPU is off (INIT does not change them, SDM volume 3, table 10-1), and it may come back when the
//! built-in driver is in charge again, which clears none that it does not use.
//!
//! The thread that switches a CPU off may have events, which are on the CPU all the while. They count
//! until the registers are restored. The perf core takes them away when the thread goes to sleep, and
//! puts them on again when the thread runs on the CPU that has come back.
//!
//! When a CPU comes up it only finds its sibling: its registers are set up when the first event
//! comes.

use super::{cpu::Cpu, event, CorePmu, Driver};
use crate::perf::PmuDisabled;
use kernel::interrupt::LocalInterruptDisabled;

/// Lets events come to this CPU, which has come up or which the driver has just got.
pub(super) fn starting(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    driver.cpus.this_cpu(irqs).own.open(irqs);
    driver.smi.starting(irqs);
    driver.join_core(irqs);
}

/// Gives up this CPU, which goes down or which the driver is about to leave.
///
/// The perf core has taken the CPU's own events away, and not those of the thread that this is.
pub(super) fn dying(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    give_back(pmu, irqs);
    pmu.ops().leave_core(pmu, irqs);
}

/// Leaves the PMU of this CPU as it was found. Nothing counts there any more, and callbacks do
/// nothing, until the CPU comes [again](starting).
pub(super) fn give_back(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if !cpu.shared.is_unknown() {
        pmu.with_disabled(irqs, |cx| driver.restore(cx, cpu));
    } else if let Some(own) = cpu.own.borrow(irqs) {
        // There has been no event yet.
        own.close();
    }
}

impl Driver {
    /// Takes the events from the counters of this CPU, and restores the registers.
    fn restore(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu) {
        let irqs = cx.irqs();
        let Some(mut own) = cpu.own.borrow(irqs) else {
            return;
        };
        let active = own.shadow.active();
        self.pause(cx, active, &cpu.shared, &mut own.shadow);
        for event in own.schedule.entries().filter_map(|it| cx.event(it.event)) {
            event::leave(event);
            event.update_userpage();
        }
        // The PMI does nothing from here on.
        cpu.shared.forget();
        own.restore(&self.hardware, irqs);
        self.transactions.allow(&mut own.tfa, irqs);
        own.close();
    }
}
