// SPDX-License-Identifier: GPL-2.0

//! The core PMUs of the machine, and everything that the kernel calls once for all of them: NMIs, CPU
//! hotplug, suspend and shutdown.
//!
//! Each CPU belongs to one PMU. [`Machine::this_cpu`] and [`Machine::pmu_of`] find it, and whatever
//! comes in for the machine goes to that PMU. Here all CPUs have the same PMU. A hybrid has two: the
//! second is a field beside the first, these two functions choose by the CPU's type, and
//! [`Machine::pmus`] lists both; nothing outside of this file changes for that.

use super::{announce, hotplug, hw::Hardware, pmi, probe, suspend, sysfs, CorePmu, Driver};
use crate::{
    kern::{self, cpu::on_each_cpu},
    perf,
    x86::{
        nmi::{self, NmiContext},
        reserve::Reservation,
    },
};
use kernel::{cpu::CpuId, interrupt::LocalInterruptDisabled, prelude::*, sync::Arc};

/// The core PMUs of this machine.
pub(crate) struct Machine {
    /// The PMU of all CPUs.
    pmu: Arc<CorePmu>,
}

impl Machine {
    /// Makes the PMU for `hardware`. It does nothing until it is [registered](Self::register).
    ///
    /// `ENOMEM`, or another error. Process context.
    pub(crate) fn new(hardware: Hardware, ht_workaround: bool) -> Result<Arc<Self>> {
        let groups = sysfs::groups(&hardware.pmu)?;
        let pmu = perf::Pmu::new(Driver::new(hardware, ht_workaround)?, groups)?;
        Ok(Arc::new(Self { pmu }, GFP_KERNEL)?)
    }

    /// Returns the PMU of the CPU that this runs on.
    #[inline]
    fn this_cpu(&self, _irqs: &LocalInterruptDisabled) -> &CorePmu {
        &self.pmu
    }

    /// Returns the PMU of `cpu`, which may be offline.
    pub(super) fn pmu_of(&self, _cpu: CpuId) -> &CorePmu {
        &self.pmu
    }

    /// Returns all PMUs.
    pub(super) fn pmus(&self) -> impl Iterator<Item = &CorePmu> {
        core::iter::once(&*self.pmu)
    }

    /// Reserves the counters' registers, which all PMUs have at the same addresses.
    ///
    /// `EBUSY`, with a line in the log, if another driver uses one. Process context.
    pub(crate) fn reserve(&self) -> Result<Reservation> {
        probe::reserve(&self.pmu)
    }

    /// Makes sure that the counters are real.
    ///
    /// An error, with a line in the log, if not. No driver may be using the PMUs. Process context.
    pub(crate) fn check_counters(&self) -> Result {
        self.pmus().try_for_each(probe::check_counters)
    }

    /// Watches which events their users disable, where pinned groups may wait for the core's other
    /// thread or for transactions. [`None`] where there is nothing to wait for, or if that fails.
    ///
    /// Process context.
    pub(crate) fn watch_disabling(&self) -> Option<perf::DisableWatch<Driver>> {
        if !self.pmu.ops().can_resched {
            return None;
        }
        perf::DisableWatch::new(self.pmu.clone())
            .inspect_err(|error| {
                pr_notice!(
                    "perf_event_disable() cannot be watched ({error:?}): pinned events that find no \
                     counter stay in the error state until they are enabled again\n"
                );
            })
            .ok()
    }

    /// Offers the PMU to users.
    ///
    /// The errors of [`perf::Registration::new`]. Process context.
    pub(crate) fn register(&self) -> Result<perf::Registration<Driver>> {
        perf::Registration::new(self.pmu.clone(), c"cpu", perf::event_type::RAW)
    }

    /// Reports in the log what has been taken over. `predecessor` says whether the built-in driver was
    /// in charge. Process context.
    pub(crate) fn announce(&self, predecessor: bool) {
        for pmu in self.pmus() {
            announce::announce(pmu, predecessor);
        }
    }
}

impl nmi::Handler for Machine {
    #[inline]
    fn handle(&self, nmi: &NmiContext) -> u32 {
        pmi::handle(self.this_cpu(nmi.irqs()), nmi)
    }
}

impl kern::hotplug::Callbacks for Machine {
    fn starting(&self, irqs: &LocalInterruptDisabled) {
        hotplug::starting(self.this_cpu(irqs), irqs);
    }

    fn dying(&self, irqs: &LocalInterruptDisabled) {
        hotplug::dying(self.this_cpu(irqs), irqs);
    }
}

impl kern::syscore::Callbacks for Machine {
    fn suspend(&self, irqs: &LocalInterruptDisabled) {
        suspend::suspend(self.this_cpu(irqs), irqs);
    }

    fn resume(&self, irqs: &LocalInterruptDisabled) {
        suspend::resume(self.this_cpu(irqs), irqs);
    }

    fn shutdown(&self) {
        on_each_cpu(&|irqs| hotplug::give_back(self.this_cpu(irqs), irqs));
    }
}
