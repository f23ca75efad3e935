// SPDX-License-Identifier: GPL-2.0

//! The performance monitoring interrupt (PMI): a counter has overflowed. It is an NMI.

use super::{event, CorePmu};
use crate::{
    logic::{
        counter::{CounterId, CounterMask, MAX_COUNTERS},
        model::Acknowledge,
        registers::{Register, RegisterWrite},
    },
    perf::EventId,
    x86::{
        apic,
        nmi::{Handler, NmiContext},
    },
};
use kernel::sync::atomic::{Atomic, Relaxed};

/// [`MAX_COUNTERS`] rounded up, so that masking an index bounds it.
const SLOTS: usize = MAX_COUNTERS.next_power_of_two();

/// What callbacks on a CPU share with the PMI that may interrupt them.
///
/// Only the CPU itself writes it, except `unknown`. So each store takes effect at once for whoever
/// comes next on the CPU, and no ordering is needed.
pub(super) struct Shared {
    /// The counters whose events the PMI may handle: their registers are complete.
    active: Atomic<u64>,
    /// What GLOBAL_CTRL is to be after the PMI. 0 while the PMU is disabled.
    enabled: Atomic<u64>,
    /// Index of the event on each active counter.
    events: [Atomic<u32>; SLOTS],
    /// Whether it is unknown what the registers hold. They are not to be used then.
    unknown: Atomic<bool>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            active: Atomic::new(0),
            enabled: Atomic::new(0),
            events: [const { Atomic::new(0) }; SLOTS],
            unknown: Atomic::new(true),
        }
    }

    fn event_on(&self, counter: CounterId) -> &Atomic<u32> {
        // The mask changes nothing, and leaves no panic path for the NMI.
        &self.events[counter.index() & (SLOTS - 1)]
    }

    /// Lets the PMI handle `event` on `counter`.
    pub(super) fn activate(&self, counter: CounterId, event: EventId) {
        // CAST: an index is below 64.
        self.event_on(counter).store(event.index() as u32, Relaxed);
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
        let active = CounterMask::from_bits(self.active.load(Relaxed));
        if !active.contains(counter) {
            return None;
        }
        self.last_event(counter)
    }

    /// The event that was last activated on `counter`, if it has not been removed since.
    pub(super) fn last_event(&self, counter: CounterId) -> Option<EventId> {
        // CAST: what `activate()` has stored.
        EventId::from_index(self.event_on(counter).load(Relaxed) as usize)
    }

    /// Says what GLOBAL_CTRL is to be after the PMI.
    pub(super) fn set_enabled(&self, counters: CounterMask) {
        self.enabled.store(counters.bits(), Relaxed);
    }

    /// Says that it is unknown what the registers hold. No event may be on the CPU. By any CPU.
    pub(super) fn forget(&self) {
        self.unknown.store(true, Relaxed);
    }

    /// Whether it was unknown what the registers hold. It is known from now on.
    pub(super) fn was_unknown(&self) -> bool {
        let unknown = self.unknown.load(Relaxed);
        if unknown {
            self.unknown.store(false, Relaxed);
        }
        unknown
    }
}

impl Handler for CorePmu {
    fn handle(&self, nmi: &NmiContext) -> u32 {
        let irqs = nmi.irqs();
        let driver = self.ops();
        let hardware = &driver.hardware;
        let shared = &driver.cpus.this_cpu(irqs).shared;
        let Some(cx) = self.on_cpu(irqs) else {
            return 0;
        };
        if shared.unknown.load(Relaxed) {
            return 0;
        }

        let early = hardware.pmu.model.acknowledge == Acknowledge::Early;
        if early {
            apic::lvtpc_arm(irqs);
        }
        let overflowed = hardware.overflowed(irqs);
        if overflowed.is_empty() {
            return 0;
        }
        nmi.count_pmi();

        // Even if it is about to be disabled: it may not have been yet.
        hardware.write_global_control(0, irqs);
        // One more may have overflowed before they stopped. With LVTPC masked, it raises no NMI. Armed
        // early, it may: the kernel expects that one, as two overflows are reported.
        let overflowed = overflowed | hardware.overflowed(irqs);
        hardware.acknowledge(overflowed, irqs);
        for counter in overflowed {
            // An overflow may be late: its event has left. Then acknowledging it was all.
            let event = shared.active_event(counter).and_then(|id| cx.event(id));
            if let Some(event) = event {
                event::update(event, hardware, irqs);
                let value = event.data().start(hardware);
                event::publish(event, hardware);
                event.update_userpage();
                let register = Register::Counter(counter);
                hardware.write(RegisterWrite { register, value }, irqs);
            }
        }
        if !early {
            apic::lvtpc_arm(irqs);
        }
        let enabled = shared.enabled.load(Relaxed);
        if enabled != 0 {
            hardware.write_global_control(enabled, irqs);
        }
        overflowed.weight()
    }
}
