// SPDX-License-Identifier: GPL-2.0

//! The driver: asks [`logic`](crate::logic) what is to be done, and does it through
//! [`perf`](crate::perf) and [`x86`](crate::x86).
//!
//! ```text
//!  probe       what CPU is this? ──► hardware      its registers
//!  takeover    the built-in driver's PMU, away and back
//!  event_init  open()            ──► event         what we keep with an event
//!  schedule    add, del, enable  ──► cpu           what we keep of a CPU
//!                                ──► sharing       and of its core
//!                                ──► transactions  which want counter 3, too
//!                                ──► user_read     who may read counters with rdpmc
//!  suspend     the machine sleeps and wakes up: events of the last CPU; or it ends: registers as they were
//!  smi         counters that stop in system management mode
//!                                ──► turns         which groups go first
//!  pmi         a counter has overflowed (NMI)
//!  hotplug     a CPU comes or goes, or the driver does: registers as they were
//!  sysfs       the PMU's files
//!  debugfs     what the driver says of itself
//!  snapshot    who has which counter of a CPU
//!  unplaced    who found none, and why
//!  refusals    the last events that were refused, and why
//!  errors      reason ──► errno
//! ```
//!
//! # Who may touch what
//!
//! | State | Who | How |
//! |---|---|---|
//! | [`cpu::Own`]: schedule and register shadow | callbacks on the CPU, not the PMI | [`CpuCell`] |
//! | [`pmi::Shared`]: active counters and their events | callbacks and the PMI on the CPU | atomics |
//! | [`sharing::Sharing`]: what the core's threads use | callbacks on both CPUs, not the PMI | a lock |
//! | [`event::EventData`] | callbacks and the PMI on the event's CPU | atomics |
//! | [`hw::Hardware`] | all | constant |
//!
//! These atomics are core's, of which each access is one instruction: no two CPUs have to agree on
//! the order of what they do to them, so it matters only what the compiler makes of them. (Each of
//! [`kernel::sync::atomic`]'s is a call of a C function. They are for what CPUs share.)
//!
//! A PMI that interrupts a callback finds the first one borrowed and the others consistent at each
//! single store; [`logic::registers`](crate::logic::regs::shadow) has the rules that make it so.
//!
//! [`CpuCell`]: crate::kern::percpu::CpuCell

mod cpu;
mod errors;
mod event;
mod event_init;
mod explain;
mod hotplug;
mod hw;
mod pmi;
mod probe;
mod rotation;
mod schedule;
mod suspend;
mod sysfs;
mod takeover;
mod unit;

pub(crate) use {
    explain::debugfs::Files,
    probe::{check_counters, probe, reserve},
    takeover::{find_predecessor, take_over},
};

use crate::{
    kern::percpu::PerCpu,
    perf,
    x86::{cpuid::Feature, topology::threads_per_core},
};
use cpu::Cpu;
use explain::refusals::Refusals;
use hw::Hardware;
use kernel::{prelude::*, sync::Arc};
use unit::{rdpmc::UserRead, smi::Smi, smt, tfa::Transactions};

/// The driver of the core PMU, as the perf core sees it.
pub(crate) struct Driver {
    hardware: Hardware,
    cpus: PerCpu<Cpu>,
    /// Whether overflows can be handed to the perf core as samples.
    samples: bool,
    /// Counter 3 where transactions use it too.
    transactions: Transactions,
    /// Who was refused an event, and why.
    refusals: Refusals,
    /// Whether the threads of a core must agree on who uses what.
    shares_a_core: bool,
    /// Who may read counters without us.
    user_read: UserRead,
    /// Whether counters stop in system management mode.
    smi: Smi,
    /// Whether a CPU can be made to schedule anew.
    can_resched: bool,
}

/// The core PMU with this driver.
pub(crate) type CorePmu = perf::Pmu<Driver>;

/// Makes the PMU for `hardware`. It does nothing until it is registered.
// The values of a CPU pass through the stack, 5 KiB. That must not stay there while the perf core
// is called.
#[inline(never)]
pub(crate) fn new_pmu(hardware: Hardware, ht_workaround: bool) -> Result<Arc<CorePmu>> {
    let cpus = PerCpu::new(|cpu| Cpu::new(cpu, &hardware))?;
    let groups = sysfs::groups(&hardware.pmu)?;
    let user_read = UserRead::new(hardware.pmu.capabilities.width.bits())?;
    let shares_a_core = smt::is_needed(hardware.pmu.model, ht_workaround);
    let tsx_uses_a_counter = hardware.pmu.capabilities.tsx_uses_counter_3;
    let driver = Driver {
        smi: Smi::new(user_read.builtin.as_ref())?,
        user_read,
        samples: can_sample(),
        transactions: Transactions::new(tsx_uses_a_counter),
        shares_a_core,
        can_resched: (shares_a_core || tsx_uses_a_counter) && bind_resched(),
        refusals: Refusals::new()?,
        hardware,
        cpus,
    };
    perf::Pmu::new(driver, groups)
}

/// Gets what it takes to sample.
fn can_sample() -> bool {
    if !Feature::APIC.present() {
        pr_notice!(
            "no local APIC, so counters raise no interrupts: events count and do not sample\n"
        );
        return false;
    }
    let bound = perf::bind_sampling();
    if let Err(error) = bound {
        pr_notice!(
            "perf_event_overflow() is out of reach ({error:?}): events count and do not sample\n"
        );
    }
    bound.is_ok()
}

/// Gets what it takes to make another CPU schedule anew. Whether that has worked.
fn bind_resched() -> bool {
    perf::bind_perf_pmu_resched()
        .inspect_err(|error| {
            pr_notice!(
                "perf_pmu_resched() is out of reach ({error:?}): a counter that another CPU sets \
                 free is taken when events take turns, not at once, and allow_tsx_force_abort \
                 stays as it is\n"
            );
        })
        .is_ok()
}

/// Watches which events their users disable, where pinned groups may wait for the core's other thread
/// or for transactions. [`None`] where there is nothing to wait for, or if that fails.
pub(crate) fn watch_disabling(pmu: &Arc<CorePmu>) -> Option<perf::DisableWatch<Driver>> {
    if !pmu.ops().can_resched {
        return None;
    }
    perf::DisableWatch::new(pmu.clone())
        .inspect_err(|error| {
            pr_notice!(
                "perf_event_disable() cannot be watched ({error:?}): pinned events that find no \
                 counter stay in the error state until they are enabled again\n"
            );
        })
        .ok()
}

/// Says what has been done.
pub(crate) fn announce(pmu: &CorePmu, predecessor: bool) {
    let driver = pmu.ops();
    let pmu = &driver.hardware.pmu;
    pr_info!(
        "{} PMU, {} general-purpose and {} fixed counters of {} bits; {}\n",
        pmu.model.name,
        pmu.capabilities.gp(),
        pmu.capabilities.fixed(),
        pmu.capabilities.width.bits(),
        if predecessor {
            "the built-in driver gets it back on unload"
        } else {
            "no built-in driver was in charge"
        }
    );

    if pmu.capabilities.unused_gp > 0 {
        pr_notice!(
            "{} more general-purpose counters are not used: their registers have no architectural \
             address\n",
            pmu.capabilities.unused_gp
        );
    }
    if pmu.capabilities.perf_metrics {
        pr_notice!(
            "PERF_METRICS is not used: topdown events with codes 0x8000 to 0x8700 are refused\n"
        );
    }
    if pmu.capabilities.tsx_uses_counter_3 {
        pr_info!("transactions abort while counter 3 is used (allow_tsx_force_abort in sysfs)\n");
    }
    if let Some(erratum) = pmu.model.ht_erratum {
        if driver.shares_a_core {
            pr_info!("events 0xd0 to 0xd3 have their counters to themselves in a core (erratum {erratum})\n");
        } else if threads_per_core() > 1 {
            pr_notice!(
                "events 0xd0 to 0xd3 can spoil the counts of the core's other thread (erratum \
                 {erratum}): ht_workaround=0\n"
            );
        }
    }
}
