// SPDX-License-Identifier: GPL-2.0

//! The threads of a core.
//!
//! Offline CPUs are not included: the kernel removes a CPU from the masks when it goes down.
//!
//! C header: [`arch/x86/include/asm/topology.h`](srctree/arch/x86/include/asm/topology.h)

use crate::{
    bindings,
    kern::cpu::{
        in_mask,
        online_cpus,
        possible, //
    },
};
use kernel::{
    cpu::CpuId,
    cpumask::Cpumask, //
};

/// Returns the online threads of the core of `cpu`, including `cpu`; none if `cpu` is offline.
pub fn siblings(cpu: CpuId) -> impl Iterator<Item = CpuId> {
    sibling_mask(cpu).into_iter().flat_map(in_mask)
}

/// Returns the other thread of the core of `cpu`, if there is one and it is online.
pub fn sibling(cpu: CpuId) -> Option<CpuId> {
    siblings(cpu).find(|other| *other != cpu)
}

/// Returns the maximum number of online threads per core.
///
/// The kernel's own figure (`__max_smt_threads`) is not exported, and includes threads that can be
/// brought online. A CPU that comes up or goes down meanwhile may be counted or not.
pub fn threads_per_core() -> u32 {
    online_cpus()
        .filter_map(sibling_mask)
        .map(Cpumask::weight)
        .max()
        .unwrap_or(1)
}

/// Returns the number of the node of `cpu` on AMD's processors: cores that share a northbridge.
/// [`None`] if `cpu` is not possible.
pub fn amd_node(cpu: CpuId) -> Option<u32> {
    if !possible(cpu) {
        return None;
    }
    // SAFETY: `cpu` is possible, so it has its part of the per-CPU variable `cpu_info`, which the
    // kernel fills in when the CPU comes up.
    Some(unsafe { bindings::rpmu_helper_topology_amd_node_id(cpu.into()) })
}

fn sibling_mask(cpu: CpuId) -> Option<&'static Cpumask> {
    if !possible(cpu) {
        return None;
    }
    // SAFETY: `cpu` is possible. The masks of possible CPUs are allocated before the second CPU is
    // brought up at boot (`smp_prepare_cpus_common()`), and never freed.
    Some(unsafe {
        Cpumask::from_raw(bindings::rpmu_helper_topology_sibling_cpumask(cpu.into()).cast())
    })
}
