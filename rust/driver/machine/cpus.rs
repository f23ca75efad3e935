// SPDX-License-Identifier: GPL-2.0

//! The CPUs of the machine, and the PMU to which each belongs.

use crate::{
    kern::{
        call::call_on,
        cpu::online_cpus,
        percpu::PerCpu, //
    },
    logic::cores::{
        CoreType,
        PerType, //
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
    /// The index of each CPU's type, or [`NONE`].
    of_cpu: PerCpu<AtomicU8>,
}

impl Cpus {
    /// Finds the types of the online CPUs. `are_alike` is set if there is only one type.
    ///
    /// Fails with `ENODEV`, and a line in the log, if there are too many types, or with `ENOMEM`.
    /// Process context.
    pub(in crate::driver) fn find(are_alike: bool) -> Result<Self> {
        let index = if are_alike { 0 } else { NONE };
        let mut cpus = Self {
            types: PerType::new(),
            of_cpu: PerCpu::new(|_| Ok::<_, Error>(AtomicU8::new(index)))?,
        };
        if are_alike {
            cpus.types.find_or_add(CoreType::ONLY);
            return Ok(cpus);
        }
        for cpu in online_cpus() {
            let mut found = true;
            let look = |irqs: &LocalInterruptDisabled| {
                found = cpus.types.find_or_add(core_of_this_cpu(irqs)).is_some();
                cpus.starting(irqs);
            };
            // This fails if the CPU has gone offline.
            let _ = call_on(cpu, look);
            if !found {
                pr_err!("there are too many types of cores\n");
                return Err(ENODEV);
            }
        }
        Ok(cpus)
    }

    /// Records the type of this CPU, which is going online or is online at load.
    pub(super) fn starting(&self, irqs: &LocalInterruptDisabled) {
        if self.are_alike() {
            return;
        }
        let index = self.types.find(core_of_this_cpu(irqs));
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
        self.types.len() == 1 && self.types.get(0) == Some(&CoreType::ONLY)
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

    /// Returns an online CPU with the type at `index`. [`None`] if no such CPU is online, or if all
    /// CPUs are alike, so that any CPU will do.
    pub(in crate::driver) fn one_of(&self, index: usize) -> Option<CpuId> {
        online_cpus().find(|cpu| !self.are_alike() && self.index_of(*cpu) == index)
    }
}

fn core_of_this_cpu(irqs: &LocalInterruptDisabled) -> CoreType {
    CoreType::of_hybrid(core_type(irqs))
}
