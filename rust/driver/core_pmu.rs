// SPDX-License-Identifier: GPL-2.0

//! A core PMU with this driver: the state that its CPUs share, and the state of each.

use super::{
    cpu::Cpu,
    explain::refusals::Refusals,
    facilities,
    hw::Hardware,
    unit::{northbridge, rdpmc::UserRead, smi::Smi, smt::seat, tfa::Tfa, tracing::Tracing},
};
use crate::{
    kern::percpu::PerCpu,
    logic::{sched::assign::Policy, tried::Feature},
    perf,
    x86::builtin::{self, Builtin},
};
use kernel::prelude::*;

/// The driver of a core PMU, as the perf core sees it.
pub(crate) struct Driver {
    pub(super) hardware: Hardware,
    pub(super) cpus: PerCpu<Cpu>,
    /// Set if overflows can become samples.
    pub(super) samples: bool,
    /// Counter 3 where TSX transactions use it too.
    pub(super) tfa: Tfa,
    /// Set if waiting groups are offered in this driver's order.
    pub(super) orders_groups: bool,
    /// The last events that were refused, and why.
    pub(super) refusals: Refusals,
    /// Set if the threads of a core must agree on the counters and registers that each uses.
    pub(super) shares_a_core: bool,
    /// Set if the CPUs of a node must agree on the counters of AMD's northbridge that each uses.
    pub(super) shares_northbridge: bool,
    /// User space's access to counters by `rdpmc`.
    pub(super) user_read: UserRead,
    /// Intel PT and BTS, which share the PMI.
    pub(super) tracing: Tracing,
    /// AMD's PMU for precise events.
    pub(super) ibs: Option<perf::Ibs>,
    /// The setting of `freeze_on_smi`: stops counters in system management mode.
    pub(super) smi: Smi,
    /// Set if this driver can make another CPU schedule its events anew.
    pub(super) can_resched: bool,
}

/// A core PMU with this driver.
pub(crate) type CorePmu = perf::Pmu<Driver>;

impl Driver {
    /// Makes the driver of a PMU with this `hardware`.
    ///
    /// Fails with `ENOMEM` or another error. Process context.
    // Each CPU's state, 5 KiB, passes through the stack. That space must be free again when the perf core
    // is called.
    #[inline(never)]
    pub(super) fn new(
        mut hardware: Hardware,
        ht_workaround: bool,
        builtin: Option<builtin::Layout>,
    ) -> Result<Self> {
        let user_read = UserRead::new(&hardware.pmu.capabilities, builtin)?;
        if let Some(builtin) = user_read.builtin() {
            hardware.ask(builtin);
        }
        let builtin = user_read.initialised();
        let is_amd = hardware.amd().is_some();
        // Hypervisors and BPF ask it for the values of Intel's GLOBAL_CTRL alone.
        let cpus = new_cpus(&hardware, builtin.filter(|_| !is_amd))?;
        let shares_a_core = seat::is_needed(hardware.pmu.model, ht_workaround);
        let tsx_uses_counter = hardware.pmu.capabilities.tsx_uses_counter_3;
        Ok(Self {
            smi: Smi::new(!is_amd, builtin)?,
            ibs: if is_amd { facilities::find_ibs() } else { None },
            user_read,
            samples: facilities::bind_sampling(),
            tfa: Tfa::new(tsx_uses_counter),
            tracing: Tracing::new(),
            shares_a_core,
            shares_northbridge: northbridge::is_shared(&hardware.pmu),
            orders_groups: hardware.policy == Policy::Rpmu
                && facilities::was_tried(Feature::GroupOrder),
            can_resched: (shares_a_core || tsx_uses_counter) && facilities::bind_resched(),
            refusals: Refusals::new()?,
            hardware,
            cpus,
        })
    }
}

// See `Driver::new()`.
#[inline(never)]
fn new_cpus(hardware: &Hardware, builtin: Option<&Builtin>) -> Result<PerCpu<Cpu>> {
    PerCpu::new(|cpu| Cpu::new(cpu, hardware, builtin))
}
