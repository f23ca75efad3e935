// SPDX-License-Identifier: GPL-2.0

//! Which CPUs there are.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use crate::bindings;
use kernel::{
    cpu::{nr_cpu_ids, CpuId},
    cpumask::Cpumask,
};

/// The CPUs that run at present. They come and go.
pub fn online_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(online_mask())
}

/// The CPUs that can ever be there. This does not change.
pub fn possible_cpus() -> impl Iterator<Item = CpuId> {
    in_mask(possible_mask())
}

/// Whether `cpu` can ever be there.
#[inline]
pub fn possible(cpu: CpuId) -> bool {
    possible_mask().test(cpu)
}

/// The CPUs in `mask`, ascending.
pub(super) fn in_mask(mask: &Cpumask) -> impl Iterator<Item = CpuId> + '_ {
    (0..nr_cpu_ids())
        .filter_map(CpuId::from_u32)
        .filter(|cpu| mask.test(*cpu))
}

fn online_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global and is always valid. Its bits change under the reader, which is
    // fine: they are tested one at a time with an access that the compiler may not split or repeat.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_online_mask).cast()) }
}

fn possible_mask() -> &'static Cpumask {
    // SAFETY: The mask is a global, always valid, and not written to after boot.
    unsafe { Cpumask::from_raw((&raw const bindings::__cpu_possible_mask).cast()) }
}
