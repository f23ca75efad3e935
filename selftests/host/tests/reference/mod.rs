// SPDX-License-Identifier: GPL-2.0

//! What the scheduler is held against: a complete search, and mainline's algorithm.

// Every test file includes this module, and none needs all of it.
#![allow(dead_code)]

use std::collections::HashSet;

/// General-purpose counters, as bits.
pub(crate) const GP: u64 = 0xffff_ffff;

/// A wish for a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    /// The counters that will do.
    pub(crate) counters: u64,
    /// Mainline's overlap flag.
    pub(crate) overlap: bool,
}

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

/// Mainline's `perf_assign_events()`, `arch/x86/events/core.c:841-1005`, line by line: the number
/// of general-purpose counters in use is not restored when it goes back (`nr_gp`, line 871).
///
/// Gives the counters' indices, or `None` if an event stays without.
pub(crate) fn mainline(wants: &[Want], gp_limit: u32) -> Option<Vec<usize>> {
    #[derive(Clone, Copy)]
    struct State {
        weight: u32,
        event: usize,
        counter: usize,
        unassigned: usize,
        nr_gp: u32,
        used: u64,
    }

    let weight = |event: usize| wants[event].counters.count_ones();
    let min_weight = (0..wants.len()).map(weight).min()?;
    let max_weight = (0..wants.len()).map(weight).max()?;
    let mut assigned = vec![None; wants.len()];
    let mut saved: Vec<State> = Vec::new();
    let mut state = State {
        weight: min_weight,
        event: (0..wants.len()).find(|event| weight(*event) == min_weight)?,
        counter: 0,
        unassigned: wants.len(),
        nr_gp: 0,
        used: 0,
    };

    loop {
        // perf_sched_find_counter()
        loop {
            let want = wants[state.event];
            let free = |counter: &usize| want.counters & !state.used & (1 << counter) != 0;
            let found = match (32..64).find(free) {
                Some(counter) => Some(counter),
                None => match (state.counter..32).find(free) {
                    Some(counter) => {
                        state.nr_gp += 1;
                        (state.nr_gp <= gp_limit).then_some(counter)
                    }
                    None => None,
                },
            };
            if let Some(counter) = found {
                state.used |= 1 << counter;
                state.counter = counter;
                if want.overlap && saved.len() < 2 {
                    saved.push(state);
                }
                break;
            }
            // perf_sched_restore_state(); a state is copied with the nr_gp it was saved with,
            // which counts the counter that is given back here.
            state = saved.pop()?;
            state.used &= !(1 << state.counter);
            state.counter += 1;
        }
        assigned[state.event] = Some(state.counter);

        // perf_sched_next_event()
        state.unassigned -= 1;
        if state.unassigned == 0 {
            return assigned.into_iter().collect();
        }
        loop {
            state.event += 1;
            if state.event >= wants.len() {
                state.event = 0;
                state.weight += 1;
                if state.weight > max_weight {
                    return None;
                }
            }
            if weight(state.event) == state.weight {
                break;
            }
        }
        state.counter = 0;
    }
}
