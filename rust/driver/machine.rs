// SPDX-License-Identifier: GPL-2.0

//! The core PMUs of the machine, and the callbacks that the kernel makes once for all of them:
//! NMIs, CPU hotplug, suspend and shutdown.
//!
//! Each CPU belongs to one PMU, which [`Machine::this_cpu`] and [`Machine::pmu_of`] find. So far
//! all CPUs have the same PMU. What the machine has once is in [`Common`]. On a hybrid, which has
//! two, the second is a field beside the first, [`Machine::pmus`] lists both, and the two functions
//! choose by the type of the CPU.

pub(super) mod common;

use super::{
    announce,
    core_pmu::new_cpus,
    facilities,
    hotplug,
    hw::Hardware,
    pmi,
    probe,
    suspend,
    sysfs,
    takeover,
    unit::{
        hooks::Found,
        rdpmc::UserRead,
        Units, //
    },
    CorePmu,
    Driver, //
};
use crate::{
    kern::{
        self,
        cpu::on_each_cpu,
        init::moved, //
    },
    logic::tried::Feature,
    perf, perf_core,
    x86::{
        builtin,
        nmi::{
            self,
            NmiContext, //
        },
        reserve::Reservation, //
    },
};
use common::Common;
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc, //
};

/// The core PMUs of this machine.
pub(crate) struct Machine {
    common: Arc<Common>,
    /// The PMU of all CPUs.
    pmu: perf_core::Pmu<Driver>,
}

impl Machine {
    /// Makes the PMU for `hardware`, which is not [registered](Self::register) yet. `builtin` is
    /// [`check_layouts`](super::check_layouts)'s.
    ///
    /// Fails with `ENOMEM` or another error. Process context.
    #[inline(never)]
    pub(crate) fn new(
        mut hardware: KBox<Hardware>,
        ht_workaround: bool,
        builtin: Option<builtin::Layout>,
    ) -> Result<Arc<Self>> {
        let user_read = UserRead::new(&hardware.pmu.capabilities, builtin)?;
        if let Some(builtin) = user_read.builtin() {
            hardware.ask(builtin);
        }
        let units = Units::find(Found {
            hardware: &mut hardware,
            builtin: user_read.initialised(),
        });
        let units = KBox::init(units, GFP_KERNEL)?;
        let cpus = new_cpus(&hardware, user_read.initialised())?;
        let groups = sysfs::groups(&hardware.pmu)?;
        let common = Common::new(&hardware, user_read, ht_workaround)?;
        let driver = Driver::new(hardware, cpus, common.clone(), units, ht_workaround)?;
        let pmu = perf_core::Pmu::new(moved(driver), groups)?;
        Ok(Arc::new(Self { common, pmu }, GFP_KERNEL)?)
    }

    /// Returns the PMU of this CPU.
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

    /// Finds the built-in driver's PMU. Returns [`None`] if that driver has not initialised.
    ///
    /// Fails with `ENODEV` or `EBUSY`, and a line in the log, if it cannot be taken over. Process
    /// context.
    pub(crate) fn find_predecessor(&self) -> Result<Option<perf_core::BuiltinPmu>> {
        takeover::find_predecessor(&self.pmu)
    }

    /// Reserves the counters' registers, which all PMUs have at the same addresses. `predecessor`
    /// says whether the built-in driver has initialised.
    ///
    /// `EBUSY`, with a line in the log, if something else has reserved one. Process context.
    pub(crate) fn reserve(&self, predecessor: bool) -> Result<Reservation> {
        probe::reserve(&self.pmu, predecessor)
    }

    /// Registers this machine as a handler of NMIs: in the built-in driver's place if there is a
    /// `predecessor`, and that driver's handler can be reached.
    ///
    /// Fails with `EBUSY` or `ENOMEM`. Process context.
    pub(crate) fn handle_nmis(
        self: &Arc<Self>,
        predecessor: bool,
    ) -> Result<nmi::Registration<Self>> {
        let handler = self.common.tracing.handler().filter(|_| predecessor);
        nmi::Registration::new(self.clone(), handler)
    }

    /// Checks that the counters hold values: some hypervisors describe a PMU that does nothing.
    ///
    /// Fails with `ENODEV` or another error, and a line in the log. No driver may be using the
    /// PMUs. Process context.
    pub(crate) fn check_counters(&self) -> Result {
        self.pmus().try_for_each(probe::check_counters)
    }

    /// Watches for events that users disable, if pinned groups can wait for the core's other thread
    /// or for counter 3. Returns [`None`] if they cannot, if the functions cannot be probed or if
    /// this was not tried on the kernel's version.
    ///
    /// Process context.
    pub(crate) fn watch_disabling(&self) -> Option<perf_core::DisableWatch<Driver>> {
        if !self.pmu.ops().can_resched() || !facilities::was_tried(Feature::PinnedRetries) {
            return None;
        }
        perf_core::DisableWatch::new(&self.pmu)
            .inspect_err(|error| {
                pr_notice!(
                    "perf_event_disable() cannot be watched ({error:?}): pinned events that find no \
                     counter stay in the error state until they are enabled again\n"
                );
            })
            .ok()
    }

    /// Offers the PMU to users, in place of the `predecessor`.
    ///
    /// Fails as [`perf_core::Registration::new`] does. Process context.
    pub(crate) fn register(
        &self,
        predecessor: Option<&perf_core::UnregisteredPmu>,
    ) -> Result<perf_core::Registration<Driver>> {
        if let Some(predecessor) = predecessor {
            predecessor.follow(&self.pmu);
        }
        self.common.user_read.prepare();
        perf_core::Registration::new(&self.pmu, c"cpu", perf::event_type::RAW)
    }

    /// Logs the PMUs. `predecessor` says whether the built-in driver was in charge. Process
    /// context.
    pub(crate) fn announce(&self, predecessor: bool) {
        for pmu in self.pmus() {
            announce::announce(pmu, predecessor);
        }
    }
}

impl nmi::Handler for Machine {
    #[inline(always)]
    fn handle(&self, nmi: &NmiContext) -> u32 {
        pmi::handle(self.this_cpu(nmi.irqs()), nmi)
    }
}

impl kern::hotplug::Callbacks for Machine {
    fn starting(&self, irqs: &LocalInterruptDisabled) {
        self.common.smi.starting(irqs);
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
        self.common.smi.starting(irqs);
        suspend::resume(self.this_cpu(irqs), irqs);
    }

    fn shutdown(&self) {
        on_each_cpu(&|irqs| hotplug::give_back(self.this_cpu(irqs), irqs));
    }
}
