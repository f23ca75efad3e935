// SPDX-License-Identifier: GPL-2.0

//! The performance monitoring interrupt (PMI): a counter has overflowed. It is an NMI.
//!
//! A period that is over becomes a sample. While the perf core is told of it, it may stop the event
//! and others of its group, and start it again: see [`Shared::halt`].

use super::{event, hw::Hardware, CorePmu};
use crate::{
    logic::{
        model::Acknowledge,
        regs::counter::{CounterId, CounterMask, MAX_COUNTERS},
    },
    perf::{EventId, OnCpu, Sample, Stopwatch},
    x86::{apic, nmi::NmiContext},
};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use kernel::interrupt::LocalInterruptDisabled;

/// [`MAX_COUNTERS`] rounded up, so that masking an index bounds it.
const SLOTS: usize = MAX_COUNTERS.next_power_of_two();

/// How often to look for further overflows in one NMI. Counters do not count meanwhile, so if there
/// are still some, they cannot be acknowledged.
const PASSES: u32 = 100;

/// What callbacks on a CPU share with the PMI that may interrupt them.
///
/// Only the CPU itself writes it, except `unknown`. So each store takes effect at once for whoever
/// comes next on the CPU, and no ordering is needed. `active` is written by callbacks only; what an
/// NMI may change too is changed by `compare_exchange`.
pub(super) struct Shared {
    /// The counters whose events the PMI may handle: their registers are complete.
    active: AtomicU64,
    /// Those of them whose events an NMI has stopped, which is not in the schedule's books yet.
    halted: AtomicU64,
    /// What GLOBAL_CTRL is to be after the PMI, but for what is halted. 0 while the PMU is disabled,
    /// and in a PMI.
    enabled: AtomicU64,
    /// Index of the event on each active counter.
    events: [AtomicU32; SLOTS],
    /// Whether it is unknown what the registers hold. They are not to be used then.
    unknown: AtomicBool,
    /// Whether overflows could not be acknowledged.
    stuck: AtomicBool,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            active: AtomicU64::new(0),
            halted: AtomicU64::new(0),
            enabled: AtomicU64::new(0),
            events: [const { AtomicU32::new(0) }; SLOTS],
            unknown: AtomicBool::new(true),
            stuck: AtomicBool::new(false),
        }
    }

    fn event_on(&self, counter: CounterId) -> &AtomicU32 {
        // The mask changes nothing, and leaves no panic path for the NMI.
        &self.events[counter.index() & (SLOTS - 1)]
    }

    /// Lets the PMI handle `event` on `counter`.
    pub(super) fn activate(&self, counter: CounterId, event: EventId) {
        // CAST: an index is below 64.
        self.event_on(counter).store(event.index() as u32, Relaxed);
        self.set_halted(counter.mask(), false);
        let active = self.active.load(Relaxed);
        self.active.store(active | counter.mask().bits(), Relaxed);
    }

    /// Keeps the PMI from `counter`.
    pub(super) fn deactivate(&self, counter: CounterId) {
        let active = self.active.load(Relaxed);
        self.active.store(active & !counter.mask().bits(), Relaxed);
    }

    /// The event that the PMI may handle on `counter`.
    fn active_event(&self, counter: CounterId) -> Option<EventId> {
        let handled = self.active.load(Relaxed) & !self.halted.load(Relaxed);
        if !CounterMask::from_bits(handled).contains(counter) {
            return None;
        }
        self.last_event(counter)
    }

    /// The event that was last activated on `counter`, if it has not been removed since.
    pub(super) fn last_event(&self, counter: CounterId) -> Option<EventId> {
        // CAST: what `activate()` has stored.
        EventId::from_index(self.event_on(counter).load(Relaxed) as usize)
    }

    /// Stops `counter` in an NMI.
    ///
    /// The register shadow may be in use by who was interrupted. So the counter is only left out of
    /// GLOBAL_CTRL, which the shadow takes for on, until a callback settles it
    /// ([`halted`](Self::halted)).
    pub(super) fn halt(&self, counter: CounterId) {
        self.set_halted(counter.mask(), true);
    }

    /// Whether that has been done, and not been settled yet.
    pub(super) fn is_halted(&self, counter: CounterId) -> bool {
        let halted = self.halted.load(Relaxed) & self.active.load(Relaxed);
        CounterMask::from_bits(halted).contains(counter)
    }

    /// What has been halted and not been settled.
    pub(super) fn halted(&self) -> CounterMask {
        CounterMask::from_bits(self.halted.load(Relaxed))
    }

    /// Says that it has been settled, or that it has not.
    pub(super) fn set_halted(&self, counters: CounterMask, halt: bool) {
        let mut halted = self.halted.load(Relaxed);
        loop {
            let wanted = if halt {
                halted | counters.bits()
            } else {
                halted & !counters.bits()
            };
            if wanted == halted {
                return;
            }
            match self
                .halted
                .compare_exchange(halted, wanted, Relaxed, Relaxed)
            {
                Ok(_) => return,
                Err(changed) => halted = changed,
            }
        }
    }

    /// Says what GLOBAL_CTRL is to be after the PMI.
    pub(super) fn set_enabled(&self, counters: CounterMask) {
        self.enabled.store(counters.bits(), Relaxed);
    }

    /// Lets the enabled counters count, unless they are halted. Nothing, if none is enabled.
    pub(super) fn run(&self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        let enabled = self.enabled.load(Relaxed);
        if enabled == 0 {
            return;
        }
        loop {
            let halted = self.halted.load(Relaxed);
            hardware.run(CounterMask::from_bits(enabled & !halted), irqs);
            // An NMI in between may have halted one more, and this has let it go again.
            if self.halted.load(Relaxed) == halted {
                return;
            }
        }
    }

    /// Says that it is unknown what the registers hold. No event may be on the CPU. By any CPU.
    pub(super) fn forget(&self) {
        self.unknown.store(true, Relaxed);
    }

    /// Whether it is unknown what the registers hold.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown.load(Relaxed)
    }

    /// Whether it was unknown what the registers hold. It is known from now on.
    pub(super) fn was_unknown(&self) -> bool {
        Self::take(&self.unknown)
    }

    /// Whether overflows could not be acknowledged, and all counters were halted. Once.
    pub(super) fn was_stuck(&self) -> bool {
        Self::take(&self.stuck)
    }

    fn take(flag: &AtomicBool) -> bool {
        let set = flag.load(Relaxed);
        if set {
            flag.store(false, Relaxed);
        }
        set
    }
}

/// Handles an NMI of this CPU, whatever raised it. Returns how many overflows it was for.
#[inline]
pub(super) fn handle(pmu: &CorePmu, nmi: &NmiContext) -> u32 {
    let irqs = nmi.irqs();
    let driver = pmu.ops();
    let hardware = &driver.hardware;
    let shared = &driver.cpus.this_cpu(irqs).shared;
    let Some(cx) = pmu.on_cpu(irqs) else {
        return 0;
    };
    if shared.unknown.load(Relaxed) {
        return 0;
    }

    let watch = Stopwatch::start();
    // Even if it is about to be disabled: it may not have been yet.
    let enabled = shared.enabled.swap(0, Relaxed);
    hardware.stop(irqs);
    let overflowed = hardware.overflowed(irqs);
    let handled = if overflowed.is_empty() {
        // LVTPC masks itself when it raises an NMI. So this one is ours, though who has come
        // before has taken care of what had raised it.
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
        // Before the counters count: a PMI that finds LVTPC masked is lost.
        if !early {
            apic::lvtpc_arm(irqs);
        }
        handled
    };
    shared.enabled.store(enabled, Relaxed);
    shared.run(hardware, irqs);
    if handled != 0 {
        watch.stop(irqs);
    }
    handled
}

/// Handles overflows until there are no more, and returns how many there were.
///
/// Some may come while the first are being handled: from before the counters stopped, and by writing
/// to the counters. They raise no NMI if LVTPC is masked. If it is armed, the kernel expects one, as
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
                // The interrupt has aborted the transaction, and with it gone is the overflow.
                Some(event) if due || event.data().is_checkpointed() => {
                    serve(event, counter, hardware, cx, nmi);
                }
                // An overflow may be late: its event has left. Then acknowledging it was all.
                _ => {}
            }
        }
        overflowed = hardware.overflowed(nmi.irqs());
        if overflowed.is_empty() {
            return handled;
        }
    }
    shared.stuck.store(true, Relaxed);
    shared.set_halted(hardware.pmu.capabilities.counters, true);
    handled
}

/// Takes what `event` has counted, lets it go on, and hands a sample to the perf core if one is due.
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
