// SPDX-License-Identifier: GPL-2.0

//! The state that all PMUs of the machine share.

use super::{
    cpus::Cpus,
    rdpmc::UserRead,
    smi::Smi,
    tracing::Tracing, //
};
use crate::{
    driver::{
        breaker::Breaker,
        facilities,
        hw::Hardware,
        smt::core_thread::threads_coordinate, //
    },
    logic::{
        cores::PerType,
        sched::assign::Policy,
        tried::Feature, //
    },
    perf_core::Ibs,
    x86::builtin, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The state that all PMUs of the machine share. The [driver](super::super::Driver) of each PMU
/// refers to it.
pub(in crate::driver) struct Common {
    /// The CPUs, and the PMU of each.
    pub(in crate::driver) cpus: Cpus,
    /// Set if overflows become samples.
    pub(in crate::driver) samples: bool,
    /// Set if this driver, and not the perf core, determines the order in which waiting groups are
    /// tried.
    pub(in crate::driver) orders_groups: bool,
    /// Set if an event's overflow can make the groups on a CPU rotate early (`switch`).
    pub(in crate::driver) can_switch: bool,
    /// Set if this driver may need to make another CPU schedule its events again, and can do so.
    pub(in crate::driver) can_resched: bool,
    /// Gives the PMUs up if one of them does not work.
    pub(in crate::driver) breaker: Breaker,
    /// User space's access to counters by `rdpmc`. Has the handle of the built-in driver, if that
    /// was found.
    pub(in crate::driver) user_read: UserRead,
    /// The setting `freeze_on_smi`, which stops counters in system management mode.
    pub(in crate::driver) smi: Smi,
    /// Intel PT and BTS, which share the PMI.
    pub(in crate::driver) tracing: Tracing,
    /// AMD's PMU for precise events.
    pub(in crate::driver) ibs: Option<Ibs>,
}

impl Common {
    /// Creates the state of a machine with these `cpus`, and with PMUs of this `hardware`.
    /// `builtin` is the result of [`check_layouts`](super::super::check_layouts). `revocable` is
    /// set if no event's page may have an index for `rdpmc`.
    ///
    /// Fails with `ENOMEM` or another error. Process context.
    #[inline(never)]
    pub(super) fn new(
        cpus: Cpus,
        hardware: &PerType<&Hardware>,
        ht_workaround: bool,
        revocable: bool,
        builtin: Option<builtin::Layout>,
    ) -> Result<Arc<Self>> {
        let capabilities = hardware.map_ref(|it| &it.pmu.capabilities);
        let user_read = UserRead::new(&capabilities, builtin, !revocable)?;
        let any = |is: &dyn Fn(&Hardware) -> bool| hardware.iter().any(|it| is(it));
        let is_amd = any(&|it| it.amd().is_some());
        let orders_groups =
            any(&|it| it.policy == Policy::Rpmu) && facilities::was_tried(Feature::GroupOrder);
        let others_take_counters = any(&|it| {
            threads_coordinate(it.pmu.model, ht_workaround)
                || it.pmu.capabilities.tsx_uses_counter_3
        });
        // The breaker needs it on every machine.
        let bound_resched = facilities::bind_resched();
        let common = Self {
            cpus,
            smi: Smi::new(!is_amd, user_read.initialised())?,
            ibs: if is_amd { facilities::find_ibs() } else { None },
            samples: facilities::bind_sampling(),
            tracing: Tracing::new(),
            can_switch: facilities::was_tried(Feature::SwitchOnOverflow),
            can_resched: (others_take_counters || orders_groups) && bound_resched,
            breaker: Breaker::new()?,
            orders_groups,
            user_read,
        };
        Ok(Arc::new(common, GFP_KERNEL)?)
    }
}
