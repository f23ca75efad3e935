// SPDX-License-Identifier: GPL-2.0

//! Register values that are published for hypervisors on a CPU, and for other users of the built-in
//! driver's data.
//!
//! Hypervisors switch GLOBAL_CTRL and the registers of PEBS as they enter a virtual machine. The
//! values are published before the registers are written, also in NMIs.

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

/// The code for no published value. GLOBAL_CTRL, which has reserved bits, cannot have this value.
const UNPUBLISHED: u64 = u64::MAX;

/// The register values that are published for hypervisors on a CPU.
pub(in crate::driver) struct Hypervisors {
    /// The place from which they are read. [`None`] if the built-in driver, which owns it, has not
    /// initialised or is AMD's.
    mirror: Option<Mirror>,
    /// The value of GLOBAL_CTRL in virtual machines once the PMU is enabled, with halted counters
    /// included; [`UNPUBLISHED`] if none is published.
    in_guest: AtomicU64,
}

impl Hypervisors {
    pub(super) fn new(mirror: Option<Mirror>) -> Self {
        Self {
            mirror,
            in_guest: AtomicU64::new(UNPUBLISHED),
        }
    }

    /// Announces that the counters are about to be stopped.
    #[inline]
    pub(in crate::driver) fn announce_stop(&self) {
        self.announce_run(CounterMask::EMPTY);
    }

    /// Announces that these `counters`, and no others, are about to run.
    #[inline]
    pub(super) fn announce_run(&self, counters: CounterMask) {
        if let Some(mirror) = &self.mirror {
            mirror.set_in_host(counters.bits());
        }
    }

    /// Sets the value of GLOBAL_CTRL in virtual machines. Returns whether the value has changed,
    /// and so must be [announced](Self::announce_in_guest).
    #[inline]
    pub(super) fn set_in_guest(&self, counters: CounterMask) -> bool {
        // The common case: nothing has changed.
        if self.in_guest.load(Relaxed) == counters.bits() {
            return false;
        }
        self.in_guest.store(counters.bits(), Relaxed);
        true
    }

    /// Publishes the value of GLOBAL_CTRL in virtual machines, without halted counters.
    #[inline]
    pub(super) fn announce_in_guest(&self, running: &Running) {
        let in_guest = self.in_guest.load(Relaxed);
        if let Some(mirror) = self.mirror.as_ref().filter(|_| in_guest != UNPUBLISHED) {
            running.without_halted(CounterMask::from_bits(in_guest), |counters| {
                mirror.set_in_guest(counters.bits());
            });
        }
    }

    /// Publishes the values of PEBS_ENABLE and PEBS_DATA_CFG. The caller writes the registers
    /// afterwards.
    pub(in crate::driver) fn publish_pebs(&self, enable: u64, data_cfg: u64) {
        if let Some(mirror) = &self.mirror {
            mirror.set_pebs(enable, data_cfg);
        }
    }

    /// Returns the published value of PEBS_DATA_CFG.
    pub(in crate::driver) fn published_data_cfg(&self) -> u64 {
        self.mirror.as_ref().map_or(0, Mirror::pebs_data_cfg)
    }

    /// Withdraws the published values of GLOBAL_CTRL, as the built-in driver does when it has no
    /// event on the CPU. Those of PEBS stay.
    pub(super) fn withdraw(&self) {
        self.in_guest.store(UNPUBLISHED, Relaxed);
        if let Some(mirror) = &self.mirror {
            mirror.clear();
        }
    }
}
