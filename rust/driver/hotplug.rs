// SPDX-License-Identifier: GPL-2.0

//! CPUs that come and go, and the driver that does.
//!
//! When one goes, the registers of the CPU become as they were found. They keep what they hold while
//! a CPU is off (INIT does not change them, SDM volume 3, table 10-1), and it may come back when the
//! built-in driver is in charge again, which clears none that it does not use.
//!
//! When a CPU comes up it only finds its sibling: its registers are set up when the first event
//! comes.

use super::CorePmu;
use crate::logic::claim::Claim;
use crate::x86::hotplug::Callbacks;
use kernel::interrupt::LocalInterruptDisabled;

impl Callbacks for CorePmu {
    fn starting(&self, irqs: &LocalInterruptDisabled) {
        self.ops().smi.starting(irqs);
        self.ops().join_core(irqs);
    }

    /// The perf core has taken all events from this CPU.
    fn dying(&self, irqs: &LocalInterruptDisabled) {
        let driver = self.ops();
        let cpu = driver.cpus.this_cpu(irqs);
        cpu.shared.forget();
        if let Some(mut own) = cpu.own.borrow(irqs) {
            own.restore(&driver.hardware, irqs);
            driver.transactions.allow(&mut own, irqs);
            own.claimed = Claim::default();
        }
        driver.leave_core(self, irqs);
    }
}
