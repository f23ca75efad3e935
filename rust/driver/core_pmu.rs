// SPDX-License-Identifier: GPL-2.0

//! A core PMU of this driver: the state that its CPUs share, and the state of each CPU.

use super::{
    cpu::Cpu,
    event::EventData,
    hw::Hardware,
    machine::common::Common,
    smt::core_thread::threads_coordinate,
    unit::{
        tfa::Tfa,
        Units, //
    },
};
use crate::{
    kern::{
        init::moved,
        percpu::PerCpu, //
    },
    logic::{
        cores::CoreType,
        regs::counter::CounterMask,
        rotation::{
            may_end_turn,
            MAX_PERCENT, //
        },
    },
    perf::{
        self,
        event_type,
        OnCpu, //
    },
    perf_core::{
        has_internals,
        EndCost,
        PmuState, //
    },
    x86::builtin::Builtin, //
};
use core::sync::atomic::{
    AtomicU32,
    Ordering::Relaxed, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The name and the core type of a PMU. The built-in driver's PMU that it replaces has the same
/// name.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    /// The index of the core type in [`cpus`](super::machine::cpus).
    pub(super) index: usize,
    pub(super) name: &'static CStr,
    /// The event type; [`None`] if it is the predecessor's, or a new one without a predecessor.
    pub(super) event_type: Option<u32>,
}

impl Identity {
    /// Returns the identity of the PMU for cores of the type `core`, which has this `index`.
    pub(super) fn of(core: CoreType, index: usize) -> Self {
        Self {
            index,
            name: core.pmu_name(),
            event_type: core.is_raw().then_some(event_type::RAW),
        }
    }
}

/// The driver of a core PMU. Implements the operations that the perf core calls.
pub(crate) struct Driver {
    pub(super) identity: Identity,
    pub(super) hardware: Hardware,
    pub(super) cpus: PerCpu<Cpu>,
    /// The state that the machine's PMUs share.
    pub(super) common: Arc<Common>,
    /// The features with state of their own.
    pub(super) units: Units,
    /// The setting `rpmu/switch_max_percent`: the maximum share of a CPU's time, in percent, for
    /// rotations that overflows cause; 100: no limit.
    pub(super) switch_max_percent: AtomicU32,
    /// Set if the threads of a core have to coordinate their use of counters and registers.
    pub(super) shares_a_core: bool,
    /// The state of [`perf_core`](crate::perf_core).
    internals: PmuState<Self>,
}

has_internals!(Driver.internals, EventData.internals);

/// A core PMU of this driver.
pub(crate) type CorePmu = perf::Pmu<Driver>;

impl Driver {
    /// Makes the driver of a PMU with this `hardware`. `cpus` is the result of [`new_cpus`].
    ///
    /// Fails with `ENOMEM` or another error. Process context.
    #[inline(never)]
    pub(super) fn new(
        identity: Identity,
        hardware: KBox<Hardware>,
        cpus: PerCpu<Cpu>,
        common: Arc<Common>,
        units: KBox<Units>,
        ht_workaround: bool,
    ) -> Result<KBox<Self>> {
        let driver = try_init!(Self {
            identity,
            common,
            units <- moved(units),
            shares_a_core: threads_coordinate(hardware.pmu.model, ht_workaround),
            switch_max_percent: AtomicU32::new(MAX_PERCENT),
            internals: PmuState::new()?,
            hardware <- moved(hardware),
            cpus,
        }? Error);
        KBox::try_init(driver, GFP_KERNEL)
    }

    /// Returns whether the core's other thread or TSX can free counters for events of this PMU, and
    /// this driver can then make a CPU schedule its events again.
    pub(super) fn can_resched(&self) -> bool {
        (self.shares_a_core || self.units.tfa.is_some()) && self.common.can_resched
    }

    /// Returns the counters that are reserved for TSX transactions.
    #[inline]
    pub(super) fn left_to_tsx(&self) -> CounterMask {
        let tfa = self.units.tfa.as_ref();
        tfa.map_or(CounterMask::EMPTY, Tfa::closed)
    }

    /// Makes the groups on this CPU rotate after an overflow, unless such rotations would take more
    /// of its time than `switch_max_percent`. Any context.
    pub(super) fn end_turn(&self, cx: &OnCpu<'_, Self>) {
        let max_percent = self.switch_max_percent.load(Relaxed);
        cx.end_turn(|EndCost { since, cost }| may_end_turn(since, cost, max_percent));
    }
}

/// Makes the state of each CPU. `builtin` is the built-in driver, if it has initialised.
///
/// Fails with `ENOMEM` or another error. Process context.
#[inline(never)]
pub(super) fn new_cpus(hardware: &Hardware, builtin: Option<&Builtin>) -> Result<PerCpu<Cpu>> {
    PerCpu::new(|cpu| Cpu::new(cpu, hardware, builtin))
}
