// SPDX-License-Identifier: GPL-2.0

//! What hypervisors on a CPU, and others that ask the built-in driver, are told of its registers.
//!
//! They switch GLOBAL_CTRL and the registers of PEBS as they enter a virtual machine. Told before
//! the registers are written, and in NMIs too.

use crate::{
    logic::{
        pmi::running::Running,
        regs::counter::CounterMask, //
    },
    x86::builtin::Mirror, //
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

/// No value of GLOBAL_CTRL, which has reserved bits.
const UNTOLD: u64 = u64::MAX;

/// What hypervisors on a CPU are told.
pub(in crate::driver) struct Hypervisors {
    /// Where they read it. [`None`] if the built-in driver, which they ask, has not initialised or
    /// is AMD's.
    mirror: Option<Mirror>,
    /// The value of GLOBAL_CTRL in virtual machines, but for halted counters, once the PMU is
    /// enabled; [`UNTOLD`] if hypervisors have been told none.
    in_guest: AtomicU64,
}

impl Hypervisors {
    pub(super) fn new(mirror: Option<Mirror>) -> Self {
        Self {
            mirror,
            in_guest: AtomicU64::new(UNTOLD),
        }
    }

    /// Tells others that the counters are about to be stopped.
    #[inline]
    pub(in crate::driver) fn announce_stop(&self) {
        self.announce_run(CounterMask::EMPTY);
    }

    /// Tells others that these counters are about to run, and no others.
    #[inline]
    pub(super) fn announce_run(&self, counters: CounterMask) {
        if let Some(mirror) = &self.mirror {
            mirror.set_in_host(counters.bits());
        }
    }

    /// Sets the value of GLOBAL_CTRL in virtual machines. Returns whether that changes, and is to
    /// be [announced](Self::announce_in_guest).
    #[inline]
    pub(super) fn set_in_guest(&self, counters: CounterMask) -> bool {
        // Most often nothing has changed.
        if self.in_guest.load(Relaxed) == counters.bits() {
            return false;
        }
        self.in_guest.store(counters.bits(), Relaxed);
        true
    }

    /// Tells hypervisors the value of GLOBAL_CTRL in virtual machines, without halted counters.
    #[inline]
    pub(super) fn announce_in_guest(&self, running: &Running) {
        let in_guest = self.in_guest.load(Relaxed);
        if let Some(mirror) = self.mirror.as_ref().filter(|_| in_guest != UNTOLD) {
            running.without_halted(CounterMask::from_bits(in_guest), |counters| {
                mirror.set_in_guest(counters.bits());
            });
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

    /// Tells others nothing, as the built-in driver without an event.
    pub(super) fn withdraw(&self) {
        self.in_guest.store(UNTOLD, Relaxed);
        if let Some(mirror) = &self.mirror {
            mirror.clear();
        }
    }
}
