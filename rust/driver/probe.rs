// SPDX-License-Identifier: GPL-2.0

//! Detection of the machine's PMUs.

use super::{
    core_pmu::Identity,
    hw::Hardware,
    machine::cpus::Cpus,
    CorePmu, //
};
use crate::{
    kern::call::call_on_or_here,
    logic::{
        capabilities::{
            Cpuid,
            Leaf, //
        },
        cores::PerType,
        pmu::PmuInfo,
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
    cpu::CpuId,
    prelude::*, //
};

/// The shortest `max_period`. With a shorter one a CPU would do little but handle overflows.
const SHORTEST_MAX_PERIOD: u64 = 1000;

/// The detected PMUs, and the CPUs that have them.
pub(crate) struct Found {
    pub(super) cpus: Cpus,
    pub(super) pmus: PerType<FoundPmu>,
}

/// A detected PMU.
pub(super) struct FoundPmu {
    pub(super) identity: Identity,
    pub(super) hardware: KBox<Hardware>,
}

/// Detects the PMUs of this machine, each on a CPU that has it.
///
/// `policy` and `max_period` are module parameters: the policy of assigning counters, and the
/// longest period for which counters are programmed, 0 for the longest possible.
///
/// Fails with `EINVAL` or `ENODEV`, and the reason in the log; with `ENXIO` if a CPU goes offline
/// meanwhile, or with `ENOMEM`. Changes nothing. Process context.
#[inline(never)]
pub(crate) fn probe(policy: &CStr, max_period: u64) -> Result<KBox<Found>> {
    let Some(known_policy) = Policy::from_name(policy.to_bytes()) else {
        pr_err!("policy={policy:?} is unknown; use policy=rpmu or policy=mainline\n");
        return Err(EINVAL);
    };
    if (1..SHORTEST_MAX_PERIOD).contains(&max_period) {
        pr_err!("max_period={max_period} is too short; use {SHORTEST_MAX_PERIOD} or more\n");
        return Err(EINVAL);
    }
    let cpus = find_cpus()?;
    let mut pmus = PerType::new();
    for (index, core) in cpus.types().iter().enumerate() {
        let cpu = cpus.one_of(index)?;
        let pmu = find_pmu(cpu)?;
        let found = FoundPmu {
            identity: Identity::of(*core, index),
            hardware: Hardware::new(pmu, known_policy, max_period, cpu)?,
        };
        // There is room for one PMU of each type.
        pmus.push(found).map_err(|_| ENODEV)?;
    }
    Ok(KBox::new(Found { cpus, pmus }, GFP_KERNEL)?)
}

/// Finds the CPUs and their types of cores.
// A separate function, as the CPUID leaves need stack.
#[inline(never)]
fn find_cpus() -> Result<Cpus> {
    Cpus::find(&read_cpuid())
}

/// Detects the PMU of `cpu`, or of this CPU if `cpu` is [`None`]: then all CPUs are alike.
#[inline(never)]
fn find_pmu(cpu: Option<CpuId>) -> Result<KBox<PmuInfo>> {
    let (mut cpuid, mut perf_capabilities) = (None, None);
    call_on_or_here(cpu, |irqs| {
        let read = cpuid.insert(read_cpuid());
        perf_capabilities = read
            .has_perf_capabilities()
            .then(|| read_capabilities(irqs));
    })?;
    let cpuid = cpuid.as_ref().ok_or(ENXIO)?;
    match PmuInfo::probe(cpuid, perf_capabilities) {
        Ok(pmu) => Ok(KBox::new(pmu, GFP_KERNEL)?),
        Err(unsupported) => {
            pr_err!("{}\n", format_args!("{unsupported}"));
            Err(unsupported.into())
        }
    }
}

/// Reserves the counters' registers. `predecessor` is set if the built-in driver has initialised.
/// Fails with `EBUSY` if something else has reserved one, or with another error; the log has the
/// reason.
// Not inlined, so that the stack of its messages is not part of a caller that goes on to call the
// perf core.
#[inline(never)]
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

/// Logs that something else has reserved this `register` of the counters; [`None`] if it has
/// released the register meanwhile.
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

/// Checks on `cpu`, or on this CPU if `cpu` is [`None`], that the counters are real: some
/// hypervisors describe a PMU that does nothing. In a virtual machine, also finds out which extra
/// registers exist.
///
/// Fails with `ENODEV` or another error, and the reason in the log, or with `ENXIO` if `cpu` is
/// offline. The PMU must not be in use. Process context.
pub(super) fn check_counters(pmu: &CorePmu, cpu: Option<CpuId>) -> Result {
    let hardware = &pmu.ops().hardware;
    let mut broken = Err(ENXIO);
    call_on_or_here(cpu, |irqs| broken = hardware.find_broken_counter(irqs))?;
    match broken {
        Ok(None) => {}
        Ok(Some(counter)) => {
            pr_err!(
                "{} does not hold what is written to it: no real PMU, or a broken one\n",
                format_args!("{counter}")
            );
            return Err(ENODEV);
        }
        Err(e) => {
            pr_err!(
                "the PMU cannot be controlled: IA32_PERF_GLOBAL_CTRL or IA32_PERF_GLOBAL_OVF_CTRL \
                 faults\n"
            );
            return Err(e);
        }
    }
    if read_cpuid().is_virtual() {
        call_on_or_here(cpu, |irqs| hardware.find_extra_registers(irqs))?;
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
    // For a leaf that does not exist, CPUID returns another leaf's data.
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
        leaf_1a: leaf_if_any(0x1a),
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
