// SPDX-License-Identifier: GPL-2.0

//! A core PMU with this driver: what its CPUs have in common, and the state of each.

use super::{
    cpu::Cpu,
    explain::refusals::Refusals,
    facilities,
    hw::Hardware,
    unit::{rdpmc::UserRead, smi::Smi, smt::seat, tfa::Transactions},
};
use crate::{kern::percpu::PerCpu, perf};
use kernel::prelude::*;

/// The driver of a core PMU, as the perf core sees it.
pub(crate) struct Driver {
    pub(super) hardware: Hardware,
    pub(super) cpus: PerCpu<Cpu>,
    /// Whether overflows can be handed to the perf core as samples.
    pub(super) samples: bool,
    /// Counter 3 where transactions use it too.
    pub(super) transactions: Transactions,
    /// The last events that were refused, and why.
    pub(super) refusals: Refusals,
    /// Whether the threads of a core must agree on who uses what.
    pub(super) shares_a_core: bool,
    /// Whether user space may read counters with `rdpmc`.
    pub(super) user_read: UserRead,
    /// Whether counters stop in system management mode.
    pub(super) smi: Smi,
    /// Whether a CPU can be made to schedule anew.
    pub(super) can_resched: bool,
}

/// A core PMU with this driver.
pub(crate) type CorePmu = perf::Pmu<Driver>;

impl Driver {
    /// Makes the driver of a PMU with that `hardware`.
    ///
    /// `ENOMEM`, or another error. Process context.
    // The values of a CPU pass through the stack, 5 KiB. That must not stay there while the perf core
    // is called.
    #[inline(never)]
    pub(super) fn new(hardware: Hardware, ht_workaround: bool) -> Result<Self> {
        let cpus = PerCpu::new(|cpu| Cpu::new(cpu, &hardware))?;
        let user_read = UserRead::new(hardware.pmu.capabilities.width.bits())?;
        let shares_a_core = seat::is_needed(hardware.pmu.model, ht_workaround);
        let tsx_uses_a_counter = hardware.pmu.capabilities.tsx_uses_counter_3;
        Ok(Self {
            smi: Smi::new(user_read.builtin.as_ref())?,
            user_read,
            samples: facilities::bind_sampling(),
            transactions: Transactions::new(tsx_uses_a_counter),
            shares_a_core,
            can_resched: (shares_a_core || tsx_uses_a_counter) && facilities::bind_resched(),
            refusals: Refusals::new()?,
            hardware,
            cpus,
        })
    }
}
