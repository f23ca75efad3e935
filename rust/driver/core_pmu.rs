// SPDX-License-Identifier: GPL-2.0

//! A core PMU with this driver: the state that its CPUs share, and the state of each.

use super::{
    cpu::Cpu,
    event::EventData,
    facilities,
    hw::Hardware,
    unit::{rdpmc::UserRead, smi::Smi, smt::seat, tfa::Tfa, tracing::Tracing, Units},
};
use crate::{
    kern::{init::moved, percpu::PerCpu},
    logic::{
        regs::counter::CounterMask,
        rotation::{may_end_turn, MAX_PERCENT},
        sched::assign::Policy,
        tried::Feature,
    },
    perf::{self, OnCpu},
    perf_core::{has_internals, EndCost, Ibs, PmuState},
    x86::builtin::Builtin,
};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kernel::prelude::*;

/// The driver of a core PMU, as the perf core sees it.
pub(crate) struct Driver {
    pub(super) hardware: Hardware,
    pub(super) cpus: PerCpu<Cpu>,
    /// Set if overflows can become samples.
    pub(super) samples: bool,
    /// The units.
    pub(super) units: Units,
    /// Set if waiting groups are offered in this driver's order.
    pub(super) orders_groups: bool,
    /// Set if the overflow of an event can end the turn of the groups on a CPU.
    pub(super) can_switch: bool,
    /// The setting of `rpmu/switch_max_percent`: the part of the time that this may take.
    pub(super) switch_max_percent: AtomicU32,
    /// Set if the threads of a core must agree on the counters and registers that each uses.
    pub(super) shares_a_core: bool,
    /// User space's access to counters by `rdpmc`.
    pub(super) user_read: UserRead,
    /// Intel PT and BTS, which share the PMI.
    pub(super) tracing: Tracing,
    /// AMD's PMU for precise events.
    pub(super) ibs: Option<Ibs>,
    /// The setting of `freeze_on_smi`: stops counters in system management mode.
    pub(super) smi: Smi,
    /// Set if this driver can make another CPU schedule its events anew.
    pub(super) can_resched: bool,
    /// For [`perf_core`](crate::perf_core).
    internals: PmuState<Self>,
}

has_internals!(Driver.internals, EventData.internals);

/// A core PMU with this driver.
pub(crate) type CorePmu = perf::Pmu<Driver>;

impl Driver {
    /// Makes the driver of a PMU with this `hardware`, and the [state](new_cpus) of its CPUs.
    ///
    /// Fails with `ENOMEM` or another error. Process context.
    #[inline(never)]
    pub(super) fn new(
        hardware: KBox<Hardware>,
        cpus: PerCpu<Cpu>,
        user_read: UserRead,
        units: KBox<Units>,
        ht_workaround: bool,
    ) -> Result<KBox<Self>> {
        let is_amd = hardware.amd().is_some();
        let shares_a_core = seat::is_needed(hardware.pmu.model, ht_workaround);
        let orders_groups =
            hardware.policy == Policy::Rpmu && facilities::was_tried(Feature::GroupOrder);
        let others_take_counters = shares_a_core || units.tfa.is_some();
        let can_resched = (others_take_counters || orders_groups) && facilities::bind_resched();
        let driver = try_init!(Self {
            smi: Smi::new(!is_amd, user_read.initialised())?,
            ibs: if is_amd { facilities::find_ibs() } else { None },
            user_read,
            units <- moved(units),
            samples: facilities::bind_sampling(),
            tracing: Tracing::new(),
            shares_a_core,
            orders_groups,
            can_switch: facilities::was_tried(Feature::SwitchOnOverflow),
            switch_max_percent: AtomicU32::new(MAX_PERCENT),
            can_resched: others_take_counters && can_resched,
            internals: PmuState::new()?,
            hardware <- moved(hardware),
            cpus,
        }? Error);
        KBox::try_init(driver, GFP_KERNEL)
    }

    /// Returns the counters that are left to TSX transactions.
    #[inline]
    pub(super) fn left_to_tsx(&self) -> CounterMask {
        let tfa = self.units.tfa.as_ref();
        tfa.map_or(CounterMask::EMPTY, Tfa::closed)
    }

    /// Ends the turn of the groups on this CPU after an overflow, unless that has taken too much of the time.
    /// Any context.
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
