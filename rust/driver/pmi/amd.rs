// SPDX-License-Identifier: GPL-2.0

//! The PMI of AMD's PMUs.
//!
//! LVTPC does not mask itself, so each overflow raises an NMI. An NMI that is raised while another
//! one is handled stays pending until that one ends, and may find nothing left to do.
//!
//! Mainline: `amd_pmu_handle_irq()` and `amd_pmu_v2_handle_irq()`, `arch/x86/events/amd/core.c`.

use super::serve;
use crate::{
    driver::{
        cpu::Cpu,
        hw::Amd,
        unit::hooks::Pmi,
        CorePmu, //
    },
    logic::regs::global::Status,
    perf::Stopwatch,
    x86::{
        apic,
        nmi::NmiContext, //
    },
};

/// Handles an NMI of this CPU, whatever its source. Returns the number of handled overflows, or 1
/// for a late NMI.
#[inline]
pub(super) fn handle(pmu: &CorePmu, amd: &Amd, cpu: &Cpu, nmi: &NmiContext) -> u32 {
    let irqs = nmi.irqs();
    let driver = pmu.ops();
    let (hardware, pmi_state) = (&driver.hardware, &cpu.pmi_state);
    if pmi_state.is_unknown() {
        return amd.claim(0, irqs);
    }
    let cx = pmu.on_cpu(irqs);

    let watch = (!nmi.is_timed()).then(Stopwatch::start);
    // The interrupted code may be in the middle of disabling the PMU, with counters still running.
    let enabled = amd.stops_in_pmi().then(|| {
        let enabled = pmi_state.take_enabled();
        hardware.stop(irqs);
        enabled
    });
    let overflows = amd.overflows(pmi_state.handled(), irqs);
    let mut handled = overflows.of_no_event();
    let mut branches = driver.read_branches(&cx, cpu, overflows.counters());
    amd.acknowledge(&overflows, irqs);
    let pmi = Pmi {
        nmi,
        status: Status::from_bits(0),
    };
    let site = driver.site(cpu, irqs);
    driver
        .units
        .pmi(&cpu.units, &cx, site, pmi, branches.as_mut());
    for counter in overflows.counters() {
        // An event that was handled before may have stopped this one, which is in its group.
        let event = pmi_state.active_event(counter).and_then(|id| cx.event(id));
        handled = handled.wrapping_add(1);
        if let Some(event) = event {
            serve(
                (counter, event),
                driver,
                pmi_state,
                branches.as_mut(),
                &cx,
                nmi,
            );
        }
    }
    if handled != 0 {
        nmi.count_pmi();
        // Hardware leaves LVTPC armed; some hypervisors mask it as on Intel's processors.
        apic::lvtpc_arm(irqs);
    }
    if let Some(enabled) = enabled {
        pmi_state.set_enabled(enabled);
        pmi_state.run(hardware, irqs);
        // A BPF program of an event may have taken a snapshot of the branches, which starts all
        // counters.
        if enabled.is_empty() && handled != 0 {
            hardware.stop(irqs);
        }
    }
    if let Some(watch) = watch.filter(|_| handled != 0) {
        watch.stop(irqs);
    }
    amd.claim(handled, irqs)
}
