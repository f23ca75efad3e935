// SPDX-License-Identifier: GPL-2.0

//! A copy of mainline's scheduler, `x86_schedule_events()` and `perf_assign_events()`,
//! `arch/x86/events/core.c`, with or without its defects.
//!
//! It shares no code with `rust/logic`, and uses no standard library: the module that calls the
//! kernel's functions (`selftests/assign`) includes it, too.

/// The largest number of events.
pub const MAX: usize = 64;

/// The first fixed counter (`INTEL_PMC_IDX_FIXED`).
const FIXED: u32 = 32;

/// The constraint of an event (`struct event_constraint`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The counters that the event may use (`idxmsk64`).
    pub counters: u64,
    /// `EVENT_CONSTRAINT_OVERLAP`.
    pub overlap: bool,
    /// `PERF_X86_EVENT_PAIR`: the event also uses the next counter.
    pub pair: bool,
}

/// Mainline's defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defects {
    /// `perf_sched_restore_state()` restores `nr_gp` from the saved state, which includes the
    /// counter that it frees.
    pub nr_gp: bool,
    /// `perf_sched_restore_state()` frees only the first counter of a pair ("XXX broken vs
    /// EVENT_PAIR").
    pub pair: bool,
    /// The limit on general-purpose counters is not checked if all events keep their counters.
    pub fast_path: bool,
}

/// Mainline without changes.
pub const AS_IS: Defects = Defects {
    nr_gp: true,
    pair: true,
    fast_path: true,
};

/// Mainline without its defects.
pub const MENDED: Defects = Defects {
    nr_gp: false,
    pair: false,
    fast_path: false,
};

/// `struct sched_state`.
#[derive(Clone, Copy)]
struct State {
    weight: u32,
    event: usize,
    counter: u32,
    unassigned: usize,
    nr_gp: u32,
    used: u64,
}

fn both(pair: bool, counter: u32) -> u64 {
    let bit = 1 << counter;
    if pair {
        bit | (bit << 1)
    } else {
        bit
    }
}

/// Assigns counters like `perf_assign_events()` when `x86_schedule_events()` calls it, which lowers
/// the limit by one for each pair. Returns the counters in the order of `wants`, or `None` if an
/// event gets none.
pub fn assign_events(wants: &[Want], gp_limit: u32, defects: Defects) -> Option<[u8; MAX]> {
    let weight = |event: usize| wants[event].counters.count_ones();
    let mut assigned = [u8::MAX; MAX];
    let Some(min_weight) = (0..wants.len()).map(weight).min() else {
        return Some(assigned);
    };
    let max_weight = (0..wants.len()).map(weight).max()?;
    let pairs = wants.iter().filter(|want| want.pair).count() as u32;
    let gp_max = gp_limit.checked_sub(pairs)?;
    let mut saved: [Option<State>; 2] = [None; 2];
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
            let has = |counter: &u32| want.counters & (1 << counter) != 0;
            let fixed = (FIXED..64).find(|c| has(c) && state.used & (1 << c) == 0);
            let found = match fixed {
                Some(counter) => {
                    state.used |= 1 << counter;
                    Some(counter)
                }
                None => {
                    let free = |c: &u32| has(c) && state.used & both(want.pair, *c) == 0;
                    (state.counter..FIXED).find(free).filter(|counter| {
                        let room = state.nr_gp < gp_max;
                        state.nr_gp += 1;
                        if room {
                            state.used |= both(want.pair, *counter);
                        }
                        room
                    })
                }
            };
            if let Some(counter) = found {
                state.counter = counter;
                if want.overlap {
                    // perf_sched_save_state()
                    if let Some(slot) = saved.iter_mut().find(|slot| slot.is_none()) {
                        *slot = Some(state);
                    }
                }
                break;
            }
            // perf_sched_restore_state()
            state = saved.iter_mut().rev().find_map(Option::take)?;
            let want = wants[state.event];
            let broken = defects.pair || state.counter >= FIXED;
            state.used &= !both(want.pair && !broken, state.counter);
            if !defects.nr_gp && state.counter < FIXED {
                state.nr_gp -= 1;
            }
            state.counter += 1;
        }
        assigned[state.event] = state.counter as u8;

        // perf_sched_next_event()
        state.unassigned -= 1;
        if state.unassigned == 0 {
            return Some(assigned);
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

/// Assigns counters like `x86_schedule_events()`: the previous ones if all events can keep theirs.
pub fn schedule_events(
    wants: &[Want],
    previous: &[Option<u8>],
    gp_limit: u32,
    defects: Defects,
) -> Option<[u8; MAX]> {
    let mut kept = [u8::MAX; MAX];
    let mut used = 0;
    let all = wants
        .iter()
        .zip(previous)
        .zip(&mut kept)
        .all(|((want, previous), kept)| {
            let Some(counter) = *previous else {
                return false;
            };
            *kept = counter;
            let takes = both(want.pair, counter.into());
            let free = want.counters & (1 << counter) != 0 && used & takes == 0;
            used |= takes;
            free
        });
    let gp = (used & 0xffff_ffff).count_ones();
    if all && (defects.fast_path || gp <= gp_limit) {
        return Some(kept);
    }
    assign_events(wants, gp_limit, defects)
}
