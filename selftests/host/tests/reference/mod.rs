// SPDX-License-Identifier: GPL-2.0

//! References for the scheduler: complete searches, mainline's algorithm, and the optimum of
//! rotation.

// Every test file includes this module, and each uses only a part of it.
#![allow(dead_code)]

use std::collections::HashSet;

pub(crate) mod mainline;
pub(crate) mod optimum;
pub(crate) mod search;

/// The mask of the general-purpose counters.
pub(crate) const GP: u64 = 0xffff_ffff;

/// Returns whether all of `wants` fit, by trying all assignments.
pub(crate) fn fits(wants: &[u64], gp_limit: u32) -> bool {
    fewest_gp(wants, 0).is_some_and(|needed| needed <= gp_limit)
}

/// Returns the same as [`fits`], for many events on few counters: keeps only the sets of counters
/// that the assignments of the events so far use.
pub(crate) fn fits_by_sets(wants: &[u64], gp_limit: u32) -> bool {
    let mut used = HashSet::from([0u64]);
    for want in wants {
        used = used
            .iter()
            .flat_map(|used| {
                let free = want & !used;
                (0..64)
                    .filter(move |bit| (free >> bit) & 1 != 0)
                    .map(move |bit| used | (1 << bit))
            })
            .filter(|used| (used & GP).count_ones() <= gp_limit)
            .collect();
    }
    !used.is_empty()
}

/// Returns the smallest number of general-purpose counters on which `wants` fit beside the `used`
/// counters, which are included, by trying all assignments. `None` if they do not fit.
pub(crate) fn fewest_gp(wants: &[u64], used: u64) -> Option<u32> {
    let Some((first, rest)) = wants.split_first() else {
        return Some((used & GP).count_ones());
    };
    let mut free = first & !used;
    let mut fewest = None;
    while free != 0 {
        let counter = free & free.wrapping_neg();
        free &= !counter;
        fewest = match (fewest, fewest_gp(rest, used | counter)) {
            (Some(a), Some(b)) => Some(u32::min(a, b)),
            (a, b) => a.or(b),
        };
    }
    fewest
}
