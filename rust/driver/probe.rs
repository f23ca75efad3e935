// SPDX-License-Identifier: GPL-2.0

//! Detection of the machine's PMU.

use super::{
    hw::Hardware,
    CorePmu, //
};
use crate::{
    logic::{
        capabilities::{
            Cpuid,
            Leaf, //
        },
        pmu::Pmu,
        sched::assign::Policy, //
    },
    x86::{
        cpuid::{
            cpuid,
            Feature, //
        },
        intel::perfmon::read_capabilities,
        msr::Msr,
        reserve::{
            NotReserved,
            Reservation, //
        },
    },
};
use kernel::{
    interrupt::local_interrupt_disable,
    prelude::*, //
};

/// The shortest `max_period`. With a shorter one a CPU could do little else than handle overflows.
const SHORTEST_MAX_PERIOD: u64 = 1000;

/// Detects the PMU of this machine and how to drive it.
///
/// `policy` and `max_period` are module parameters: how events get counters, and the number of
/// events after which counters overflow, 0 for as many as they can count.
///
/// `ENODEV`, with the reason in the log, `EINVAL` or `ENOMEM`. Changes nothing. Process context.
pub(crate) fn probe(policy: &CStr, max_period: u64) -> Result<KBox<Hardware>> {
    let Some(known_policy) = Policy::from_name(policy.to_bytes()) else {
        pr_err!("policy={policy:?} is unknown; use policy=rpmu or policy=mainline\n");
        return Err(EINVAL);
    };
    if (1..SHORTEST_MAX_PERIOD).contains(&max_period) {
        pr_err!("max_period={max_period} is too short; use {SHORTEST_MAX_PERIOD} or more\n");
        return Err(EINVAL);
    }
    Hardware::new(find_pmu()?, known_policy, max_period)
}

#[inline(never)]
fn find_pmu() -> Result<KBox<Pmu>> {
    let cpuid = read_cpuid();
    let perf_capabilities = cpuid
        .has_perf_capabilities()
        .then(|| read_capabilities(&local_interrupt_disable()));
    match Pmu::probe(&cpuid, perf_capabilities) {
        Ok(pmu) => Ok(KBox::new(pmu, GFP_KERNEL)?),
        Err(unsupported) => {
            pr_err!("{}\n", format_args!("{unsupported}"));
            Err(unsupported.into())
        }
    }
}

/// Reserves the counters' registers; `predecessor` says whether the built-in driver has
/// initialised. `EBUSY`, with a line in the log, if something else has reserved one.
pub(super) fn reserve(pmu: &CorePmu, predecessor: bool) -> Result<Reservation> {
    let reserved = pmu.ops().hardware.reserve(predecessor);
    reserved.map_err(|reason| match reason {
        NotReserved::Taken(register) => {
            log_reserved(Some(register));
            EBUSY
        }
        NotReserved::Failed(error) => {
            pr_err!("cannot reserve the counters: {error:?}\n");
            error
        }
    })
}

/// Logs which of the counters' registers something else has reserved.
pub(super) fn log_reserved(register: Option<Msr>) {
    match register {
        Some(register) => pr_err!(
            "MSR {:#x} is reserved by another module, which the kernel does not name: unload modules \
             that use counters, such as other profilers\n",
            register.number()
        ),
        None => pr_err!("another module had reserved counters; try again\n"),
    }
}

/// Checks that the counters are real: some hypervisors describe a PMU that does nothing.
///
/// An error, mostly `ENODEV`, with the reason in the log. The PMU must not be in use. Process
/// context.
pub(super) fn check_counters(pmu: &CorePmu) -> Result {
    let irqs = local_interrupt_disable();
    let hardware = &pmu.ops().hardware;
    match hardware.unreal_counter(&irqs) {
        Ok(None) => {}
        Ok(Some(counter)) => {
            pr_err!(
                "{} does not hold what is written to it: no real PMU, or a broken one\n",
                format_args!("{counter}")
            );
            return Err(ENODEV);
        }
        Err(e) => {
            pr_err!("the PMU cannot be stopped: IA32_PERF_GLOBAL_CTRL is not there\n");
            return Err(e);
        }
    }
    if read_cpuid().is_virtual() {
        hardware.find_extra_registers(&irqs);
    }
    Ok(())
}

fn read_cpuid() -> Cpuid {
    let leaf = |number| {
        let regs = cpuid(number, 0);
        Leaf {
            eax: regs.eax,
            ebx: regs.ebx,
            ecx: regs.ecx,
            edx: regs.edx,
        }
    };
    let leaf_0 = leaf(0);
    // CPUID returns another leaf's data for one that does not exist.
    let leaf_if_any = |number| {
        if number <= leaf_0.eax {
            leaf(number)
        } else {
            Leaf::default()
        }
    };
    let last_extended = leaf(0x8000_0000).eax;
    let extended_if_any = |number| {
        if number <= last_extended {
            leaf(number)
        } else {
            Leaf::default()
        }
    };
    let mut cpuid = Cpuid {
        leaf_0,
        leaf_1: leaf_if_any(1),
        leaf_7: leaf_if_any(7),
        leaf_a: leaf_if_any(0xa),
        leaf_1c: leaf_if_any(0x1c),
        leaf_8000_0001: extended_if_any(0x8000_0001),
        leaf_8000_0008: extended_if_any(0x8000_0008),
        leaf_8000_0022: extended_if_any(0x8000_0022),
    };
    // The kernel's command line can override these features.
    cpuid.set_tsx(Feature::RTM.present(), Feature::HLE.present());
    cpuid.set_arch_lbr(Feature::ARCH_LBR.present());
    cpuid.set_amd(
        Feature::AMD_PERFCTR_CORE.present(),
        Feature::AMD_PERFMON_V2.present(),
    );
    cpuid.set_amd_lbr(
        Feature::AMD_LBR_V2.present(),
        Feature::AMD_LBR_PMC_FREEZE.present(),
    );
    cpuid
}
