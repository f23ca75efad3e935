// SPDX-License-Identifier: GPL-2.0

//! The performance monitoring interrupt (PMI), which a counter raises when it overflows. It is an NMI.
//!
//! A period that is over becomes a sample. The perf core, which gets it, may stop the event and others of
//! its group, and start them again, before it returns: see [`Shared::halt`].

pub(super) mod shared;

pub(super) use shared::Shared;

use super::{event, hw::Hardware, CorePmu};
use crate::{
    logic::{
        model::Acknowledge,
        regs::counter::{CounterId, CounterMask},
    },
    perf::{OnCpu, Sample, Stopwatch},
    x86::{apic, nmi::NmiContext},
};
use core::sync::atomic::Ordering::Relaxed;

/// Passes over the overflows in one NMI. Counters do not count meanwhile, so overflows that are still
/// there after so many passes cannot be acknowledged.
const PASSES: u32 = 100;

/// Handles an NMI of this CPU, whatever raised it. Returns the number of overflows that it has handled.
#[inline]
pub(super) fn handle(pmu: &CorePmu, nmi: &NmiContext) -> u32 {
    let irqs = nmi.irqs();
    let driver = pmu.ops();
    let hardware = &driver.hardware;
    let shared = &driver.cpus.this_cpu(irqs).shared;
    let Some(cx) = pmu.on_cpu(irqs) else {
        return 0;
    };
    if shared.is_unknown() {
        return 0;
    }

    let watch = Stopwatch::start();
    // The interrupted code may be about to disable the PMU, and not have done so yet.
    let enabled = shared.take_enabled();
    hardware.stop(irqs);
    let overflowed = hardware.overflowed(irqs);
    let handled = if overflowed.is_empty() {
        // LVTPC masks itself when it raises an NMI. So a masked LVTPC means that a counter has raised
        // this one, and that an NMI before has handled the overflow.
        let ours = apic::lvtpc(irqs).masked();
        if ours {
            apic::lvtpc_arm(irqs);
        }
        u32::from(ours)
    } else {
        nmi.count_pmi();
        let early = hardware.pmu.model.acknowledge == Acknowledge::Early;
        if early {
            apic::lvtpc_arm(irqs);
        }
        let handled = drain(overflowed, hardware, shared, &cx, nmi);
        // Before the counters count again: an overflow is lost while LVTPC is masked.
        if !early {
            apic::lvtpc_arm(irqs);
        }
        handled
    };
    shared.set_enabled(enabled);
    shared.run(hardware, irqs);
    if handled != 0 {
        watch.stop(irqs);
    }
    handled
}

/// Handles overflows until there are no more, and returns how many there were.
///
/// Further ones may come while the first are being handled: late ones, and those by writes to the
/// counters. They raise no NMI if LVTPC is masked. If it is armed, the kernel expects one more NMI, as
/// more than one overflow is reported.
///
/// Mainline: `intel_pmu_handle_irq()`, `arch/x86/events/intel/core.c:3963`.
fn drain(
    mut overflowed: CounterMask,
    hardware: &Hardware,
    shared: &Shared,
    cx: &OnCpu<'_, super::Driver>,
    nmi: &NmiContext,
) -> u32 {
    let mut handled = 0u32;
    for _ in 0..PASSES {
        hardware.acknowledge(overflowed, nmi.irqs());
        let checkpointed = hardware.pmu.model.checkpointed & hardware.pmu.capabilities.counters;
        for counter in overflowed | checkpointed {
            let event = shared.active_event(counter).and_then(|id| cx.event(id));
            let due = overflowed.contains(counter);
            handled = handled.wrapping_add(due.into());
            match event {
                // The interrupt has aborted the TSX transaction, and its overflow is gone with it.
                Some(event) if due || event.data().is_checkpointed() => {
                    serve(event, counter, hardware, cx, nmi);
                }
                // A late overflow, of an event that has left: acknowledging it is enough.
                _ => {}
            }
        }
        overflowed = hardware.overflowed(nmi.irqs());
        if overflowed.is_empty() {
            return handled;
        }
    }
    shared.set_stuck(hardware.pmu.capabilities.counters);
    handled
}

/// Brings the count of `event` up to date, lets it count on, and hands a sample to the perf core if one
/// is due.
fn serve(
    event: &crate::perf::Event<super::Driver>,
    counter: CounterId,
    hardware: &Hardware,
    cx: &OnCpu<'_, super::Driver>,
    nmi: &NmiContext,
) {
    let irqs = nmi.irqs();
    let period = event.last_period().load(Relaxed);
    event::update(event, hardware, irqs);
    if event::restart(event, counter, hardware, irqs) {
        event.overflow(cx, Sample::new(period), nmi.regs());
    }
}
