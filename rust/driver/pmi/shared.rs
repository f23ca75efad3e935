// SPDX-License-Identifier: GPL-2.0

//! The state of a CPU that callbacks share with the PMI.

use crate::{
    driver::hw::Hardware,
    logic::regs::{
        counter::{CounterId, CounterMask, MAX_COUNTERS},
        metrics::TOPDOWN,
    },
    perf::EventId,
    x86::{builtin::Mirror, intel::ds::DebugStore},
};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use kernel::interrupt::LocalInterruptDisabled;

/// [`MAX_COUNTERS`] rounded up to a power of two, so that a mask bounds an index.
const SLOTS: usize = MAX_COUNTERS.next_power_of_two();

/// No value of GLOBAL_CTRL, which has reserved bits.
const UNTOLD: u64 = u64::MAX;

/// The state that callbacks on a CPU share with the PMI, which may interrupt them.
///
/// Only the CPU itself writes it, except `unknown`. So the CPU sees each store at once, in an NMI too,
/// and no ordering is needed. Only callbacks write `active`; `halted`, which an NMI writes too, is
/// changed by `compare_exchange`.
pub(in crate::driver) struct Shared {
    /// The counters whose events the PMI may handle: their registers are complete.
    active: AtomicU64,
    /// Those of them that an NMI has stopped and that the shadow still takes for running.
    halted: AtomicU64,
    /// The value of GLOBAL_CTRL after the PMI, but for halted counters. 0 while the PMU is disabled, and
    /// in a PMI.
    enabled: AtomicU64,
    /// The value of GLOBAL_CTRL in virtual machines, but for halted counters, once the PMU is enabled;
    /// [`UNTOLD`] if hypervisors have been told none.
    in_guest: AtomicU64,
    /// Tells hypervisors and others the values of GLOBAL_CTRL. [`None`] if the built-in driver, which they
    /// ask, has not initialised or is AMD's.
    mirror: Option<Mirror>,
    /// The index of the event that was last activated on each counter.
    events: [AtomicU32; SLOTS],
    /// Set if the registers may hold anything. They must not be used then.
    unknown: AtomicBool,
    /// Set if there were overflows that could not be acknowledged.
    stuck: AtomicBool,
}

impl Shared {
    pub(in crate::driver) fn new(mirror: Option<Mirror>) -> Self {
        Self {
            active: AtomicU64::new(0),
            halted: AtomicU64::new(0),
            enabled: AtomicU64::new(0),
            in_guest: AtomicU64::new(UNTOLD),
            mirror,
            events: [const { AtomicU32::new(0) }; SLOTS],
            unknown: AtomicBool::new(true),
            stuck: AtomicBool::new(false),
        }
    }

    fn event_on(&self, counter: CounterId) -> &AtomicU32 {
        // The mask changes no index, and leaves no panic path for the NMI.
        &self.events[counter.index() & (SLOTS - 1)]
    }

    /// Lets the PMI handle `event` on `counter`.
    pub(in crate::driver) fn activate(&self, counter: CounterId, event: EventId) {
        // CAST: an index is below 64.
        self.event_on(counter).store(event.index() as u32, Relaxed);
        self.set_halted(counter.mask(), false);
        let active = self.active.load(Relaxed);
        self.active.store(active | counter.mask().bits(), Relaxed);
    }

    /// Keeps the PMI from `counter`.
    pub(in crate::driver) fn deactivate(&self, counter: CounterId) {
        let active = self.active.load(Relaxed);
        self.active.store(active & !counter.mask().bits(), Relaxed);
    }

    /// Returns the counters whose events the PMI may handle.
    #[inline]
    pub(in crate::driver) fn handled(&self) -> CounterMask {
        CounterMask::from_bits(self.active.load(Relaxed) & !self.halted.load(Relaxed))
    }

    /// Returns the counters of slots and topdown metrics whose events the PMI may handle.
    pub(in crate::driver) fn topdown(&self) -> CounterMask {
        CounterMask::from_bits(self.active.load(Relaxed)) & TOPDOWN
    }

    /// Returns the event that the PMI may handle on `counter`.
    pub(in crate::driver) fn active_event(&self, counter: CounterId) -> Option<EventId> {
        if !self.handled().contains(counter) {
            return None;
        }
        self.last_event(counter)
    }

    /// Returns the id of the event that was last activated on `counter`; the event may have left since.
    pub(in crate::driver) fn last_event(&self, counter: CounterId) -> Option<EventId> {
        // CAST: `activate()` has stored an index.
        EventId::from_index(self.event_on(counter).load(Relaxed) as usize)
    }

    /// Halts `counter`, in an NMI.
    ///
    /// The interrupted code may be using the register shadow. So the counter is only left out of
    /// GLOBAL_CTRL, and the shadow takes it for running, until a callback brings the shadow up to date
    /// ([`halted`](Self::halted)).
    pub(in crate::driver) fn halt(&self, counter: CounterId) {
        self.set_halted(counter.mask(), true);
    }

    /// Returns whether `counter` is active.
    pub(in crate::driver) fn is_active(&self, counter: CounterId) -> bool {
        CounterMask::from_bits(self.active.load(Relaxed)).contains(counter)
    }

    /// Returns whether `counter` is active and halted.
    pub(in crate::driver) fn is_halted(&self, counter: CounterId) -> bool {
        let halted = self.halted.load(Relaxed) & self.active.load(Relaxed);
        CounterMask::from_bits(halted).contains(counter)
    }

    /// Returns the counters that are halted and that the shadow takes for running.
    pub(in crate::driver) fn halted(&self) -> CounterMask {
        CounterMask::from_bits(self.halted.load(Relaxed))
    }

    /// Halts `counters`, or records that they are halted no longer.
    pub(in crate::driver) fn set_halted(&self, counters: CounterMask, halt: bool) {
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
                Ok(_) => break,
                Err(changed) => halted = changed,
            }
        }
        self.announce_in_guest();
    }

    /// Sets the value of GLOBAL_CTRL after the PMI. [`run`](Self::run) is next.
    pub(in crate::driver) fn set_enabled(&self, counters: CounterMask) {
        self.enabled.store(counters.bits(), Relaxed);
    }

    /// Returns the value of GLOBAL_CTRL after the PMI, and makes it 0 until it is
    /// [set](Self::set_enabled) again. The caller stops the counters next.
    pub(in crate::driver) fn take_enabled(&self) -> CounterMask {
        let enabled = CounterMask::from_bits(self.enabled.swap(0, Relaxed));
        self.announce_stop();
        enabled
    }

    /// Tells others that the counters are about to be stopped.
    #[inline]
    pub(in crate::driver) fn announce_stop(&self) {
        if let Some(mirror) = &self.mirror {
            mirror.set_in_host(0);
        }
    }

    /// Sets the value of GLOBAL_CTRL in virtual machines, and tells hypervisors. To be called before
    /// counters [run](Self::run).
    #[inline]
    pub(in crate::driver) fn set_in_guest(&self, counters: CounterMask) {
        // Most often nothing has changed.
        if self.in_guest.load(Relaxed) != counters.bits() {
            self.in_guest.store(counters.bits(), Relaxed);
            self.announce_in_guest();
        }
    }

    #[inline]
    fn announce_in_guest(&self) {
        let in_guest = self.in_guest.load(Relaxed);
        let Some(mirror) = self.mirror.as_ref().filter(|_| in_guest != UNTOLD) else {
            return;
        };
        loop {
            let halted = self.halted.load(Relaxed);
            mirror.set_in_guest(in_guest & !halted);
            // An NMI in between may have halted a counter.
            if self.halted.load(Relaxed) == halted {
                return;
            }
        }
    }

    /// Tells others what PEBS_ENABLE and PEBS_DATA_CFG have. To be called before they are written.
    pub(in crate::driver) fn tell_pebs(&self, enable: u64, data_cfg: u64) {
        if let Some(mirror) = &self.mirror {
            mirror.set_pebs(enable, data_cfg);
        }
    }

    /// Returns the value of PEBS_DATA_CFG that others were told.
    pub(in crate::driver) fn told_data_config(&self) -> u64 {
        self.mirror.as_ref().map_or(0, Mirror::pebs_data_cfg)
    }

    /// Returns the debug store of the CPU, if it has one with a buffer for PEBS.
    #[inline]
    pub(in crate::driver) fn debug_store(&self) -> Option<DebugStore<'_>> {
        self.mirror.as_ref()?.debug_store()
    }

    /// Lets the enabled counters count, except halted ones. Does nothing if none is enabled.
    pub(in crate::driver) fn run(&self, hardware: &Hardware, irqs: &LocalInterruptDisabled) {
        let enabled = self.enabled.load(Relaxed);
        if enabled == 0 {
            return;
        }
        loop {
            let halted = self.halted.load(Relaxed);
            let counters = enabled & !halted;
            if let Some(mirror) = &self.mirror {
                mirror.set_in_host(counters);
            }
            hardware.run(CounterMask::from_bits(counters), irqs);
            // An NMI in between may have halted a counter that this write has let run again.
            if self.halted.load(Relaxed) == halted {
                return;
            }
        }
    }

    /// Tells others that no counter runs, as the built-in driver does without an event. No event is on the CPU any
    /// more.
    pub(in crate::driver) fn withdraw(&self) {
        self.set_enabled(CounterMask::EMPTY);
        self.in_guest.store(UNTOLD, Relaxed);
        if let Some(mirror) = &self.mirror {
            mirror.clear();
        }
    }

    /// Records that the registers may hold anything. No event may be on the CPU. Any CPU.
    pub(in crate::driver) fn forget(&self) {
        self.unknown.store(true, Relaxed);
    }

    /// Returns whether the registers may hold anything.
    pub(in crate::driver) fn is_unknown(&self) -> bool {
        self.unknown.load(Relaxed)
    }

    /// Returns whether the registers may hold anything, and records that they are known from now on.
    pub(in crate::driver) fn was_unknown(&self) -> bool {
        Self::take(&self.unknown)
    }

    /// Records that there were overflows that could not be acknowledged, and halts all `counters`.
    pub(in crate::driver) fn set_stuck(&self, counters: CounterMask) {
        self.stuck.store(true, Relaxed);
        self.set_halted(counters, true);
    }

    /// Returns whether there were overflows that could not be acknowledged, once each time.
    pub(in crate::driver) fn was_stuck(&self) -> bool {
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
