// SPDX-License-Identifier: GPL-2.0

//! The machine's core PMUs, the state that they share, and the callbacks that the kernel calls once
//! for all of them: NMIs, CPU hotplug, suspend and shutdown.
//!
//! Each CPU belongs to at most one PMU, which [`Machine::this_cpu`] and [`Machine::pmu_of`] find.
//! Most machines have one PMU for all CPUs. A hybrid has one for each type of cores ([`cpus`]).

pub(super) mod common;
pub(super) mod cpus;
pub(super) mod rdpmc;
mod smi;
mod tracing;

use super::{
    announce,
    core_pmu::{
        new_cpus,
        Identity, //
    },
    facilities,
    hotplug,
    pmi,
    probe::{
        self,
        Found,
        FoundPmu, //
    },
    suspend,
    sysfs,
    takeover,
    takeover::Predecessors,
    unit::{
        hooks,
        TaskData,
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
    logic::{
        cores::PerType,
        tried::Feature, //
    },
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
    /// The PMUs, indexed by their type in [`cpus`].
    pmus: PerType<OfType>,
}

/// The PMU of a type of cores.
// A separate type keeps the name of its drop function short.
struct OfType(perf_core::ExtendedPmu<Driver>);

/// The PMUs, offered to users. Dropping withdraws them, and waits until there are no events.
pub(crate) struct Offered {
    _registrations: PerType<perf_core::Registration<Driver>>,
    /// The watches on the functions that disable events, for the PMUs that need them.
    _watches: PerType<perf_core::DisableWatch<Driver>>,
}

impl Machine {
    /// Makes the PMUs that were `found`. They are not [offered](Self::offer) to users yet.
    /// `builtin` is the result of [`check_layouts`](super::check_layouts). If `revocable` is set,
    /// open events do not delay dropping [`Offered`], and user space cannot read their counters by
    /// `rdpmc`.
    ///
    /// Fails with the error of the part that could not be made. Process context.
    #[inline(never)]
    pub(crate) fn new(
        found: KBox<Found>,
        ht_workaround: bool,
        revocable: bool,
        builtin: Option<builtin::Layout>,
    ) -> Result<Arc<Self>> {
        let Found { cpus, pmus } = KBox::into_inner(found);
        let all = pmus.map_ref(|it| &*it.hardware);
        let common = Common::new(cpus, &all, ht_workaround, revocable, builtin)?;
        let mut task_data = None;
        let pmus = pmus.try_map(|it| {
            new_pmu(it, &common, &mut task_data, ht_workaround, revocable).map(OfType)
        })?;
        Ok(Arc::new(Self { common, pmus }, GFP_KERNEL)?)
    }

    /// Returns the PMU of this CPU, if it has one.
    #[inline]
    pub(super) fn this_cpu(&self, irqs: &LocalInterruptDisabled) -> Option<&CorePmu> {
        let index = self.common.cpus.index_of_this(irqs);
        self.pmus.get(index).map(|pmu| &*pmu.0)
    }

    /// Returns the PMU of `cpu`, which may be offline, if it has one.
    pub(super) fn pmu_of(&self, cpu: CpuId) -> Option<&CorePmu> {
        let index = self.common.cpus.index_of(cpu);
        self.pmus.get(index).map(|pmu| &*pmu.0)
    }

    /// Returns the state that all PMUs share.
    pub(super) fn common(&self) -> &Common {
        &self.common
    }

    /// Returns the PMUs by the type of their cores.
    pub(super) fn by_type(&self) -> PerType<&CorePmu> {
        self.pmus.map_ref(|pmu| &*pmu.0)
    }

    /// Returns all PMUs.
    pub(super) fn pmus(&self) -> impl Iterator<Item = &CorePmu> + Clone {
        self.pmus.iter().map(|pmu| &*pmu.0)
    }

    /// Takes over the built-in driver's PMUs, until the result is dropped. There are none if the
    /// built-in driver has not initialised.
    ///
    /// Fails with `EBUSY`, `ENODEV` or another error, and a line in the log, if one of them cannot
    /// be taken over, or with `ENOMEM`. Then nothing has changed, unless the log says that a PMU
    /// could not be registered again. Process context.
    #[inline]
    pub(crate) fn take_over(&self) -> Result<KBox<Predecessors>> {
        let mut found = PerType::new();
        takeover::find_predecessors(self, &mut found)?;
        takeover::take_over(found)
    }

    /// Reserves the registers of the PMU with the most general-purpose counters, which include
    /// those of the others. `predecessor` is set if the built-in driver's PMUs were taken over.
    ///
    /// Fails with `EBUSY` if something else has reserved one, or with another error, and a line in
    /// the log. Process context.
    pub(crate) fn reserve(&self, predecessor: bool) -> Result<Reservation> {
        probe::reserve(
            takeover::widest(&self.by_type()).ok_or(ENODEV)?,
            predecessor,
        )
    }

    /// Registers this machine as an NMI handler. `predecessor` is set if the built-in driver's PMUs
    /// were taken over: then this handler replaces the built-in driver's, if that can be found.
    ///
    /// Fails with `EBUSY` or `ENOMEM`. Process context.
    pub(crate) fn handle_nmis(
        self: &Arc<Self>,
        predecessor: bool,
    ) -> Result<nmi::Registration<Self>> {
        let handler = self.common.tracing.handler().filter(|_| predecessor);
        nmi::Registration::new(self.clone(), handler)
    }

    /// Checks that the counters keep values: some hypervisors describe a PMU that does nothing. In
    /// a virtual machine, also finds out which extra registers exist.
    ///
    /// Fails with `ENODEV` or another error, and a line in the log; with `ENXIO` if all CPUs with a
    /// type of core have gone offline. No driver may be using the PMUs. Process context.
    pub(crate) fn check_counters(&self) -> Result {
        let cpus = &self.common.cpus;
        self.pmus()
            .try_for_each(|pmu| probe::check_counters(pmu, cpus.one_of(pmu.ops().identity.index)?))
    }

    /// Fails with `ENODEV`, and a line in the log, if a CPU's registers do not work. To be called
    /// once the CPUs were set up. Process context.
    pub(crate) fn check_breaker(&self) -> Result {
        match self.common.breaker.tripped() {
            None => Ok(()),
            Some(tripped) => {
                pr_err!(
                    "CPU {}: {}\n",
                    tripped.cpu,
                    format_args!("{}", tripped.cause)
                );
                Err(ENODEV)
            }
        }
    }

    /// Offers the PMUs to users, and replaces the `predecessors`.
    ///
    /// Fails as [`perf_core::Registration::new`] does, or with `ENOMEM`; then no PMU is offered. If
    /// another PMU has got the type of one of the predecessors since these were unregistered, this
    /// fails with `EBUSY`, and a line in the log: the kernel does not reserve types. Process
    /// context.
    #[inline(never)]
    pub(crate) fn offer(&self, predecessors: &Predecessors) -> Result<KBox<Offered>> {
        let offered = KBox::new_uninit(GFP_KERNEL)?;
        let _watches = self.watch_disabling();
        self.common.user_read.prepare();
        let _registrations = self.pmus.try_map_ref(|OfType(pmu)| {
            let Identity {
                name,
                mut event_type,
                ..
            } = pmu.ops().identity;
            if let Some(predecessor) = predecessors.of(name) {
                event_type = Some(predecessor.event_type());
                predecessor.follow(pmu);
            }
            perf_core::Registration::new(pmu, name, event_type)
                .inspect_err(|error| log_not_registered(*error, name, event_type))
        })?;
        Ok(offered.write(Offered {
            _registrations,
            _watches,
        }))
    }

    /// Starts the watches on the functions that disable events, for the PMUs on which pinned groups
    /// can wait for the core's other thread or for counter 3 (TSX force abort). No PMU gets one if
    /// retries of pinned groups were not tried on the kernel's version; nor does a PMU whose probes
    /// fail.
    fn watch_disabling(&self) -> PerType<perf_core::DisableWatch<Driver>> {
        let mut watches = PerType::new();
        let needs_one = |pmu: &&OfType| pmu.0.ops().can_resched();
        let is_needed = self.pmus.iter().any(|pmu| needs_one(&pmu));
        if !is_needed || !facilities::was_tried(Feature::PinnedRetries) {
            return watches;
        }
        for OfType(pmu) in self.pmus.iter().filter(needs_one) {
            match perf_core::DisableWatch::new(pmu) {
                Ok(watch) => drop(watches.push(watch)),
                Err(error) => pr_notice!(
                    "the functions that disable events cannot be probed ({error:?}): pinned events \
                     that find no counter stay in the error state until they are enabled again\n"
                ),
            }
        }
        watches
    }

    /// Logs the PMUs. `predecessor` is set if the built-in driver's PMUs were taken over. Process
    /// context.
    pub(crate) fn announce(&self, predecessor: bool) {
        for pmu in self.pmus() {
            announce::announce(pmu, predecessor);
        }
    }
}

/// Logs why the PMU `name` could not be registered, if that is because another PMU has its event
/// type. The built-in driver's PMU then gets a new type, with which rpmu can be loaded.
#[cold]
#[inline(never)]
fn log_not_registered(error: Error, name: &CStr, event_type: Option<u32>) {
    if let (true, Some(event_type)) = (error == EBUSY, event_type) {
        pr_err!("another PMU has taken the event type {event_type} of {name:?}; load rpmu again\n");
    }
}

/// The cache of the units' data of tasks, which all PMUs share.
type TaskDataCache = perf::TaskDataCache<TaskData>;

/// Makes a PMU that was found. It is not registered yet. Makes the cache `task_data` if this is the
/// first PMU that needs it.
#[inline(never)]
fn new_pmu(
    found: FoundPmu,
    common: &Arc<Common>,
    task_data: &mut Option<Arc<TaskDataCache>>,
    ht_workaround: bool,
    revocable: bool,
) -> Result<perf_core::ExtendedPmu<Driver>> {
    let FoundPmu {
        identity,
        mut hardware,
    } = found;
    let user_read = &common.user_read;
    if let Some(builtin) = user_read.builtin() {
        hardware.use_builtin(builtin);
    }
    let units = Units::find(hooks::Platform {
        hardware: &mut hardware,
        builtin: user_read.initialised(),
    });
    let units = KBox::init(units, GFP_KERNEL)?;
    let task_data = match (units.task_data_name(), &*task_data) {
        (None, _) => None,
        (Some(_), Some(shared)) => Some(shared.clone()),
        (Some(name), None) => {
            *task_data = Some(Arc::new(TaskDataCache::new(name)?, GFP_KERNEL)?);
            task_data.clone()
        }
    };
    let cpus = new_cpus(&hardware, user_read.initialised())?;
    let groups = sysfs::groups(&hardware.pmu, common.cpus.are_alike())?;
    let driver = Driver::new(
        identity,
        hardware,
        cpus,
        common.clone(),
        units,
        ht_workaround,
    )?;
    perf_core::ExtendedPmu::new(moved(driver), groups, task_data, revocable)
}

impl nmi::Handler for Machine {
    #[inline(always)]
    fn handle(&self, nmi: &NmiContext) -> u32 {
        match self.this_cpu(nmi.irqs()) {
            Some(pmu) => pmi::handle(pmu, nmi),
            None => 0,
        }
    }
}

impl kern::hotplug::Callbacks for Machine {
    fn starting(&self, irqs: &LocalInterruptDisabled) {
        self.common.cpus.starting(irqs);
        self.common.smi.starting(irqs);
        if let Some(pmu) = self.this_cpu(irqs) {
            hotplug::starting(pmu, irqs);
        }
    }

    fn dying(&self, irqs: &LocalInterruptDisabled) {
        if let Some(pmu) = self.this_cpu(irqs) {
            hotplug::dying(pmu, irqs);
        }
    }
}

impl kern::syscore::Callbacks for Machine {
    fn suspend(&self, irqs: &LocalInterruptDisabled) {
        if let Some(pmu) = self.this_cpu(irqs) {
            suspend::suspend(pmu, irqs);
        }
    }

    fn resume(&self, irqs: &LocalInterruptDisabled) {
        self.common.smi.starting(irqs);
        if let Some(pmu) = self.this_cpu(irqs) {
            suspend::resume(pmu, irqs);
        }
    }

    fn shutdown(&self) {
        on_each_cpu(&|irqs| {
            if let Some(pmu) = self.this_cpu(irqs) {
                hotplug::give_back(pmu, irqs);
            }
        });
    }
}
