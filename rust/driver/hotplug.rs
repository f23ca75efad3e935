// SPDX-License-Identifier: GPL-2.0

//! CPUs that come up and go down, and the loading and unloading of the driver on each of them.
//!
//! A CPU that goes down gets its registers back as the driver found them. They keep their values
//! while the CPU is off (INIT does not change them, SDM volume 3, table 10-1), and it may come back
//! when the built-in driver is in charge again, which clears only registers that it uses.
//!
//! The thread that switches a CPU off may have events, which stay on the CPU and count until the
//! registers are restored. The perf core takes them away when the thread sleeps, and puts them on
//! again when it runs on the CPU that has come back.
//!
//! A CPU that comes up only joins its core. Its registers are set up for its first event.

use super::{
    cpu::Cpu,
    event,
    CorePmu,
    Driver, //
};
use crate::perf::PmuDisabled;
use kernel::interrupt::LocalInterruptDisabled;

/// Prepares this CPU for events: it has come up, or the driver is being loaded.
pub(super) fn starting(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    driver.cpus.this_cpu(irqs).own.open(irqs);
    driver.hardware.starting(irqs);
    driver.join_core(irqs);
}

/// Gives back this CPU: it goes down, or the driver is being unloaded.
///
/// The perf core has taken away the CPU's own events, but not those of the current thread.
pub(super) fn dying(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    give_back(pmu, irqs);
    pmu.stop_rotation(irqs);
    pmu.ops().leave_core(pmu, irqs);
}

/// Restores the registers of this CPU as the driver found them. No event counts there and callbacks
/// do nothing until the CPU [comes up](starting) again.
pub(super) fn give_back(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if !cpu.shared.is_unknown() {
        pmu.with_disabled(irqs, |cx| driver.let_go(cx, cpu));
    } else if let Some(own) = cpu.own.borrow(irqs) {
        // The CPU has had no event yet.
        own.close();
    }
}

impl Driver {
    /// Takes the events off the counters of this CPU, and restores the registers.
    fn let_go(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu) {
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
        // The PMI ignores NMIs from here on.
        cpu.shared.forget();
        self.restore(cpu, &mut own, irqs);
        own.close();
    }
}
