// SPDX-License-Identifier: GPL-2.0

//! Which CPUs are threads of the same core.
//!
//! What is offline is not seen here: the kernel takes a CPU out of the masks when it goes down.
//!
//! C header: [`arch/x86/include/asm/topology.h`](srctree/arch/x86/include/asm/topology.h)

use crate::{
    bindings,
    kern::cpu::{in_mask, online_cpus, possible},
};
use kernel::{cpu::CpuId, cpumask::Cpumask};

/// The online threads of the core of `cpu`, itself included; none if `cpu` is offline.
pub fn siblings(cpu: CpuId) -> impl Iterator<Item = CpuId> {
    sibling_mask(cpu).into_iter().flat_map(in_mask)
}

/// The other thread of the core of `cpu`, if there is one and it is online.
pub fn sibling(cpu: CpuId) -> Option<CpuId> {
    siblings(cpu).find(|other| *other != cpu)
}

/// The largest number of threads that are online in one core.
///
/// The kernel's own figure (`__max_smt_threads`) is not for modules, and counts what can be brought
/// online too. Where a CPU comes or goes meanwhile, it may be seen or not.
pub fn threads_per_core() -> u32 {
    online_cpus()
        .filter_map(sibling_mask)
        .map(Cpumask::weight)
        .max()
        .unwrap_or(1)
}

fn sibling_mask(cpu: CpuId) -> Option<&'static Cpumask> {
    if !possible(cpu) {
        return None;
    }
    // SAFETY: `cpu` is possible. The mask of each possible CPU is allocated before the second CPU
    // is brought up at boot (`smp_prepare_cpus_common()`) and never freed.
    Some(unsafe {
        Cpumask::from_raw(bindings::rpmu_helper_topology_sibling_cpumask(cpu.into()).cast())
    })
}
