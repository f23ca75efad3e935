// SPDX-License-Identifier: GPL-2.0

//! What the scheduler is held against: a complete search, and mainline's algorithm.

// Every test file includes this module, and none needs all of it.
#![allow(dead_code)]

use std::collections::HashSet;

pub(crate) mod mainline;
pub(crate) mod optimum;
pub(crate) mod search;

/// General-purpose counters, as bits.
pub(crate) const GP: u64 = 0xffff_ffff;

/// Whether there is a counter for every one of `wants`, by trying everything.
pub(crate) fn fits(wants: &[u64], gp_limit: u32) -> bool {
    fewest_gp(wants, 0).is_some_and(|needed| needed <= gp_limit)
}

/// The same for many events on few counters: keeps every set of counters that some assignment of
/// the events so far uses.
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

/// With how few general-purpose counters `wants` fit, if they do, by trying everything.
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
