// SPDX-License-Identifier: GPL-2.0

//! The performance monitoring interrupt (PMI), which a counter raises when it overflows. It is an
//! NMI.
//!
//! A period that is over becomes a sample. The perf core, which gets it, may stop the event and
//! others of its group, and start them again, before it returns: see [`PmiState::halt`].

mod amd;
mod hypervisors;
pub(super) mod state;

pub(super) use state::PmiState;

use super::{
    counter_use::Way,
    cpu::Cpu,
    unit::{
        hooks::Pmi,
        lbr::InPmi, //
    },
    CorePmu, //
};
use crate::{
    logic::{
        model::Acknowledge,
        regs::{
            counter::{
                CounterId,
                CounterMask, //
            },
            global::Status, //
        },
    },
    perf::{
        Event,
        OnCpu,
        Sample,
        Stopwatch, //
    },
    x86::{
        apic,
        intel::trace::PausedBts,
        nmi::NmiContext, //
    },
};
use core::sync::atomic::Ordering::Relaxed;

/// The most passes over the overflows in one NMI. Counters do not count meanwhile, so overflows
/// that are still set after the last pass cannot be acknowledged.
const PASSES: u32 = 100;

/// Handles an NMI of this CPU, whatever its source. Returns the number of handled interrupts of
/// counters, PEBS, Intel PT and BTS, or 1 for an NMI whose overflow an earlier one has handled.
#[inline]
pub(super) fn handle(pmu: &CorePmu, nmi: &NmiContext) -> u32 {
    let irqs = nmi.irqs();
    let driver = pmu.ops();
    let hardware = &driver.hardware;
    let cpu = driver.cpus.this_cpu(irqs);
    let pmi_state = &cpu.pmi_state;
    if let Some(registers) = hardware.amd() {
        return amd::handle(pmu, registers, cpu, nmi);
    }
    let tracing = &driver.common.tracing;
    if pmi_state.is_unknown() {
        return tracing.handle_alone(hardware, nmi);
    }
    let cx = pmu.on_cpu(irqs);

    let watch = (!nmi.is_timed()).then(Stopwatch::start);
    let bts = tracing.pause_bts(nmi);
    // The interrupted code may be in the middle of disabling the PMU, with counters still running.
    let enabled = pmi_state.take_enabled();
    hardware.stop(irqs);
    let traced = bts.as_ref().map_or(0, PausedBts::interrupt);
    let status = hardware.status(irqs);
    // Excludes the counters whose overflows the processor records. Only callbacks change that set.
    let capabilities = &hardware.pmu.capabilities;
    let counters = capabilities
        .reporting()
        .without(driver.units.silent(&cpu.units));
    let handled = if !is_due(status, counters, driver) {
        // An earlier NMI has handled the overflow, and this one has stopped the recording of
        // branches again.
        if status.has_frozen_branches() {
            hardware.acknowledge(status, irqs);
        }
        // LVTPC masks itself when it raises an NMI. So a masked LVTPC means that a counter or a
        // tracer has raised this NMI, and that an earlier NMI has handled the overflow.
        let ours = traced != 0 || apic::lvtpc(irqs).masked();
        if traced != 0 || ours && !driver.is_storm(cpu) {
            apic::lvtpc_arm(irqs);
        }
        u32::from(ours)
    } else {
        nmi.count_pmi();
        let early = hardware.pmu.model.acknowledge == Acknowledge::Early;
        if early {
            apic::lvtpc_arm(irqs);
        }
        let handled = drain(status, counters, driver, cpu, &cx, nmi).wrapping_add(traced);
        pmi_state.signs.handled();
        // Before the counters count again: an overflow is lost while LVTPC is masked.
        if !early {
            apic::lvtpc_arm(irqs);
        }
        handled
    };
    pmi_state.set_enabled(enabled);
    if !enabled.is_empty() {
        driver.units.go_on(&cpu.units, driver.site(cpu, irqs));
    }
    pmi_state.run(hardware, irqs);
    drop(bts);
    if let Some(watch) = watch.filter(|_| handled != 0) {
        watch.stop(irqs);
    }
    handled
}

/// Returns whether one of `counters`, PEBS records or Intel PT have raised a PMI.
#[inline]
fn is_due(status: Status, counters: CounterMask, driver: &super::Driver) -> bool {
    !status.overflowed(counters).is_empty()
        || status.has_records()
        || driver.common.tracing.is_due(status)
}

/// Handles overflows of `counters`, PEBS records and interrupts of Intel PT until none are left.
/// After [`PASSES`] passes, gives up and halts all counters ([`PmiState::set_stuck`]). Returns the
/// number of interrupts.
///
/// Further overflows may occur while the first are being handled: late ones, and ones that writes
/// to the counters cause. They raise no NMI while LVTPC is masked. If it is armed, the kernel
/// expects one more NMI, since the handler reports more than one overflow.
///
/// Mainline: `intel_pmu_handle_irq()`, `arch/x86/events/intel/core.c`.
fn drain(
    mut status: Status,
    counters: CounterMask,
    driver: &super::Driver,
    cpu: &Cpu,
    cx: &OnCpu<'_, super::Driver>,
    nmi: &NmiContext,
) -> u32 {
    let hardware = &driver.hardware;
    let pmi_state = &cpu.pmi_state;
    let site = driver.site(cpu, nmi.irqs());
    // Further passes use the same branches: those recorded after the first pass are this handler's
    // own.
    let checkpointed = hardware.pmu.model.checkpointed & counters & pmi_state.handled();
    let mut wants_branches = status.overflowed(counters) | checkpointed;
    let mut pmi = Pmi { nmi, status };
    let units = &driver.units;
    let mut handled = 0u32;
    units.pmi_early(&cpu.units, cx, site, &mut pmi, &mut wants_branches);
    let mut branches = driver.read_branches(cx, cpu, wants_branches);
    for _ in 0..PASSES {
        // Acknowledges all bits, as the built-in driver does: from version 4 on, some bits freeze
        // other units.
        hardware.acknowledge(status, nmi.irqs());
        handled = handled.wrapping_add(driver.common.tracing.pt_interrupt(status, nmi));
        units.pmi(&cpu.units, cx, site, pmi, branches.as_mut());
        handled = handled.wrapping_add(status.has_records().into());
        let overflowed = status.overflowed(counters);
        for counter in overflowed | checkpointed {
            let event = pmi_state.active_event(counter).and_then(|id| cx.event(id));
            let due = overflowed.contains(counter);
            handled = handled.wrapping_add(due.into());
            match event {
                // Also without an overflow: the interrupt has aborted the TSX transaction, which
                // took the overflow back.
                Some(event) if due || event.data().is_checkpointed() => {
                    serve(
                        (counter, event),
                        driver,
                        pmi_state,
                        branches.as_mut(),
                        cx,
                        nmi,
                    );
                }
                // An overflow of PERF_METRICS as a whole, without an event for the first metric.
                None if counter == CounterId::FIRST_METRIC => driver.topdown(cx).overflowed(false),
                // A late overflow of an event that has left, for which acknowledging it is enough;
                // or a counter that has not overflowed, and whose event is not checkpointed.
                _ => {}
            }
        }
        status = hardware.status(nmi.irqs());
        if !is_due(status, counters, driver) {
            return handled;
        }
        pmi.status = status;
    }
    pmi_state.set_stuck(hardware.pmu.capabilities.counters);
    driver.common.breaker.request();
    handled
}

/// Serves `event`, which has overflowed or is checkpointed: brings its count up to date, restarts
/// it, and hands a sample to the perf core if a period is over. `branches` are the branches that
/// the PMI has read.
///
/// On a shared counter, the count is only brought up to date if the sample contains it. For slots
/// and metrics, all topdown counts are brought up to date, and there is no sample.
fn serve(
    (counter, event): (CounterId, &Event<super::Driver>),
    driver: &super::Driver,
    pmi_state: &PmiState,
    branches: Option<&mut InPmi<'_>>,
    cx: &OnCpu<'_, super::Driver>,
    nmi: &NmiContext,
) {
    let irqs = nmi.irqs();
    let hardware = &driver.hardware;
    let counts = pmi_state.uses.on(counter);
    let way = counts.way();
    if matches!(way, Way::Slots | Way::Metric) {
        driver.topdown(cx).overflowed(way == Way::Slots);
        return;
    }
    let period = event.last_period().load(Relaxed);
    if way == Way::Shared {
        let counts = counts.shared_counter(counter, hardware, irqs);
        counts.freeze(Some(event));
        // A sample with counts needs the count now. Otherwise it is brought up to date when it is
        // read, together with the counts of its group.
        if event.samples_counts() {
            counts.update(event);
        }
    } else {
        counts.update((counter, event), hardware, irqs);
    }
    if counts.restart(event, counter, hardware, irqs) {
        if event.data().switches {
            driver.end_turn(cx);
        }
        let mut sample = Sample::new(period);
        if let Some(branches) = branches {
            branches.add_to(&mut sample, event, irqs);
        }
        event.overflow(cx, &mut sample, nmi.regs());
    }
}
