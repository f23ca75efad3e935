// SPDX-License-Identifier: GPL-2.0

//! The CPUs of the machine, and the PMU to which each belongs.

use crate::{
    kern::{
        call::call_on,
        cpu::{
            online_cpus,
            present_cpus, //
        },
        percpu::PerCpu, //
    },
    logic::{
        capabilities::Cpuid,
        cores::{
            CoreType,
            PerType, //
        },
    },
    x86::cpuid::core_type, //
};
use core::sync::atomic::{
    AtomicU8,
    Ordering::Relaxed, //
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// The index that stands for no type.
const NONE: u8 = u8::MAX;

/// The CPUs by core type. A CPU belongs to at most one PMU, the PMU for its type.
///
/// In a machine with one type of core, each possible CPU belongs to the only PMU. On a hybrid, the
/// type of a CPU is unknown until the CPU has first gone online. Until then it has no PMU; nor has
/// it one later if its type was not [found](Self::find).
pub(crate) struct Cpus {
    types: PerType<CoreType>,
    /// Set if the processor says that it has several types of cores. Otherwise no CPU that comes
    /// online later has another type.
    is_hybrid: bool,
    /// The index of each CPU's type, or [`NONE`].
    of_cpu: PerCpu<AtomicU8>,
}

impl Cpus {
    /// Finds the types of the online CPUs of this processor, which `cpuid` describes.
    ///
    /// Fails with `ENODEV`, and a line in the log, if the type of a CPU is unknown, or with
    /// `ENOMEM`. Process context.
    #[inline(never)]
    pub(in crate::driver) fn find(cpuid: &Cpuid) -> Result<Self> {
        let are_alike = cpuid.core_type() == Some(CoreType::Only);
        let index = if are_alike { 0 } else { NONE };
        let mut cpus = Self {
            types: PerType::only(),
            is_hybrid: cpuid.is_hybrid(),
            of_cpu: PerCpu::new(|_| Ok::<_, Error>(AtomicU8::new(index)))?,
        };
        if are_alike {
            return Ok(cpus);
        }
        let mut found = [false; CoreType::HYBRID.len()];
        for cpu in online_cpus() {
            let mut core = None;
            if call_on(cpu, |irqs| core = core_of_this_cpu(irqs)).is_err() {
                // The CPU has gone offline.
                continue;
            }
            let known = CoreType::HYBRID.iter().position(|it| Some(*it) == core);
            match known.and_then(|index| found.get_mut(index)) {
                Some(found) => *found = true,
                None => {
                    pr_err!("CPU {} is of an unknown type of core\n", cpu.as_u32());
                    return Err(ENODEV);
                }
            }
        }
        let exists = |core| {
            CoreType::HYBRID
                .into_iter()
                .zip(found)
                .any(|it| it == (core, true))
        };
        cpus.types = PerType::of(exists);
        for cpu in online_cpus() {
            // This fails if the CPU has gone offline.
            let _ = call_on(cpu, |irqs| cpus.starting(irqs));
        }
        Ok(cpus)
    }

    /// Records the type of this CPU, which is going online or is online at load.
    pub(super) fn starting(&self, irqs: &LocalInterruptDisabled) {
        if self.are_alike() {
            return;
        }
        let core = core_of_this_cpu(irqs);
        let index = core.and_then(|core| self.types.find(core));
        // CAST: there are only a few types.
        let index = index.map_or(NONE, |index| index as u8);
        self.of_cpu.this_cpu(irqs).store(index, Relaxed);
    }

    /// Returns the types.
    pub(in crate::driver) fn types(&self) -> &PerType<CoreType> {
        &self.types
    }

    /// Returns whether all CPUs have the same type.
    pub(in crate::driver) fn are_alike(&self) -> bool {
        self.types.get(0) == Some(&CoreType::Only)
    }

    /// Returns the index of this CPU's type. If the CPU has no PMU, returns [`NONE`], which is no
    /// PMU's index. Any context.
    #[inline]
    pub(super) fn index_of_this(&self, irqs: &LocalInterruptDisabled) -> usize {
        self.of_cpu.this_cpu(irqs).load(Relaxed).into()
    }

    /// Returns the index of the type of `cpu`, which may be offline; [`NONE`] if the CPU has no
    /// PMU. Any context.
    pub(in crate::driver) fn index_of(&self, cpu: CpuId) -> usize {
        let index = self.of_cpu.get(cpu);
        index.map_or(NONE, |index| index.load(Relaxed)).into()
    }

    /// Returns a type that is not in [`types`](Self::types), but may be the type of a CPU that is
    /// offline.
    pub(in crate::driver) fn unknown_type(&self) -> Option<CoreType> {
        let is_unknown = |cpu: CpuId| self.index_of(cpu) == usize::from(NONE);
        let mut missing = CoreType::HYBRID.into_iter();
        let missing = missing.find(|core| self.types.find(*core).is_none());
        missing.filter(|_| self.is_hybrid && present_cpus().any(is_unknown))
    }

    /// Returns an online CPU with the type at `index`. [`None`] if all CPUs are alike, so that any
    /// CPU will do.
    ///
    /// Fails with `ENXIO` if no such CPU is online any more.
    pub(in crate::driver) fn one_of(&self, index: usize) -> Result<Option<CpuId>> {
        if self.are_alike() {
            return Ok(None);
        }
        let cpu = online_cpus().find(|cpu| self.index_of(*cpu) == index);
        cpu.map(Some).ok_or(ENXIO)
    }
}

/// Returns the type of this CPU of a hybrid, if it is known.
fn core_of_this_cpu(irqs: &LocalInterruptDisabled) -> Option<CoreType> {
    CoreType::of_hybrid(core_type(irqs))
}
