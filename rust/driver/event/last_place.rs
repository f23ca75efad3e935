// SPDX-License-Identifier: GPL-2.0

//! The last place of an event: the counter and the CPU.

use crate::{
    kern::ticks::Ticks,
    logic::regs::counter::CounterId, //
};
use core::sync::atomic::{
    AtomicU32,
    AtomicUsize,
    Ordering::Relaxed, //
};
use kernel::cpu::CpuId;

/// Neither the index of a counter nor a CPU's number.
const NONE: u32 = u32::MAX;

/// The counter that an event was on last, or is on. A counter on which the event
/// [rides](crate::driver::riders) is not recorded.
///
/// Callbacks on the event's CPU change it, with interrupts off.
pub(in crate::driver) struct LastPlace {
    /// The counter's index and the CPU's number, or [`NONE`].
    counter: AtomicU32,
    cpu: AtomicU32,
    /// The time when the event got the counter. Only its CPU uses this.
    since: AtomicUsize,
}

impl LastPlace {
    pub(super) fn new() -> Self {
        Self {
            counter: AtomicU32::new(NONE),
            cpu: AtomicU32::new(NONE),
            since: AtomicUsize::new(0),
        }
    }

    /// Records that the event gets `counter` of `cpu`.
    #[inline]
    pub(in crate::driver) fn arrive(&self, counter: CounterId, cpu: CpuId) {
        self.cpu.store(cpu.as_u32(), Relaxed);
        // CAST: an index is below 64.
        self.counter.store(counter.index() as u32, Relaxed);
        self.since.store(Ticks::now().number(), Relaxed);
    }

    /// Returns the event's last counter, if that is one of `cpu`.
    #[inline]
    pub(in crate::driver) fn counter_on(&self, cpu: CpuId) -> Option<CounterId> {
        if self.cpu.load(Relaxed) != cpu.as_u32() {
            return None;
        }
        // CAST: `NONE` stays out of range.
        CounterId::from_index(self.counter.load(Relaxed) as usize)
    }

    /// Returns the time when the event got its counter.
    pub(in crate::driver) fn since(&self) -> Ticks {
        Ticks::from_number(self.since.load(Relaxed))
    }
}
