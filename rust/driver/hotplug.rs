// SPDX-License-Identifier: GPL-2.0

//! Starting and stopping the driver on a CPU: when the CPU comes up or goes down, and when the
//! driver is loaded or unloaded.
//!
//! When a CPU goes down, its counters are switched off, and GLOBAL_CTRL, LVTPC and the units'
//! registers are [restored](Driver::restore). The registers keep these values while the CPU is off
//! (INIT does not change them, SDM volume 3, table 10-1). When the CPU comes up again, the built-in
//! driver may be in charge, and it only clears registers that it uses.
//!
//! The thread that switches a CPU off may have events, which stay on the CPU and count until the
//! registers are restored. The perf core removes them when the thread sleeps, and adds them again
//! when the thread runs on the CPU after it has come up again.
//!
//! A CPU that comes up joins its core. Its counters' registers are set up when it gets its first
//! event.

use super::{
    cpu::{
        CallbackState,
        Cpu, //
    },
    CorePmu,
    Driver, //
};
use crate::perf::PmuDisabled;
use kernel::interrupt::LocalInterruptDisabled;

/// Prepares this CPU for events, when it has come up or the driver is being loaded.
pub(super) fn starting(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    driver.check_registers(irqs);
    if !driver.common.breaker.has_tripped() {
        driver.cpus.this_cpu(irqs).own.open(irqs);
    }
    driver.hardware.starting(irqs);
    driver.join_core(irqs);
}

/// Gives back this CPU, when it goes down or the driver is being unloaded.
///
/// The perf core has removed the CPU's own events, but not the current thread's.
pub(super) fn dying(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    give_back(pmu, irqs);
    pmu.stop_rotation(irqs);
    pmu.ops().leave_core(pmu, irqs);
}

/// Switches the counters of this CPU off, and [restores](Driver::restore) its registers, when it
/// goes down, the driver is being unloaded or the machine shuts down. Until the CPU [comes
/// up](starting) again, no event counts there and callbacks do nothing.
pub(super) fn give_back(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if cpu.own.is_closed() {
        // The CPU was switched off, or its registers are restored already.
        cpu.own.open(irqs);
        if let Some(mut own) = cpu.own.borrow(irqs) {
            driver.restore(cpu, &mut own, irqs);
            own.close();
        }
    } else if !cpu.pmi_state.is_unknown() {
        pmu.with_disabled(irqs, |cx| driver.stop_and_restore(cx, cpu));
    } else if let Some(own) = cpu.own.borrow(irqs) {
        // The CPU has had no event yet.
        own.close();
    }
}

/// Switches the counters of this CPU off, because the PMU does not work. Their values may be wrong,
/// and nothing restores the registers until the CPU is [given back](give_back). Until the driver is
/// loaded again, no event counts here and callbacks do nothing.
pub(super) fn switch_off(pmu: &CorePmu, irqs: &LocalInterruptDisabled) {
    let driver = pmu.ops();
    let cpu = driver.cpus.this_cpu(irqs);
    if !cpu.pmi_state.is_unknown() {
        pmu.with_disabled(irqs, |cx| driver.stop_for_good(cx, cpu));
    } else if let Some(own) = cpu.own.borrow(irqs) {
        own.close();
    }
}

impl Driver {
    /// Removes the events from the counters of this CPU, and restores the registers.
    fn stop_and_restore(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu) {
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            return;
        };
        self.remove_events(cx, cpu, &mut own);
        self.restore(cpu, &mut own, cx.irqs());
        own.close();
    }

    /// Removes the events from the counters of this CPU, and stops the counters.
    fn stop_for_good(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu) {
        let Some(mut own) = cpu.own.borrow(cx.irqs()) else {
            return;
        };
        self.remove_events(cx, cpu, &mut own);
        self.switch_off(cpu, &mut own, cx.irqs());
        own.close();
    }

    /// Removes the events from the counters of this CPU. From then on, an NMI handles no overflow.
    fn remove_events(&self, cx: &PmuDisabled<'_, Self>, cpu: &Cpu, own: &mut CallbackState) {
        let active = own.shadow.active();
        self.pause(cx, active, &cpu.pmi_state, &mut own.shadow);
        for entry in own.schedule.entries() {
            Self::for_each_sharer(cx, &own.riders, entry.event, |event| {
                self.remove_from_counter(cx, event, &cpu.pmi_state);
                event.update_userpage();
            });
        }
        cpu.pmi_state.forget();
    }
}
